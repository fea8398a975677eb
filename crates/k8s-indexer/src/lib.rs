//! Index keys and field selectors for Kubernetes objects by JSONPath.
//!
//! An [`Indexer`] is the compiled plan of one index: expressions that give an object its composite key. A
//! [`FieldSelector`] picks objects by one value. Both are pure functions over packed [`Object`](k8s_packed::Object)s:
//! no I/O, no state. The stores of `k8s-store` own such plans; use this crate by itself to check expressions
//! ([`validate`]) or to compute keys.
//!
//! # Examples
//!
//! ```
//! use k8s_indexer::{FieldSelector, Indexer};
//! use k8s_packed::object;
//! use k8s_types::IndexKey;
//!
//! let by_service = Indexer::new(["metadata.namespace", "metadata.labels['kubernetes.io/service-name']"])?;
//! let slice = object!({
//!     "kind": "EndpointSlice",
//!     "metadata": {
//!         "name": "cart-x7k2p",
//!         "namespace": "shop",
//!         "labels": {"kubernetes.io/service-name": "cart"},
//!     },
//!     "ports": [{"port": 8080}],
//! });
//! assert_eq!(by_service.keys_of(&slice).as_slice(), [IndexKey::from_segments(["shop", "cart"])]);
//!
//! let selector: FieldSelector = "ports[0].port=8080".parse()?;
//! assert!(selector.matches(&slice));
//!
//! let error = k8s_indexer::validate("metadata.labels.kubernetes.io/service-name").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "unescaped dots in a label key at column 17: write metadata.labels['kubernetes.io/service-name']",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Two dialects
//!
//! An expression that begins with `$` is strict RFC 9535. Any other is kubectl's: `metadata.name`, `.metadata.name`
//! and `{.metadata.name}` are the same.
//!
//! | kubectl's dialect | meaning |
//! | --- | --- |
//! | `spec.rules[0].host`, `[-1]` | an item, counted from the start or the end |
//! | `spec.rules[*].host`, `metadata.labels.*` | all items or values |
//! | `metadata.labels['app.kubernetes.io/name']`, with `"`, `metadata.labels.app\.kubernetes\.io/name` | a name with dots |
//! | `items[0:2]`, `[-1:]`, `[::2]` | a slice; it clamps to what is there |
//! | `['a','b']`, `[0,2]` | a union |
//! | `..name` | a recursive descent |
//! | `[?(@.type=="Ready")]`, `[?(@.ports)]` | a filter: one comparison (`==`, `!=`, `<`, `<=`, `>`, `>=`) or existence |
//!
//! A label or annotation key whose dots are not escaped is an error that shows the right spelling. So are templates:
//! `{range}`, text outside the braces, several groups of braces.
//!
//! Where an expression of kubectl's dialect works in kubectl too, both give the same values, with these differences:
//!
//! - null is no value; kubectl prints `null`.
//! - An index or slice beyond the array, an index on a map and a filter on a scalar give nothing; kubectl fails.
//!   Slices clamp. `[*]` and filters work on maps too.
//! - Names in brackets need no backslashes, may be in double quotes and may have blanks and commas; for kubectl
//!   `['a.b']` is two names, and a backslash before each dot is right for both.
//! - The values of maps come in document order (plain paths) or in `serde_json`'s order; kubectl's order is random.
//! - A union gives its values item by item (`a[*]['x','y']` is x, y, x, y), as RFC 9535 says; kubectl gives all x
//!   first.
//! - A filter compares values of different types as unequal; kubectl fails.
//! - An unescaped quote, bracket, comma, `$`, `@`, `*` or `?` in a dotted name is an error.
//! - A number with an exponent or a fraction of zero has the text of its integer; see below.
//!
//! # The text of a value
//!
//! | JSON | key |
//! | --- | --- |
//! | `"web"` | `web`, as it is |
//! | `8080`, `8080.0`, `"8080"` | `8080` |
//! | `1e3` | `1000` |
//! | `-0.0` | `0` |
//! | `9007199254740993` | `9007199254740993`: integers are exact over the ranges of `i64` and `u64` |
//! | `0.1`, `1.5e-9`, `1e21` | `0.1`, `1.5e-9`, `1e21`: the shortest text that reads back; an exponent below 1e-7 and from 1e21 |
//! | `true` | `true` |
//! | `null` | none: as if it were not there |
//! | `[]`, `{}` | none: counted by [`Keys::not_scalar`] |
//!
//! # First, all, missing
//!
//! Unless an expression is multi-valued its first result counts. A null is no result; an array or a map is one, so
//! nothing behind it is looked at. What follows from a missing value is told at [`Indexer`]: the object is never
//! dropped, and never found under a key that it has no more.
//!
//! # Cost
//!
//! Members, indexes and wildcards ([`Path`](k8s_packed::Path)) are read from the packed bytes without allocation.
//! Everything else makes a `serde_json::Value` of the part below the expression's plain beginning and queries that:
//! correct, and some microseconds for each object.
//!
//! # Features
//!
//! None. The minimum supported Rust version is 1.89; a rise is a minor release.
#![forbid(unsafe_code)]

mod dialect;
mod error;
mod expression;
mod ignore;
mod key;
mod normalize;
mod query;
mod selector;

pub use error::{ExpressionError, IndexerError};
pub use expression::{Expression, validate};
pub use ignore::ignored_paths;
pub use k8s_types::IndexExpression;
pub use key::{Indexer, Keys, MAX_KEYS};
pub use selector::FieldSelector;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
