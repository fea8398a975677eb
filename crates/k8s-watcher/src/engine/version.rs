//! What resource versions mean to the engine; how two compare is said in one place, [`compare`].

use std::cmp::Ordering;

pub(crate) use k8s_types::compare_resource_versions as compare;

/// Whether `version` is known to lie before `reference`.
pub(crate) fn is_before(version: &str, reference: &str) -> bool {
    compare(version, reference) == Some(Ordering::Less)
}

/// Whether a version has the form that can be ordered.
pub(crate) fn is_ordered(version: &str) -> bool {
    compare(version, "0").is_some()
}

/// Whether a watch may start from here: a version is there, and it is not the "0" that means
/// "any".
pub(crate) fn is_usable(version: &str) -> bool {
    !version.is_empty() && version != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_without_leading_zeros_are_ordered() {
        for (version, expected) in [("0", true), ("7", true), ("70", true), ("", false), ("07", false), ("a", false)] {
            assert_eq!(is_ordered(version), expected, "{version:?}");
        }
        assert!(is_before("9", "10") && !is_before("10", "10") && !is_before("a", "10"));
    }
}
