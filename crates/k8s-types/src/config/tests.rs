use std::time::Duration;

use serde_json::json;

use crate::{
    Backoff, Gvr, IndexExpression, LabelOperator, LabelRequirement, LabelSelector, ListMode, SingleWatcherConfig,
    WatcherConfig,
};

fn pods() -> WatcherConfig {
    WatcherConfig::new("v1/pods").index_by(["metadata.namespace"])
}

fn check_error(config: &WatcherConfig, expected: &str) {
    let error = config.validate().expect_err(expected);
    assert_eq!(error.to_string(), expected);
    // What is wrong stays wrong on its way through a file.
    let text = serde_json::to_string(config).expect("json");
    let read: WatcherConfig = serde_json::from_str(&text).expect(&text);
    assert_eq!(&read, config);
    assert_eq!(read.validate(), Err(error));
}

#[test]
fn defaults_are_the_documented_ones() {
    let config = pods();
    assert_eq!(config.validate(), Ok(()));
    let spec = config.spec();
    assert_eq!(spec.resource.gvr(), Ok(&Gvr::new("", "v1", "pods")));
    assert_eq!(spec.namespaces, None);
    assert_eq!(spec.debounce, Duration::from_millis(100));
    assert!(!spec.call_on_change_during_sync && !spec.keep_managed_fields && !spec.metadata_only);
    assert_eq!(spec.transport.list_mode, ListMode::Streaming);
    assert_eq!(spec.transport.page_size, 500);
    assert_eq!(spec.transport.watch_timeout, Duration::from_secs(290));
    assert!(spec.transport.idle_limit < Duration::from_secs(360));
    let minimal: WatcherConfig =
        serde_json::from_value(json!({"resource": "v1/pods", "indexBy": ["metadata.namespace"]})).expect("config");
    assert_eq!(minimal, config);
}

#[test]
fn zero_debounce_is_off_and_no_error() {
    let config = pods().debounce(Duration::ZERO);
    assert_eq!(config.validate(), Ok(()));
    assert!(config.spec().debounce.is_zero());
}

#[test]
fn a_wrong_setting_is_named() {
    check_error(
        &WatcherConfig::new("pods").index_by(["metadata.name"]),
        "resource: version missing at column 5: \
         write VERSION/PLURAL for the core group, else GROUP/VERSION/PLURAL",
    );
    let error = WatcherConfig::new(Gvr::new("", "v1", "Pod")).index_by(["a"]).validate();
    assert_eq!(error.expect_err("kind").field(), "resource");
    check_error(&WatcherConfig::new("v1/pods"), "index_by: no expression");
    check_error(&pods().index_by(["a", " "]), "index_by[1]: empty expression");
    check_error(&pods().namespaces([""; 0]), "namespaces: empty list");
    check_error(&pods().namespaces(["a", ""]), "namespaces[1]: empty namespace");
    check_error(&pods().namespace(""), "namespaces[0]: empty namespace");
    check_error(&pods().namespace("a/b"), "namespaces[0]: invalid namespace \"a/b\"");
    check_error(&pods().namespace("a").namespaced_watch(true), "namespaced_watch: set together with namespaces");
    check_error(&pods().label_selector("app in"), "label_selector: expected '(', found the end at column 7");
    check_error(
        &pods().label_selector(LabelSelector::new().require(LabelRequirement::new("app", LabelOperator::In, [""; 0]))),
        "label_selector: matchExpressions[0]: In without values",
    );
    check_error(&pods().field_selector(" "), "field_selector: empty selector");
    check_error(&pods().server_field_selector(""), "server_field_selector: empty selector");
    check_error(&pods().named_index("", ["a"]), "named_indexes[0]: empty name");
    check_error(&pods().named_index("n", [""; 0]), "named_indexes[0].expressions: no expression");
    check_error(&pods().named_index("n", ["a"]).named_index("n", ["b"]), "named_indexes[1]: name \"n\" is taken");
    check_error(&pods().ignore_fields(["a", ""]), "ignore_fields[1]: empty expression");
    check_error(&pods().page_size(0), "page_size: zero");
    check_error(&pods().watch_timeout(Duration::ZERO), "watch_timeout: less than a second");
    check_error(&pods().idle_limit(Duration::ZERO), "idle_limit: less than 3 seconds");
    let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(1));
    check_error(&pods().backoff(backoff), "backoff.max: less than backoff.initial");
    let (nanosecond, year) = (Duration::from_nanos(1), Duration::from_secs(365 * 24 * 3600));
    check_error(&pods().backoff(Backoff::new(nanosecond, nanosecond)), "backoff.initial: less than 10 ms");
    check_error(&pods().idle_limit(Duration::from_millis(2_999)), "idle_limit: less than 3 seconds");
    check_error(&pods().watch_timeout(year), "watch_timeout: more than 30 days");
    check_error(&pods().watch_timeout(Duration::MAX), "watch_timeout: more than 30 days");
    check_error(&pods().backoff(Backoff::default().factor(0.5)), "backoff.factor: less than 1 or not finite");
}

#[test]
fn everything_round_trips_through_json() {
    let config = WatcherConfig::new("networking.k8s.io/v1/ingresses")
        .namespaces(["b", "a", "b"])
        .label_selector("app=web,tier in (a,b)")
        .field_selector("metadata.labels.team=red")
        .server_field_selector("metadata.name=x")
        .index_by([IndexExpression::new("metadata.namespace"), IndexExpression::multi_valued("spec.rules[*].host")])
        .named_index("by-class", ["spec.ingressClassName"])
        .ignore_fields(["status"])
        .keep_managed_fields(true)
        .metadata_only(true)
        .debounce(Duration::from_micros(1_500))
        .call_on_change_during_sync(true)
        .list_mode(ListMode::Paged)
        .page_size(50)
        .watch_timeout(Duration::from_secs(60))
        .idle_limit(Duration::from_millis(3_500))
        .backoff(Backoff::new(Duration::from_millis(15), Duration::from_secs(2)).factor(1.5));
    let value = serde_json::to_value(&config).expect("json");
    assert_eq!(value["debounce"], "1500us");
    assert_eq!(value["transport"]["idleLimit"], "3500ms");
    assert_eq!(value["indexBy"][1], json!({"expression": "spec.rules[*].host", "multiValued": true}));
    assert_eq!(value["labelSelector"]["matchLabels"]["app"], "web");
    assert_eq!(serde_json::from_value::<WatcherConfig>(value).expect("config"), config);
    assert_eq!(config.spec().distinct_namespaces(), Some(vec!["b", "a"]));
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn a_misspelled_field_is_refused() {
    let value = json!({"resource": "v1/pods", "indexBy": ["a"], "labelSelecter": "app=web"});
    let error = serde_json::from_value::<WatcherConfig>(value).expect_err("unknown field");
    assert!(error.to_string().contains("labelSelecter"), "{error}");
}

#[test]
fn single_object() {
    let config = SingleWatcherConfig::new("v1/secrets", "haproxy", "credentials")
        .ignore_fields(["metadata.annotations"])
        .page_size(1);
    assert_eq!(config.validate(), Ok(()));
    let text = serde_json::to_string(&config).expect("json");
    assert_eq!(serde_json::from_str::<SingleWatcherConfig>(&text).expect("config"), config);
    for (config, expected) in [
        (SingleWatcherConfig::new("v1/secrets", "", "a"), "namespace: empty namespace"),
        (SingleWatcherConfig::new("v1/secrets", "n", ""), "name: empty name"),
        (SingleWatcherConfig::new("v1/secrets", "n", "a/b"), "name: invalid name \"a/b\""),
        (SingleWatcherConfig::cluster_scoped("v1/nodes", ".."), "name: invalid name \"..\""),
    ] {
        assert_eq!(config.validate().expect_err(expected).to_string(), expected);
    }
    // Names of RBAC objects have colons.
    let role = SingleWatcherConfig::cluster_scoped("rbac.authorization.k8s.io/v1/clusterroles", "system:node");
    assert_eq!(role.validate(), Ok(()));
}

#[test]
fn backoff_grows_to_its_maximum_whatever_the_numbers() {
    let backoff = Backoff::default();
    let delays: Vec<u128> = (0..8).map(|n| backoff.delay(n).as_millis()).collect();
    assert_eq!(delays, [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    let odd = Backoff::new(Duration::MAX, Duration::MAX).factor(f64::NAN);
    assert_eq!(odd.delay(3), Duration::MAX);
    assert_eq!(Backoff::default().factor(-2.0).delay(1), Duration::from_secs(30));
}
