//! What the server had, state by state: the model that a watcher's view is measured by.

use std::collections::BTreeMap;
use std::fmt;

use k8s_types::Object;
use serde_json::Value;

/// The namespaces and names in which things happen.
pub(crate) const NAMESPACES: [&str; 3] = ["a", "b", "c"];
pub(crate) const NAMES: [&str; 12] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11"];

/// Where an object may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
}

impl Place {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        NAMESPACES.into_iter().flat_map(|namespace| NAMES.into_iter().map(move |name| Self { namespace, name }))
    }

    pub(crate) fn of(object: &Object) -> Self {
        let known = |all: &[&'static str], text: &str| all.iter().copied().find(|known| *known == text);
        let namespace = known(&NAMESPACES, object.namespace().unwrap_or_default());
        let name = known(&NAMES, object.name());
        let (Some(namespace), Some(name)) = (namespace, name) else { panic!("{object:?} is nobody's") };
        Self { namespace, name }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object at one moment.
#[derive(Clone, PartialEq)]
pub(crate) struct Version {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) value: String,
    pub(crate) more: String,
}

/// An object at one moment, or that there was none.
pub(crate) type State = Option<Version>;

impl Version {
    pub(crate) fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
            value: text("/data/value"),
            more: text("/data/more"),
        }
    }

    /// The same object in the same state, but for the version.
    fn same_content(&self, other: &Self, view: View) -> bool {
        let is_same_version = !view.counts_versions || self.version == other.version;
        let is_same_more = view.ignores_more || self.more == other.more;
        self.uid == other.uid && self.value == other.value && is_same_more && is_same_version
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {:.8} @{}", self.value, self.more.chars().count(), self.uid, self.version)
    }
}

/// What somebody sees of an object; what is none was not looked at.
#[derive(Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) version: Option<String>,
    pub(crate) value: String,
    pub(crate) more: Option<String>,
}

impl Seen {
    /// A whole object, but for what its watcher ignores.
    pub(crate) fn whole(object: &Object, view: View) -> Self {
        let more = (!view.ignores_more).then(|| data(object, "data.more"));
        Self { value: data(object, "data.value"), more, ..Self::reference(object) }
    }

    /// Of an object of which only metadata is kept.
    pub(crate) fn reference(object: &Object) -> Self {
        Self {
            uid: object.uid().unwrap_or_default().to_owned(),
            version: object.resource_version().map(str::to_owned),
            value: object.label("app").unwrap_or_default().to_owned(),
            more: None,
        }
    }

    /// The state that a delete shows, whose version is that of the delete.
    pub(crate) fn last(object: &Object, view: View) -> Self {
        Self { version: None, ..Self::whole(object, view) }
    }

    /// Whether this may be a look at that state.
    pub(crate) fn is(&self, version: &Version) -> bool {
        self.uid == version.uid
            && self.value == version.value
            && self.version.as_ref().is_none_or(|seen| *seen == version.version)
            && self.more.as_ref().is_none_or(|seen| *seen == version.more)
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.more.as_ref().map_or("?".to_owned(), |more| more.chars().count().to_string());
        let version = self.version.as_deref().unwrap_or("?");
        write!(f, "{} {more} of {:.8} @{version}", self.value, self.uid)
    }
}

fn data(object: &Object, path: &str) -> String {
    let path = path.parse().expect("a path");
    object.get(&path).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What a watcher is to see of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct View {
    /// Namespaces `a` and `b` alone.
    pub(crate) is_narrow: bool,
    pub(crate) selection: Selection,
    pub(crate) ignores_more: bool,
    /// Each new version is a change, whatever is in it.
    pub(crate) counts_versions: bool,
    /// One object and no other.
    pub(crate) only: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Selection {
    All,
    /// Values x and y: by labels, in the server.
    Label,
    /// The value x: by a field, in the client.
    Field,
}

impl View {
    pub(crate) fn shows(self, place: Place, value: &str) -> bool {
        let is_selected = match self.selection {
            Selection::All => true,
            Selection::Label => value == "x" || value == "y",
            Selection::Field => value == "x",
        };
        is_selected && !(self.is_narrow && place.namespace == "c") && self.only.is_none_or(|only| only == place)
    }
}

/// When something came to be: the how manieth thing, and at which revision. Revisions go back when a cluster is restored.
#[derive(Clone, Copy, Default)]
pub(crate) struct At {
    pub(crate) moment: u64,
    pub(crate) revision: u64,
}

/// Every state that every object was in.
#[derive(Default)]
pub(crate) struct Truth {
    states: BTreeMap<Place, Vec<(At, State)>>,
    moment: u64,
}

impl Truth {
    /// The object is like this from now on.
    pub(crate) fn note(&mut self, place: Place, revision: u64, state: State) {
        self.moment += 1;
        let at = At { moment: self.moment, revision };
        let states = self.states.entry(place).or_insert_with(|| vec![(At::default(), None)]);
        let last = states.last().and_then(|(_, state)| state.clone());
        if last == state {
            return;
        }
        if last.zip(state.as_ref()).is_some_and(|(last, state)| last.uid != state.uid) {
            // A restore brought another one back: the one that was there is gone.
            states.push((at, None));
        }
        states.push((at, state));
    }

    /// The states of an object in their order, as a watcher is to see them.
    pub(crate) fn states(&self, place: Place, view: View) -> impl Iterator<Item = (At, Option<&Version>)> {
        let states = self.states.get(&place).map_or(&[][..], |states| &states[..]);
        let begin = states.is_empty().then_some((At::default(), None));
        let shown = states
            .iter()
            .map(move |(at, state)| (*at, state.as_ref().filter(|version| view.shows(place, &version.value))));
        begin.into_iter().chain(shown)
    }

    pub(crate) fn present(&self, place: Place, view: View) -> Option<&Version> {
        self.states(place, view).last()?.1
    }

    /// The places that ever had an object.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.states.keys().copied()
    }

    /// Now, as [`At::moment`] counts.
    pub(crate) fn moment(&self) -> u64 {
        self.moment
    }

    /// What a watcher is told who misses nothing of what came then: created, modified, deleted.
    pub(crate) fn changes(&self, view: View, then: impl Fn(At) -> bool) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for place in self.places() {
            let mut states = self.states(place, view);
            let mut last = states.next().and_then(|(_, state)| state);
            for (at, state) in states {
                let counts = if then(at) { &mut counts } else { &mut (0, 0, 0) };
                match (last, state) {
                    (None, Some(_)) => counts.0 += 1,
                    (Some(last), Some(state)) if !last.same_content(state, view) => counts.1 += 1,
                    (Some(_), None) => counts.2 += 1,
                    _ => {}
                }
                last = state;
            }
        }
        counts
    }
}

/// How far somebody has come in the story of each object, who may skip states but never goes back.
#[derive(Clone, Default)]
pub(crate) struct Cursor(BTreeMap<Place, usize>);

impl Cursor {
    /// Goes to the next state that is what is seen now: as few as possible, so that what follows may still fit.
    ///
    /// # Panics
    ///
    /// When there is none: it was invented, or is older than what was seen before.
    pub(crate) fn see(&mut self, truth: &Truth, view: View, place: Place, seen: Option<&Seen>) {
        let at = self.0.get(&place).copied().unwrap_or(0);
        let fits = |state: Option<&Version>| match (seen, state) {
            (None, None) => true,
            (Some(seen), Some(version)) => seen.is(version),
            _ => false,
        };
        let found = truth.states(place, view).enumerate().skip(at).find(|(_, (_, state))| fits(*state));
        let Some((at, _)) = found else {
            let since: Vec<_> = truth.states(place, view).skip(at).map(|(_, state)| state).collect();
            panic!("{place:?} is seen as {seen:?}, which is not among {since:?}");
        };
        self.0.insert(place, at);
    }
}
