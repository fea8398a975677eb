//! The shapes that names, label keys and label values have in the Kubernetes API.

/// A DNS label: at most 63 of `[a-z0-9-]`, beginning and ending with a letter or digit.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(|b| alnum(*b))
        && bytes.last().is_some_and(|b| alnum(*b))
        && bytes.iter().all(|b| alnum(*b) || *b == b'-')
}

/// DNS labels joined by dots, at most 253 characters.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

/// What the API accepts as a name in a URL, whatever the kind.
pub(crate) fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%'])
}

/// The part of a label key behind the prefix, and label values: at most 63 of `[A-Za-z0-9_.-]`, beginning and ending
/// with a letter or digit.
fn is_label_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// A label key: a name, optionally behind a DNS subdomain and a slash.
pub(crate) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// A label value: empty or a name.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}
