//! Three copies of a controller, of which one works: it is stopped, it crashes, it is cut off, and another takes over.
//!
//! ```sh
//! cargo run -p k8s-informer --features leader-election --example leader
//! ```
//!
//! It brings its own API server and ends by itself after about twenty seconds. The times are shorter than one would
//! have them in a cluster, where the defaults are 15 s, 10 s and 2 s.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_fake_apiserver::{Any, FakeApiServer};
use k8s_informer::leader_election::{ElectorHandle, Lead, LeaderElector, LeaseConfig};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LEASE_DURATION: Duration = Duration::from_secs(3);
const RENEW_DEADLINE: Duration = Duration::from_secs(2);
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// What the work needs to finish what it has begun.
const LAST_WORDS: Duration = Duration::from_millis(700);

const LEASES: &str = "coordination.k8s.io/v1/leases";

/// One copy of the controller.
struct Copy {
    name: &'static str,
    handle: ElectorHandle,
    token: CancellationToken,
    task: JoinHandle<()>,
}

impl Copy {
    fn start(server: &FakeApiServer, clock: Clock, name: &'static str) -> Result<Self> {
        let config = LeaseConfig::new("default", "my-controller", name)
            .lease_duration(LEASE_DURATION)
            .renew_deadline(RENEW_DEADLINE)
            .retry_period(RETRY_PERIOD);
        let elector = LeaderElector::builder(server.client_as(name), config).build()?;
        let (handle, token) = (elector.handle().clone(), CancellationToken::new());
        let run = elector.run(token.clone(), move |lead| work(lead, clock, name));
        let task = tokio::spawn(async move {
            match run.await {
                Ok(_) => clock.say(format!("{name:<6} has stopped")),
                Err(error) => clock.say(format!("{name:<6} {error}")),
            }
        });
        Ok(Self { name, handle, token, task })
    }
}

/// The work that only one copy may do.
async fn work(lead: Lead, clock: Clock, name: &'static str) {
    clock.say(format!("{name:<6} LEADS, and works"));
    lead.cancelled().await;
    clock.say(format!("{name:<6} is told to end, and finishes what it has begun"));
    tokio::time::sleep(LAST_WORDS).await;
    clock.say(format!("{name:<6} has finished"));
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = FakeApiServer::builder().start().await?;
    let clock = Clock(Instant::now());
    println!("Three copies of a controller, one Lease, and an API server in the box.");
    println!(
        "A lease lasts {LEASE_DURATION:?}; a leader that cannot renew it gives up after {RENEW_DEADLINE:?}; everybody \
         asks every {RETRY_PERIOD:?}.\n"
    );
    let mut copies = Vec::new();
    for name in ["red", "green", "blue"] {
        copies.push(Copy::start(&server, clock, name)?);
    }
    let guard = Guard::watch(&copies);
    next_leader(&copies).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let leader = take_leader(&mut copies);
    clock.headline(format!("{} is stopped in good order: the work ends, then the lease is released", leader.name));
    leader.token.cancel();
    leader.task.await?;
    let (next, time) = next_leader(&copies).await?;
    clock.say(format!("       {next} took over {time:.0?} after the release"));
    tokio::time::sleep(Duration::from_secs(2)).await;

    let leader = take_leader(&mut copies);
    clock.headline(format!("{} crashes: nobody releases anything, the lease has to run out", leader.name));
    leader.task.abort();
    let (next, time) = next_leader(&copies).await?;
    clock.say(format!("       {next} took over {time:.1?} after the crash"));
    copies.push(Copy::start(&server, clock, "violet")?);
    tokio::time::sleep(Duration::from_secs(2)).await;

    let leader = take_leader(&mut copies);
    clock.headline(format!("{} is cut off from the API server: it gives up before another may begin", leader.name));
    let guard_of_two = Guard::watch([&leader, &copies[0]]);
    let cut = server.faults().on(Any::of(LEASES).client(leader.name)).always().drop_connection();
    let begun = Instant::now();
    while leader.handle.is_leader() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    clock.say(format!("       {} knows that it does not lead after {:.1?}", leader.name, begun.elapsed()));
    let (next, _) = next_leader(&copies).await?;
    clock.say(format!("       {next} took over {:.1?} after the cut", begun.elapsed()));
    cut.clear();
    tokio::time::sleep(Duration::from_secs(1)).await;

    clock.headline("the end: everybody is stopped".into());
    for copy in copies.into_iter().chain([leader]) {
        copy.token.cancel();
        copy.task.await?;
    }
    let (looks, more) = (guard.end().await?, guard_of_two.end().await?);
    println!("\nLooked {} times who leads: never two.", looks + more);
    Ok(())
}

fn take_leader(copies: &mut Vec<Copy>) -> Copy {
    let place = copies.iter().position(|copy| copy.handle.is_leader()).unwrap_or_default();
    copies.remove(place)
}

/// Waits until one of the copies leads; says which, and how long that took.
async fn next_leader(copies: &[Copy]) -> Result<(&'static str, Duration)> {
    let begun = Instant::now();
    loop {
        if let Some(leader) = copies.iter().find(|copy| copy.handle.is_leader()) {
            return Ok((leader.name, begun.elapsed()));
        }
        ensure!(begun.elapsed() < LEASE_DURATION * 3, "nobody leads");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Looks all the time that no two lead.
struct Guard {
    looks: Arc<AtomicU64>,
    task: JoinHandle<Result<()>>,
}

impl Guard {
    fn watch<'a>(copies: impl IntoIterator<Item = &'a Copy>) -> Self {
        let handles: Vec<_> = copies.into_iter().map(|copy| copy.handle.clone()).collect();
        let looks = Arc::new(AtomicU64::new(0));
        let counter = looks.clone();
        let task = tokio::spawn(async move {
            loop {
                let leaders = handles.iter().filter(|handle| handle.is_leader()).count();
                ensure!(leaders <= 1, "{leaders} leaders at a time");
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self { looks, task }
    }

    async fn end(self) -> Result<u64> {
        if self.task.is_finished() {
            self.task.await??;
        } else {
            self.task.abort();
        }
        Ok(self.looks.load(Ordering::Relaxed))
    }
}

/// Since when the times on the left are counted.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn say(self, text: String) {
        println!("{:>5.1} s  {text}", self.0.elapsed().as_secs_f64());
    }

    fn headline(self, text: String) {
        println!("\n{:>5.1} s  --- {text}", self.0.elapsed().as_secs_f64());
    }
}
