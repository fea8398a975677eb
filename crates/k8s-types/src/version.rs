//! The one place where two resource versions are compared.

use std::cmp::Ordering;

/// Orders two resource versions of one kind, if they can be ordered.
///
/// Kubernetes promises (KEP-5504) that the versions of one kind are decimal integers of any size without leading zeros,
/// so a longer one is greater and equal lengths compare as text. Servers that do not keep the promise (some aggregated
/// ones) have opaque versions: those are equal or not comparable, and then the order of arrival is all there is.
///
/// ```
/// use std::cmp::Ordering;
/// use k8s_types::compare_resource_versions;
///
/// assert_eq!(compare_resource_versions("99", "100"), Some(Ordering::Less));
/// assert_eq!(compare_resource_versions("a7", "a7"), Some(Ordering::Equal));
/// assert_eq!(compare_resource_versions("a7", "100"), None);
/// ```
pub fn compare_resource_versions(left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    if !is_ordered(left) || !is_ordered(right) {
        return None;
    }
    Some(left.len().cmp(&right.len()).then_with(|| left.cmp(right)))
}

/// Whether a version has the form that can be ordered.
fn is_ordered(version: &str) -> bool {
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_digit())
        && (version == "0" || !version.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_of_any_size_or_opaque() {
        use Ordering::{Equal, Greater, Less};
        let table = [
            ("9", "10", Some(Less)),
            ("10", "9", Some(Greater)),
            ("10", "10", Some(Equal)),
            ("0", "1", Some(Less)),
            ("99999999999999999999999998", "99999999999999999999999999", Some(Less)),
            ("99999999999999999999999999", "100000000000000000000000000", Some(Less)),
            ("abc", "abc", Some(Equal)),
            ("abc", "10", None),
            ("", "10", None),
            ("010", "9", None),
            ("-1", "1", None),
            ("1.5", "2", None),
        ];
        for (left, right, expected) in table {
            assert_eq!(compare_resource_versions(left, right), expected, "{left:?} against {right:?}");
            let reverse = expected.map(Ordering::reverse);
            assert_eq!(compare_resource_versions(right, left), reverse, "{right:?} against {left:?}");
        }
    }
}
