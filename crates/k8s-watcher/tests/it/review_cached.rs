//! The cached store where reads are lists of one name.

use k8s_fake_apiserver::FakeApiServer;
use k8s_store::{CacheConfig, CachedStore};
use k8s_watcher::{RunningWatcher, Watcher};

use crate::support::*;

async fn cached(server: &FakeApiServer, config: WatcherConfig) -> RunningWatcher<CachedStore> {
    let watcher = Watcher::builder(server.client(), config).cached(CacheConfig::default()).spawn().unwrap();
    watcher.wait_for_sync(LONG).await.unwrap();
    watcher
}

#[tokio::test(start_paused = true)]
async fn a_read_by_a_name_with_the_characters_of_selectors_is_no_error() {
    let server = server([config_map("a", "x")]).await;
    let config = config().label_selector("app=x");
    let watcher = cached(&server, config).await;
    for name in ["a,b", "a=b", "a,metadata.namespace=shop", "a\\"] {
        assert_eq!(watcher.store().by_name(Some("shop"), name).await.unwrap(), None, "{name}");
    }
    assert!(watcher.store().by_name(Some("shop"), "a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_read_through_a_selector_has_its_kind() {
    let server = server([config_map("a", "x")]).await;
    let plain = cached(&server, config()).await;
    let selected = cached(&server, config().label_selector("app=x")).await;
    let read = async |watcher: &RunningWatcher<CachedStore>| {
        watcher.store().by_name(Some("shop"), "a").await.unwrap().unwrap().to_value()
    };
    let whole = read(&plain).await;
    assert_eq!((&whole["apiVersion"], &whole["kind"]), (&"v1".into(), &"ConfigMap".into()));
    assert_eq!(read(&selected).await, whole);
    let only_metadata = cached(&server, config().label_selector("app=x").metadata_only(true)).await;
    let stub = read(&only_metadata).await;
    assert_eq!((&stub["metadata"], stub.get("data")), (&whole["metadata"], None));
}
