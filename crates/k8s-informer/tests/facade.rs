//! The facade is the crates and nothing else.

use std::any::TypeId;

const MANIFEST: &str = include_str!("../Cargo.toml");
const SOURCE: &str = include_str!("../src/lib.rs");

/// What the manifest says of a feature.
fn line(feature: &str) -> &'static str {
    let features = MANIFEST.split("[features]").nth(1).expect("features").split("\n[").next().expect("a section");
    features.lines().find(|line| line.starts_with(&format!("{feature} = "))).unwrap_or("")
}

#[test]
fn each_module_is_the_crate_itself() {
    let pairs = [
        (TypeId::of::<k8s_informer::client::Client>(), TypeId::of::<k8s_client::Client>()),
        (TypeId::of::<k8s_informer::types::WatcherConfig>(), TypeId::of::<k8s_types::WatcherConfig>()),
        (TypeId::of::<k8s_informer::watcher::Watcher>(), TypeId::of::<k8s_watcher::Watcher>()),
        (TypeId::of::<k8s_informer::watcher::SingleWatcher>(), TypeId::of::<k8s_watcher::SingleWatcher>()),
        (TypeId::of::<k8s_informer::store::MemoryStore>(), TypeId::of::<k8s_store::MemoryStore>()),
        (TypeId::of::<k8s_informer::indexer::Indexer>(), TypeId::of::<k8s_indexer::Indexer>()),
        (TypeId::of::<k8s_informer::packed::Object>(), TypeId::of::<k8s_packed::Object>()),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn it_has_no_item_of_its_own() {
    let is_known = |line: &&str| {
        let starts = ["//", "#", "pub use k8s_", "struct Readme;"];
        line.is_empty() || starts.iter().any(|start| line.starts_with(start))
    };
    let own: Vec<_> = SOURCE.lines().filter(|line| !is_known(line)).collect();
    assert_eq!(own, [""; 0]);
}

#[test]
fn by_default_there_is_tls_by_rustls_and_each_choice_is_handed_on() {
    assert_eq!(line("default"), r#"default = ["rustls-tls", "ring"]"#);
    for choice in ["rustls-tls", "ring", "aws-lc-rs", "openssl-tls", "http-proxy", "socks5"] {
        assert_eq!(line(choice), format!(r#"{choice} = ["k8s-client/{choice}"]"#));
    }
}

#[test]
fn what_not_everybody_needs_is_a_feature_and_off() {
    assert_eq!(line("cached"), r#"cached = ["k8s-store/cached", "k8s-watcher/cached"]"#);
    assert_eq!(line("metrics"), r#"metrics = ["k8s-watcher/metrics"]"#);
    assert_eq!(line("leader-election"), r#"leader-election = ["dep:k8s-leader-election"]"#);
    assert!(MANIFEST.contains("k8s-leader-election = { workspace = true, optional = true }"));
}

#[cfg(feature = "cached")]
#[test]
fn the_cached_store_is_there_on_request() {
    use k8s_informer::{store::CacheConfig, watcher::WatcherBuilder};

    let _ = WatcherBuilder::cached;
    assert_eq!(TypeId::of::<CacheConfig>(), TypeId::of::<k8s_store::CacheConfig>());
}

#[cfg(feature = "leader-election")]
#[test]
fn leader_election_is_there_on_request() {
    use k8s_informer::leader_election::LeaderElector;

    assert_eq!(TypeId::of::<LeaderElector>(), TypeId::of::<k8s_leader_election::LeaderElector>());
}

#[cfg(all(feature = "rustls-tls", feature = "ring"))]
#[tokio::test]
async fn the_default_features_make_a_client_for_https_and_watchers_of_it() {
    use k8s_informer::types::{SingleWatcherConfig, WatcherConfig};
    use k8s_informer::watcher::{SingleWatcher, Watcher};

    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n";
    let client = k8s_informer::client::ClientConfig::kubeconfig_content(kubeconfig).build().await.expect("TLS");
    let config = WatcherConfig::new("v1/pods").index_by(["metadata.name"]);
    let watcher = Watcher::builder(&client, config).build().expect("a sound configuration");
    assert_eq!(watcher.store().len(), 0);
    let config = SingleWatcherConfig::new("v1/secrets", "shop", "a");
    assert!(SingleWatcher::builder(&client, config).build().is_ok());
}

#[cfg(feature = "metrics")]
#[test]
fn metrics_are_there_on_request() {
    let _ = k8s_informer::watcher::Metrics::register;
}
