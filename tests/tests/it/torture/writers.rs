//! Those who write all the time, know what they wrote, and know that a write without an answer may have happened.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use e2e::Target;
use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{NAMESPACES, Size};
use crate::support::{Key, PATIENCE, Rest, config_map, config_maps, is_refusal};

/// How many write at a time; each has objects of its own.
const WRITERS: usize = 4;
/// An answer that takes longer does not come any more.
const ANSWER: Duration = Duration::from_secs(10);
/// How many of each writer's objects get a third of the writes.
const HOT: usize = 10;
/// One in so many names has no object at first.
const ABSENT: usize = 8;

/// The name that is written to more often than others, by namespace and name.
pub(super) fn hot_name() -> Key {
    key_of(0)
}

fn key_of(number: usize) -> Key {
    (NAMESPACES[number / WRITERS % NAMESPACES.len()].to_owned(), format!("object-{number:05}"))
}

/// What an object says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Content {
    app: u8,
    is_red: bool,
    value: u64,
}

impl Content {
    fn any(rng: &mut Rng, value: u64) -> Self {
        Self { app: rng.u8(..20), is_red: rng.u8(..3) == 0, value }
    }

    fn object(self, name: &str) -> Value {
        let color = if self.is_red { "red" } else { "blue" };
        config_map(name, json!({"app": format!("app-{}", self.app), "color": color}), &self.text())
    }

    fn text(self) -> String {
        format!("{:020} {}", self.value, "-".repeat(80))
    }
}

/// A name, and what its writer knows of it.
#[derive(Debug)]
pub(super) struct Slot {
    key: Key,
    content: Option<Content>,
    /// A write went without an answer once: it may be carried out at any later time.
    is_doubtful: bool,
}

enum Write {
    Create(Content),
    Change(Content),
    Delete,
}

#[derive(Debug, Default)]
struct Counts {
    answered: AtomicU64,
    unanswered: AtomicU64,
}

/// All writers at work.
pub(super) struct Writers {
    tasks: JoinSet<Result<Vec<Slot>>>,
    stop: CancellationToken,
    counts: Arc<Counts>,
    begun: Instant,
}

/// What they know when they have stopped.
pub(super) struct Written {
    slots: Vec<Slot>,
    answered: u64,
    unanswered: u64,
    took: Duration,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, unanswered, took, .. } = self;
        let rate = *answered as f64 / took.as_secs_f64();
        write!(f, "{answered} writes, {rate:.0} a second; {unanswered} tries without an answer")
    }
}

/// Names with and without objects; those that shall be there are put there.
pub(super) async fn fill(target: &Target, size: &Size, rng: &mut Rng) -> Result<Vec<Slot>> {
    let rest = Rest::of(target);
    for namespace in NAMESPACES {
        rest.namespace(namespace).await?;
    }
    let names = size.objects + size.objects / (ABSENT - 1);
    let slots = (0..names).map(|number| {
        // The absent ones are spread evenly among the writers.
        let is_there = number / WRITERS % ABSENT != ABSENT - 1;
        Slot { key: key_of(number), content: is_there.then(|| Content::any(rng, 0)), is_doubtful: false }
    });
    let slots: Vec<_> = slots.collect();
    let complete = |(number, slot): (usize, &Slot)| {
        let mut object = slot.content?.object(&slot.key.1);
        object["apiVersion"] = "v1".into();
        object["kind"] = "ConfigMap".into();
        object["metadata"]["namespace"] = slot.key.0.as_str().into();
        object["metadata"]["uid"] = format!("{number:08x}-0000-4000-8000-000000000000").into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        Some(object)
    };
    target.load(slots.iter().enumerate().filter_map(complete)).await?;
    Ok(slots)
}

impl Writers {
    pub(super) fn start(target: &Target, slots: Vec<Slot>, size: &Size, rng: &mut Rng) -> Self {
        let (stop, counts) = (CancellationToken::new(), Arc::<Counts>::default());
        let mut shares: [Vec<Slot>; WRITERS] = Default::default();
        for (number, slot) in slots.into_iter().enumerate() {
            shares[number % WRITERS].push(slot);
        }
        let pace = Duration::from_secs(1) * WRITERS as u32 / size.writes;
        let mut tasks = JoinSet::new();
        for slots in shares {
            let writer = Writer { rest: Rest::of(target), slots, rng: rng.fork(), value: 0, counts: counts.clone() };
            tasks.spawn(writer.work(pace, stop.clone()));
        }
        Self { tasks, stop, counts, begun: Instant::now() }
    }

    /// Lets each finish what it is at.
    pub(super) async fn stop(mut self) -> Result<Written> {
        self.stop.cancel();
        let mut slots = vec![];
        while let Some(ended) = tokio::time::timeout(PATIENCE, self.tasks.join_next()).await? {
            slots.extend(ended??);
        }
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let (answered, unanswered) = (count(&self.counts.answered), count(&self.counts.unanswered));
        Ok(Written { slots, answered, unanswered, took: self.begun.elapsed() })
    }
}

impl Written {
    /// No write that the server has confirmed is lost, and none happened that nobody asked for.
    pub(super) fn is_on(&self, server: &BTreeMap<Key, Value>) -> Result<()> {
        for slot in self.slots.iter().filter(|slot| !slot.is_doubtful) {
            let found = server.get(&slot.key);
            let expected = slot.content.map(|content| content.object(&slot.key.1));
            let part = |object: &Value| [object["data"].clone(), object["metadata"]["labels"].clone()];
            ensure!(
                found.map(part) == expected.as_ref().map(part),
                "{:?} is {found:?} on the server, its writer left {expected:?}",
                slot.key
            );
        }
        Ok(())
    }
}

struct Writer {
    rest: Rest,
    slots: Vec<Slot>,
    rng: Rng,
    value: u64,
    counts: Arc<Counts>,
}

impl Writer {
    async fn work(mut self, pace: Duration, stop: CancellationToken) -> Result<Vec<Slot>> {
        let mut ticks = tokio::time::interval(pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_cancelled() {
            ticks.tick().await;
            let among = if self.rng.u8(..3) == 0 { HOT.min(self.slots.len()) } else { self.slots.len() };
            let at = self.rng.usize(..among);
            self.value += 1;
            let fresh = Content::any(&mut self.rng, self.value);
            match self.slots[at].content {
                None => self.perform(at, Write::Create(fresh)).await?,
                Some(now) => match self.rng.u8(..100) {
                    0..50 => self.perform(at, Write::Change(Content { value: self.value, ..now })).await?,
                    50..80 => self.perform(at, Write::Change(fresh)).await?,
                    80..90 => self.perform(at, Write::Delete).await?,
                    _ => {
                        self.perform(at, Write::Delete).await?;
                        self.perform(at, Write::Create(fresh)).await?;
                    }
                },
            }
        }
        Ok(self.slots)
    }

    /// Tries until there is an answer, for as long as an outage lasts.
    async fn perform(&mut self, at: usize, write: Write) -> Result<()> {
        let slot = &mut self.slots[at];
        let mut may_have_happened = false;
        loop {
            let answer = tokio::time::timeout(ANSWER, once(&self.rest, &slot.key, &write)).await;
            match (&write, answer) {
                (_, Ok(Ok(_))) => break,
                (Write::Create(_), Ok(Err(e))) if is_refusal(&e, 409) && may_have_happened => break,
                (Write::Delete, Ok(Err(e))) if is_refusal(&e, 404) && may_have_happened => break,
                (_, Ok(Err(e))) if is_definite(&e) => {
                    return Err(
                        e.context(format!("a write to {:?}, of which its writer knew {:?}", slot.key, slot.content))
                    );
                }
                (_, Ok(Err(_)) | Err(_)) => {
                    (may_have_happened, slot.is_doubtful) = (true, true);
                    self.counts.unanswered.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        slot.content = match write {
            Write::Create(content) | Write::Change(content) => Some(content),
            Write::Delete => None,
        };
        self.counts.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether the server has decided. What it says when it is in trouble itself is no decision.
fn is_definite(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if (400..429).contains(&status.code))
}

async fn once(rest: &Rest, (namespace, name): &Key, write: &Write) -> Result<Value> {
    let (all, json) = (config_maps(namespace), "application/json");
    let one = format!("{all}/{name}");
    match write {
        Write::Create(content) => rest.send_once(Method::POST, &all, json, Some(&content.object(name))).await,
        Write::Change(content) => {
            let mut object = content.object(name);
            let Value::Object(metadata) = &mut object["metadata"] else { bail!("no metadata") };
            metadata.remove("name");
            rest.send_once(Method::PATCH, &one, "application/merge-patch+json", Some(&object)).await
        }
        Write::Delete => rest.send_once(Method::DELETE, &one, json, None).await,
    }
}
