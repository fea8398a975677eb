//! What stands in the bodies of answers: pages of a list, events of a watch, a Status.
//!
//! Bytes come in any portions; what comes out is whole: an item of a list, a line of a watch. Each is given to
//! the writer's encoder as it is, so no tree and no page-sized buffer ever exists.

mod event;
mod items;
mod lines;
mod page;

pub(crate) use event::{BadObject, Frame, decode_event};
#[cfg(any(fuzzing, test))]
pub(crate) use items::Envelope;
pub(crate) use items::Items;
pub(crate) use lines::Lines;
pub(crate) use page::Page;

/// No single object or line may take more than this; etcd holds 1.5 MB, JSON some times that.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// A body that is not what a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a single object of more than {} MiB", MAX_FRAME >> 20)]
    TooLong,
    #[error("the list is no JSON")]
    Malformed,
    #[error("the list ends before its end")]
    Truncated,
    #[error("the answer is no list")]
    NoList,
}
