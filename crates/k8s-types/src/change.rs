//! What happened: single changes and their counts.

use std::fmt;

use k8s_packed::Object;

/// How many objects were created, modified and deleted: counts of what happened, not of what is net left. An object
/// that was created and deleted since the last report counts in both.
///
/// ```
/// use k8s_types::ChangeStats;
///
/// let mut stats = ChangeStats::default();
/// stats.created = 3;
/// stats.deleted = 1;
/// assert_eq!(stats.total(), 4);
/// assert_eq!(stats.to_string(), "3 created, 0 modified, 1 deleted");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ChangeStats {
    /// Objects that appeared, or that started to match the field selector.
    pub created: u64,
    /// Objects that changed.
    pub modified: u64,
    /// Objects that went, or that stopped matching the field selector.
    pub deleted: u64,
    /// Whether all of it belongs to the initial load.
    pub is_initial_sync: bool,
}

impl ChangeStats {
    /// All changes together.
    pub fn total(&self) -> u64 {
        self.created.saturating_add(self.modified).saturating_add(self.deleted)
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Counts this change.
    pub fn record(&mut self, change: &Change) {
        let counter = match change {
            Change::Created(_) => &mut self.created,
            Change::Modified { .. } => &mut self.modified,
            Change::Deleted(_) => &mut self.deleted,
        };
        *counter = counter.saturating_add(1);
    }

    /// Adds the counts of `later`. The sum belongs to the initial load only if both parts do; an empty part has no
    /// say.
    pub fn merge(&mut self, later: &ChangeStats) {
        if self.is_empty() {
            *self = *later;
            return;
        }
        if later.is_empty() {
            return;
        }
        self.created = self.created.saturating_add(later.created);
        self.modified = self.modified.saturating_add(later.modified);
        self.deleted = self.deleted.saturating_add(later.deleted);
        self.is_initial_sync &= later.is_initial_sync;
    }
}

impl fmt::Display for ChangeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChangeStats { created, modified, deleted, is_initial_sync } = self;
        write!(f, "{created} created, {modified} modified, {deleted} deleted")?;
        if *is_initial_sync {
            f.write_str(" (initial)")?;
        }
        Ok(())
    }
}

/// One change of one object. Cheap to clone: objects share their memory.
///
/// A new object under the name of an old one (another uid) is a `Deleted` followed by a `Created`.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object appeared, or started to match.
    Created(Object),
    /// The object changed.
    Modified {
        /// As it was before.
        old: Object,
        /// As it is now.
        new: Object,
    },
    /// The object went, or stopped matching; its last known state.
    Deleted(Object),
}

impl Change {
    /// The object as it is now, or was last if it is deleted.
    pub fn object(&self) -> &Object {
        match self {
            Change::Created(object) | Change::Deleted(object) => object,
            Change::Modified { new, .. } => new,
        }
    }

    /// The object as it was before, if it was there.
    pub fn previous(&self) -> Option<&Object> {
        match self {
            Change::Created(_) => None,
            Change::Modified { old, .. } => Some(old),
            Change::Deleted(object) => Some(object),
        }
    }

    /// Whether the object is gone.
    pub fn is_deleted(&self) -> bool {
        matches!(self, Change::Deleted(_))
    }
}

#[cfg(test)]
mod tests {
    use super::ChangeStats;

    fn stats(created: u64, modified: u64, deleted: u64, is_initial_sync: bool) -> ChangeStats {
        ChangeStats { created, modified, deleted, is_initial_sync }
    }

    #[test]
    fn sums_are_initial_only_if_all_of_it_is() {
        for (first, second, expected) in [
            (stats(1, 0, 0, true), stats(2, 1, 0, true), stats(3, 1, 0, true)),
            (stats(1, 0, 0, true), stats(0, 1, 0, false), stats(1, 1, 0, false)),
            (stats(0, 0, 0, false), stats(2, 0, 0, true), stats(2, 0, 0, true)),
            (stats(1, 0, 3, false), stats(0, 0, 0, true), stats(1, 0, 3, false)),
        ] {
            let mut sum = first;
            sum.merge(&second);
            assert_eq!(sum, expected);
        }
    }

    #[test]
    fn counters_stay_at_the_top() {
        let mut sum = stats(u64::MAX, 1, 0, false);
        sum.merge(&stats(1, 0, 0, false));
        assert_eq!(sum.created, u64::MAX);
        assert_eq!(sum.total(), u64::MAX);
        assert_eq!(stats(1, 2, 0, true).to_string(), "1 created, 2 modified, 0 deleted (initial)");
    }
}
