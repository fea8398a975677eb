//! Random histories of a cluster and of its faults: in the end the store is what the server has, and everybody who
//! listened knows it.
//!
//! `K8S_WATCHER_HISTORIES` sets how many are played, `K8S_WATCHER_FIRST` from which seed on; `K8S_WATCHER_SEED` plays the
//! one of that seed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use k8s_fake_apiserver::{Any, FakeApiServer, FaultRule, List, Replica, Status, StreamingLists, Watch};
use k8s_store::Snapshot;
use k8s_types::ListMode;
use k8s_watcher::{RunningWatcher, Watcher, WatcherHandle};
use serde_json::Value;
use tokio::time::Instant;
use tower::Service;

use crate::support::*;

/// How many are played by default: a few seconds of a debug build.
const HISTORIES: u64 = 300;
/// How far a restored cluster goes back: further than a history gets on.
const SET_BACK: u64 = 10_000;

#[test]
fn whatever_happens_the_store_ends_as_the_server_is() {
    play_all(HISTORIES, play);
}

fn play(seed: u64, story: &Story) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut history = History::begin(seed, story.clone()).await;
        for _ in 0..history.rng.usize(10..80) {
            history.step().await;
        }
        history.end().await;
    });
}

/// What is selected, as the server's state has it.
#[derive(Clone, Copy, PartialEq)]
enum Selection {
    All,
    /// By labels, in the server.
    Label,
    /// By a field, in the client.
    Field,
}

struct History {
    rng: Rng,
    story: Story,
    server: FakeApiServer,
    replica: Replica,
    watcher: RunningWatcher,
    selection: Selection,
    namespaces: Option<Vec<&'static str>>,
    during_sync: bool,
    record: Record,
    initial: Arc<AtomicU64>,
    reader: tokio::task::JoinHandle<Replay>,
    /// The newest version seen of each object.
    newest: HashMap<String, u64>,
    begin: Instant,
    lists_by_hand: usize,
    /// How many requests stand in the story.
    told: usize,
}

impl History {
    async fn begin(seed: u64, story: Story) -> Self {
        let mut rng = Rng::with_seed(seed);
        let begin = Instant::now();
        let streaming = rng.choice([
            StreamingLists::Served,
            StreamingLists::Served,
            StreamingLists::Refused,
            StreamingLists::Ignored,
        ]);
        let lag = rng.bool();
        // A real server that lags sends no bookmark below the version that was asked for, and a stream without a version
        // is as new as the storage; this one does and is not.
        let bookmarks = if lag { secs(86_400) } else { secs(rng.u64(5..60)) };
        let server = fake()
            .revision(9 * SET_BACK)
            .history(rng.usize(10..200))
            .streaming_lists(streaming.unwrap_or_default())
            .bookmark_interval(bookmarks)
            .seed(seed)
            .start()
            .await
            .expect("the server starts");
        for _ in 0..rng.usize(0..30) {
            server.apply(object(&mut rng)).expect("applies");
        }
        let selection = rng.choice([Selection::All, Selection::Label, Selection::Field]).unwrap_or(Selection::All);
        let namespaces = rng.bool().then(|| vec!["a", "b"]);
        let during_sync = rng.bool();
        let mut config = config()
            .list_mode(if lag || rng.bool() { ListMode::Paged } else { ListMode::Streaming })
            .page_size(rng.u32(1..20))
            .call_on_change_during_sync(during_sync)
            .debounce(ms(rng.u64(0..3) * 100))
            .idle_limit(secs(rng.u64(30..150)));
        match selection {
            Selection::All => {}
            Selection::Label => config = config.label_selector("app in (x, y)"),
            Selection::Field => config = config.field_selector("data.value=x"),
        }
        if rng.bool() {
            config = config.ignore_fields(["data.more"]);
        }
        if let Some(namespaces) = &namespaces {
            config = config.namespaces(namespaces.clone());
        }
        story.tell(format!("{config:?} on {streaming:?}, two servers: {lag}"));
        let initial = Arc::new(AtomicU64::new(0));
        let count = initial.clone();
        let replica = server.replica();
        let record = Record::new();
        let (on_change, mut slowness) = (record.clone(), rng.fork());
        let most = [0, 0, 500, 30_000][slowness.usize(0..4)];
        let slowness = std::sync::Mutex::new(slowness);
        let client = if lag { either(&server, &replica, rng.fork()) } else { server.client() };
        let watcher = Watcher::builder(client, config)
            .on_change_async(move |change| {
                on_change.push(&change);
                tokio::time::sleep(ms(slowness.lock().expect("no panic under the lock").u64(0..=most)))
            })
            .on_sync_complete_async(move |_, objects| {
                count.fetch_add(objects as u64, Ordering::SeqCst);
                async {}
            })
            .spawn()
            .expect("a sound configuration");
        let mut changes = watcher.changes();
        let mut pace = rng.fork();
        let reader = tokio::spawn(async move {
            let mut replay = Replay::default();
            while let Some(batch) = changes.next().await {
                replay.apply(&batch);
                tokio::time::sleep(ms(pace.u64(0..20_000))).await;
            }
            replay
        });
        Self {
            rng,
            story,
            server,
            replica,
            watcher,
            selection,
            namespaces,
            during_sync,
            record,
            initial,
            reader,
            newest: HashMap::new(),
            begin,
            lists_by_hand: 0,
            told: 0,
        }
    }

    async fn step(&mut self) {
        let chance = self.rng.u32(0..100);
        match chance {
            0..45 => self.write(),
            45..55 => {
                let of = ["a", "b", "c"].map(|n| self.server.delete(MAPS, Some(n), &name(&mut self.rng)).unwrap());
                self.story.tell(format!("deletes {of:?}"));
            }
            55..80 => self.fault(),
            80..84 => {
                self.story.tell("watches end");
                self.server.close_watches();
            }
            84..87 => {
                self.story.tell("compaction");
                self.server.advance(self.rng.u64(0..20));
                self.server.compact();
            }
            87..89 => {
                self.story.tell("relist by hand");
                self.lists_by_hand += 1;
                self.watcher.relist();
            }
            89..91 => self.restore(),
            91..95 => {
                let lag = self.rng.u64(0..30);
                self.story.tell(format!("a replica is {lag} behind"));
                self.replica.set_lag(lag);
            }
            _ => {}
        }
        if self.rng.u32(0..3) == 0 {
            let magnitude = self.rng.u32(4..16);
            let wait = ms(self.rng.u64(0..1 << magnitude));
            self.story.tell(format!("{wait:?} pass at {:?}", self.begin.elapsed()));
            settle(wait).await;
            self.tell_requests();
        }
        self.look();
    }

    fn write(&mut self) {
        let object = object(&mut self.rng);
        self.story.tell(format!("apply {}", object["metadata"]));
        let recreate = self.rng.u32(0..6) == 0;
        if recreate {
            let (namespace, name) = (object["metadata"]["namespace"].as_str(), object["metadata"]["name"].as_str());
            self.server.delete(MAPS, namespace, name.unwrap_or_default()).expect("a kind");
        }
        self.server.apply(object).expect("applies");
    }

    fn fault(&mut self) {
        let rng = &mut self.rng;
        let kind = rng.u32(0..14);
        let requests = match rng.u32(0..4) {
            // Within a list a stray line would be a part of an object, and hide it for good.
            _ if kind == 8 => Watch::of(MAPS),
            0 => List::of(MAPS),
            1 => Any::request(),
            _ => Watch::of(MAPS),
        };
        let rule: FaultRule = self.server.faults().on(requests.clone()).times(rng.u64(1..3)).after(rng.u64(0..12));
        let code = rng.choice([429, 500, 503, 504, 403, 404, 408, 409, 410]).unwrap_or(500);
        self.story.tell(format!("fault {kind} ({code}) on {requests:?}"));
        drop(match kind {
            0 | 1 => rule.status(Status::from(code)),
            2 => rule.status(Status::too_many_requests(rng.u32(0..9))),
            3 => rule.gone(),
            4 => rule.reset(),
            5 => rule.end(),
            6 => rule.hang(),
            7 => rule.error(Status::from(code)),
            8 => rule.line(rng.choice(["garbage", "{", "[]", "7", r#"{"type":"ADDED","object":{}}"#]).unwrap_or("")),
            9 => rule.drop_connection(),
            10 => rule.no_answer(),
            11 => rule.reset_at_byte(rng.u64(0..5_000)),
            12 => rule.end_at_byte(rng.u64(0..5_000)),
            _ => rule.chunks(rng.usize(1..100)),
        });
        if rng.bool() {
            self.server.close_watches();
        }
    }

    /// The cluster comes from a backup: some objects as they are, some as they were not.
    fn restore(&mut self) {
        let mut objects: Vec<Value> = self.server.objects(MAPS).expect("a kind");
        objects.retain(|_| self.rng.bool());
        for object in &mut objects {
            if self.rng.bool() {
                let value = value(&mut self.rng);
                object["data"]["value"] = value.into();
                object["metadata"]["labels"]["app"] = value.into();
            }
        }
        let revision = self.server.revision() - SET_BACK;
        self.story.tell(format!("restored at {revision} with {} objects", objects.len()));
        self.server.restart_at(revision, objects).expect("restarts");
        self.newest.clear();
    }

    fn tell_requests(&mut self) {
        let requests = self.server.journal().requests();
        for request in &requests[self.told..] {
            self.story.tell(format!("    {request} at {:?}", request.at));
        }
        self.told = requests.len();
        self.story.tell(format!("    {:?}", self.watcher.last_watch_error().map(|e| e.to_string())));
    }

    /// What holds at any moment.
    fn look(&mut self) {
        let snapshot = self.watcher.store().snapshot();
        if self.watcher.is_synced() {
            for object in snapshot.list() {
                let uid = object.uid().unwrap_or_default();
                let key = format!("{:?}/{} {uid}", object.namespace(), object.name());
                let version = object.resource_version().and_then(|v| v.parse().ok()).unwrap_or(0);
                let newest = self.newest.entry(key).or_insert(version);
                // Before the watcher has noticed a restore it still shows what was before it.
                let restored = version.abs_diff(*newest) > SET_BACK / 2;
                assert!(version >= *newest || restored, "{}: {version} after {newest}", object.name());
                *newest = version;
            }
        }
        check_index(&snapshot);
    }

    /// Everything is well again: the store gets there, and all who listened know it.
    async fn end(mut self) {
        self.story.tell(format!("all is well from {:?} on", self.begin.elapsed()));
        self.server.faults().clear();
        self.replica.set_lag(0);
        self.watcher.wait_for_sync(secs(900)).await.expect("it syncs");
        let deadline = Instant::now() + secs(900);
        while stored(&self.watcher.store().snapshot()) != self.selected() {
            assert!(
                Instant::now() < deadline,
                "{:?}\n is not\n {:?}\n {:?}",
                stored(&self.watcher.store().snapshot()),
                self.selected(),
                self.watcher.status()
            );
            settle(secs(1)).await;
        }
        settle(secs(30)).await;
        self.look();
        assert_eq!(self.watcher.status().callback_panics, 0);
        self.check_requests();
        let Self { watcher, reader, record, initial, during_sync, .. } = self;
        let handle: WatcherHandle = watcher.handle().clone();
        watcher.shutdown().await;
        let snapshot: Snapshot = handle.store().snapshot();
        check_statistics(&record, initial.load(Ordering::SeqCst), during_sync, snapshot.len() as u64);
        let known = reader.await.expect("every batch fits to the one before");
        assert_eq!(known.len(), snapshot.len());
    }

    /// The rows of the objects that the watcher should have.
    fn selected(&self) -> Vec<[String; 4]> {
        let wanted = |row: &[String; 4]| {
            self.namespaces.as_ref().is_none_or(|n| n.contains(&row[0].as_str()))
                && match self.selection {
                    Selection::All => true,
                    Selection::Label => row[3] == "x" || row[3] == "y",
                    Selection::Field => row[3] == "x",
                }
        };
        served(&self.server, MAPS).into_iter().filter(wanted).collect()
    }

    /// Nothing was hammered. Further pages of a list are no requests of their own here.
    fn check_requests(&self) {
        let continued = |r: &k8s_fake_apiserver::Request| r.query("continue").is_some_and(|token| !token.is_empty());
        let requests = self.server.journal().requests().iter().filter(|r| !continued(r)).count();
        let scopes = self.namespaces.as_ref().map_or(1, Vec::len);
        let seconds = self.begin.elapsed().as_secs() as usize;
        let most = scopes * (20 + 3 * seconds + self.lists_by_hand);
        assert!(requests <= most, "{requests} requests in {seconds} s");
    }
}

/// A client whose requests go to one server or the other.
pub(crate) fn either(server: &FakeApiServer, replica: &Replica, mut rng: Rng) -> kube::Client {
    let (server, replica) = (server.service(), replica.service());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        if rng.bool() { server.clone() } else { replica.clone() }.call(request)
    });
    kube::Client::new(service, "default")
}

fn check_statistics(record: &Record, initial: u64, during_sync: bool, objects: u64) {
    let (created, _, deleted) = record.totals();
    let from_start = if during_sync { 0 } else { initial };
    assert_eq!(
        from_start + created,
        objects + deleted,
        "created, initial, deleted: {created}, {from_start}, {deleted}"
    );
    let calls = record.calls();
    assert!(calls.iter().all(|(_, stats, _)| !stats.is_empty()), "nobody forced a call");
    let initial_calls = calls.iter().take_while(|(_, stats, _)| stats.is_initial_sync);
    assert!(during_sync || initial_calls.clone().count() == 0);
    let net = initial_calls.fold(0, |n, (_, stats, _)| n + stats.created - stats.deleted);
    assert!(!during_sync || net == initial, "{net} told of {initial} in the load");
    let last_initial = calls.iter().rposition(|(_, stats, _)| stats.is_initial_sync).map_or(0, |at| at + 1);
    assert!(calls[..last_initial].iter().all(|(_, stats, _)| stats.is_initial_sync));
}

fn name(rng: &mut Rng) -> String {
    format!("m{}", rng.u32(0..12))
}

fn value(rng: &mut Rng) -> &'static str {
    rng.choice(["x", "y", "z"]).unwrap_or("x")
}

fn object(rng: &mut Rng) -> Value {
    let namespace = rng.choice(["a", "b", "c"]).unwrap_or("a");
    let mut object = config_map_in(namespace, &name(rng), value(rng));
    object["data"]["more"] = rng.u32(0..3).to_string().into();
    object
}
