//! One object's place in the cache, as a pure machine: what is kept of it, what is being asked, what the watch has
//! shown in the meantime, and hence which answer may be believed.
//!
//! Two rules decide. Where versions can be compared they do: an answer older than what the watch has shown is wrong,
//! one as new or newer is right, whenever it was asked for. Where they cannot be (opaque versions, and "there is none",
//! which has no version), the order of arrival does: an answer is right if the watch has shown nothing since it was
//! asked for.
use std::cmp::Ordering;

use k8s_packed::Object;
use k8s_types::compare_resource_versions;
use tokio::time::Instant;

/// How often one fetch asks before it gives up against a watch that is always faster.
pub(super) const MAX_REQUESTS: u32 = 3;

/// What makes an object that version of that object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
}

impl Version {
    pub(super) fn new(uid: Option<&str>, resource_version: Option<&str>) -> Self {
        Self { uid: uid.map(Box::from), resource_version: resource_version.map(Box::from) }
    }

    pub(super) fn of(object: &Object) -> Self {
        Self::new(object.uid(), object.resource_version())
    }

    /// Where an object stands to this version, if that can be told.
    fn compare(&self, object: &Object) -> Option<Ordering> {
        compare_resource_versions(object.resource_version()?, self.resource_version.as_deref()?)
    }

    fn is_of(&self, object: &Object) -> bool {
        self.uid.is_some() && self.uid.as_deref() == object.uid()
    }
}

/// What a reader may not be given anything older than.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Floor {
    /// Nothing is known of the object.
    #[default]
    Nothing,
    /// The watch has shown this version.
    Shown(Version),
    /// The watch has shown the end of the object; this is a version that it had before, if one is known.
    Gone(Option<Version>),
}

/// Where an answer stands to a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The same or newer.
    Current,
    Older,
    /// The answer itself does not tell.
    Unknown,
}

impl Floor {
    pub(super) fn of(stub: Option<&Object>) -> Self {
        stub.map_or(Self::Nothing, |stub| Self::Shown(Version::of(stub)))
    }

    fn judge(&self, answer: Option<&Object>) -> Verdict {
        match (self, answer) {
            (Self::Nothing, _) | (Self::Shown(_), None) | (Self::Gone(None), Some(_)) => Verdict::Unknown,
            (Self::Gone(_), None) => Verdict::Current,
            (Self::Shown(version), Some(object)) => match version.compare(object) {
                Some(Ordering::Greater) => Verdict::Current,
                Some(Ordering::Equal) if version.is_of(object) || version.uid.is_none() => Verdict::Current,
                Some(Ordering::Less) => Verdict::Older,
                Some(Ordering::Equal) | None => Verdict::Unknown,
            },
            // What comes back under the name of a deleted object has another uid.
            (Self::Gone(Some(version)), Some(object)) if version.is_of(object) => Verdict::Older,
            // A newer one may be gone as well: the version before the end need not be the last that there was.
            (Self::Gone(Some(version)), Some(object)) => match version.compare(object) {
                Some(Ordering::Less | Ordering::Equal) => Verdict::Older,
                Some(Ordering::Greater) | None => Verdict::Unknown,
            },
        }
    }

    /// Whether an answer is known to be older.
    pub(super) fn refuses(&self, answer: Option<&Object>) -> bool {
        self.judge(answer) == Verdict::Older
    }

    /// Whether an answer is known to be as new, whenever it was asked for.
    pub(super) fn accepts(&self, answer: Option<&Object>) -> bool {
        self.judge(answer) == Verdict::Current
    }
}

/// What is remembered of an object, or that there is none, and until when it is given out.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) object: Option<Object>,
    pub(super) expires: Instant,
}

impl Kept {
    /// Whether a reader who knows this reference may have it. Costs a comparison of two short texts.
    pub(super) fn serves(&self, now: Instant, stub: Option<&Object>) -> bool {
        if now >= self.expires {
            return false;
        }
        let (Some(object), Some(stub)) = (&self.object, stub) else { return true };
        let (kept, known) = (object.resource_version(), stub.resource_version());
        kept == known || kept.zip(known).is_none_or(|(a, b)| compare_resource_versions(a, b) != Some(Ordering::Less))
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        let same = match (&self.object, &other.object) {
            (Some(a), Some(b)) => a.ptr_eq(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        same && self.expires == other.expires
    }
}

/// A fetch that is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    floor: Floor,
    /// Whether the floor is younger than the request, so that the order of arrival speaks against the answer.
    overtaken: bool,
    /// Whether the request is older than a break in the server's history, so that not even versions can be compared.
    distrusted: bool,
    requests: u32,
}

impl Flight {
    /// The watch has shown something after the request was made.
    fn raise(&mut self, floor: Floor) {
        self.floor = floor;
        self.overtaken = true;
    }
}

/// One object's place. It takes memory only while something is kept or under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) kept: Option<Kept>,
    pub(super) flight: Option<Flight>,
}

/// What a reader has to do.
#[derive(Debug)]
pub(super) enum Read {
    /// Take this.
    Hit(Option<Object>),
    /// Wait for the fetch that is under way; this is what it may not be older than.
    Join(Floor),
    /// Wait for a fetch that starts now.
    Start,
}

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It is right, and kept. The fetch has ended.
    Settled,
    /// It may be older than what the watch has shown: ask again.
    Again,
    /// The same once too often. The fetch has ended without a result.
    GivenUp,
}

impl Slot {
    /// A reader comes, who knows this reference.
    pub(super) fn read(&mut self, now: Instant, stub: Option<&Object>) -> Read {
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.serves(now, stub)) {
            return Read::Hit(kept.object.clone());
        }
        if let Some(flight) = &self.flight {
            return Read::Join(flight.floor.clone());
        }
        self.flight = Some(Flight::default());
        Read::Start
    }

    /// The fetch is about to ask, knowing the present reference. If an event has brought the object meanwhile the fetch
    /// ends and gives that.
    pub(super) fn ask(&mut self, now: Instant, stub: Option<&Object>) -> Option<Kept> {
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.serves(now, stub)) {
            self.flight = None;
            return Some(kept.clone());
        }
        if let Some(flight) = &mut self.flight {
            flight.overtaken = false;
            flight.distrusted = false;
            flight.requests += 1;
            // An event knows better than a reference that may not show it yet.
            if flight.floor == Floor::Nothing {
                flight.floor = Floor::of(stub);
            }
        }
        None
    }

    /// An answer has come: an object that is right for the name, or none.
    pub(super) fn answered(&mut self, answer: Kept) -> Answered {
        // Without a fetch there is nobody to answer.
        let Some(flight) = &self.flight else { return Answered::GivenUp };
        let current = match flight.floor.judge(answer.object.as_ref()) {
            Verdict::Current => true,
            Verdict::Older => false,
            Verdict::Unknown => !flight.overtaken,
        };
        if current && !flight.distrusted {
            *self = Self { kept: Some(answer), flight: None };
            return Answered::Settled;
        }
        if flight.requests < MAX_REQUESTS {
            return Answered::Again;
        }
        self.flight = None;
        Answered::GivenUp
    }

    /// The request has failed, or nobody waits for it any more.
    pub(super) fn failed(&mut self) {
        self.flight = None;
    }

    /// The watch shows this version, and perhaps the whole object, to be kept in place of what is older. That there is
    /// no object is no longer true. Gives the version of what is kept if that is later.
    pub(super) fn shown(&mut self, version: Version, full: Option<Kept>) -> Option<String> {
        let kept = self.kept.take();
        let mut later = None;
        self.kept = kept.and_then(|kept| {
            let object = kept.object.as_ref()?;
            match version.compare(object) {
                Some(Ordering::Less) => full,
                Some(Ordering::Equal) => Some(kept),
                Some(Ordering::Greater) => {
                    later = object.resource_version().map(str::to_owned);
                    Some(kept)
                }
                // Which of the two is newer cannot be told, so neither is given out.
                None => None,
            }
        });
        self.raise(Floor::Shown(version));
        later
    }

    /// The watch shows that the object is gone.
    pub(super) fn gone(&mut self) {
        let last = match &self.flight {
            Some(Flight { floor: Floor::Shown(version), .. }) => Some(version.clone()),
            _ => self.kept.as_ref().and_then(|kept| kept.object.as_ref()).map(Version::of),
        };
        self.kept = self.kept.take().filter(|kept| kept.object.is_none());
        self.raise(Floor::Gone(last));
    }

    /// Nothing that was known counts any more.
    pub(super) fn forget(&mut self) {
        self.kept = None;
        if let Some(flight) = &mut self.flight {
            flight.raise(Floor::Nothing);
            flight.distrusted = true;
        }
    }

    fn raise(&mut self, floor: Floor) {
        if let Some(flight) = &mut self.flight {
            flight.raise(floor);
        }
    }
}

#[cfg(test)]
mod tests;
