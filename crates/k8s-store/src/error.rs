//! What a read, a plan or a store filled by hand can be refused for.
use std::sync::Arc;
use std::time::Duration;

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
    /// A cached store could not fetch the one object that was asked for.
    #[error("object {object:?} could not be fetched")]
    Fetch {
        /// `namespace/name`, or `name` alone for a cluster-scoped object.
        object: String,
        /// Why.
        source: FetchError,
    },
    /// A cached store could not fetch all of several objects. Those that it could are cached: the next read asks for
    /// the others only.
    #[error("{failed} of {wanted} objects could not be fetched ({}){}", shown(.objects, *.failed), not_tried(*.untried))]
    Incomplete {
        /// How many could not be fetched.
        failed: usize,
        /// How many were not tried any more after so many failures.
        untried: usize,
        /// How many are needed.
        wanted: usize,
        /// `namespace/name` of those that failed; the first ten.
        objects: Vec<String>,
        /// Why the first one failed.
        source: FetchError,
    },
}

/// Why an object could not be fetched. A clone goes to every reader that waited for the fetch.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The request failed; the error is passed on as it is.
    #[error(transparent)]
    Request(Arc<dyn std::error::Error + Send + Sync>),
    /// There was no answer in time.
    #[error("no answer within {after:?}")]
    Timeout {
        /// The time that was allowed.
        after: Duration,
    },
    /// The answer is no JSON object.
    #[error("the answer is no object")]
    NoObject(#[source] k8s_packed::Error),
    /// The answer has another name or namespace than was asked for.
    #[error("the answer is another object, {object:?}")]
    OtherObject {
        /// Its `namespace/name`, or `name` alone.
        object: String,
    },
    /// The fetch has panicked, or its runtime is shutting down.
    #[error("ended without an answer")]
    Ended,
    /// Every answer was older than what the watch had shown in the meantime.
    #[error("overtaken by changes, {requests} times in a row")]
    Overtaken {
        /// How often the object was asked for.
        requests: u32,
    },
}

impl FetchError {
    /// An error of the request. Its text is shown to users, so it must have nothing of an object's content.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Request(source.into().into())
    }
}

/// Two are equal if they are of one kind and say the same.
impl PartialEq for FetchError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for FetchError {}

fn shown(objects: &[String], failed: usize) -> String {
    let more = if failed > objects.len() { ", …" } else { "" };
    format!("{}{more}", objects.join(", "))
}

fn not_tried(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", {count} were not tried") }
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
