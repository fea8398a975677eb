use std::time::Duration;

use k8s_packed::object;
use proptest::prelude::*;

use super::*;

/// An object of incarnation `uid` in version `version`.
fn of(uid: &str, version: &str) -> Object {
    object!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}})
}

/// Text such as `a7` for incarnation `a` in version 7; `-` for no object.
fn parsed(text: &str) -> Option<Object> {
    (text != "-").then(|| of(&text[..1], &text[1..]))
}

fn text(object: Option<&Object>) -> String {
    let text = |o: &Object| format!("{}{}", o.uid().unwrap_or_default(), o.resource_version().unwrap_or_default());
    object.map_or("-".to_owned(), text)
}

const TTL: Duration = Duration::from_secs(10);

fn kept(now: Instant, object: Option<Object>) -> Kept {
    Kept { object, expires: now + TTL }
}

// === table ===

/// Plays a story of words and gives the last thing that happened: what a reader got, what became of an answer.
///
/// `read:STUB`, `ask:STUB` (`-` for no reference), `answer:OBJECT`, `shown:OBJECT`, `full:OBJECT`, `gone`, `fail`,
/// `forget`, `expire`.
fn play(story: &str) -> String {
    let mut now = Instant::now();
    let mut slot = Slot::default();
    let mut last = String::new();
    for word in story.split_whitespace() {
        let (verb, argument) = word.split_once(':').unwrap_or((word, "-"));
        let object = parsed(argument);
        match verb {
            "read" => {
                last = match slot.read(now, object.as_ref()) {
                    Read::Hit(object) => format!("hit {}", text(object.as_ref())),
                    Read::Join(_) => "join".into(),
                    Read::Start => "start".into(),
                }
            }
            "ask" => {
                let refreshed = slot.ask(now, object.as_ref());
                last = refreshed.map_or("asked".into(), |kept| format!("refreshed {}", text(kept.object.as_ref())));
            }
            "answer" => last = format!("{:?}", slot.answered(kept(now, object))),
            "shown" | "full" => {
                let version = Version::of(object.as_ref().expect("a version"));
                let full = (verb == "full").then(|| kept(now, object));
                if let Some(later) = slot.shown(version, full) {
                    last = format!("behind {later}");
                }
            }
            "gone" => slot.gone(),
            "fail" => slot.failed(),
            "forget" => slot.forget(),
            "expire" => now += TTL,
            other => panic!("{other}"),
        }
    }
    last
}

#[test]
fn stories() {
    let table = [
        // Hits, joins, expiry.
        ("read:a5", "start"),
        ("read:a5 read:a5", "join"),
        ("read:a5 ask:a5 answer:a5", "Settled"),
        ("read:a5 ask:a5 answer:a5 read:a5", "hit a5"),
        ("read:a5 ask:a5 answer:a7 read:a5", "hit a7"),
        ("read:a5 ask:a5 answer:a5 expire read:a5", "start"),
        ("read:a5 ask:a5 fail read:a5", "start"),
        // A reference that is newer than what is kept, whatever became of the event.
        ("read:a5 ask:a5 answer:a5 read:a6", "start"),
        // No object.
        ("read:- ask:- answer:- read:-", "hit -"),
        ("read:a5 ask:a5 answer:- read:a5", "hit -"),
        ("read:- ask:- answer:- expire read:-", "start"),
        ("read:- ask:- answer:- shown:a6 read:-", "start"),
        ("read:- ask:- answer:- gone read:-", "hit -"),
        // Events about what is kept.
        ("read:a5 ask:a5 answer:a5 shown:a5 read:a5", "hit a5"),
        ("read:a5 ask:a5 answer:a7 shown:a6 read:a6", "hit a7"),
        ("read:a5 ask:a5 answer:a7 shown:a6", "behind 7"),
        ("read:a5 ask:a5 answer:a7 full:a6", "behind 7"),
        ("read:a5 ask:a5 answer:a7 shown:a7", "Settled"),
        ("read:a5 ask:a5 answer:a7 shown:a8", "Settled"),
        ("read:- ask:- answer:- shown:a6", "Settled"),
        ("read:a5 ask:a5 answer:a5 shown:a6 read:a5", "start"),
        ("read:a5 ask:a5 answer:a5 full:a6 read:a6", "hit a6"),
        ("read:a5 ask:a5 answer:a7 full:a6 read:a6", "hit a7"),
        ("read:a5 ask:a5 answer:a5 shown:b6 read:b6", "start"),
        ("read:a5 ask:a5 answer:a5 gone read:-", "start"),
        ("read:a5 ask:a5 answer:a5 forget read:a5", "start"),
        ("full:a5 read:a5", "start"),
        // Events while a request is under way.
        ("read:a5 ask:a5 shown:a6 answer:a5", "Again"),
        ("read:a5 ask:a5 shown:a6 answer:a6", "Settled"),
        ("read:a5 ask:a5 shown:a6 answer:a7", "Settled"),
        ("read:a5 ask:a5 shown:a6 answer:-", "Again"),
        ("read:a5 ask:a5 shown:a6 answer:- ask:a6 answer:-", "Settled"),
        ("read:- ask:- shown:a6 answer:-", "Again"),
        ("read:a5 ask:a5 gone answer:a5", "Again"),
        ("read:a5 ask:a5 gone answer:a9", "Again"),
        ("read:a5 ask:a5 gone answer:b9", "Again"),
        ("read:a5 ask:a5 gone answer:b9 ask:- answer:b9", "Settled"),
        ("read:a5 ask:a5 gone answer:-", "Settled"),
        ("read:- ask:- gone answer:a9", "Again"),
        ("read:- ask:- gone answer:a9 ask:- answer:a9", "Settled"),
        ("read:a5 ask:a5 gone shown:b9 answer:a5", "Again"),
        ("read:a5 ask:a5 gone shown:b9 answer:-", "Again"),
        ("read:a5 ask:a5 gone shown:b9 answer:b9", "Settled"),
        // Again, and once too often.
        ("read:a5 ask:a5 shown:a6 answer:a5 ask:a6 answer:a5 ask:a6 answer:a5", "GivenUp"),
        ("read:a5 ask:a5 shown:a6 answer:a5 ask:a6 answer:a5 ask:a6 answer:a5 read:a6", "start"),
        // Answers of a server that lags behind.
        ("read:a5 ask:a5 answer:a4", "Again"),
        ("read:a5 ask:b9 answer:a5", "Again"),
        // An event before the request is made.
        ("read:a5 shown:a6 ask:a5 answer:a5", "Again"),
        ("read:a5 ask:a5 answer:a5 expire read:a5 full:a6 ask:a6", "refreshed a6"),
        // Opaque versions go by arrival.
        ("read:ax ask:ax answer:ay", "Settled"),
        ("read:ax ask:ax answer:by", "Settled"),
        ("read:ax ask:ax shown:ay answer:ax", "Again"),
        ("read:ax ask:ax shown:ay answer:ay", "Settled"),
        ("read:ax ask:ax answer:ax shown:ax read:ax", "hit ax"),
        ("read:ax ask:ax answer:ay shown:az read:az", "start"),
        ("read:ax ask:ax answer:ay full:az read:az", "start"),
        // A restored server: nothing from before counts, whatever its version.
        ("read:a90 ask:a90 forget shown:a50 answer:a91", "Again"),
        ("read:a90 ask:a90 forget shown:a50 answer:a91 ask:a50 answer:a50", "Settled"),
        ("read:a90 ask:a90 forget answer:a91", "Again"),
        // Nobody to answer.
        ("answer:a5", "GivenUp"),
        ("answer:a5 read:a5", "start"),
    ];
    for (story, expected) in table {
        assert_eq!(play(story), expected, "{story}");
    }
}

// === model ===

/// One object's history at the server, and how far of it the watch has shown and the references show.
struct World {
    /// Numbered or opaque.
    opaque: bool,
    /// Whether the server also gives old answers, as a replica that lags behind.
    stale: bool,
    /// Incarnation and revision of the object after each change; none while it does not exist.
    history: Vec<Option<(u32, usize)>>,
    shown: usize,
    committed: usize,
    now: Instant,
    slot: Slot,
    /// Where the history was when the request under way was made; none before it is.
    asked: Option<usize>,
    /// Readers who wait: how far the watch had shown when they came, and what they may not go below.
    waiting: Vec<(usize, Floor)>,
    /// What readers got.
    given: usize,
}

impl World {
    fn object(&self, at: usize) -> Option<Object> {
        let (uid, revision) = self.history[at]?;
        let version = if self.opaque { format!("x{revision}") } else { revision.to_string() };
        Some(of(&format!("uid-{uid}"), &version))
    }

    fn stub(&self) -> Option<Object> {
        self.object(self.committed)
    }

    /// Something that is given out to a reader who came when the watch had shown this far has been true since.
    fn check(&self, shown: usize, given: Option<&Object>) {
        let is = |at: usize| text(self.object(at).as_ref()) == text(given);
        let (history, given) = (&self.history, text(given));
        assert!((shown..history.len()).any(is), "{given} is older than {shown} of {history:?}");
    }

    fn read(&mut self, shown: usize) {
        let stub = self.stub();
        let was_under_way = self.slot.flight.is_some();
        match self.slot.read(self.now, stub.as_ref()) {
            Read::Hit(object) => {
                self.check(shown, object.as_ref());
                self.given += 1;
            }
            Read::Join(floor) => {
                assert!(was_under_way);
                let floor = if floor == Floor::Nothing { Floor::of(stub.as_ref()) } else { floor };
                self.waiting.push((shown, floor));
            }
            Read::Start => {
                assert!(!was_under_way, "two fetches of one object");
                self.asked = None;
                self.waiting.push((shown, Floor::of(stub.as_ref())));
            }
        }
    }

    fn ask(&mut self) {
        if self.slot.flight.is_none() || self.asked.is_some() {
            return;
        }
        let stub = self.stub();
        match self.slot.ask(self.now, stub.as_ref()) {
            Some(kept) => self.land(kept.object.as_ref(), |floor, object| !floor.refuses(object)),
            None => self.asked = Some(self.history.len() - 1),
        }
    }

    /// The fetch ends with this answer; who may not have it reads again.
    fn land(&mut self, answer: Option<&Object>, takes: impl Fn(&Floor, Option<&Object>) -> bool) {
        self.asked = None;
        for (shown, floor) in std::mem::take(&mut self.waiting) {
            if takes(&floor, answer) {
                self.check(shown, answer);
                self.given += 1;
            } else {
                self.read(shown);
            }
        }
    }

    fn answer(&mut self, choice: usize) {
        let Some(asked) = self.asked else { return };
        let floor = self.slot.flight.as_ref().map(|flight| flight.floor.clone());
        // Only versions can tell that an answer is older than the request.
        let tells = matches!(floor, Some(Floor::Shown(_) | Floor::Gone(Some(_))));
        let from = if self.stale && tells { 0 } else { asked };
        let at = from + choice % (self.history.len() - from);
        let answer = self.object(at);
        if answer.is_none() && at < asked {
            return;
        }
        match self.slot.answered(kept(self.now, answer.clone())) {
            Answered::Settled => self.land(answer.as_ref(), |floor, object| !floor.refuses(object)),
            Answered::Again => self.asked = None,
            Answered::GivenUp => self.land(answer.as_ref(), Floor::accepts),
        }
    }

    fn watch(&mut self, full: bool) {
        if self.shown + 1 == self.history.len() {
            return;
        }
        self.shown += 1;
        match self.object(self.shown) {
            Some(object) => {
                let full = full.then(|| kept(self.now, Some(object.clone())));
                self.slot.shown(Version::of(&object), full);
            }
            None => self.slot.gone(),
        }
        if self.stale {
            self.committed = self.shown;
        }
    }

    fn step(&mut self, what: u8, choice: u8) {
        let choice = usize::from(choice);
        match what % 16 {
            0..3 => {
                let revision = self.history.len() + 10;
                let last = *self.history.last().expect("a beginning");
                let next = match last {
                    Some(_) if choice % 4 == 0 => None,
                    Some((uid, _)) => Some((uid, revision)),
                    None => Some((revision as u32, revision)),
                };
                self.history.push(next);
            }
            3..6 => self.watch(choice % 3 == 0),
            6 => self.committed = self.shown,
            7..10 => self.read(self.shown),
            10..12 => self.ask(),
            12..14 => self.answer(choice),
            14 => self.now += TTL / 4,
            _ => {
                self.slot.failed();
                self.asked = None;
                self.waiting.clear();
            }
        }
        // Whoever comes now may have what is kept.
        let stub = self.stub();
        if let Some(kept) = self.slot.kept.as_ref().filter(|kept| kept.serves(self.now, stub.as_ref())) {
            self.check(self.shown, kept.object.as_ref());
        }
        assert_eq!(self.waiting.is_empty(), self.slot.flight.is_none());
    }
}

proptest! {
    #![proptest_config(test_support::cases(6000))]

    #[test]
    fn nothing_older_than_the_watch_is_given_out_and_nobody_waits_for_ever(
        begins in any::<bool>(), mode in 0..3_u8, steps in prop::collection::vec(any::<(u8, u8)>(), 1..120),
    ) {
        let mut world = World {
            opaque: mode == 1,
            stale: mode == 2,
            history: vec![begins.then_some((1, 9))],
            shown: 0,
            committed: 0,
            now: Instant::now(),
            slot: Slot::default(),
            asked: None,
            waiting: vec![],
            given: 0,
        };
        for (what, choice) in steps {
            world.step(what, choice);
        }
        // When the server rests, every reader gets an answer.
        while world.shown + 1 < world.history.len() {
            world.watch(false);
        }
        world.committed = world.shown;
        let (waiting, given) = (world.waiting.len(), world.given);
        for _ in 0..=MAX_REQUESTS {
            world.ask();
            world.stale = false;
            world.answer(0);
        }
        prop_assert!(world.waiting.is_empty());
        prop_assert_eq!(world.given, given + waiting);
    }
}
