//! `build()` fails fast, names the field, sends nothing and spawns nothing.

use std::time::Duration;

use k8s_fake_apiserver::Any;
use k8s_types::{Backoff, IndexExpression, WatcherConfig};
use k8s_watcher::Watcher;

use crate::support::*;

fn index() -> WatcherConfig {
    WatcherConfig::new("v1/pods").index_by(["metadata.namespace", "metadata.name"])
}

#[tokio::test(start_paused = true)]
async fn each_error_names_its_field() {
    let table: Vec<(WatcherConfig, &str)> = vec![
        (WatcherConfig::new("pods").index_by(["metadata.name"]), "resource: "),
        (WatcherConfig::new("").index_by(["metadata.name"]), "resource: "),
        (WatcherConfig::new("v1/Pods").index_by(["metadata.name"]), "resource: "),
        (WatcherConfig::new("v1/pods"), "index_by: no expression"),
        (index().index_by([""]), "index_by[0]: empty expression"),
        (index().index_by(["metadata.name", "metadata.labels['"]), "index_by[1]: unclosed quote at column 17"),
        (index().index_by(["metadata.name", "metadata.labels['app"]), "index_by[1]: unclosed quote at column 17"),
        (index().index_by(["$.metadata["]), "index_by[0]: "),
        (index().index_by(["metadata.labels.app.kubernetes.io/name"]), "index_by[0]: "),
        (index().named_index("node", ["spec.["]), "named_indexes[0].expressions[0]: "),
        (index().named_index("", ["spec.a"]), "named_indexes[0]: empty name"),
        (index().named_index("a", ["spec.a"]).named_index("a", ["spec.b"]), "named_indexes[1]: name \"a\" is taken"),
        (index().named_index("a", Vec::<String>::new()), "named_indexes[0].expressions: no expression"),
        (index().namespaces(Vec::<String>::new()), "namespaces: empty list"),
        (index().namespaces(["a", ""]), "namespaces[1]: "),
        (index().namespace("a/b"), "namespaces[0]: "),
        (index().namespace("a").namespaced_watch(true), "namespaced_watch: set together with namespaces"),
        (index().label_selector("app in"), "label_selector: "),
        (index().label_selector("app=x,,"), "label_selector: "),
        (index().field_selector("spec.nodeName"), "field_selector: "),
        (index().field_selector("spec.nodeName!=n1"), "field_selector: "),
        (index().field_selector("a=1,b=2"), "field_selector: "),
        (index().field_selector(" "), "field_selector: empty selector"),
        (index().server_field_selector(""), "server_field_selector: empty selector"),
        (index().ignore_fields(["status", "metadata["]), "ignore_fields[1]: "),
        (index().ignore_fields(["items[?(@.a)]"]), "ignore_fields[0]: more than a plain path"),
        (index().ignore_fields(["metadata"]), "ignore_fields[0]: path covers metadata.name"),
        (index().ignore_fields(["metadata.uid"]), "ignore_fields[0]: path covers metadata.uid"),
        (index().ignore_fields(["metadata.resourceVersion"]), "ignore_fields[0]: path covers metadata.resourceVersion"),
        (index().ignore_fields(["metadata.namespace"]), "ignore_fields[0]: "),
        (
            index().index_by(["spec.nodeName"]).ignore_fields(["status", "spec"]),
            "ignore_fields[1]: spec is needed by index_by[0]",
        ),
        (
            index().index_by(["$.spec.containers[?(@.name=='a')].image"]).ignore_fields(["spec.containers"]),
            "ignore_fields[0]: spec.containers is needed by index_by[0]",
        ),
        (
            index().named_index("n", ["metadata.name", "spec.nodeName"]).ignore_fields(["spec.nodeName"]),
            "ignore_fields[0]: spec.nodeName is needed by named_indexes[0].expressions[1]",
        ),
        (
            index().field_selector("spec.nodeName=n1").ignore_fields(["spec"]),
            "ignore_fields[0]: spec is needed by field_selector",
        ),
        (index().metadata_only(true).index_by(["spec.nodeName"]), "index_by[0]: spec.nodeName is no metadata"),
        (
            index().metadata_only(true).named_index("n", ["spec.nodeName"]),
            "named_indexes[0].expressions[0]: spec.nodeName is no metadata",
        ),
        (
            index().metadata_only(true).field_selector("spec.nodeName=n1"),
            "field_selector: spec.nodeName is no metadata",
        ),
        (
            index().index_by(["metadata.managedFields[0].manager"]),
            "index_by[0]: metadata.managedFields is dropped (keep_managed_fields)",
        ),
        (
            index().field_selector("metadata.managedFields[0].manager=kubectl"),
            "field_selector: metadata.managedFields is dropped (keep_managed_fields)",
        ),
        (index().page_size(0), "page_size: zero"),
        (index().idle_limit(Duration::ZERO), "idle_limit: less than 3 seconds"),
        (index().watch_timeout(ms(999)), "watch_timeout: less than a second"),
        (index().backoff(Backoff::new(Duration::ZERO, secs(1))), "backoff.initial: zero"),
        (index().backoff(Backoff::new(secs(2), secs(1))), "backoff.max: less than backoff.initial"),
        (index().backoff(Backoff::default().factor(0.5)), "backoff.factor: "),
    ];
    let server = fake().start().await.unwrap();
    for (config, expected) in table {
        let error = Watcher::builder(server.client(), config).build().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error:?} for {expected:?}");
    }
    settle(secs(60)).await;
    assert_eq!(server.journal().count(Any::request()), 0);
}

#[tokio::test(start_paused = true)]
async fn sound_configurations_build() {
    let server = fake().start().await.unwrap();
    for config in [
        index(),
        index().index_by([IndexExpression::multi_valued("spec.rules[*].host")]),
        index().index_by(["$.metadata.name", "{.metadata.namespace}"]),
        index().index_by(["spec.nodeName"]).ignore_fields(["status", "spec.containers[*].env"]),
        index().metadata_only(true).field_selector("metadata.labels.app=x"),
        index().keep_managed_fields(true).index_by(["metadata.managedFields[0].manager"]),
        index().label_selector(""),
        index().debounce(Duration::ZERO),
        index().debounce(Duration::MAX),
        WatcherConfig::new("networking.k8s.io/v1/ingresses").index_by(["metadata.name"]),
    ] {
        drop(Watcher::builder(server.client(), config).build().expect("sound"));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_or_spawned_before_it_runs() {
    let server = server(many(3)).await;
    // The client's own worker; discovery would need another request.
    let client = server.client();
    settle(ms(1)).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let config = config().namespaces(["shop", "pay"]);
    let watcher = Watcher::builder(client, config).on_change(|_| ()).build().unwrap();
    settle(secs(60)).await;
    assert_eq!((server.journal().count(Any::request()), tasks()), (0, before));
    assert_eq!(watcher.store().len(), 0);
    assert!(!watcher.is_synced() && !watcher.is_stopped());
    assert_eq!(watcher.status(), k8s_watcher::Status::default());
    assert_eq!(watcher.resource().to_string(), MAPS);
}

#[tokio::test]
async fn namespaced_watch_needs_a_client_that_knows_its_namespace() {
    let server = fake().default_namespace("").start().await.unwrap();
    let error = Watcher::builder(server.client(), index().namespaced_watch(true)).build().unwrap_err();
    assert_eq!(error.field(), "namespaced_watch");
}
