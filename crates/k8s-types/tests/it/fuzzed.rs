//! What must hold for any text. Run by the fuzz targets, and by `seeds` over their corpus.

use std::collections::BTreeMap;

use k8s_types::{Gvr, LabelSelector, ParseError, WatcherConfig};

/// A text that is a resource is its own canonical form.
pub(crate) fn check_gvr(text: &str) {
    match text.parse::<Gvr>() {
        Ok(gvr) => {
            assert_eq!(gvr.to_string(), text);
            assert_eq!(gvr.validate(), Ok(()));
            assert_eq!(serde_json::from_value::<Gvr>(serde_json::to_value(&gvr).unwrap()).unwrap(), gvr);
            assert_eq!(Gvr::new(gvr.group(), gvr.version(), gvr.resource()), gvr);
        }
        Err(error) => check_error(text, &error),
    }
}

/// A text that is a label selector has a canonical form, which selects the same; so has its JSON.
pub(crate) fn check_label_selector(text: &str) {
    match text.parse::<LabelSelector>() {
        Ok(selector) => {
            assert_eq!(selector.validate(), Ok(()));
            let canonical = selector.to_string();
            let again: LabelSelector = canonical.parse().unwrap_or_else(|e| panic!("{canonical}: {e}"));
            assert_eq!(again.to_string(), canonical);
            let json = serde_json::to_string(&selector).unwrap();
            assert_eq!(serde_json::from_str::<LabelSelector>(&json).unwrap(), selector);
            for labels in [&[][..], &[("a", "")], &[("a", "b"), ("app", "web")], &[("a", "7"), ("tier", "x")]] {
                let labels: BTreeMap<_, _> = labels.iter().copied().collect();
                let label = |key: &str| labels.get(key).copied();
                assert_eq!(selector.matches_with(label), again.matches_with(label), "{labels:?}");
            }
        }
        Err(error) => check_error(text, &error),
    }
}

/// What JSON says of a watcher is said again by its JSON; whether it is sound can be asked.
pub(crate) fn check_config(json: &[u8]) {
    let Ok(config) = serde_json::from_slice::<WatcherConfig>(json) else { return };
    let again = serde_json::to_vec(&config).unwrap();
    let again: WatcherConfig = serde_json::from_slice(&again).unwrap_or_else(|e| panic!("{again:?}: {e}"));
    assert_eq!(again, config);
    assert_eq!(again.validate(), config.validate());
    if let Err(error) = config.validate() {
        assert!(!error.field().is_empty() && !error.message().is_empty(), "{error}");
    }
}

fn check_error(text: &str, error: &ParseError) {
    assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1, "{error}");
    assert!(!error.message().is_empty());
}
