//! What the work of a leader may return, and what that means.

use crate::error::Cause;

/// What the work may return: nothing, or a result whose error ends [`run`](crate::LeaderElector::run).
///
/// Sealed: implemented for `()`, for `Result<(), E>` where `E` can be boxed as an error (those of std, `String`,
/// `anyhow::Error`), and for work that never returns.
#[diagnostic::on_unimplemented(message = "the work of a leader returns `()` or `Result<(), E>`, not `{Self}`")]
pub trait WorkResult: sealed::Sealed + Send + 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), Cause>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Never {}
    impl<E> Sealed for Result<(), E> {}
}

impl WorkResult for () {
    fn into_result(self) -> Result<(), Cause> {
        Ok(())
    }
}

impl<E: Into<Cause> + Send + 'static> WorkResult for Result<(), E> {
    fn into_result(self) -> Result<(), Cause> {
        self.map_err(Into::into)
    }
}

/// `!`, which has no name of its own yet. Without it `async { loop { … } }` would be no work, since edition 2024.
type Never = <fn() -> ! as Returns>::Output;

/// Lets the type that a function returns be named.
pub trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

impl WorkResult for Never {
    fn into_result(self) -> Result<(), Cause> {
        self
    }
}

/// How [`run`](crate::LeaderElector::run) ended in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The token was cancelled.
    Stopped,
    /// The work was done: it returned by itself while it had the lead.
    WorkDone,
}
