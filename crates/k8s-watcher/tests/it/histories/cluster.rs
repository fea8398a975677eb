//! The servers of a history, and the truth about what they had.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use k8s_fake_apiserver::{Any, FakeApiServer, FaultHandle, Replica, Request, Verb};
use serde_json::Value;
use tokio::time::Instant;
use tower::Service;

use super::plan::{Form, Kind, Setup, Step, Write};
use super::story::Story;
use super::truth::{Place, Truth, Version};
use crate::support::{MAPS, config_map_in, fake, secs};

/// How far a restored cluster goes back, or its versions are raised: further than a history gets on.
pub(crate) const SET_BACK: u64 = 10_000;
/// The version at the beginning.
const FIRST: u64 = 80 * SET_BACK;
/// How many requests a scope may make in ten seconds: the first steps of two backoffs, with what lies between.
const IN_TEN_SECONDS: usize = 30;
/// When it all happens.
const BEGIN: Duration = Duration::from_secs(1_772_359_200);

/// A server, its replica, and what is known of both.
pub(crate) struct Cluster {
    pub(crate) server: FakeApiServer,
    replica: Replica,
    pub(crate) story: Story,
    truth: Arc<Mutex<Truth>>,
    /// Every state that an object was in, as a backup has it.
    backups: BTreeMap<Place, Vec<Value>>,
    /// What was written since the last restore, which comes first, in its order.
    written: Vec<(Place, Option<Value>)>,
    /// How much of that is the restore.
    restored: usize,
    /// Between which versions they were so far, but for what was written since the last restore.
    lowest: u64,
    highest: u64,
    faults: Vec<(&'static str, FaultHandle)>,
    begin: Instant,
    /// How many requests stand in the story.
    told: usize,
    /// Objects may be known in an older form than they have, until somebody looks again.
    pub(crate) was_unreadable: bool,
    pub(crate) was_restored: bool,
    pub(crate) lists_by_hand: usize,
}

impl Cluster {
    pub(crate) async fn start(setup: &Setup, story: Story) -> Self {
        let server = fake()
            .revision(FIRST)
            .history(setup.history)
            .journal_capacity(1 << 20)
            .streaming_lists(setup.streaming)
            .bookmark_interval(secs(setup.bookmark_seconds))
            .seed(setup.seed)
            .now(SystemTime::UNIX_EPOCH + BEGIN)
            .start()
            .await
            .expect("the server starts");
        let mut cluster = Self {
            replica: server.replica(),
            server,
            story,
            truth: Arc::default(),
            backups: BTreeMap::new(),
            written: vec![],
            restored: 0,
            lowest: FIRST,
            highest: FIRST,
            faults: vec![],
            begin: Instant::now(),
            told: 0,
            was_unreadable: false,
            was_restored: false,
            lists_by_hand: 0,
        };
        for (place, form) in &setup.objects {
            cluster.write(Write::Apply(*place, *form));
        }
        cluster
    }

    /// A client of the server, or of both.
    pub(crate) fn client(&self, setup: &Setup) -> kube::Client {
        if !setup.has_replica {
            return self.server.client();
        }
        let (server, replica) = (self.server.service(), self.replica.service());
        let mut rng = Rng::with_seed(setup.seed);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            if rng.bool() { server.clone() } else { replica.clone() }.call(request)
        });
        kube::Client::new(service, "default")
    }

    pub(crate) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().expect("no panic under the lock")
    }

    pub(crate) fn share_truth(&self) -> Arc<Mutex<Truth>> {
        self.truth.clone()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Carries out a step that is about the servers.
    pub(crate) fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Write(write) => self.write(*write),
            Step::Fault(fault) => {
                self.was_unreadable |= fault.hides();
                self.faults.push((fault.what.kind(), fault.put(&self.server)));
            }
            Step::WatchesEnd => self.server.close_watches(),
            Step::Restart(refused) => {
                self.server.close_watches();
                drop(self.server.faults().on(Any::request()).times(*refused).drop_connection());
            }
            Step::Compact(others) => {
                self.server.advance(*others);
                self.server.compact();
            }
            Step::Restore(seed) => self.restore(&mut Rng::with_seed(*seed)),
            Step::Lag(revisions) => self.replica.set_lag(*revisions),
            Step::Relist | Step::Read(_) | Step::Pass(_) => {}
        }
    }

    pub(crate) fn write(&mut self, write: Write) {
        match write {
            Write::Apply(place, form) => drop(self.server.apply(object(place, form)).expect("applies")),
            Write::Recreate(place, form) => {
                self.delete(place);
                self.server.apply(object(place, form)).expect("applies");
            }
            Write::Delete(place) => return self.delete(place),
        }
        let (Write::Apply(place, _) | Write::Recreate(place, _) | Write::Delete(place)) = write;
        self.note(place);
    }

    fn delete(&mut self, place: Place) {
        self.server.delete(MAPS, Some(place.namespace), place.name).expect("a kind");
        self.note(place);
    }

    fn note(&mut self, place: Place) {
        let object = self.server.object(MAPS, Some(place.namespace), place.name).expect("a kind");
        let state = object.as_ref().map(Version::of);
        self.story.tell(|| format!("    {place:?} is {state:?}"));
        let revision = self.server.revision();
        self.truth().note(place, revision, state);
        self.written.push((place, object.clone()));
        self.backups.entry(place).or_default().extend(object);
    }

    fn restore(&mut self, rng: &mut Rng) {
        self.was_restored = true;
        // Where no version has been before: nobody could tell a second restore to the same versions.
        let highest = self.highest.max(self.server.revision());
        let (revision, objects) = if rng.bool() {
            self.highest = highest + SET_BACK;
            (self.highest, self.backup(rng))
        } else {
            self.highest = highest;
            self.lowest -= SET_BACK;
            (self.lowest, self.branch(rng))
        };
        self.story.tell(|| format!("    at {revision} with {} objects", objects.len()));
        self.server.restart_at(revision, objects).expect("restarts");
        self.written.clear();
        for place in Place::all() {
            if self.backups.contains_key(&place) {
                self.note(place);
            }
        }
        self.restored = self.written.len();
    }

    /// All objects as they were at some time since the last restore.
    fn backup(&self, rng: &mut Rng) -> Vec<Value> {
        let then = rng.usize(self.restored..=self.written.len());
        let objects: BTreeMap<Place, &Option<Value>> = self.written[..then].iter().map(|(p, o)| (*p, o)).collect();
        objects.into_values().flatten().cloned().collect()
    }

    /// Of each object the present state, another one under the same version, an earlier one or none: another cluster
    /// took over, in which history went its own way.
    fn branch(&self, rng: &mut Rng) -> Vec<Value> {
        let places: Vec<Place> = self.truth().places().collect();
        let mut objects = vec![];
        for place in places {
            let present = self.server.object(MAPS, Some(place.namespace), place.name).expect("a kind");
            let backup = match rng.u32(0..8) {
                0..4 => present,
                4 | 5 => present.map(|mut object| {
                    let value = rng.choice(["x", "y", "z"]).unwrap_or("x");
                    object["data"]["value"] = value.into();
                    object["metadata"]["labels"]["app"] = value.into();
                    object
                }),
                6 => rng.choice(&self.backups[&place]).cloned(),
                _ => None,
            };
            objects.extend(backup);
        }
        objects
    }

    /// Nothing goes wrong from now on; what is under way may still.
    pub(crate) fn heal(&mut self) {
        self.story.tell(|| format!("all is well from {:?} on", self.begin.elapsed()));
        for (kind, handle) in self.faults.drain(..) {
            self.story.count(kind, handle.hits());
        }
        self.server.faults().clear();
        self.replica.set_lag(0);
        if self.was_unreadable {
            // A watch that shows what cannot be read would do so for as long as it lives.
            self.server.close_watches();
        }
    }

    /// Writes into the story what was asked since the last time.
    pub(crate) fn tell_requests(&mut self) {
        if self.story.is_kept() {
            let requests = self.server.journal().requests();
            for request in &requests[self.told..] {
                self.story.tell(|| format!("    {request} at {:?}", request.at));
            }
            self.told = requests.len();
        }
    }

    /// Nothing was hammered. Further pages of a list are no requests of their own here, nor is a read of an object.
    pub(crate) fn check_requests(&self, setup: &Setup, kind: Kind) {
        let continued = |r: &Request| r.query("continue").is_some_and(|token| !token.is_empty());
        let of_one = |r: &Request| r.query("fieldSelector").is_some_and(|f| f.contains("metadata.name="));
        let is_read = |r: &Request| r.verb == Verb::Get || kind == Kind::Cached && of_one(r);
        let requests = self.server.journal().requests();
        let asked: Vec<_> = requests.iter().filter(|r| !continued(r) && !is_read(r)).map(|r| r.at).collect();
        let scopes = if setup.view.is_narrow { 2 } else { 1 };
        let most = scopes * IN_TEN_SECONDS + self.lists_by_hand;
        for window in asked.windows(most + 1) {
            let time = window[most] - window[0];
            assert!(time > secs(10), "{most} requests and one more in {time:?}, the last at {:?}", window[most]);
        }
    }
}

fn object(place: Place, form: Form) -> Value {
    let mut object = config_map_in(place.namespace, place.name, form.value);
    object["data"]["more"] = form.text().into();
    object
}
