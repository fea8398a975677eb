//! Why a group is not synced.

use std::fmt;
use std::time::Duration;

use super::MemberProgress;

/// Why [`SyncGroup::wait`](crate::SyncGroup::wait) gave up. The text names the members that are missing, how far each
/// is, and its last failure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// It took too long. The watchers go on.
    #[error("not synced after {waited:?}: {}", Names(missing))]
    Deadline {
        /// How long was waited.
        waited: Duration,
        /// Those that are not synced.
        missing: Vec<MemberProgress>,
    },
    /// Nothing moved for too long. The watchers go on.
    #[error("not synced, and no progress for {standstill:?}: {}", Names(missing))]
    NoProgress {
        /// How long nothing moved.
        standstill: Duration,
        /// Those that are not synced.
        missing: Vec<MemberProgress>,
    },
    /// A member has ended before it was synced.
    #[error("{member} ended before it was synced; missing: {}", Names(missing))]
    Stopped {
        /// Which one.
        member: String,
        /// Those that are not synced, that one among them.
        missing: Vec<MemberProgress>,
    },
}

impl GroupError {
    /// The members that are not synced.
    pub fn missing(&self) -> &[MemberProgress] {
        match self {
            Self::Deadline { missing, .. } | Self::NoProgress { missing, .. } | Self::Stopped { missing, .. } => {
                missing
            }
        }
    }
}

struct Names<'a>(&'a [MemberProgress]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, member) in self.0.iter().enumerate() {
            write!(f, "{}{member}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
