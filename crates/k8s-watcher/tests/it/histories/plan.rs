//! A history as plain data: what is there at first, and what happens step by step. Each step has all that it needs, so
//! that any part of a history is a history.

use std::fmt;

use fastrand::Rng;
use k8s_fake_apiserver::StreamingLists;
use k8s_types::{ListMode, WatcherConfig};

use super::fault::{Fault, What};
use super::truth::{NAMES, NAMESPACES, Place, Selection, View};
use crate::support::{config, ms, secs};

/// What is watched by whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A kind, by a watcher with the objects in memory.
    Many,
    /// One object, by a single watcher.
    Single,
    /// A kind, by a watcher with references in memory, and read beside it.
    Cached,
}

/// One history.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) kind: Kind,
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

/// What is there at first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// For all that is random and no step: names of objects, jitter, who is slow when, which server answers.
    pub(crate) seed: u64,
    pub(crate) objects: Vec<(Place, Form)>,
    pub(crate) streaming: StreamingLists,
    /// Requests go to one of two servers, of which one may be behind.
    pub(crate) has_replica: bool,
    /// How many revisions the server remembers.
    pub(crate) history: usize,
    pub(crate) bookmark_seconds: u64,
    pub(crate) list_mode: ListMode,
    pub(crate) page_size: u32,
    pub(crate) idle_seconds: u64,
    pub(crate) view: View,
    pub(crate) during_sync: bool,
    pub(crate) debounce: u64,
    /// How long a callback takes at most.
    pub(crate) slowness: u64,
    /// How long a reader of changes takes at most for a batch.
    pub(crate) pace: u64,
    pub(crate) ttl_seconds: u64,
    /// What is written when all is well again.
    pub(crate) afterwards: Vec<Write>,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Write(Write),
    Fault(Fault),
    /// All watches end.
    WatchesEnd,
    /// The server stops and is not there for so many requests.
    Restart(u64),
    /// Other kinds were written so often, and the history is forgotten.
    Compact(u64),
    /// The cluster comes from a backup, in which some objects are as they were and others not.
    Restore(u64),
    /// A replica is so many revisions behind from now on.
    Lag(u64),
    Relist,
    Read(Read),
    /// Milliseconds.
    Pass(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Write {
    Apply(Place, Form),
    /// Deleted and made again.
    Recreate(Place, Form),
    Delete(Place),
}

/// What is in an object: what indexes and selectors read, and more.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Form {
    pub(crate) value: &'static str,
    pub(crate) more: usize,
}

/// A read of a cached store, by somebody who waits so many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Read {
    ByName(Place, u64),
    Get(&'static str, &'static str, u64),
    List(u64),
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.value, self.more)
    }
}

impl Form {
    /// The text that is no key: most of its bytes lie within characters.
    pub(crate) fn text(self) -> String {
        "😀½€".chars().cycle().take(self.more).collect()
    }

    fn random(rng: &mut Rng) -> Self {
        Self { value: rng.choice(["x", "y", "z"]).unwrap_or("x"), more: [0, 3, 40][rng.usize(0..3)] }
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Many, Self::Single, Self::Cached];

    pub(crate) fn of(seed: u64) -> Self {
        Self::ALL[(seed % 3) as usize]
    }

    /// The object of a single watcher.
    pub(crate) const ONE: Place = Place { namespace: NAMESPACES[0], name: NAMES[0] };

    fn place(self, rng: &mut Rng) -> Place {
        if self == Self::Single && rng.u32(0..4) > 0 {
            return Self::ONE;
        }
        Place {
            namespace: rng.choice(NAMESPACES).unwrap_or(NAMESPACES[0]),
            name: rng.choice(NAMES).unwrap_or(NAMES[0]),
        }
    }
}

impl History {
    /// The history of a seed: always the same one.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let kind = Kind::of(seed);
        let setup = Setup::random(seed, kind, &mut rng);
        let mut steps = vec![];
        for _ in 0..rng.usize(8..70) {
            steps.push(Step::random(kind, &mut rng));
            if matches!(steps.last(), Some(Step::Fault(_))) && rng.bool() {
                steps.push(Step::WatchesEnd);
            }
            if rng.u32(0..3) == 0 {
                let magnitude = rng.u32(4..16);
                steps.push(Step::Pass(rng.u64(0..1 << magnitude)));
            }
        }
        Self { kind, setup, steps }
    }
}

impl Setup {
    fn random(seed: u64, kind: Kind, rng: &mut Rng) -> Self {
        let selection = match rng.u32(0..3) {
            _ if kind == Kind::Single => Selection::All,
            0 => Selection::All,
            1 => Selection::Label,
            _ => Selection::Field,
        };
        let view = View {
            is_narrow: kind != Kind::Single && rng.bool(),
            selection,
            ignores_more: kind != Kind::Single && rng.bool(),
            counts_versions: kind == Kind::Cached,
            only: (kind == Kind::Single).then_some(Kind::ONE),
        };
        let streaming =
            [StreamingLists::Served, StreamingLists::Served, StreamingLists::Refused, StreamingLists::Ignored];
        let has_replica = rng.bool();
        let streaming = rng.choice(streaming).unwrap_or_default();
        // Without the flag a watch that names no version shows what a replica has seen: no client can tell how old that is.
        let is_blind = has_replica && streaming == StreamingLists::Ignored;
        Self {
            seed,
            objects: (0..rng.usize(0..30)).map(|_| (kind.place(rng), Form::random(rng))).collect(),
            streaming: if is_blind { StreamingLists::Refused } else { streaming },
            has_replica,
            history: rng.usize(5..200),
            bookmark_seconds: rng.u64(5..60),
            list_mode: if rng.bool() { ListMode::Paged } else { ListMode::Streaming },
            page_size: rng.u32(1..20),
            idle_seconds: rng.u64(5..150),
            view,
            during_sync: rng.bool(),
            debounce: rng.u64(0..3) * 100,
            slowness: [0, 0, 500, 30_000][rng.usize(0..4)],
            pace: [0, 20_000][rng.usize(0..2)],
            ttl_seconds: rng.u64(1..130),
            afterwards: (0..rng.usize(0..5)).map(|_| Write::random(kind, rng)).collect(),
        }
    }

    /// The configuration of a watcher of the whole kind.
    pub(crate) fn config(&self) -> WatcherConfig {
        let mut config = config()
            .list_mode(self.list_mode)
            .page_size(self.page_size)
            .call_on_change_during_sync(self.during_sync)
            .debounce(ms(self.debounce))
            .idle_limit(secs(self.idle_seconds));
        match self.view.selection {
            Selection::All => {}
            Selection::Label => config = config.label_selector("app in (x, y)"),
            Selection::Field => config = config.field_selector("data.value=x"),
        }
        if self.view.ignores_more {
            config = config.ignore_fields(["data.more"]);
        }
        if self.view.is_narrow {
            config = config.namespaces(["a", "b"]);
        }
        config
    }

    /// The same with one thing less that is out of the ordinary.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let plain: [fn(&mut Self); 12] = [
            |s| s.objects.clear(),
            |s| s.objects.truncate(s.objects.len() / 2),
            |s| s.afterwards.clear(),
            |s| s.has_replica = false,
            |s| s.streaming = StreamingLists::Served,
            |s| s.list_mode = ListMode::Streaming,
            |s| s.view.is_narrow = false,
            |s| s.view.selection = Selection::All,
            |s| s.view.ignores_more = false,
            |s| (s.during_sync, s.debounce) = (false, 0),
            |s| (s.slowness, s.pace) = (0, 0),
            |s| s.page_size = 20,
        ];
        let changed = plain.iter().map(|change| {
            let mut simpler = self.clone();
            change(&mut simpler);
            simpler
        });
        changed.filter(|simpler| simpler != self).collect()
    }
}

impl Step {
    /// Whether events come again in their old order.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Fault(Fault { what: What::Replay(_), .. }))
    }

    fn random(kind: Kind, rng: &mut Rng) -> Self {
        match rng.u32(0..100) {
            0..20 if kind == Kind::Cached => Self::Read(Read::random(kind, rng)),
            0..50 => Self::Write(Write::random(kind, rng)),
            50..77 => Self::Fault(Fault::random(rng, kind == Kind::Cached)),
            77..80 => Self::WatchesEnd,
            80..82 => Self::Restart(rng.u64(0..5)),
            82..86 => Self::Compact(rng.u64(0..20)),
            86..88 => Self::Relist,
            88..91 => Self::Restore(rng.u64(0..1 << 20)),
            91..95 => Self::Lag(rng.u64(0..30)),
            _ => Self::Pass(rng.u64(0..200)),
        }
    }

    /// The same with smaller numbers.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Fault(fault) => fault.simpler().into_iter().map(Self::Fault).collect(),
            Self::Restart(n) if *n > 1 => vec![Self::Restart(1)],
            Self::Compact(n) if *n > 0 => vec![Self::Compact(0)],
            Self::Lag(n) if *n > 1 => vec![Self::Lag(1), Self::Lag(n / 2)],
            Self::Pass(time) if *time > 1 => vec![Self::Pass(1), Self::Pass(time / 2)],
            _ => vec![],
        }
    }

    /// What kind of step it is, for counting.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Write(_) => "a write",
            Self::Fault(_) => "a fault",
            Self::WatchesEnd => "the end of all watches",
            Self::Restart(_) => "a restart",
            Self::Compact(_) => "a compaction",
            Self::Restore(_) => "a restore",
            Self::Lag(_) => "a lag",
            Self::Relist => "a relist",
            Self::Read(_) => "a read",
            Self::Pass(_) => "time",
        }
    }
}

impl Write {
    fn random(kind: Kind, rng: &mut Rng) -> Self {
        let place = kind.place(rng);
        match rng.u32(0..100) {
            0..20 => Self::Delete(place),
            20..32 => Self::Recreate(place, Form::random(rng)),
            _ => Self::Apply(place, Form::random(rng)),
        }
    }
}

impl Read {
    fn random(kind: Kind, rng: &mut Rng) -> Self {
        let magnitude = rng.u32(4..15);
        let patience = rng.u64(0..1 << magnitude);
        match rng.u32(0..6) {
            0 => Self::List(patience),
            1 => Self::Get(rng.choice(NAMESPACES).unwrap_or("a"), rng.choice(["x", "y", "z"]).unwrap_or("x"), patience),
            _ => Self::ByName(kind.place(rng), patience),
        }
    }
}
