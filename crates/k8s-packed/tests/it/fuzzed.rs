//! What must hold for any bytes. Run by the fuzz targets, and by `seeds` over their corpus.

use k8s_packed::{Encoder, Object, Path};
use serde_json::Value;

/// Bytes that are an object say what `serde_json` says they do; other bytes are an error.
pub(crate) fn check_bytes(json: &[u8]) {
    let ignored = [Path::from_steps(["a", "b"].map(|s| k8s_packed::Step::Member(s.into())))];
    let mut encoder = Encoder::new();
    let alone = Object::from_slice(json);
    let shared = encoder.encode(json);
    assert_eq!(alone, shared);
    let pruned = Encoder::new().ignore(&ignored).encode(json);
    let value = serde_json::from_slice::<Value>(json).ok();
    let Ok(object) = alone else {
        // With `arbitrary_precision` serde_json keeps numbers that no f64 can hold.
        let is_number = |v: &Value| v.to_string().contains(['e', 'E', '.']);
        assert!(has(json, br"\u") || !value.is_some_and(|v| v.is_object() && !is_number(&v)), "an object was refused");
        return;
    };
    assert!(pruned.is_ok(), "leaving something out made it unreadable");
    let text = serde_json::to_vec(&object).unwrap();
    // Under its private names serde_json hides texts and numbers: what it makes of those is its affair. So is the
    // sign of an integer zero that it kept as a text.
    let is_special = has(&text, b"$serde_json:") || (has(json, b"-0") && json_keeps_texts());
    if let Some(value) = value.filter(|_| !is_special) {
        assert_eq!(object, Object::from_value(&value).unwrap());
        assert_eq!(object.to_value(), object.decode::<Value>().unwrap());
        // Texts of numbers need not be the same, what they mean must.
        assert_eq!(Object::from_slice(&text).unwrap(), object);
        assert_eq!(serde_json::to_vec(&Object::from_value(&object.to_value()).unwrap()).unwrap().len(), text.len());
    }
    // Through a table that knows the document, and into the next table.
    for name in 0..3 {
        let named = format!(r#"{{"metadata":{{"uid":"{name}"}},"it":{}}}"#, String::from_utf8_lossy(&text));
        if let Ok(object) = encoder.encode(named.as_bytes()) {
            assert_eq!(serde_json::to_string(&object).unwrap(), named);
        }
    }
    let again = encoder.encode(json).unwrap();
    assert_eq!(again, object);
    encoder.start_compaction();
    assert_eq!(encoder.reencode(&again), object);
    assert!(again.same_content(&object) && object.same_content(&again));
    let _ = (object.name(), object.namespace(), object.uid(), object.generation(), object.labels().count());
}

fn has(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).any(|w| w == piece)
}

fn json_keeps_texts() -> bool {
    serde_json::from_str::<Value>("1.50").is_ok_and(|v| v.to_string().ends_with("50"))
}

/// A text that is a path has a canonical form, which is the same path.
pub(crate) fn check_path(text: &str) {
    match text.parse::<Path>() {
        Ok(path) => {
            let canonical = path.to_string();
            let again: Path = canonical.parse().unwrap_or_else(|e| panic!("{canonical}: {e}"));
            assert_eq!(again, path);
            assert_eq!(again.to_string(), canonical);
            assert!(path.covers(&again) && path.is_prefix_of(&again));
            let object = Object::from_slice(br#"{"metadata":{"name":"a","labels":{"a.b/c":"d"}},"a":[[1],{"b":2}]}"#);
            let object = object.unwrap();
            assert_eq!(object.get(&path), object.all(&path).next());
        }
        Err(error) => {
            assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1, "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}
