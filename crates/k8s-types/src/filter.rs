//! Recognition of our own writes.

use std::task::{Context, Poll};

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

    /// As [`is_own`](Self::is_own), for a filter that also knows of writes whose answer has not come yet: while the
    /// answer to a write of this object may still name this version, the event waits. The filter wakes the task of
    /// `cx` when that has changed. Events of other objects go on meanwhile.
    ///
    /// The default has no writes in flight and is always ready.
    fn poll_own(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        resource_version: &str,
        _cx: &mut Context<'_>,
    ) -> Poll<bool> {
        Poll::Ready(self.is_own(gvr, namespace, name, resource_version))
    }

    /// The history of a kind was set back, by a backup that was restored: a version that was written before may be
    /// given to a foreign write now. To forget too much is no harm: an echo is reported like a foreign change then.
    ///
    /// The default forgets nothing.
    fn set_back(&self, _gvr: &Gvr) {}
}
