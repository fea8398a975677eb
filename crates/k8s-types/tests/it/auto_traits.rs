//! Public types go between threads, and keys stay small.

use k8s_types::{
    Change, ChangeStats, ConfigError, Gvr, IndexKey, LabelSelector, ObjectKey, ParseError, SelfWriteFilter,
    SingleWatcherConfig, WatcherConfig,
};

fn shared<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn public_types_are_send_and_sync() {
    shared::<Change>();
    shared::<ChangeStats>();
    shared::<ConfigError>();
    shared::<Gvr>();
    shared::<IndexKey>();
    shared::<LabelSelector>();
    shared::<ObjectKey>();
    shared::<ParseError>();
    shared::<SingleWatcherConfig>();
    shared::<WatcherConfig>();
    shared::<Box<dyn SelfWriteFilter>>();
}

#[test]
fn keys_are_small() {
    assert_eq!(size_of::<IndexKey>(), 16);
    assert_eq!(size_of::<ObjectKey>(), 32);
}
