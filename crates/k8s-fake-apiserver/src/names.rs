//! What a name may look like.

use crate::kind::ResourceKind;
use crate::status::FieldError;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
     must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Why the name is not allowed for the kind.
pub(crate) fn check(kind: &ResourceKind, name: &str) -> Option<FieldError> {
    let field = "metadata.name";
    if name.is_empty() {
        return Some(FieldError::required(field, "name or generateName is required"));
    }
    let quoted = format!("{name:?}");
    if kind.group == "rbac.authorization.k8s.io" {
        let bad = name == "." || name == ".." || name.contains(['/', '%']);
        return bad
            .then(|| FieldError::invalid(field, &quoted, "may not contain '/' or '%', and may not be '.' or '..'"));
    }
    if kind.rules.label_names && name.contains('.') {
        return Some(FieldError::invalid(field, &quoted, "must not contain dots"));
    }
    let (ok, text, max) =
        if kind.rules.label_names { (is_label(name), LABEL, 63) } else { (is_subdomain(name), SUBDOMAIN, 253) };
    if name.len() > max {
        return Some(FieldError::invalid(field, &quoted, &format!("must be no more than {max} bytes")));
    }
    (!ok).then(|| FieldError::invalid(field, &quoted, text))
}

pub(crate) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(name: &str) -> bool {
    let bytes = name.as_bytes();
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(plain) && bytes.last().is_some_and(plain) && bytes.iter().all(|b| plain(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_kind() {
        let kinds = crate::kind::built_in();
        let kind = |resource: &str| kinds.iter().find(|k| k.is(resource)).unwrap();
        for (resource, name, ok) in [
            ("v1/configmaps", "a.b-c", true),
            ("v1/configmaps", "Bad_Name", false),
            ("v1/configmaps", "", false),
            ("v1/configmaps", "-a", false),
            ("v1/configmaps", "a..b", false),
            ("v1/namespaces", "a.b", false),
            ("v1/namespaces", "a-b", true),
            ("rbac.authorization.k8s.io/v1/clusterroles", "system:node", true),
            ("rbac.authorization.k8s.io/v1/clusterroles", "a/b", false),
        ] {
            assert_eq!(check(kind(resource), name).is_none(), ok, "{resource} {name}");
        }
        assert!(check(kind("v1/pods"), &"a".repeat(254)).is_some());
    }
}
