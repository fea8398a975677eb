//! The one place where two resource versions are compared.

use std::cmp::Ordering;

/// Orders two resource versions, if they can be ordered.
///
/// Kubernetes promises (KEP-5504) that the versions of one kind are decimal integers of any size
/// without leading zeros, so a longer one is greater and equal lengths compare as text. Servers
/// that do not keep the promise (some aggregated ones) have opaque versions: those are equal or
/// not comparable, and then the order of arrival is all there is.
pub(crate) fn compare(left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    if !is_ordered(left) || !is_ordered(right) {
        return None;
    }
    Some(left.len().cmp(&right.len()).then_with(|| left.cmp(right)))
}

/// Whether `version` is known to lie before `reference`.
pub(crate) fn is_before(version: &str, reference: &str) -> bool {
    compare(version, reference) == Some(Ordering::Less)
}

/// Whether a version has the form that can be ordered.
pub(crate) fn is_ordered(version: &str) -> bool {
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_digit())
        && (version == "0" || !version.starts_with('0'))
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
            assert_eq!(compare(left, right), expected, "{left:?} against {right:?}");
            let reverse = expected.map(Ordering::reverse);
            assert_eq!(compare(right, left), reverse, "{right:?} against {left:?}");
        }
    }
}
