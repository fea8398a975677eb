//! The one place where threads meet: the current state, read by many and replaced by one.
//!
//! Kept apart so that a model checker can stand in for the lock.
use parking_lot::RwLock;
use triomphe::Arc;

/// A shared value that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct Published<T> {
    current: RwLock<Arc<T>>,
}

impl<T> Published<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self { current: RwLock::new(value) }
    }

    /// The current value; one atomic increment under a read lock.
    #[inline]
    pub(crate) fn load(&self) -> Arc<T> {
        self.current.read().clone()
    }

    /// Replaces the value. The old one comes back, so that it is dropped after the lock is free.
    #[must_use = "drop it when no lock is held"]
    pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut *self.current.write(), value)
    }
}
