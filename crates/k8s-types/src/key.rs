//! Keys by which objects are found: by name, and by index.

use std::{cmp::Ordering, fmt, str::FromStr};

use k8s_packed::Object;

use crate::error::ParseError;

mod index;
pub use index::{IndexKey, IndexKeyBuilder, Segments};

/// The name of an object within its kind: namespace (none for cluster-scoped kinds) and name.
///
/// Ordered by namespace, then name; objects without a namespace come first. Its hash is that of the tuple
/// `(Option<&str>, &str)`, so a table of these can be searched with borrowed parts.
///
/// ```
/// use k8s_types::ObjectKey;
///
/// let key = ObjectKey::new(Some("shop"), "cart");
/// assert_eq!(key.to_string(), "shop/cart");
/// assert_eq!("shop/cart".parse(), Ok(key));
/// assert!(ObjectKey::new(None, "z") < ObjectKey::new(Some("a"), "a"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    namespace: Option<Box<str>>,
    name: Box<str>,
}

impl ObjectKey {
    /// The key of these parts; an empty namespace is the same as none.
    pub fn new(namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey { namespace: namespace.filter(|ns| !ns.is_empty()).map(Box::from), name: name.into() }
    }

    /// The key of this object.
    pub fn of(object: &Object) -> ObjectKey {
        ObjectKey::new(object.namespace(), object.name())
    }

    /// The namespace; none for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compares with parts that are not in a key yet.
    pub fn cmp_parts(&self, namespace: Option<&str>, name: &str) -> Ordering {
        (self.namespace(), self.name()).cmp(&(namespace.filter(|ns| !ns.is_empty()), name))
    }
}

impl From<&Object> for ObjectKey {
    fn from(object: &Object) -> ObjectKey {
        ObjectKey::of(object)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl FromStr for ObjectKey {
    type Err = ParseError;

    /// Parses `namespace/name` or `name`.
    ///
    /// # Errors
    ///
    /// An empty part, or more than one slash.
    fn from_str(text: &str) -> Result<ObjectKey, ParseError> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if namespace == Some("") {
            return Err(ParseError::at(text, 0, "empty namespace"));
        }
        if name.is_empty() {
            return Err(ParseError::at(text, text.len(), "empty name"));
        }
        if let Some(slash) = name.find('/') {
            let offset = text.len() - name.len() + slash;
            return Err(ParseError::at(text, offset, "slash in a name"));
        }
        Ok(ObjectKey::new(namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::ObjectKey;

    #[test]
    fn an_empty_namespace_is_none() {
        assert_eq!(ObjectKey::new(Some(""), "a"), ObjectKey::new(None, "a"));
    }

    #[test]
    fn hash_is_that_of_the_borrowed_parts() {
        let state = RandomState::new();
        let key = ObjectKey::new(Some("shop"), "cart");
        assert_eq!(state.hash_one(&key), state.hash_one((Some("shop"), "cart")));
        let key = ObjectKey::new(None, "cart");
        assert_eq!(state.hash_one(&key), state.hash_one((None::<&str>, "cart")));
    }

    #[test]
    fn order_is_namespace_then_name() {
        let mut keys: Vec<ObjectKey> =
            ["b/a", "a/b", "z", "a/a", "a-b/a"].iter().map(|text| text.parse().expect("key")).collect();
        keys.sort();
        let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
        // Joined text would put a-b/a before a/a.
        assert_eq!(texts, ["z", "a/a", "a/b", "a-b/a", "b/a"]);
        assert!(keys[1].cmp_parts(Some("a"), "a").is_eq());
    }

    #[test]
    fn wrong_texts() {
        for (text, expected) in [
            ("", "empty name at column 1"),
            ("/a", "empty namespace at column 1"),
            ("a/", "empty name at column 3"),
            ("a/b/c", "slash in a name at column 4"),
        ] {
            let error = text.parse::<ObjectKey>().expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
    }
}
