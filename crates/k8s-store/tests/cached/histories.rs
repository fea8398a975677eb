//! Random histories: a server that changes all the time, a watch that lags behind, readers who come and go.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use k8s_packed::{Encoder, Object};
use k8s_store::{CacheConfig, CachedStore, Error, FetchError, FetchFuture, StorePlan, cached_store};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::world::within;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const ENDS: Duration = Duration::from_secs(60);

/// Incarnation and revision; none while the object does not exist.
type State = Option<(u64, u64)>;

#[derive(Default)]
struct History {
    states: Vec<State>,
    /// How many of them the watch has shown.
    shown: usize,
    /// Requests for the object that are running.
    running: usize,
}

struct World {
    histories: Mutex<HashMap<&'static str, History>>,
    revision: Mutex<u64>,
    most_running: Mutex<usize>,
    random: Mutex<fastrand::Rng>,
}

impl World {
    fn new(seed: u64) -> Arc<Self> {
        let history = || History { states: vec![None], shown: 1, running: 0 };
        Arc::new(Self {
            histories: Mutex::new(NAMES.map(|name| (name, history())).into()),
            revision: Mutex::new(9),
            most_running: Mutex::new(0),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        })
    }

    fn random(&self, below: u64) -> u64 {
        self.random.lock().u64(..below)
    }

    async fn pause(&self, at_most: u64) {
        let time = self.random(at_most);
        sleep(Duration::from_millis(time)).await;
    }

    fn with<T>(&self, name: &str, read: impl FnOnce(&mut History) -> T) -> T {
        read(self.histories.lock().get_mut(name).expect("known"))
    }

    /// Changes, makes or deletes one object.
    fn change(&self, name: &str) {
        let revision = {
            let mut revision = self.revision.lock();
            *revision += 1;
            *revision
        };
        let deletes = self.random(4) == 0;
        self.with(name, |history| {
            let next = match history.states.last().copied().flatten() {
                Some(_) if deletes => None,
                Some((uid, _)) => Some((uid, revision)),
                None => Some((revision, revision)),
            };
            history.states.push(next);
        });
    }

    fn fetch(self: &Arc<Self>, name: &str) -> FetchFuture {
        let (world, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let running = Running::new(&world, &name);
            world.pause(80).await;
            let state = world.with(&name, |history| history.states.last().copied().flatten());
            world.pause(80).await;
            drop(running);
            match world.random(20) {
                0 => Err(FetchError::new("scripted")),
                _ => Ok(state.map(|state| Bytes::from(json(&name, state)))),
            }
        })
    }

    /// What a reader got must have been true at a moment when or after the watch had shown so much.
    fn check(&self, name: &str, shown: usize, found: Option<&Object>) {
        let found = found.map(|object| object.resource_version().unwrap_or_default().to_owned());
        self.with(name, |history| {
            let is = |state: &State| state.map(|(_, revision)| revision.to_string()) == found;
            let since = &history.states[shown - 1..];
            assert!(since.iter().any(is), "{name}: {found:?} is not among {since:?}");
        });
    }

    fn shown(&self, name: &str) -> usize {
        self.with(name, |history| history.shown)
    }
}

/// A request that is running, until it is dropped.
struct Running(Arc<World>, String);

impl Running {
    fn new(world: &Arc<World>, name: &str) -> Self {
        let now = world.with(name, |history| {
            history.running += 1;
            history.running
        });
        let mut most = world.most_running.lock();
        *most = now.max(*most);
        Self(world.clone(), name.to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.with(&self.1, |history| history.running -= 1);
    }
}

fn json(name: &str, (uid, revision): (u64, u64)) -> String {
    let metadata =
        json!({"namespace": "ns", "name": name, "uid": format!("u{uid}"), "resourceVersion": revision.to_string()});
    json!({"metadata": metadata, "data": {"revision": revision}}).to_string()
}

/// Shows what has happened, a while later, in batches.
async fn watch(world: Arc<World>, plan: StorePlan, store: tokio::sync::oneshot::Sender<CachedStore>) {
    let config = CacheConfig::default()
        .ttl(Duration::from_millis(2000))
        .negative_ttl(Duration::from_millis(500))
        .max_parallel_fetches(2)
        .fetch_timeout(Duration::from_millis(150));
    let fetch = {
        let world = world.clone();
        move |_: Option<&str>, name: &str| world.fetch(name)
    };
    let (mut writer, mut invalidator, reader) =
        cached_store(plan, Encoder::new().keep_only([]), Encoder::new(), config, fetch);
    drop(store.send(reader));
    let mut whole = Encoder::new();
    loop {
        world.pause(120).await;
        for name in NAMES {
            let next = world.with(name, |history| history.states.get(history.shown).copied());
            let Some(state) = next else { continue };
            match state {
                Some(state) => {
                    let json = json(name, state);
                    let full = (world.random(3) == 0).then(|| whole.encode(json.as_bytes()).expect("an object"));
                    let stub = writer.encoder().encode(json.as_bytes()).expect("an object");
                    invalidator.shown(stub.namespace(), name, stub.uid(), stub.resource_version(), full.as_ref());
                    writer.upsert(stub);
                }
                None => {
                    invalidator.gone(Some("ns"), name);
                    writer.remove(Some("ns"), name);
                }
            }
            world.with(name, |history| history.shown += 1);
        }
        writer.commit();
    }
}

async fn read(world: Arc<World>, store: CachedStore) {
    loop {
        world.pause(100).await;
        let name = NAMES[world.random(4) as usize];
        let (shown, all) = (world.shown(name), NAMES.map(|name| world.shown(name)));
        let patience = Duration::from_millis(world.random(400));
        if world.random(5) == 0 {
            match timeout(patience, store.list()).await {
                Ok(Ok(objects)) => {
                    // What is not listed had no reference, or was found not to exist.
                    for object in &objects {
                        let at = NAMES.iter().position(|name| *name == object.name()).expect("known");
                        world.check(object.name(), all[at], Some(object));
                    }
                }
                Ok(Err(Error::Incomplete { .. })) | Err(_) => {}
                Ok(Err(error)) => panic!("{error:?}"),
            }
            continue;
        }
        match timeout(patience, store.by_name(Some("ns"), name)).await {
            Ok(Ok(found)) => {
                world.check(name, shown, found.as_ref());
            }
            Ok(Err(Error::Fetch { .. })) | Err(_) => {}
            Ok(Err(error)) => panic!("{error:?}"),
        }
    }
}

async fn play(seed: u64) {
    let world = World::new(seed);
    let plan = StorePlan::index_by(["metadata.namespace", "metadata.name"]).expect("valid");
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(watch(world.clone(), plan, sender));
    let store = receiver.await.expect("the watch has begun");
    let readers: Vec<_> = (0..8).map(|_| tokio::spawn(timeout(ENDS, read(world.clone(), store.clone())))).collect();
    let changes = world.clone();
    tasks.spawn(async move {
        loop {
            changes.pause(150).await;
            changes.change(NAMES[changes.random(4) as usize]);
        }
    });
    for reader in readers {
        // They end by the clock, or by what they found.
        assert!(within(reader).await.expect("everything that was read was right").is_err());
    }
    let stats = store.stats();
    assert!(stats.hits > 100 && stats.fetches > 100, "seed {seed}: {stats:?}");
    assert_eq!(*world.most_running.lock(), 1, "seed {seed}: requests for one object at the same time");
}

#[tokio::test(start_paused = true)]
async fn readers_never_get_what_is_older_than_the_watch() {
    for seed in 0..8 {
        play(seed).await;
    }
}
