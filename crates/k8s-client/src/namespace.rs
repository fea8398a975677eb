//! Where the client's own namespace comes from.

use std::io;
use std::path::Path;

/// The folder in which Kubernetes mounts a Pod's service account.
pub(crate) const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The namespace named in a service account's folder; `None` when there is no such file or it is empty.
pub(crate) fn of_service_account(folder: &Path) -> Option<String> {
    match std::fs::read_to_string(folder.join("namespace")) {
        Ok(text) => non_empty(&text),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::debug!(%error, "the service account's namespace cannot be read");
            }
            None
        }
    }
}

/// `text` without surrounding space, or `None` when nothing is left.
pub(crate) fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_trimmed_and_its_absence_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_service_account(folder.path()), None);
        for (content, expected) in [("shop\n", Some("shop")), ("  ", None), ("", None)] {
            std::fs::write(folder.path().join("namespace"), content).unwrap();
            assert_eq!(of_service_account(folder.path()).as_deref(), expected, "{content:?}");
        }
    }
}
