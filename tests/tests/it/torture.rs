//! Everything at once: tens of thousands of objects under steady writes, while the API server and its storage are
//! killed and come back, history is thrown away, and the network breaks, hangs and gets slow.
//!
//! Short within the other scenarios; `cargo xtask torture` runs the long version. On the embedded server the API server
//! is killed by shutting its door, and the storage, of which it has none, by refusing every request.

mod disturbances;
mod leaders;
mod line;
mod onlookers;
mod single;
mod size;
mod verdict;
mod watched;
mod witness;
mod writers;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::{Target, config_of};
use fastrand::Rng;
use tokio_util::sync::CancellationToken;

use self::disturbances::{Disturber, Done};
use self::leaders::Leaders;
use self::line::{Complaints, Line, Network};
use self::onlookers::Patient;
use self::single::Single;
use self::size::Size;
use self::watched::Watched;
use self::writers::Writers;
use crate::support::Rest;

pub(crate) use self::size::extra_time;

/// Where everything happens.
const NAMESPACES: [&str; 6] = ["torture-0", "torture-1", "torture-2", "torture-3", "torture-4", "torture-5"];
/// An object of the first two, which all watchers have and no writer knows.
const MARKER: &str = "marker";

/// During all of it no object goes back to an older version, changes lead to what is stored, nobody looks healthy while
/// blind, and never do two lead; at the end every store is what a plain list gives.
pub(crate) async fn torture_under_steady_writes(target: &mut Target) -> Result<()> {
    let size = Size::of(target)?;
    println!("torture, {} server: {size}", target.name());
    let mut rng = Rng::with_seed(size.seed);
    let (rest, begun, complaints) = (Rest::of(target), Instant::now(), Complaints::default());
    let filled = writers::fill(target, &size, &mut rng).await.context("the objects")?;
    println!("  {:>6.1} s  filled", filled.took.as_secs_f64());
    disturbances::mark(&rest, 0).await?;

    let (server, rough, paused) = (Line::new(), Network::before(target).await?, Network::before(target).await?);
    // The first list of one of them breaks off, again and again.
    rough.proxy.cut_after(rng.u64(1..300_000));
    let first_list_breaks = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        rough.forward();
    };
    let loading = Instant::now();
    let (started, ()) = tokio::join!(watched::start(target, &server, &rough, &paused), first_list_breaks);
    let (watched, cached) = started.context("the watchers")?;
    println!("  {:>6.1} s  {} watchers synced", loading.elapsed().as_secs_f64(), watched.len());
    let marker = (NAMESPACES[0].to_owned(), MARKER.to_owned());
    let singles = [
        Single::start(target, &server, marker, &complaints).await?,
        Single::start(target, &server, writers::hot_name(), &complaints).await?,
    ];
    let direct = kube::Client::try_from(config_of(&target.kubeconfig()).await?)?;
    let leaders = Leaders::start([rough.proxy.client()?, direct], &complaints).await?;
    let resident = verdict::resident();
    println!("            {} MiB of memory", resident >> 20);

    let (stop, writers) = (CancellationToken::new(), Writers::start(target, filled, &size, &mut rng));
    let patients = patients(&watched, &singles);
    let blindness = tokio::spawn(onlookers::watch_for_blindness(patients, complaints.clone(), stop.clone()));
    let reads = onlookers::read_all_the_time(cached.clone(), rng.fork(), complaints.clone(), stop.clone());
    let reads = tokio::spawn(reads);
    let tormented = Instant::now();
    let mut disturber = Disturber {
        target,
        server: &server,
        paused: &paused,
        watched: &watched,
        singles: &singles,
        complaints: &complaints,
        done: Done::default(),
    };
    let (network_stop, network_rng) = (CancellationToken::new(), rng.fork());
    let disturb = async {
        let disturbed = disturber.disturb(&size, &mut rng).await;
        network_stop.cancel();
        disturbed
    };
    let (disturbed, network_changes) =
        tokio::join!(disturb, disturbances::roughen(&rough, network_rng, network_stop.clone()));
    disturbed?;
    let done = disturber.done;
    let calm = Instant::now();
    let resident_at_the_end = verdict::resident();
    let rate = writers.written() as f64 / tormented.elapsed().as_secs_f64();
    let written = writers.stop().await.context("the writers")?;
    println!(
        "  {:>6.1} s  {} API server kills, {} etcd kills, {} compactions, {network_changes} changes of the network",
        tormented.elapsed().as_secs_f64(),
        done.api_server_kills,
        done.etcd_kills,
        done.compactions
    );
    println!(
        "            {} writes ({rate:.0} a second), {} tries without an answer; slowest recovery {:.1?}",
        written.answered, written.unanswered, done.slowest_recovery
    );
    let in_the_end = verdict::InTheEnd { target, rest: &rest, calm, written: &written, complaints: &complaints };
    in_the_end.equal(&watched, &singles, &cached).await?;
    stop.cancel();
    let (blind, reads) = (blindness.await?, reads.await?);
    reads.check()?;
    verdict::requests(&watched, &singles, begun.elapsed())?;
    verdict::memory(target, &watched).await?;
    // The embedded server is in this process too, with its history.
    let is_normal = !target.is_real() || resident_at_the_end <= 2 * resident + (128 << 20);
    ensure!(is_normal, "{resident} bytes of memory before, {resident_at_the_end} after");
    verdict::expired(&watched)?;
    let (terms, looks) = leaders.finish(&rest).await.context("the leaders")?;
    println!("            {terms} terms of two candidates in {looks} looks; {blind} looks at a watcher that was blind");
    println!("            {} cached reads, {} failed", reads.answered, reads.failed);
    for watched in watched {
        let name = watched.name;
        let (batches, changes, scans) = watched.finish().await.with_context(|| format!("the changes of `{name}`"))?;
        println!("            {name}: {changes} changes in {batches} batches, {scans} scans");
    }
    for single in singles {
        println!("            single {}: {} calls", single.key.1, single.calls());
        single.finish().await?;
    }
    complaints.check()?;
    println!("  {:>6.1} s  all in all", begun.elapsed().as_secs_f64());
    Ok(())
}

fn patients(watched: &[Watched], singles: &[Single]) -> Vec<Patient> {
    let of_watched = watched.iter().map(|w| {
        let view = w.view.clone();
        Patient { name: w.name.to_owned(), status: Box::new(move || view.status()), lines: w.lines.clone() }
    });
    let of_singles = singles.iter().map(|s| {
        let handle = s.watcher.handle().clone();
        Patient {
            name: format!("single {}", s.key.1),
            status: Box::new(move || handle.status()),
            lines: s.lines.clone(),
        }
    });
    of_watched.chain(of_singles).collect()
}
