//! What a driver fills: the seam between reading from the server and what is kept of it.

use std::task::{Context, Poll};

use k8s_packed::Encoder;
use k8s_types::Object;
use tokio::time::Instant;

use crate::engine::version;
use crate::frame::BadObject;
use crate::status::Status;

/// Takes what the server shows, in its order. Everything here comes from the reading task and must not block.
pub(crate) trait Sink: Send + 'static {
    /// The encoder of the objects that are given to [`show`](Self::show) and [`hide`](Self::hide).
    fn encoder(&mut self) -> &mut Encoder;

    /// The server shows an object; gives the version of what is known of it if that is later, and stays.
    fn show(&mut self, object: Object, origin: Origin) -> Option<Later>;

    /// The server says that an object is gone. That may be older than what is known: the watch after a list begins
    /// at the version of its first page. Gives the version of what is known if that is later, and stays.
    fn hide(&mut self, object: Object, origin: Origin) -> Option<Later>;

    /// The server shows an object that cannot be held: the last good state stays, unless it is deleted. What comes
    /// next of it is not measured by that state's version if `origin` says that it is from before a restore. Gives
    /// the version of what is known of it if that is later.
    fn skip(&mut self, bad: &BadObject, is_delete: bool, origin: Origin) -> Option<Later>;

    /// A full list begins, of a namespace or of everything; `from_scratch` if versions of before mean nothing any more.
    fn begin_relist(&mut self, namespace: Option<&str>, from_scratch: bool);

    /// It is given up; what it showed stays.
    fn abort_relist(&mut self, namespace: Option<&str>);

    /// It is complete: what it did not show is gone.
    fn finish_relist(&mut self, namespace: Option<&str>);

    /// Versions of before mean nothing any more: whatever is measured by them is void.
    fn forget_versions(&mut self) {}

    /// The initial load is complete in all scopes: what gathered so far belongs to it, what follows does not.
    fn loaded(&mut self);

    /// When what is there has to be committed, if there is anything.
    fn commit_due(&self) -> Option<Instant>;

    /// Readers see everything so far, in one step; listeners learn of it.
    fn commit(&mut self);

    /// Carries out what was waiting for something else than the server; ready when there was something.
    fn poll_held(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Does a slice of housekeeping; says whether there is more.
    fn tidy(&mut self) -> bool {
        false
    }

    /// Puts what it knows into the status.
    fn report(&self, status: &mut Status);

    /// The driver ends: nothing more will come.
    fn close(&mut self) {
        self.commit();
    }
}

/// The version of what is known of an object, later than what was shown.
pub(crate) type Later = String;

/// How an object came to us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// By a list, in pages or as initial events; `from_scratch` if versions of before mean nothing any more.
    List { from_scratch: bool },
    /// By a watch event.
    Live,
}

impl Origin {
    /// By a list that takes the store back to lower versions.
    pub(crate) const FROM_SCRATCH: Self = Self::List { from_scratch: true };

    /// Whether versions can be compared with those that are kept.
    pub(crate) fn versions_hold(self) -> bool {
        self != Self::FROM_SCRATCH
    }

    /// The version of what is kept if what came is older, as a lagging server may show it.
    pub(crate) fn later(self, version: Option<&str>, kept: Option<&Object>) -> Option<Later> {
        let kept = kept.and_then(Object::resource_version).filter(|_| self.versions_hold())?;
        let is_older = version.filter(|v| version::is_usable(v)).is_some_and(|v| version::is_before(v, kept));
        is_older.then(|| kept.to_owned())
    }
}
