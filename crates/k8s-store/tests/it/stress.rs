//! Eight readers and a writer: whatever is read, and in whatever way, is one committed state.
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use k8s_indexer::Indexer;
use k8s_packed::{Encoder, Object, Path};
use k8s_store::{MemoryStore, Snapshot, StorePlan, Writer, memory_store};
use serde_json::{Value, json};

use crate::fixture::{TEAM, ZONES, multi_valued};

const READERS: usize = 8;
/// What each reader looks at, and what the writer commits at least.
const ROUNDS: usize = 100;
const COMMITS: u64 = 500;
const NAMES: usize = 160;
const NAMESPACES: usize = 4;
const TEAMS: usize = 7;

fn plan() -> StorePlan {
    let named = |expressions: Vec<k8s_types::IndexExpression>| Indexer::new(expressions).expect("valid");
    StorePlan::index_by(["metadata.namespace", TEAM])
        .expect("valid")
        .named("by-zone", named(vec![multi_valued(ZONES)]))
        .expect("new name")
        .named("by-team-and-zone", named(vec![TEAM.into(), multi_valued(ZONES)]))
        .expect("new name")
}

fn namespace(at: usize) -> String {
    format!("ns-{}", at % NAMESPACES)
}

/// What a reader has to find of each object; a state is described by an object in it.
const LEDGER: &str = "ledger";

/// The writer and what it knows of its store.
struct Author {
    writer: Writer,
    rng: fastrand::Rng,
    version: u64,
    /// The version of each object.
    present: BTreeMap<usize, u64>,
}

impl Author {
    fn object(&mut self, at: usize) -> Object {
        self.version += 1;
        self.present.insert(at, self.version);
        let team = self.rng.usize(..TEAMS);
        // Ever new values that neighbours share, so that the table is rebuilt now and then.
        let shared: Vec<String> =
            (0..12).map(|i| format!("value {i} of era {}, and some more", self.version / 8)).collect();
        self.encode(json!({
            "metadata": {
                "namespace": namespace(at), "name": format!("o-{at:03}"), "uid": format!("uid-{at}"),
                "resourceVersion": self.version.to_string(), "labels": {"team": format!("t{team}")},
            },
            "spec": {"zones": [format!("z{team}"), format!("z{}", (team + 1) % TEAMS)], "shared": shared},
        }))
    }

    fn encode(&mut self, json: Value) -> Object {
        self.writer.encoder().encode(json.to_string().as_bytes()).expect("an object")
    }

    /// Any number of changes, the ledger among them, in one commit.
    fn batch(&mut self) {
        let relist = self.rng.u8(..8) == 0;
        if relist {
            self.writer.begin_relist(None);
        }
        for at in 0..NAMES {
            match self.rng.u8(..10) {
                // A relist shows what is there: what it leaves out goes.
                0..7 if relist => {
                    let object = self.object(at);
                    self.writer.upsert(object);
                }
                _ if relist => drop(self.present.remove(&at)),
                0 => {
                    self.writer.remove(Some(&namespace(at)), &format!("o-{at:03}"));
                    self.present.remove(&at);
                }
                1 | 2 => {
                    let object = self.object(at);
                    self.writer.upsert(object);
                }
                _ => {}
            }
        }
        self.version += 1;
        let (objects, sum) = (self.present.len(), self.present.values().sum::<u64>());
        let ledger = self.encode(json!({
            "metadata": {"name": LEDGER, "resourceVersion": self.version.to_string()},
            "data": {"objects": objects, "sum": sum},
        }));
        self.writer.upsert(ledger);
        if relist {
            self.writer.finish_relist(None);
        }
        self.writer.commit();
        while self.writer.compact_step() {}
    }
}

/// What one reader has seen, which must never be undone.
struct Reader {
    store: MemoryStore,
    rng: fastrand::Rng,
    last: u64,
    versions: HashMap<String, u64>,
    paths: [Path; 2],
}

fn version(object: &Object) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("a number")
}

fn zones(object: &Object) -> Vec<String> {
    let zones: Path = ZONES.parse().expect("a path");
    object.all(&zones).filter_map(|zone| Some(zone.as_str()?.to_owned())).collect()
}

impl Reader {
    fn look(&mut self) {
        let snapshot = self.store.snapshot();
        assert!(snapshot.version() >= self.last, "{} after {}", snapshot.version(), self.last);
        self.last = snapshot.version();
        self.whole(&snapshot);
        for _ in 0..8 {
            self.one(&snapshot);
        }
        // Each read by itself is at least as new.
        let name = format!("o-{:03}", self.rng.usize(..NAMES));
        let at = namespace(name[2..].parse().expect("a number"));
        if let Some(object) = self.store.by_name(Some(&at), &name) {
            self.seen(&object);
        }
        self.store.get([at.as_str()]).expect("one").iter().for_each(|object| self.seen(object));
    }

    fn seen(&mut self, object: &Object) {
        let last = self.versions.entry(object.name().to_owned()).or_default();
        assert!(version(object) >= *last, "{} is older than before", object.name());
        *last = version(object);
    }

    /// List, prefixes and indexes have each object once, and all have the same.
    fn whole(&mut self, snapshot: &Snapshot) {
        let number = |path: &Path| snapshot.by_name(None, LEDGER)?.get(path)?.as_u64();
        let [objects, sum] = [number(&self.paths[0]), number(&self.paths[1])].map(|n| n.expect("a committed state"));
        assert_eq!(snapshot.len() as u64, objects + 1);
        let list: Vec<&Object> = snapshot.list().filter(|o| o.name() != LEDGER).collect();
        assert!(list.is_sorted_by_key(|o| (o.namespace(), o.name())));
        assert_eq!(list.iter().map(|o| version(o)).sum::<u64>(), sum, "parts of two states");
        let sum_of = |objects: k8s_store::Objects<'_>| objects.map(version).sum::<u64>();
        let namespaces = (0..NAMESPACES).map(|at| snapshot.get([namespace(at)]).expect("one"));
        assert_eq!(namespaces.map(sum_of).sum::<u64>(), sum, "prefixes");
        let exact = (0..NAMESPACES).flat_map(|at| (0..TEAMS).map(move |team| [namespace(at), format!("t{team}")]));
        assert_eq!(exact.map(|key| sum_of(snapshot.get(key).expect("two"))).sum::<u64>(), sum, "exact keys");
        let by_zone = snapshot.index("by-zone").expect("known");
        let zones = (0..TEAMS).map(|zone| by_zone.get([format!("z{zone}")]).expect("one"));
        assert_eq!(zones.map(sum_of).sum::<u64>(), 2 * sum, "each in exactly two zones");
        let by_both = snapshot.index("by-team-and-zone").expect("known");
        let teams = (0..TEAMS).map(|team| by_both.get([format!("t{team}")]).expect("one"));
        assert_eq!(teams.map(sum_of).sum::<u64>(), sum, "once by a prefix, whatever the number of keys");
        list.into_iter().for_each(|object| self.seen(object));
    }

    /// An object is under each key that it has, and under no other.
    fn one(&mut self, snapshot: &Snapshot) {
        let at = self.rng.usize(..NAMES);
        let name = format!("o-{at:03}");
        let found = snapshot.by_name(Some(&namespace(at)), &name);
        let has = |mut objects: k8s_store::Objects<'_>| objects.any(|o| o.name() == name);
        let by_zone = snapshot.index("by-zone").expect("known");
        for team in 0..TEAMS {
            let (team, zone) = (format!("t{team}"), format!("z{team}"));
            let in_team = found.is_some_and(|o| o.label("team") == Some(&team));
            assert_eq!(has(snapshot.get([namespace(at), team]).expect("two")), in_team);
            let in_zone = found.is_some_and(|o| zones(o).contains(&zone));
            assert_eq!(has(by_zone.get([zone]).expect("one")), in_zone);
        }
    }
}

#[test]
fn eight_readers_see_only_committed_states_while_one_writer_commits_batches() {
    let (writer, store) = memory_store(plan(), Encoder::new());
    let mut author = Author { writer, rng: fastrand::Rng::with_seed(1), version: 0, present: BTreeMap::new() };
    author.batch();
    let finished = AtomicUsize::new(0);
    let commits = thread::scope(|scope| {
        for seed in 0..READERS {
            let (store, finished) = (store.clone(), &finished);
            scope.spawn(move || {
                // Counts as finished also when an assertion fails.
                struct Finish<'a>(&'a AtomicUsize);
                impl Drop for Finish<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let _finish = Finish(finished);
                let rng = fastrand::Rng::with_seed(seed as u64);
                let paths = ["data.objects", "data.sum"].map(|path| path.parse().expect("a path"));
                let mut reader = Reader { store, rng, last: 0, versions: HashMap::new(), paths };
                (0..ROUNDS).for_each(|_| reader.look());
            });
        }
        let mut commits = 0;
        while finished.load(Ordering::Relaxed) < READERS || commits < COMMITS {
            author.batch();
            commits += 1;
        }
        commits
    });
    assert!(store.snapshot().version() > commits + 1, "the table was rebuilt beside the commits");
}
