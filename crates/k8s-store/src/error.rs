//! What a read, a plan or a store filled by hand can be refused for.

/// Why a store refused something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A read gave more segments than the index has expressions.
    #[error("{given} key segment{} for an index of {expressions} expression{}", plural(*.given), plural(*.expressions))]
    TooManySegments {
        /// Segments of the read.
        given: usize,
        /// Expressions of the index.
        expressions: usize,
    },
    /// A read named an index that the store does not have.
    #[error("index {name:?} does not exist; known: {}", listed(.known))]
    UnknownIndex {
        /// The name that was asked for.
        name: String,
        /// The names of the indexes that exist.
        known: Vec<String>,
    },
    /// A plan gives one name to two indexes.
    #[error("index {name:?} is defined twice")]
    DuplicateIndex {
        /// The name.
        name: String,
    },
    /// An object that was given to a store has no `metadata.name`.
    #[error("object {position} has no metadata.name")]
    Unnamed {
        /// Its position among the given objects, from 0.
        position: usize,
    },
    /// Two of the given objects have the same namespace and name.
    #[error("object {object:?} is given twice")]
    DuplicateObject {
        /// `namespace/name`, or `name` alone for a cluster-scoped object.
        object: String,
    },
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_was_asked_and_what_there_is() {
        let check = |error: Error, expected: &str| assert_eq!(error.to_string(), expected);
        check(Error::TooManySegments { given: 3, expressions: 2 }, "3 key segments for an index of 2 expressions");
        check(Error::TooManySegments { given: 2, expressions: 1 }, "2 key segments for an index of 1 expression");
        check(
            Error::UnknownIndex { name: "by-node".into(), known: vec!["by-zone".into(), "by-ip".into()] },
            "index \"by-node\" does not exist; known: by-zone, by-ip",
        );
        check(Error::UnknownIndex { name: "x".into(), known: vec![] }, "index \"x\" does not exist; known: none");
        check(Error::DuplicateObject { object: "shop/cart".into() }, "object \"shop/cart\" is given twice");
    }
}
