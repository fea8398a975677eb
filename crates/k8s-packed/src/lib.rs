//! Kubernetes objects as compact immutable bytes: decoded once from JSON, read without allocation, a serde citizen.
//!
//! A cache of a cluster mostly holds what nobody reads: of each object a controller looks at a few fields, now
//! and then. A tree of heap maps for each is the wrong shape for that. An [`Object`] is one allocation, a fraction of
//! the JSON in size, made in one pass over the bytes from the wire; fields are found by stepping over
//! the others.
//!
//! - One object by itself: [`Object::from_slice`], [`Object::from_value`], [`object!`].
//! - Many that resemble each other: an [`Encoder`], which keeps what they have in common once.
//! - A field: [`Object::get`] with a [`Path`] parsed beforehand. All of it, typed: [`Object::decode`].
//!
//! The bytes are for memory only. They are never written anywhere, and their layout may change with any version.
//!
//! # Examples
//!
//! ```
//! use k8s_packed::{Encoder, Path};
//!
//! let mut encoder = Encoder::new();
//! let json = br#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
//!     "metadata":{"name":"cart-x7k2p","namespace":"shop","resourceVersion":"71"},
//!     "endpoints":[{"addresses":["10.0.0.7"]},{"addresses":["10.0.0.8","10.0.0.9"]}]}"#;
//! let slice = encoder.encode(json)?;
//!
//! assert_eq!(slice.resource_version(), Some("71"));
//! let addresses: Path = "endpoints[*].addresses[*]".parse()?;
//! let found: Vec<_> = slice.all(&addresses).filter_map(|a| a.as_str()).collect();
//! assert_eq!(found, ["10.0.0.7", "10.0.0.8", "10.0.0.9"]);
//! assert_eq!(slice.to_value(), serde_json::from_slice::<serde_json::Value>(json)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is kept
//!
//! Everything that JSON can say: integers exact over the ranges of `i64` and `u64`, floats to the bit, the order
//! of members, fields that no type knows. The last of duplicate members wins. Values may be nested 127 levels
//! deep, as `serde_json` reads them. All of it holds as well when another crate of the build turns on
//! `serde_json`'s features `arbitrary_precision` or `preserve_order`.
//!
//! # Features
//!
//! None. The minimum supported Rust version is 1.89; a rise is a minor release.
#![forbid(unsafe_code)]

mod decode;
mod encode;
mod equality;
mod error;
mod interner;
mod layout;
mod lookup;
mod object;
mod path;
mod path_tree;
mod redact;
mod seen;
mod symbols;
mod value;

pub use encode::{Encoder, ObjectSeed};
pub use error::Error;
pub use lookup::All;
pub use object::{Labels, Object};
pub use path::{Path, PathError, Step};
pub use value::{ArrayRef, Items, MapRef, Members, Number, ValueRef};

/// An [`Object`] from a literal, with the syntax of `serde_json::json!`.
///
/// # Panics
///
/// When the literal is no map, or nested deeper than an object can be: a mistake in the source.
///
/// # Examples
///
/// ```
/// let app = "cart";
/// let pod = k8s_packed::object!({"metadata": {"name": "cart-0", "labels": {"app": app}}});
/// assert_eq!(pod.label("app"), Some("cart"));
/// ```
#[macro_export]
macro_rules! object {
    ($($json:tt)+) => {
        $crate::Object::from_value(&$crate::__private::json!($($json)+)).expect("the literal is an object")
    };
}

#[doc(hidden)]
pub mod __private {
    pub use serde_json::json;
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
