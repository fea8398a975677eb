//! What an event means: previous object × new object × field selector → what the store does, what changed.
//!
//! Pure. A relist and a watch come through here alike, which is why a relist reports only differences and an
//! object that stops matching counts as deleted wherever that is first seen.

use k8s_types::{Change, Object};

/// What becomes of an object that the server showed.
#[derive(Debug, PartialEq)]
pub(crate) enum Transition {
    /// Nothing: the store has it already, or it does not concern us.
    Keep,
    /// The store takes it over, but nothing changed that anyone was promised to hear of.
    Refresh(Object),
    /// The store takes it over.
    Store(Object, Reported),
    /// It leaves the store.
    Remove(Change),
}

/// What an object that goes into the store is to those who listen.
#[derive(Debug, PartialEq)]
pub(crate) enum Reported {
    Created,
    Modified(Object),
    /// The same name, another object.
    Replaced(Object),
}

/// What proves that an object is as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Proof {
    /// An equal version. No proof after a restore from a backup.
    pub(crate) version: bool,
    /// Equal content. No proof where only a part of the content is kept.
    pub(crate) content: bool,
}

/// The server shows an object, by a list or a watch event.
pub(crate) fn shown(previous: Option<&Object>, object: Object, matches: bool, proof: Proof) -> Transition {
    match (previous, matches) {
        (None, false) => Transition::Keep,
        (Some(old), false) => Transition::Remove(Change::Deleted(old.clone())),
        (None, true) => Transition::Store(object, Reported::Created),
        (Some(old), true) if old.uid() != object.uid() => Transition::Store(object, Reported::Replaced(old.clone())),
        (Some(old), true) => {
            let version = object.resource_version();
            let is_same_version = version.is_some() && version == old.resource_version();
            if is_same_version && proof.version {
                Transition::Keep
            } else if proof.content && old.same_content(&object) {
                if is_same_version { Transition::Keep } else { Transition::Refresh(object) }
            } else {
                Transition::Store(object, Reported::Modified(old.clone()))
            }
        }
    }
}

/// The server says that an object is gone, or has left the selection; `last` is its last state, if it came.
pub(crate) fn gone(previous: Option<&Object>, last: Option<Object>) -> Transition {
    match previous {
        None => Transition::Keep,
        Some(old) => {
            let last = last.filter(|l| l.uid() == old.uid());
            Transition::Remove(Change::Deleted(last.unwrap_or_else(|| old.clone())))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_packed::object;
    use proptest::prelude::*;

    use super::*;

    const BOTH: Proof = Proof { version: true, content: true };
    const CONTENT: Proof = Proof { version: false, content: true };
    const VERSION: Proof = Proof { version: true, content: false };
    const NEITHER: Proof = Proof { version: false, content: false };

    fn pod(uid: &str, version: u32, spec: u32) -> Object {
        object!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version.to_string()}, "spec": spec})
    }

    #[test]
    fn the_table() {
        let (old, newer, same, other) = (pod("u", 1, 1), pod("u", 2, 2), pod("u", 2, 1), pod("v", 2, 1));
        let store = |o: &Object, r| Transition::Store(o.clone(), r);
        assert_eq!(shown(None, old.clone(), true, BOTH), store(&old, Reported::Created));
        assert_eq!(shown(None, old.clone(), false, BOTH), Transition::Keep);
        assert_eq!(shown(Some(&old), old.clone(), true, BOTH), Transition::Keep);
        assert_eq!(shown(Some(&old), newer.clone(), true, BOTH), store(&newer, Reported::Modified(old.clone())));
        assert_eq!(shown(Some(&old), newer.clone(), false, BOTH), Transition::Remove(Change::Deleted(old.clone())));
        // C27: after a restore the same version may stand for something else.
        let branched = pod("u", 1, 2);
        assert_eq!(shown(Some(&old), branched.clone(), true, BOTH), Transition::Keep);
        assert_eq!(
            shown(Some(&old), branched.clone(), true, CONTENT),
            store(&branched, Reported::Modified(old.clone()))
        );
        assert_eq!(shown(Some(&old), old.clone(), true, CONTENT), Transition::Keep);
        assert_eq!(gone(None, Some(old.clone())), Transition::Keep);
        assert_eq!(gone(Some(&old), Some(newer.clone())), Transition::Remove(Change::Deleted(newer)));
        assert_eq!(gone(Some(&old), None), Transition::Remove(Change::Deleted(old.clone())));
        // C48: equal content moves the version on and is no change.
        assert_eq!(shown(Some(&old), same.clone(), true, BOTH), Transition::Refresh(same.clone()));
        // Where only a part of an object is kept, equal parts prove nothing.
        let modified = store(&same, Reported::Modified(old.clone()));
        assert_eq!(shown(Some(&old), same.clone(), true, VERSION), modified);
        assert_eq!(shown(Some(&old), old.clone(), true, VERSION), Transition::Keep);
        let modified = store(&old, Reported::Modified(old.clone()));
        assert_eq!(shown(Some(&old), old.clone(), true, NEITHER), modified);
        // C28: a new uid is another object, also when nothing else differs.
        assert_eq!(shown(Some(&old), other.clone(), true, BOTH), store(&other, Reported::Replaced(old.clone())));
    }

    proptest! {
        /// Against the plain rule: what was there and what is there decide, nothing else.
        #[test]
        fn reports_are_the_difference(history in prop::collection::vec((0u32..3, 0u32..3, any::<bool>(), any::<bool>()), 1..40)) {
            let mut stored: Option<Object> = None;
            for (version, (uid, spec, matches, deleted)) in history.into_iter().enumerate() {
                let object = pod(&uid.to_string(), version as u32 + 1, spec);
                let before = stored.clone();
                let transition = if deleted {
                    gone(stored.as_ref(), Some(object))
                } else {
                    shown(stored.as_ref(), object, matches, BOTH)
                };
                let reported = match transition {
                    Transition::Keep => false,
                    Transition::Refresh(o) => { stored = Some(o); false }
                    Transition::Store(o, _) => { stored = Some(o); true }
                    Transition::Remove(_) => { stored = None; true }
                };
                let same = match (&before, &stored) {
                    (None, None) => true,
                    (Some(a), Some(b)) => a.uid() == b.uid() && a.same_content(b),
                    _ => false,
                };
                prop_assert_eq!(reported, !same);
                prop_assert_eq!(stored.is_some(), !deleted && matches);
            }
        }
    }
}
