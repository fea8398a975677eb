//! What to watch and how, as plain data.

mod duration;
mod single;
#[cfg(test)]
mod tests;
mod text;
mod transport;
mod watcher;

pub use single::{SingleWatcherConfig, SingleWatcherSpec};
pub use text::{ResourceRef, SelectorRef};
pub use transport::{Backoff, ListMode, Transport};
pub use watcher::{IndexExpression, NamedIndex, WatcherConfig, WatcherSpec};

use crate::{
    error::ConfigError,
    names::{is_dns_label, is_path_segment},
};

fn check_namespace(field: &str, namespace: &str) -> Result<(), ConfigError> {
    match namespace {
        "" => Err(ConfigError::new(field, "empty namespace")),
        name if is_dns_label(name) => Ok(()),
        name => Err(ConfigError::new(field, format!("invalid namespace {name:?}"))),
    }
}

fn check_name(field: &str, name: &str) -> Result<(), ConfigError> {
    match name {
        "" => Err(ConfigError::new(field, "empty name")),
        name if is_path_segment(name) => Ok(()),
        name => Err(ConfigError::new(field, format!("invalid name {name:?}"))),
    }
}

fn check_texts(field: &str, texts: &[String]) -> Result<(), ConfigError> {
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(i) => Err(ConfigError::new(format!("{field}[{i}]"), "empty expression")),
        None => Ok(()),
    }
}
