//! A thousand histories of candidates that crash, stall, stop and start, on networks that lose and delay, with wall
//! clocks that jump: never two leaders, and one again within the promised time when things are well.
//!
//! `LEADER_SEEDS` says how many histories of each size are tried (default 150), `LEADER_SEED` picks one.

use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use tokio::task::JoinHandle;
use tokio::time::Sleep;

use super::network::{LATEST, Network, Weather};
use super::*;
use crate::config::AfterWork;
use crate::error::Error;
use crate::lead::Lead;
use crate::work::Outcome;

/// When there is a leader again after all trouble has ended: the last write that was under way has arrived, was seen
/// by the next look at the lease, and has run out; and a little for two requests.
const PROMISE: Duration = Duration::from_millis(LATEST.as_millis() as u64 + 2_400 + 15_000 + 100);
/// How long work takes to end at most.
const LAST_WORDS: Duration = Duration::from_secs(3);

#[test]
fn two_candidates() {
    histories(2);
}

#[test]
fn five_candidates() {
    histories(5);
}

fn histories(candidates: usize) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("LEADER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEADER_SEEDS").unwrap_or(150),
    };
    for seed in seeds {
        let history = || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
            runtime.block_on(async { World::new(seed, candidates).await.run().await });
        };
        if catch_unwind(AssertUnwindSafe(history)).is_err() {
            panic!("LEADER_SEED={seed} with {candidates} candidates fails");
        }
    }
}

struct World {
    rng: fastrand::Rng,
    server: FakeApiServer,
    seats: Vec<Seat>,
    all: All,
    /// Work may end by itself only while there is trouble anyway.
    is_troubled: Arc<AtomicBool>,
}

/// A place for a candidate: who crashes or stops may be followed by another of the same name.
struct Seat {
    identity: String,
    network: Network,
    clock: WallClock,
    gate: Gate,
    running: Option<(CancellationToken, JoinHandle<Result<Outcome, Error>>)>,
}

/// The handles of all candidates that ever were, and the server's view of who leads.
#[derive(Clone)]
struct All {
    server: FakeApiServer,
    handles: Arc<Mutex<Vec<ElectorHandle>>>,
}

impl All {
    /// The one thing that matters. Gives whether there is a leader.
    fn check(&self) -> bool {
        let handles = self.handles.lock().expect("no panic under the lock");
        let leaders: Vec<_> = handles.iter().filter(|h| h.is_leader()).map(ElectorHandle::identity).collect();
        assert!(leaders.len() <= 1, "two leaders: {leaders:?}");
        if let Some(leader) = leaders.first() {
            let lease = self.server.object("coordination.k8s.io/v1/leases", Some("shop"), "cart");
            let lease = lease.expect("a served kind").expect("a lease");
            assert_eq!(lease["spec"]["holderIdentity"], *leader, "the lease says something else");
        }
        !leaders.is_empty()
    }
}

impl World {
    async fn new(seed: u64, candidates: usize) -> Self {
        let server = FakeApiServer::builder().history(100).journal_capacity(1).start().await.expect("a server");
        let seat = |i: usize| Seat {
            identity: format!("candidate-{i}"),
            network: Network::new(seed.wrapping_mul(1_000).wrapping_add(i as u64)),
            clock: WallClock::new(),
            gate: Gate::default(),
            running: None,
        };
        Self {
            rng: fastrand::Rng::with_seed(seed),
            seats: (0..candidates).map(seat).collect(),
            all: All { server: server.clone(), handles: Arc::default() },
            server,
            is_troubled: Arc::default(),
        }
    }

    async fn run(mut self) {
        for _ in 0..3 {
            self.trouble().await;
            self.calm().await;
        }
        self.end().await;
    }

    /// Minutes in which things happen.
    async fn trouble(&mut self) {
        self.is_troubled.store(true, Ordering::SeqCst);
        for _ in 0..self.rng.usize(5..20) {
            self.disturb().await;
            let time = self.some(0..15_000);
            self.look(time).await;
        }
    }

    async fn disturb(&mut self) {
        let which = self.rng.usize(..self.seats.len());
        let weather = [Weather::Fine, Weather::Bad, Weather::Bad, Weather::Cut, Weather::Silent][self.rng.usize(..5)];
        match self.rng.u8(..16) {
            0..=3 => self.seats[which].network.set(weather),
            4 | 5 => self.seats.iter().for_each(|seat| seat.network.set(weather)),
            6 | 7 => {
                if let Some((token, _)) = &self.seats[which].running {
                    token.cancel();
                }
            }
            8 | 9 => self.seats[which].crash().await,
            10 | 11 => drop(self.start(which).await),
            12 | 13 => {
                let time = if self.rng.u8(..4) == 0 { self.some(0..3 * 3_600_000) } else { self.some(0..40_000) };
                self.seats[which].gate.shut(time);
            }
            14 => {
                let seconds = self.rng.i64(-100 * HOUR..100 * HOUR);
                self.seats[which].clock.set_off(seconds);
            }
            _ => {
                // The whole world stands still, and everything is due at once.
                let time = self.some(0..3 * 3_600_000);
                tokio::time::advance(time).await;
                self.all.check();
            }
        }
    }

    /// All is well, and at least one candidate is there.
    async fn calm(&mut self) {
        self.is_troubled.store(false, Ordering::SeqCst);
        for seat in &self.seats {
            seat.network.set(Weather::Fine);
            seat.gate.open();
        }
        let must = self.rng.usize(..self.seats.len());
        for which in 0..self.seats.len() {
            if which == must || self.rng.bool() {
                self.start(which).await;
            }
        }
        // One that is stopping goes first: work, a request that hangs, the release.
        let stopping = Instant::now();
        while !self.start(must).await {
            assert!(stopping.elapsed() < Duration::from_secs(15), "it does not stop");
            self.look(Duration::from_millis(100)).await;
        }
        self.look(PROMISE).await;
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            assert!(self.all.check(), "nobody leads");
            let time = self.some(0..400);
            tokio::time::sleep(time).await;
        }
    }

    /// Everybody stops in good order: the lease is free, at once.
    async fn end(mut self) {
        for seat in &mut self.seats {
            if let Some((token, task)) = seat.running.take() {
                token.cancel();
                let result = tokio::time::timeout(LAST_WORDS * 2, task).await;
                ends_well(result.expect("it ends in time").expect("it does not panic"));
            }
        }
        assert!(!self.all.check());
        let lease = self.server.object("coordination.k8s.io/v1/leases", Some("shop"), "cart");
        assert_eq!(lease.expect("a served kind").expect("a lease")["spec"]["holderIdentity"], "");
    }

    /// Lets time pass and looks at who leads.
    async fn look(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.all.check();
            let step = self.some(0..200);
            tokio::time::sleep(step).await;
        }
        self.all.check();
    }

    fn some(&mut self, millis: Range<u64>) -> Duration {
        Duration::from_millis(self.rng.u64(millis))
    }

    /// Puts a candidate into the seat. False if there is one that is about to stop.
    async fn start(&mut self, which: usize) -> bool {
        let seat = &mut self.seats[which];
        if let Some((token, task)) = &seat.running
            && !task.is_finished()
        {
            return !token.is_cancelled();
        }
        if let Some((_, task)) = seat.running.take() {
            ends_well(task.await.expect("it does not panic"));
        }
        let config = LeaseConfig::new("shop", "cart", &seat.identity).after_work(AfterWork::Campaign);
        let clock = seat.clock.clone();
        let elector = LeaderElector::builder(seat.network.client(self.server.service()), config)
            .wall_clock(move || clock.now())
            .build()
            .expect("a sound configuration");
        self.all.handles.lock().expect("no panic under the lock").push(elector.handle().clone());
        let token = CancellationToken::new();
        let (all, is_troubled, rng) = (self.all.clone(), self.is_troubled.clone(), Mutex::new(self.rng.fork()));
        let work = move |lead: Lead| {
            let mut rng = rng.lock().expect("no panic under the lock").fork();
            work(lead, all.clone(), is_troubled.clone(), move |most| most.mul_f64(rng.f64()))
        };
        let run = elector.run(token.clone(), work);
        let task = tokio::spawn(Gated { inner: Box::pin(run), gate: seat.gate.clone(), sleep: None });
        seat.running = Some((token, task));
        true
    }
}

/// Work that had no chance to run in a world that stood still is rightly called overdue.
fn ends_well(result: Result<Outcome, Error>) {
    assert!(matches!(result, Ok(Outcome::Stopped) | Err(Error::Overdue { .. })), "{result:?}");
}

async fn work(lead: Lead, all: All, is_troubled: Arc<AtomicBool>, mut some: impl FnMut(Duration) -> Duration) {
    // The moment at which two would show.
    all.check();
    tokio::select! {
        () = lead.cancelled() => tokio::time::sleep(some(LAST_WORDS)).await,
        () = tokio::time::sleep(some(Duration::from_secs(60))) => {
            if !is_troubled.load(Ordering::SeqCst) {
                lead.cancelled().await;
            }
        }
    }
}

impl Seat {
    async fn crash(&mut self) {
        if let Some((_, task)) = self.running.take() {
            task.abort();
            drop(task.await);
        }
    }
}

/// While it is shut, the task behind it is not run: a process that is stopped.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<Option<Instant>>>);

impl Gate {
    fn shut(&self, time: Duration) {
        *self.0.lock().expect("no panic under the lock") = Some(Instant::now() + time);
    }

    fn open(&self) {
        *self.0.lock().expect("no panic under the lock") = None;
    }

    fn is_shut(&self) -> bool {
        self.0.lock().expect("no panic under the lock").is_some_and(|until| Instant::now() < until)
    }
}

struct Gated<F> {
    inner: Pin<Box<F>>,
    gate: Gate,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        while self.gate.is_shut() {
            // Looks again and again: it may be opened early.
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_millis(100))));
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        self.inner.as_mut().poll(context)
    }
}
