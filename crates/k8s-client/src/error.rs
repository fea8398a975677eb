//! What can go wrong while a client is built or used.

use std::fmt;
use std::time::Duration;

use kube::client::AuthError;
use kube::config::KubeconfigError;

use crate::status::StatusError;

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Failure of a [`Client`](crate::Client) or [`ClientConfig`](crate::ClientConfig).
///
/// The message names the operation, the resource and the object; the cause is reached by
/// [`source`](std::error::Error::source). Neither ever holds a token, a password or a response body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kubeconfig or the service account could not be loaded.
    #[error("cannot load {origin}")]
    Config {
        /// What was being loaded: a file, given content, the in-cluster environment.
        origin: String,
        /// Why not.
        source: Cause,
    },
    /// The configuration is readable but no client can be made of it (TLS, credentials, proxy).
    #[error("cannot build a client from {origin}")]
    Build {
        /// What the configuration was loaded from.
        origin: String,
        /// Why not.
        source: Cause,
    },
    /// A client was built outside a Tokio runtime.
    #[error("a client needs a running Tokio runtime")]
    NoRuntime,
    /// The client's own namespace was asked for and nothing names one.
    #[error("own namespace is not known: neither the configuration nor the context nor a service account names one")]
    NoNamespace,
    /// A namespaced kind was addressed without a namespace.
    #[error("{operation}: the kind is namespaced and no namespace was given")]
    NamespaceRequired {
        /// Verb, resource and name.
        operation: String,
    },
    /// A name or a namespace that cannot be part of a request path.
    #[error("{field} {value:?} cannot be part of a path")]
    InvalidName {
        /// `name` or `namespace`.
        field: &'static str,
        /// The value as given.
        value: String,
    },
    /// A setting that cannot be used.
    #[error("{field} {value} is not allowed: it must be {expected}")]
    InvalidSetting {
        /// The setting: `qps` or `burst`.
        field: &'static str,
        /// The value as given.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The server does not serve this resource (now: a CRD may still come).
    #[error("the server does not serve {resource}")]
    KindNotServed {
        /// The resource as text, `group/version/plural`.
        resource: String,
    },
    /// The server answered with an HTTP status that is no success.
    #[error("{operation}: {status}")]
    Status {
        /// Verb, resource and object.
        operation: String,
        /// The server's answer.
        status: Box<StatusError>,
    },
    /// No answer came: connection, TLS, credentials.
    #[error("{operation}: no answer from the server")]
    Transport {
        /// Verb and resource, or method and path.
        operation: String,
        /// Why not.
        source: Cause,
    },
    /// An answer came that is not what was asked for.
    #[error("{operation}: the answer cannot be read")]
    Decode {
        /// Verb, resource and object.
        operation: String,
        /// Why not.
        source: Cause,
    },
}

impl Error {
    pub(crate) fn config(origin: impl Into<String>, source: KubeconfigError) -> Self {
        Self::Config { origin: origin.into(), source: redact_config(source) }
    }

    pub(crate) fn config_text(origin: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Config { origin: origin.into(), source: text.into().into() }
    }

    pub(crate) fn build(origin: impl Into<String>, source: kube::Error) -> Self {
        Self::Build { origin: origin.into(), source: redact(source) }
    }

    pub(crate) fn transport(operation: impl Into<String>, source: kube::Error) -> Self {
        Self::Transport { operation: operation.into(), source: redact(source) }
    }

    /// The HTTP status of the server's answer, if there was one.
    #[must_use]
    pub fn status_code(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(status.code()),
            _ => None,
        }
    }

    /// How long the server asked to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { status, .. } => status.retry_after(),
            _ => None,
        }
    }

    /// The object does not exist (404). False for [`Error::KindNotServed`], where the whole kind is missing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status_code() == Some(404)
    }

    /// The server refuses this identity: 401 or 403.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self.status_code(), Some(401 | 403))
    }

    /// The resourceVersion or continue token is too old (410).
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.status_code() == Some(410)
    }

    /// The server does not serve this kind at all.
    #[must_use]
    pub fn is_kind_not_served(&self) -> bool {
        matches!(self, Self::KindNotServed { .. })
    }

    /// The same request may succeed later without anybody changing anything: no answer, or 408, 429, 500, 502, 503, 504.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transport { .. } => true,
            _ => matches!(self.status_code(), Some(408 | 429 | 500 | 502 | 503 | 504)),
        }
    }
}

/// A cause whose original text could hold a secret, told in our own words.
#[derive(Debug)]
struct Redacted(String);

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Redacted {}

fn told(text: impl Into<String>) -> Cause {
    Box::new(Redacted(text.into()))
}

/// The YAML reader quotes the offending lines, and in a kubeconfig these may be the credentials: keep the position.
fn redact_config(error: KubeconfigError) -> Cause {
    match error {
        KubeconfigError::Parse(e) => told(match e.location() {
            Some(at) => format!("not a valid kubeconfig at line {}, column {}", at.line(), at.column()),
            None => "not a valid kubeconfig".to_owned(),
        }),
        other => Box::new(other),
    }
}

/// kube's wrappers repeat the cause's text in their own, and a few of them quote secrets: unwrap the former, retell the latter.
fn redact(error: kube::Error) -> Cause {
    match error {
        kube::Error::HyperError(e) => Box::new(e),
        kube::Error::Service(e) => match e.downcast() {
            Ok(e) => redact_auth(*e),
            Err(e) => e,
        },
        kube::Error::Auth(e) => redact_auth(e),
        kube::Error::InferKubeconfig(e) => redact_config(e),
        kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            told(format!("proxy scheme {:?} is not supported", proxy_url.scheme_str().unwrap_or("")))
        }
        kube::Error::ProxyProtocolDisabled { proxy_url, protocol_feature } => told(format!(
            "proxy scheme {:?} needs the feature {}",
            proxy_url.scheme_str().unwrap_or(""),
            protocol_feature.trim_start_matches("kube/")
        )),
        other => Box::new(other),
    }
}

/// What kube says about credentials, which is about those of a client handed in: ours are not kube's business.
fn redact_auth(error: AuthError) -> Cause {
    match error {
        // The command line may carry secrets in its environment and stdout is the credential itself; stderr is for people.
        AuthError::AuthExecRun { out, .. } => {
            let words: String = String::from_utf8_lossy(&out.stderr).trim().chars().take(512).collect();
            // Empty also when the plugin may talk to the terminal: then its words went there.
            let words = if words.is_empty() { words } else { format!(": {words}") };
            told(format!("the credential plugin ended with {}{words}", out.status))
        }
        AuthError::AuthExecParse(_) => told("the credential plugin's answer cannot be read"),
        AuthError::ParseTokenKey(_) => told("the token key cannot be read"),
        AuthError::MalformedTokenExpirationDate(_) => told("the token's expiration is no time"),
        other => Box::new(other),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use super::*;

    fn failed_plugin() -> AuthError {
        let (stdout, stderr) = (b"{token: hunter2}".to_vec(), b"log in first\n".to_vec());
        let out = Output { status: ExitStatus::from_raw(256), stdout, stderr };
        AuthError::AuthExecRun { cmd: "PASSWORD=hunter2 plugin".to_owned(), out: Box::new(out) }
    }

    #[test]
    fn a_plugin_of_a_client_handed_in_is_told_without_its_credential() {
        // As kube gives it while it builds a client, and as it gives it for a request.
        for error in [kube::Error::Auth(failed_plugin()), kube::Error::Service(Box::new(failed_plugin()))] {
            let error = Error::transport("get v1/pods shop/cart", error);
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(cause, "the credential plugin ended with exit status: 1: log in first");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn c84_a_proxy_scheme_that_is_not_compiled_in_names_the_feature_and_hides_the_password() {
        let proxy_url = Box::new("socks5://me:hunter2@proxy.test:1080".parse().unwrap());
        let error =
            Error::build("it", kube::Error::ProxyProtocolDisabled { proxy_url, protocol_feature: "kube/socks5" });
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "proxy scheme \"socks5\" needs the feature socks5");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
