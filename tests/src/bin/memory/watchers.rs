//! Watchers of each kind that start and end in each way, over sockets and without: nothing of them stays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_fake_apiserver::{FakeApiServer, List, Watch};
use k8s_informer::client::{Client, ClientConfig};
use k8s_informer::store::{CacheConfig, StoreBytes};
use k8s_informer::types::{Backoff, SingleWatcherConfig, WatcherConfig};
use k8s_informer::watcher::{
    Deadline, Phase, Running, SingleWatcher, SingleWatcherHandle, Status, SyncGroup, Watcher, WatcherHandle,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::informers::LONG;
use crate::objects::{NAMESPACE, PODS, pod, pod_name};
use crate::process::{Footprint, sockets};
use crate::quarters::Quarters;

/// A kind that the server fails to list, and one about which it says nothing at all.
const FAILING: &str = "v1/services";
const SILENT: &str = "v1/endpoints";

const OBJECTS: usize = 50;
const HISTORY: usize = 200;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bulk,
    Cached,
    Single,
    /// A bulk and a single watcher that start together.
    Group,
}

const KINDS: [Kind; 4] = [Kind::Bulk, Kind::Cached, Kind::Single, Kind::Group];

/// How a watcher ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Dropped,
    Stopped,
    ShutDown,
    DetachedAndStopped,
    /// Built and never started.
    Unstarted,
    /// `run` with a token that is cancelled.
    Cancelled,
    DroppedBeforeSync,
    DroppedInBackoff,
    DroppedInItsCallback,
}

const ENDS: [End; 9] = [
    End::Dropped,
    End::Stopped,
    End::ShutDown,
    End::DetachedAndStopped,
    End::Unstarted,
    End::Cancelled,
    End::DroppedBeforeSync,
    End::DroppedInBackoff,
    End::DroppedInItsCallback,
];

/// Watchers that one round starts: a group has two.
const A_ROUND: usize = (KINDS.len() + 1) * ENDS.len();

pub(crate) async fn run(is_short: bool) -> Result<()> {
    let rounds = if is_short { 4 } else { 96 };
    let begin = Instant::now();
    let before = Footprint::now();
    let server = FakeApiServer::builder()
        .history(HISTORY)
        .journal_capacity(100)
        .objects((0..OBJECTS).map(|i| pod(i, 0, i)))
        .start()
        .await?;
    server.listen().await?;
    for resource in [FAILING, SILENT] {
        let faults = server.faults();
        let broken = [faults.on(List::of(resource)).always(), faults.on(Watch::of(resource)).always()];
        for fault in broken {
            let _ = if resource == FAILING { fault.status(500) } else { fault.no_answer() };
        }
    }
    // The server's history is full from here on.
    for update in 0..2 * HISTORY {
        server.apply(pod(update % OBJECTS, update, update))?;
    }
    // Both ways once for what is made only once.
    round(&server, true).await?;
    round(&server, false).await?;
    let idle = Footprint::now();
    let mut quarters = Quarters::default();
    let mut open = 0;
    for at in 0..rounds {
        open = open.max(round(&server, at % 2 == 0).await?);
        idle.again().await.with_context(|| format!("round {at}"))?;
        quarters.sample(at * 4 / rounds, StoreBytes::default());
    }
    drop(server);
    println!("left behind: {}", before.again().await.context("the end")?);
    println!("{} watchers in {:.0?}, up to {open} sockets at a time", rounds * A_ROUND, begin.elapsed());
    quarters.print();
    quarters.check(is_short)
}

/// Starts and ends watchers of each kind in each way, all at a time; gives how many sockets were open.
async fn round(server: &FakeApiServer, is_loopback: bool) -> Result<usize> {
    let client = if is_loopback {
        ClientConfig::kubeconfig_content(server.kubeconfig()?).build().await?
    } else {
        Client::from(server.client())
    };
    let mut lives = JoinSet::new();
    for kind in KINDS {
        for end in ENDS {
            let client = client.clone();
            lives.spawn(async move { live(&client, kind, end).await.with_context(|| format!("{kind:?} {end:?}")) });
        }
    }
    drop(client);
    let mut open = 0;
    let mut update = 0;
    loop {
        tokio::select! {
            life = lives.join_next() => match life {
                Some(life) => life??,
                None => return Ok(open),
            },
            () = tokio::time::sleep(Duration::from_millis(1)) => {
                // They are to have something to do.
                server.apply(pod(update % OBJECTS, update, update))?;
                update += 1;
                open = open.max(sockets());
            }
        }
    }
}

async fn live(client: &Client, kind: Kind, end: End) -> Result<()> {
    let resource = match end {
        End::DroppedBeforeSync => SILENT,
        End::DroppedInBackoff => FAILING,
        _ => PODS,
    };
    let config = WatcherConfig::new(resource)
        .index_by(["metadata.namespace", "metadata.name"])
        .backoff(Backoff::new(Duration::from_secs(5), Duration::from_secs(5)));
    let single = SingleWatcherConfig::new(resource, NAMESPACE, pod_name(0))
        .backoff(Backoff::new(Duration::from_secs(5), Duration::from_secs(5)));
    match kind {
        Kind::Bulk => {
            let slot = Slot::default();
            let callback = slot.clone();
            let watcher = Watcher::builder(client, config).on_sync_complete(move |_, _| callback.clear(end)).build()?;
            one(slot, watcher, end).await
        }
        Kind::Cached => {
            let slot = Slot::default();
            let callback = slot.clone();
            let builder = Watcher::builder(client, config).cached(CacheConfig::default().max_bytes(1 << 16));
            let watcher = builder.on_sync_complete_async(move |_, _| {
                callback.clear(end);
                async {}
            });
            one(slot, watcher.build()?, end).await
        }
        Kind::Single => {
            let slot = Slot::default();
            let callback = slot.clone();
            let watcher =
                SingleWatcher::builder(client, single).on_sync_complete(move |_| callback.clear(end)).build()?;
            one(slot, watcher, end).await
        }
        Kind::Group => {
            let group = SyncGroup::new();
            let (slot, other) = (Slot::default(), Slot::default());
            let (callback, other_callback) = (slot.clone(), other.clone());
            let bulk = Watcher::builder(client, config)
                .sync_group(&group, "bulk")
                .on_sync_complete(move |_, _| callback.clear(end))
                .build()?;
            let single = SingleWatcher::builder(client, single)
                .sync_group(&group, "single")
                .on_sync_complete(move |_| other_callback.clear(end))
                .build()?;
            let deadline = Deadline::after(if resource == PODS { LONG } else { Duration::from_millis(20) });
            // Success, the deadline or an early end: whatever it is, who waits is told.
            let wait = async {
                let told = tokio::time::timeout(2 * LONG, group.wait(deadline)).await;
                told.map(drop).context("the group is waited for without an end")
            };
            tokio::try_join!(one(slot, bulk, end), one(other, single, end), wait).map(drop)
        }
    }
}

/// Where a running watcher is until somebody ends it, its own callback perhaps.
struct Slot<R>(Arc<Mutex<Option<R>>>);

impl<R> Slot<R> {
    /// Ends the watcher from within its callback, if that is how it is to end.
    fn clear(&self, end: End) {
        if end == End::DroppedInItsCallback {
            drop(self.lock().take());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Clone for Slot<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R> Default for Slot<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// What the kinds of watchers have in common here.
trait Life: Send + Sized + 'static {
    type Handle: Send + 'static;

    fn statuses(&self) -> watch::Receiver<Status>;
    /// Something that reads to the end of the watcher, if there is such a thing.
    fn listen(&self) -> JoinSet<()>;
    fn start(self) -> Running<Self::Handle>;
    fn run_until(self, token: CancellationToken) -> impl Future<Output = ()> + Send;
    fn stop(handle: &Self::Handle);
}

impl<S: Clone + Send + Sync + 'static> Life for Watcher<S> {
    type Handle = WatcherHandle<S>;

    fn statuses(&self) -> watch::Receiver<Status> {
        self.status_changes()
    }

    fn listen(&self) -> JoinSet<()> {
        let mut changes = self.changes();
        let mut listeners = JoinSet::new();
        listeners.spawn(async move { while changes.next().await.is_some() {} });
        let handle = self.handle().clone();
        listeners.spawn(async move { drop(handle.wait_for_sync(LONG).await) });
        listeners
    }

    fn start(self) -> Running<Self::Handle> {
        self.spawn()
    }

    fn run_until(self, token: CancellationToken) -> impl Future<Output = ()> + Send {
        self.run(token)
    }

    fn stop(handle: &Self::Handle) {
        handle.stop();
    }
}

impl Life for SingleWatcher {
    type Handle = SingleWatcherHandle;

    fn statuses(&self) -> watch::Receiver<Status> {
        self.status_changes()
    }

    fn listen(&self) -> JoinSet<()> {
        let handle = self.handle().clone();
        let mut listeners = JoinSet::new();
        listeners.spawn(async move { drop(handle.wait_for_sync(LONG).await) });
        listeners
    }

    fn start(self) -> Running<Self::Handle> {
        self.spawn()
    }

    fn run_until(self, token: CancellationToken) -> impl Future<Output = ()> + Send {
        self.run(token)
    }

    fn stop(handle: &Self::Handle) {
        handle.stop();
    }
}

/// The life of one watcher; whoever listens to it must learn of its end.
async fn one<L: Life>(slot: Slot<Running<L::Handle>>, watcher: L, end: End) -> Result<()> {
    let mut statuses = watcher.statuses();
    let mut listeners = watcher.listen();
    match end {
        End::Unstarted => drop(watcher),
        End::Cancelled => {
            let token = CancellationToken::new();
            let running = tokio::spawn(watcher.run_until(token.clone()));
            until(&mut statuses, |s| s.synced).await?;
            token.cancel();
            running.await?;
        }
        _ => {
            {
                // Its callback waits for the slot to be filled.
                let mut slot = slot.lock();
                *slot = Some(watcher.start());
            }
            match end {
                End::DroppedBeforeSync => {
                    until(&mut statuses, |s| s.started).await?;
                    // The request is to be on its way.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                End::DroppedInBackoff => until(&mut statuses, |s| matches!(s.phase, Phase::BackingOff { .. })).await?,
                End::DroppedInItsCallback => {}
                _ => until(&mut statuses, |s| s.synced).await?,
            }
            let running = if end == End::DroppedInItsCallback { None } else { slot.lock().take() };
            match (running, end) {
                (None, End::DroppedInItsCallback) => {}
                (Some(running), End::ShutDown) => running.shutdown().await,
                (Some(running), End::DetachedAndStopped) => L::stop(&running.detach()),
                (Some(running), End::Stopped) => {
                    L::stop(&running);
                    running.join().await;
                }
                (Some(running), _) => drop(running),
                (None, _) => bail!("somebody else has ended it"),
            }
        }
    }
    until(&mut statuses, |s| s.phase == Phase::Stopped).await?;
    let listened = async { while listeners.join_next().await.is_some() {} };
    tokio::time::timeout(LONG, listened).await.context("somebody was not told of the end")
}

async fn until(statuses: &mut watch::Receiver<Status>, wanted: impl Fn(&Status) -> bool) -> Result<()> {
    let found = tokio::time::timeout(LONG, statuses.wait_for(|status| wanted(status))).await;
    let found = found.map(|status| status.map(drop));
    found.with_context(|| format!("it stays {}", statuses.borrow().phase))?.context("it is gone")
}
