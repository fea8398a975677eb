//! Recognition of our own writes.

use crate::Gvr;

/// Tells whether a version of an object is the result of this program's own write, so that its echo in the watch is
/// not reported as a change.
///
/// The registry that the watcher crate brings is the usual implementation. The watcher asks for live watch events
/// only, on its reading task: the answer must come at once, without blocking or I/O.
pub trait SelfWriteFilter: Send + Sync {
    /// Whether this program wrote this version. Asking must not consume the record: the same version may be seen
    /// several times.
    fn is_own(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, resource_version: &str) -> bool;
}
