//! How much and how long: the short version unless the environment asks for more.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::Target;

const MINUTES: &str = "K8S_E2E_TORTURE_MINUTES";
const OBJECTS: &str = "K8S_E2E_TORTURE_OBJECTS";
const WRITES: &str = "K8S_E2E_TORTURE_WRITES";
const SEED: &str = "K8S_E2E_TORTURE_SEED";

/// The size of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) objects: usize,
    /// Writes a second.
    pub(super) writes: u32,
    /// For how long disturbances follow each other at random after each has come once.
    pub(super) at_random: Duration,
    pub(super) seed: u64,
}

impl Size {
    /// The embedded server runs in the same process, with its objects unpacked and, in a test, not optimised: a sixth
    /// of the objects there.
    pub(super) fn of(target: &Target) -> Result<Self> {
        let objects = if target.is_real() { 30_000 } else { 5_000 };
        Ok(Self {
            objects: variable(OBJECTS)?.unwrap_or(objects),
            writes: variable(WRITES)?.unwrap_or(100).max(1),
            at_random: minutes()?,
            seed: variable(SEED)?.unwrap_or_else(|| fastrand::u64(..)),
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, writes, at_random, seed } = self;
        write!(f, "{objects} objects, {writes} writes/s, each disturbance once")?;
        if !at_random.is_zero() {
            write!(f, ", then at random for {} s", at_random.as_secs())?;
        }
        write!(f, "; {SEED}={seed}")
    }
}

/// By how much the long version is longer. A variable that cannot be read is an error where the size is asked for.
pub(crate) fn extra_time() -> Duration {
    minutes().unwrap_or_default()
}

fn minutes() -> Result<Duration> {
    let minutes = variable::<f64>(MINUTES)?.unwrap_or_default();
    Duration::try_from_secs_f64(minutes * 60.0).with_context(|| format!("{MINUTES}={minutes}"))
}

fn variable<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(name: &str) -> Result<Option<T>> {
    let Ok(text) = env::var(name) else { return Ok(None) };
    text.replace('_', "").parse().map(Some).with_context(|| format!("{name}={text}"))
}
