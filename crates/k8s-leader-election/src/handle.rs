//! What everybody may hold of an elector: asks who leads, keeps nothing alive.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::lead::Lead;

/// Who leads, at the moment it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    leader: Option<Arc<str>>,
    lead: Option<Lead>,
    failure: Option<Arc<str>>,
}

impl Leadership {
    /// Who holds the lease, by the last answer of the server; none while nobody does, or before the first answer. It
    /// is what the lease says: the holder may have crashed since.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// Why the last request about the lease brought nothing, in a line: a missing right, a server that is away. None
    /// once one is answered, and before the first. A candidate with a failure that lasts stands by in vain.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether this candidate leads. Compares with the clock, so that also a value that was taken a while ago, or
    /// that nobody was there to update, never claims a lead that has run out.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.lead.as_ref().is_some_and(Lead::is_leader)
    }
}

/// The readable side of an elector. Clones are cheap and stay valid after the elector has ended, when it is no leader.
#[derive(Clone)]
pub struct ElectorHandle {
    identity: Arc<str>,
    state: watch::Receiver<Leadership>,
}

impl ElectorHandle {
    /// The name of this candidate.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether this candidate leads at this moment. Compares with the clock: true only while the last renewal is
    /// good, however late the elector's own task may be.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.state.borrow().is_leader()
    }

    /// Who holds the lease, by the last answer of the server; see [`Leadership::leader`].
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        self.state.borrow().leader().map(str::to_owned)
    }

    /// Why the lease cannot be reached at the moment, if it cannot; see [`Leadership::failure`].
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.state.borrow().failure().map(str::to_owned)
    }

    /// The state as it changes from now on: another holder, a lead that begins or ends, a lease that cannot be reached
    /// or can again. The last value wins; when the elector has ended, [`changed`](watch::Receiver::changed) is an error.
    ///
    /// When a lead runs out, [`Leadership::is_leader`] is false by the clock, whether or not the receiver has been
    /// woken.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        let mut receiver = self.state.clone();
        receiver.mark_unchanged();
        receiver
    }
}

impl fmt::Debug for ElectorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectorHandle")
            .field("identity", &self.identity)
            .field("is_leader", &self.is_leader())
            .field("leader", &self.leader())
            .finish()
    }
}

/// The writing side. However an elector ends, those who hold its handle see that it leads no more.
pub(crate) struct Announcer {
    state: watch::Sender<Leadership>,
}

impl Announcer {
    pub(crate) fn new(identity: &str) -> (Self, ElectorHandle) {
        let (sender, state) = watch::channel(Leadership::default());
        (Self { state: sender }, ElectorHandle { identity: identity.into(), state })
    }

    /// Tells who holds the lease; true if that is news.
    pub(crate) fn leader(&self, leader: Option<&str>) -> bool {
        self.state.send_if_modified(|state| {
            let is_news = state.leader() != leader;
            if is_news {
                state.leader = leader.map(Into::into);
            }
            is_news
        })
    }

    /// Tells why the lease cannot be reached, or that it can.
    pub(crate) fn failure(&self, failure: Option<&str>) {
        self.state.send_if_modified(|state| {
            let is_news = state.failure() != failure;
            if is_news {
                state.failure = failure.map(Into::into);
            }
            is_news
        });
    }

    /// Tells that a term has begun.
    pub(crate) fn lead(&self, lead: &Lead) {
        self.state.send_modify(|state| state.lead = Some(lead.clone()));
    }

    /// Ends the term, if there is one: whoever asks learns of it before those who wait are woken.
    pub(crate) fn end(&self) {
        let lead = self.state.borrow().lead.clone();
        if let Some(lead) = lead {
            lead.end();
            self.state.send_modify(|state| state.lead = None);
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.end();
    }
}
