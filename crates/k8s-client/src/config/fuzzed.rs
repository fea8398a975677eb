//! What must hold for any bytes of a kubeconfig.

use std::error::Error as _;

use kube::config::Kubeconfig;

use super::{connect, files, select};
use crate::error::Error;

/// What the seeds have for a secret, and the same in base64.
const SECRETS: [&str; 2] = ["hunter2", "aHVudGVyMg"];

/// Any bytes are a configuration or an error without a secret in it. Runs no plugin.
///
/// # Panics
///
/// When that does not hold.
pub fn check_kubeconfig(bytes: &[u8]) {
    let Ok(text) = files::decode(bytes.to_vec()) else { return };
    let kubeconfig = match files::parse(&text, "it") {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => return assert!(secrets_in(&told(&error)).is_empty(), "{}", told(&error)),
    };
    // Names may be in an error: a secret that stands where a name should is none.
    let named = secrets_in(&serde_json::to_string(&without_users(&kubeconfig)).expect("JSON"));
    for context in [None, Some("main"), Some("other"), Some("no such")] {
        let loaded = select::select(kubeconfig.clone(), context, "it".to_owned());
        if let Err(error) = loaded.and_then(connect::prepare) {
            let found = secrets_in(&told(&error));
            assert!(found.iter().all(|secret| named.contains(secret)), "{}", told(&error));
        }
    }
}

fn without_users(kubeconfig: &Kubeconfig) -> Kubeconfig {
    Kubeconfig { auth_infos: vec![], ..kubeconfig.clone() }
}

fn told(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(" {error} {error:?}"));
        cause = error.source();
    }
    text
}

fn secrets_in(text: &str) -> Vec<&'static str> {
    SECRETS.into_iter().filter(|secret| text.contains(secret)).collect()
}
