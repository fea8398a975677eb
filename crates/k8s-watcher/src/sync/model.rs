//! Loom's parts in the manner of parking_lot and of tokio's `watch`: as much of them as this crate uses.

/// A lock without poison.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

/// A channel that keeps the last value. As in tokio's, a value is changed and counted under one lock, and who waits is
/// woken after that.
#[expect(unreachable_pub, reason = "handles give it away as they do tokio's")]
pub(crate) mod watch {
    use std::fmt;
    use std::future::poll_fn;
    use std::ops::Deref;
    use std::sync::Arc;
    use std::task::{Poll, Waker};

    use loom::sync::{Mutex, RwLock, RwLockReadGuard};

    #[derive(Debug)]
    struct Counted<T> {
        value: T,
        changes: u64,
        is_closed: bool,
    }

    #[derive(Debug)]
    struct Shared<T> {
        counted: RwLock<Counted<T>>,
        waiting: Mutex<Vec<Waker>>,
    }

    pub(crate) struct Sender<T>(Arc<Shared<T>>);

    pub struct Receiver<T> {
        shared: Arc<Shared<T>>,
        seen: u64,
    }

    #[derive(Debug)]
    pub struct Closed;

    #[derive(Debug)]
    pub struct Ref<'a, T>(RwLockReadGuard<'a, Counted<T>>);

    impl<T> Deref for Ref<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0.value
        }
    }

    impl<T> Shared<T> {
        fn read(&self) -> RwLockReadGuard<'_, Counted<T>> {
            self.counted.read().expect("nothing panics under this lock")
        }

        fn change(&self, change: impl FnOnce(&mut Counted<T>) -> bool) {
            let mut counted = self.counted.write().expect("nothing panics under this lock");
            let is_news = change(&mut counted);
            counted.changes += u64::from(is_news);
            drop(counted);
            if is_news {
                let waiting = std::mem::take(&mut *self.waiting.lock().expect("nothing panics under this lock"));
                waiting.into_iter().for_each(Waker::wake);
            }
        }
    }

    impl<T> Sender<T> {
        pub(crate) fn new(value: T) -> Self {
            let counted = RwLock::new(Counted { value, changes: 0, is_closed: false });
            Self(Arc::new(Shared { counted, waiting: Mutex::new(vec![]) }))
        }

        pub(crate) fn borrow(&self) -> Ref<'_, T> {
            Ref(self.0.read())
        }

        pub(crate) fn subscribe(&self) -> Receiver<T> {
            Receiver { seen: self.0.read().changes, shared: self.0.clone() }
        }

        pub(crate) fn send_modify(&self, change: impl FnOnce(&mut T)) {
            self.send_if_modified(|value| {
                change(value);
                true
            });
        }

        pub(crate) fn send_replace(&self, value: T) {
            self.send_modify(|place| *place = value);
        }

        pub(crate) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
            self.0.change(|counted| change(&mut counted.value));
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            self.0.change(|counted| {
                counted.is_closed = true;
                true
            });
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
            let counted = self.shared.read();
            self.seen = counted.changes;
            Ref(counted)
        }

        pub(crate) async fn changed(&mut self) -> Result<(), Closed> {
            poll_fn(|context| {
                // Registered before the look, so that no change comes between the two.
                let mut waiting = self.shared.waiting.lock().expect("nothing panics under this lock");
                waiting.push(context.waker().clone());
                drop(waiting);
                let counted = self.shared.read();
                if counted.is_closed {
                    return Poll::Ready(Err(Closed));
                }
                if counted.changes == self.seen {
                    return Poll::Pending;
                }
                self.seen = counted.changes;
                Poll::Ready(Ok(()))
            })
            .await
        }

        pub(crate) async fn wait_for(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, Closed> {
            while !wanted(&self.borrow_and_update()) {
                self.changed().await?;
            }
            Ok(self.borrow_and_update())
        }
    }

    impl<T: fmt::Debug> fmt::Debug for Sender<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("Sender").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Debug for Receiver<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Receiver").finish_non_exhaustive()
        }
    }
}
