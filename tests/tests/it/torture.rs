//! Everything at once: tens of thousands of objects under steady writes, while the API server and its storage are
//! killed and come back, history is thrown away, and the network breaks, hangs and gets slow.
//!
//! Short within the other scenarios; `cargo xtask torture` runs the long version. On the embedded server the API server
//! is killed by shutting its door, and the storage, of which it has none, by refusing every request.

mod cast;
mod disturbances;
mod leaders;
mod line;
mod network;
mod onlookers;
mod single;
mod size;
mod verdict;
mod watched;
mod witness;
mod writers;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::Target;
use fastrand::Rng;
use tokio_util::sync::CancellationToken;

use self::cast::Cast;
use self::disturbances::Disturber;
use self::onlookers::Onlookers;
use self::size::Size;
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
    let (size, begun) = (Size::of(target)?, Instant::now());
    println!("torture, {} server: {size}", target.name());
    let (rest, mut rng) = (Rest::of(target), Rng::with_seed(size.seed));
    let slots = writers::fill(target, &size, &mut rng).await.context("the objects")?;
    println!("  {:>6.1} s  filled", begun.elapsed().as_secs_f64());
    disturbances::mark(&rest, 0).await?;
    let cast = Cast::assemble(target, &mut rng).await?;
    let memory = verdict::resident();
    println!("            {} MiB of memory", memory >> 20);

    let writers = Writers::start(target, slots, &size, &mut rng);
    let onlookers = Onlookers::start(cast.patients(), cast.cached.clone(), rng.fork(), &cast.complaints);
    let (last, network_rng) = (CancellationToken::new(), rng.fork());
    let disturb = async {
        let _guard = last.clone().drop_guard();
        Disturber::disturb(target, &cast, &size, &mut rng).await
    };
    let (done, troubles) = tokio::join!(disturb, cast.rough.roughen(network_rng, &last));
    let (done, calm, memory_after) = (done?, Instant::now(), verdict::resident());
    let written = writers.stop().await.context("the writers")?;
    println!("            {done}, {troubles} troubles of the network");
    println!("            {written}");

    verdict::equality(&rest, &cast, &written, calm).await?;
    onlookers.finish().await?;
    verdict::requests(&cast, begun.elapsed())?;
    verdict::memory(target, &cast).await?;
    // The embedded server is in this process too, with all its history.
    let is_normal = !target.is_real() || memory_after <= 2 * memory + (128 << 20);
    ensure!(is_normal, "{memory} bytes of memory before, {memory_after} after");
    cast.finish(&rest).await?;
    println!("  {:>6.1} s  all in all", begun.elapsed().as_secs_f64());
    Ok(())
}
