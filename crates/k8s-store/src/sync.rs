//! The one place where threads meet: the current state, read by many and replaced by one.
//!
//! Kept apart so that a model checker can stand in for the lock and for the count of those who hold a state: with
//! `--cfg k8s_loom` both are loom's, and [`model`] plays every order in which threads can meet here.
#[cfg(all(test, k8s_loom))]
mod model;

#[cfg(k8s_loom)]
pub(crate) use loom::sync::Arc;
#[cfg(not(k8s_loom))]
pub(crate) use triomphe::Arc;

#[cfg(k8s_loom)]
use self::lock::RwLock;
#[cfg(not(k8s_loom))]
use parking_lot::RwLock;

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

/// Loom's lock in the manner of parking_lot, without poison.
#[cfg(k8s_loom)]
mod lock {
    use loom::sync::{RwLockReadGuard, RwLockWriteGuard};

    #[derive(Debug)]
    pub(super) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("nothing panics under this lock")
        }

        pub(super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("nothing panics under this lock")
        }
    }
}
