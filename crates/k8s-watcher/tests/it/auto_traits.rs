//! What can be sent to other threads and shared: a change here breaks users.

use k8s_watcher::*;

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}
fn is_unpin<T: Unpin>() {}
fn is_debug<T: std::fmt::Debug>() {}
fn send<T: Send>(value: T) -> T {
    value
}

macro_rules! all {
    ($($ty:ty),* $(,)?) => {$(
        is_send::<$ty>();
        is_sync::<$ty>();
        is_unpin::<$ty>();
        is_debug::<$ty>();
    )*};
}

#[test]
fn public_types() {
    all!(
        Backlog,
        Batch,
        ChangeContext,
        Changes,
        Debouncer,
        Decision,
        ErrorClass,
        Phase,
        RunningWatcher,
        SelfWrites,
        Status,
        SyncError,
        Verb,
        WatchError,
        WatcherHandle,
    );
    is_send::<Watcher>();
    is_send::<WatcherBuilder>();
    is_debug::<Watcher>();
    is_debug::<WatcherBuilder>();
}

#[tokio::test(start_paused = true)]
async fn futures_can_move_between_threads() {
    let server = crate::support::server([]).await;
    let watcher = Watcher::builder(server.client(), crate::support::config()).build().unwrap();
    let handle = watcher.handle().clone();
    let mut changes = watcher.changes();
    drop(send(handle.wait_for_sync(crate::support::LONG)));
    drop(send(changes.next()));
    drop(send(watcher.run(tokio_util::sync::CancellationToken::new())));
    let watcher = Watcher::builder(server.client(), crate::support::config()).spawn().unwrap();
    drop(send(watcher.shutdown()));
}
