//! Random histories of one object and of its server's faults: what a single watcher tells is a true story of the object,
//! with gaps, and ends at the present.
//!
//! `K8S_WATCHER_HISTORIES` sets how many are played, `K8S_WATCHER_FIRST` from which seed on; `K8S_WATCHER_SEED` plays the
//! one of that seed.

use fastrand::Rng;
use k8s_fake_apiserver::{Any, FakeApiServer, FaultRule, List, Replica, Status, StreamingLists, Watch};
use k8s_types::{ListMode, Object, SingleWatcherConfig};
use k8s_watcher::{RunningSingleWatcher, SingleWatcher};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::histories::either;
use crate::support::*;

/// How many are played by default: a few seconds of a debug build.
const HISTORIES: u64 = 300;
/// How far a restored cluster goes back: further than a history gets on.
const SET_BACK: u64 = 10_000;

#[test]
fn whatever_happens_what_is_told_is_the_objects_story() {
    play_all(HISTORIES, play);
}

fn play(seed: u64, story: &Story) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut history = History::begin(seed, story.clone()).await;
        for _ in 0..history.rng.usize(5..60) {
            history.step().await;
        }
        history.end().await;
    });
}

/// A state of the object: uid and value, or that there is none.
type State = Option<(String, String)>;

fn state(object: Option<&Object>) -> State {
    object.map(|o| (o.uid().unwrap_or_default().to_owned(), o.label("app").unwrap_or_default().to_owned()))
}

fn text(state: &State) -> String {
    state.as_ref().map_or("none".to_owned(), |(uid, value)| format!("{value} of {uid}"))
}

struct History {
    rng: Rng,
    story: Story,
    server: FakeApiServer,
    replica: Replica,
    watcher: RunningSingleWatcher,
    /// Every state that the object was in, each as a text of its own.
    states: Vec<State>,
    /// The same, whole.
    backups: Vec<Value>,
    told: Story,
    /// How many values there were.
    values: usize,
    /// Whether it may have been shown in a form that cannot be read: then only another look tells the present.
    was_unreadable: bool,
    begin: Instant,
}

impl History {
    async fn begin(seed: u64, story: Story) -> Self {
        let mut rng = Rng::with_seed(seed);
        let streaming = rng.choice([StreamingLists::Served, StreamingLists::Refused, StreamingLists::Ignored]);
        let lag = rng.bool();
        // As for histories of many objects: a real server that lags sends no such bookmarks, nor such streams.
        let bookmarks = if lag { secs(86_400) } else { secs(rng.u64(5..60)) };
        let server = fake()
            .revision(9 * SET_BACK)
            .history(rng.usize(5..100))
            .streaming_lists(streaming.unwrap_or_default())
            .bookmark_interval(bookmarks)
            .seed(seed)
            .start()
            .await
            .expect("the server starts");
        let exists = rng.bool();
        if exists {
            server.apply(config_map("a", "v0")).expect("applies");
        }
        let config = SingleWatcherConfig::new(MAPS, "shop", "a")
            .list_mode(if lag || rng.bool() { ListMode::Paged } else { ListMode::Streaming })
            .idle_limit(secs(rng.u64(30..150)));
        let told = Story::default();
        let (on_sync, on_change, mut slowness) = (told.clone(), told.clone(), rng.fork());
        let most = [0, 0, 500, 30_000][slowness.usize(0..4)];
        let slowness = std::sync::Mutex::new(slowness);
        story.tell(format!(
            "exists: {exists}, {config:?} on {streaming:?}, two servers: {lag}, callbacks take up to {most} ms"
        ));
        let synced = rng.u64(0..3) * most;
        let replica = server.replica();
        let client = if lag { either(&server, &replica, rng.fork()) } else { server.client() };
        let watcher = SingleWatcher::builder(client, config)
            .on_sync_complete_async(move |object| {
                on_sync.tell(text(&state(object.as_ref())));
                tokio::time::sleep(ms(synced))
            })
            .on_change_async(move |object| {
                on_change.tell(text(&state(object.as_ref())));
                tokio::time::sleep(ms(slowness.lock().expect("no panic under the lock").u64(0..=most)))
            })
            .spawn()
            .expect("a sound configuration");
        let mut history = Self {
            rng,
            story,
            server,
            replica,
            watcher,
            // An object that cannot be read at the sync is taken for none.
            states: vec![None],
            backups: vec![],
            told,
            values: 1,
            was_unreadable: false,
            begin: Instant::now(),
        };
        history.note();
        history
    }

    /// The object as the server has it.
    fn present(&self) -> State {
        let object = self.server.object(MAPS, Some("shop"), "a").expect("a kind")?;
        let member = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some((member("/metadata/uid"), member("/metadata/labels/app")))
    }

    fn note(&mut self) {
        let present = self.present();
        let uid = |state: &State| state.as_ref().map(|(uid, _)| uid.clone());
        let last = self.states.last().cloned().unwrap_or_default();
        if last != present {
            if last.is_some() && present.is_some() && uid(&last) != uid(&present) {
                // A restore brought another one back: the one that was there is gone.
                self.states.push(None);
            }
            self.backups.extend(self.server.object(MAPS, Some("shop"), "a").expect("a kind"));
            self.story.tell(format!("  it is {} at {:?}", text(&present), self.begin.elapsed()));
            self.states.push(present);
        }
    }

    async fn step(&mut self) {
        match self.rng.u32(0..100) {
            0..35 => self.write(),
            35..45 => self.delete(),
            45..50 => {
                // Several that have the name, in one gap.
                for _ in 0..self.rng.u32(1..4) {
                    self.delete();
                    self.write();
                }
            }
            50..55 => drop(self.server.apply(config_map("b", "other")).expect("applies")),
            55..73 => self.fault(),
            73..79 => self.unreadable(),
            79..83 => {
                self.story.tell("watches end");
                self.server.close_watches();
            }
            83..87 => {
                self.story.tell("compaction");
                self.server.advance(self.rng.u64(0..20));
                self.server.compact();
            }
            87..89 => {
                self.story.tell("relist by hand");
                self.watcher.relist();
            }
            89..93 => self.restore(),
            93..96 => {
                let lag = self.rng.u64(0..10);
                self.story.tell(format!("a replica is {lag} behind"));
                self.replica.set_lag(lag);
            }
            _ => {}
        }
        if self.rng.bool() {
            let magnitude = self.rng.u32(4..17);
            settle(ms(self.rng.u64(0..1 << magnitude))).await;
        }
    }

    fn write(&mut self) {
        let value = format!("v{}", self.values);
        self.values += 1;
        self.server.apply(config_map("a", &value)).expect("applies");
        self.note();
    }

    fn delete(&mut self) {
        self.server.delete(MAPS, Some("shop"), "a").expect("a kind");
        self.note();
    }

    /// The cluster comes from a backup: the object as it is, as it was, or not at all.
    fn restore(&mut self) {
        let mut objects: Vec<Value> = self.server.objects(MAPS).expect("a kind");
        if self.rng.u32(0..3) == 0 {
            objects.retain(|object| object["metadata"]["name"] != "a");
        }
        if self.rng.bool()
            && let Some(before) = self.rng.choice(&self.backups)
        {
            objects.retain(|object| object["metadata"]["name"] != "a");
            objects.push(before.clone());
        }
        let revision = self.server.revision() - SET_BACK;
        self.story.tell(format!("restored at {revision} with {} objects", objects.len()));
        self.server.restart_at(revision, objects).expect("restarts");
        self.note();
    }

    /// For a while the object is shown in a form that cannot be held.
    fn unreadable(&mut self) {
        self.was_unreadable = true;
        let times = self.rng.u64(1..4);
        self.story.tell(format!("unreadable in {times} answers"));
        let rule = self.server.faults().on(Any::request()).times(times);
        drop(rule.edit(|object| object["data"] = (0..200).fold(Value::Null, |inner, _| json!([inner]))));
        if self.rng.bool() {
            self.server.close_watches();
        }
    }

    fn fault(&mut self) {
        let rng = &mut self.rng;
        let kind = rng.u32(0..12);
        let requests = match rng.u32(0..4) {
            0 => List::of(MAPS),
            1 => Any::request(),
            _ => Watch::of(MAPS),
        };
        let rule: FaultRule = self.server.faults().on(requests.clone()).times(rng.u64(1..3)).after(rng.u64(0..4));
        let code = rng.choice([429, 500, 503, 504, 403, 404, 408, 409, 410]).unwrap_or(500);
        self.story.tell(format!("fault {kind} ({code}) on {requests:?}"));
        drop(match kind {
            0 | 1 => rule.status(Status::from(code)),
            2 => rule.gone(),
            3 => rule.reset(),
            4 => rule.end(),
            5 => rule.hang(),
            6 => rule.error(Status::from(code)),
            7 => rule.drop_connection(),
            8 => rule.no_answer(),
            9 => rule.reset_at_byte(rng.u64(0..1_000)),
            10 => rule.end_at_byte(rng.u64(0..1_000)),
            _ => rule.chunks(rng.usize(1..100)),
        });
        if rng.bool() {
            self.server.close_watches();
        }
    }

    /// Everything is well again: the watcher gets there, and tells it.
    async fn end(mut self) {
        self.story.tell(format!("all is well from {:?} on", self.begin.elapsed()));
        self.server.faults().clear();
        self.replica.set_lag(0);
        self.watcher.wait_for_sync(secs(900)).await.expect("it syncs");
        for look in 0..20 {
            settle(secs(60)).await;
            if self.told.all().last() == Some(&text(&self.present())) {
                break;
            }
            if self.was_unreadable && look > 5 {
                self.watcher.relist();
            }
        }
        self.tell_ends();
        assert_eq!(self.told.all().last(), Some(&text(&self.present())));
        self.check();

        // When nothing is wrong and nobody is slow, or else to the end: what is known is told before it ends.
        for _ in 0..self.rng.usize(0..4) {
            if self.rng.u32(0..3) == 0 {
                self.delete()
            } else {
                self.write()
            }
            settle(ms(self.rng.u64(0..50))).await;
        }
        let handle = self.watcher.handle().clone();
        handle.stop();
        let Self { watcher, .. } = &mut self;
        let ended = tokio::time::timeout(secs(600), async {
            while !watcher.is_stopped() {
                settle(ms(100)).await;
            }
        });
        ended.await.expect("it ends");
        self.tell_ends();
        assert_eq!(self.told.all().last(), Some(&text(&state(handle.object().as_ref()))), "known, and not told");
        self.check();
    }

    fn tell_ends(&self) {
        for told in self.told.all() {
            self.story.tell(format!("    told: {told}"));
        }
        self.story.tell(format!("    {:?}", self.watcher.last_watch_error().map(|e| e.to_string())));
    }

    /// What was told is a part of what happened, in its order; between two that have the name lies a delete, and
    /// nothing is told that was known.
    fn check(&self) {
        let told = self.told.all();
        let mut rest = self.states.iter().map(text);
        for (i, now) in told.iter().enumerate() {
            assert!(
                rest.any(|state| state == *now),
                "{now}, told as number {i}, did not come after what was told before"
            );
        }
        let uid = |told: &str| told.split_once(" of ").map(|(_, uid)| uid.to_owned());
        for pair in told.windows(2) {
            assert_ne!(pair[0], pair[1], "told twice");
            let (before, after) = (uid(&pair[0]), uid(&pair[1]));
            assert!(before.is_none() || after.is_none() || before == after, "no delete between {pair:?}");
        }
        assert_eq!(self.watcher.status().callback_panics, 0);
    }
}
