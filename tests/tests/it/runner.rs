//! Runs each scenario on each server, several at a time, and says how long it took.
//!
//! The test harness of Rust has no end at which a shared server could be stopped, and its order is not ours: the real
//! control plane is started once, while the embedded server is tried; then come the scenarios that get along with
//! others, then, one by one, those that stop the server.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use e2e::Target;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};

use crate::torture;

/// A scenario that takes longer than this does not end any more, unless it was asked to take longer.
const LIMIT: Duration = Duration::from_secs(300);
/// The scenarios mostly wait for the server.
const AT_A_TIME: usize = 3;
/// Parts of the names: what needs a real server must be told apart.
const ON_EMBEDDED: &str = "embedded_server";
const ON_REAL: &str = "real_server";

pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
}

pub(crate) enum Run {
    /// Works in namespaces of its own and disturbs nobody.
    Shared(for<'a> fn(&'a Target) -> Running<'a>),
    /// Stops the server or makes it forget.
    Alone(for<'a> fn(&'a mut Target) -> Running<'a>),
}

/// What follows `--` on the command line, as far as it means something here; the rest is taken and ignored.
#[derive(Debug, Default)]
struct Options {
    wanted: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    at_a_time: Option<usize>,
}

impl Options {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
                _ => (argument.clone(), None),
            };
            let mut value = || value.clone().or_else(|| arguments.next()).with_context(|| format!("{flag}: no value"));
            match flag.as_str() {
                "--exact" => options.exact = true,
                "--list" => options.list = true,
                "--skip" => options.skipped.push(value()?),
                "--test-threads" => options.at_a_time = Some(value()?.parse()?),
                "--color" | "--format" | "--logfile" => drop(value()?),
                flag if flag.starts_with('-') => {}
                _ => options.wanted.push(argument),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        let fits = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        (self.wanted.is_empty() || self.wanted.iter().any(fits)) && !self.skipped.iter().any(fits)
    }
}

pub(crate) fn run(scenarios: &[Scenario]) -> ExitCode {
    match run_chosen(scenarios) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_chosen(scenarios: &[Scenario]) -> Result<bool> {
    let options = Options::parse(std::env::args().skip(1))?;
    let chosen = |server: &str| -> Vec<&Scenario> {
        scenarios.iter().filter(|s| options.wants(&format!("{server}::{}", s.name))).collect()
    };
    let (embedded, real) = (chosen(ON_EMBEDDED), chosen(ON_REAL));
    if options.list {
        for (server, scenarios) in [(ON_EMBEDDED, &embedded), (ON_REAL, &real)] {
            scenarios.iter().for_each(|s| println!("{server}::{}: test", s.name));
        }
        return Ok(true);
    }
    println!("\nrunning {} tests", embedded.len() + real.len());
    let report = Report { begun: Instant::now(), lines: Mutex::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let all = async {
        let at_a_time = options.at_a_time.unwrap_or(AT_A_TIME).max(1);
        let on_embedded = stream::iter(embedded)
            .map(|scenario| on_embedded(scenario, &report))
            .buffer_unordered(at_a_time)
            .collect::<()>();
        let start_real = async { if real.is_empty() { Ok(None) } else { Target::real().await } };
        let ((), started) = tokio::join!(on_embedded, start_real);
        match started {
            Ok(Some(target)) => on_real(target, &real, at_a_time, &report).await,
            Ok(None) => real.iter().for_each(|s| report.add(ON_REAL, s.name, "ignored, no control plane", None)),
            Err(error) => real.iter().for_each(|s| report.failed(ON_REAL, s.name, &error, Duration::ZERO)),
        }
    };
    // Whoever ends this program ends the control plane with it.
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            () = all => Ok(()),
            _ = terminate.recv() => Err(anyhow!("terminated")),
            _ = interrupt.recv() => Err(anyhow!("interrupted")),
        }
    });
    let is_good = report.finish();
    ended.map(|()| is_good)
}

async fn on_embedded(scenario: &Scenario, report: &Report) {
    let run = async {
        let mut target = Target::embedded().await?;
        match scenario.run {
            Run::Shared(run) => run(&target).await,
            Run::Alone(run) => run(&mut target).await,
        }
    };
    report.watch(ON_EMBEDDED, scenario.name, run).await;
}

async fn on_real(mut target: Target, scenarios: &[&Scenario], at_a_time: usize, report: &Report) {
    let (mut shared, mut alone) = (vec![], vec![]);
    for scenario in scenarios {
        match scenario.run {
            Run::Shared(run) => shared.push((scenario.name, run)),
            Run::Alone(run) => alone.push((scenario.name, run)),
        }
    }
    stream::iter(shared)
        .map(|(name, run)| report.watch(ON_REAL, name, run(&target)))
        .buffer_unordered(at_a_time)
        .collect::<()>()
        .await;
    for (name, run) in alone {
        report.watch(ON_REAL, name, run(&mut target)).await;
    }
}

/// What came of each scenario, told as it happens.
struct Report {
    begun: Instant,
    lines: Mutex<Vec<Line>>,
}

struct Line {
    server: &'static str,
    name: &'static str,
    result: &'static str,
    time: Option<Duration>,
}

impl Report {
    async fn watch(&self, server: &'static str, name: &'static str, run: impl Future<Output = Result<()>>) {
        let begun = Instant::now();
        let limit = LIMIT + torture::extra_time();
        let caught = AssertUnwindSafe(tokio::time::timeout(limit, run)).catch_unwind();
        let result = match caught.await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(anyhow!("not done after {limit:?}")),
            Err(_) => Err(anyhow!("panicked")),
        };
        let time = begun.elapsed();
        match result {
            Ok(()) => self.add(server, name, "ok", Some(time)),
            Err(error) => self.failed(server, name, &error, time),
        }
    }

    fn failed(&self, server: &'static str, name: &'static str, error: &anyhow::Error, time: Duration) {
        let causes: String = error.chain().map(|e| format!("\n  {e}")).collect();
        eprintln!("---- {server}::{name} ----{causes}\n");
        self.add(server, name, "FAILED", Some(time));
    }

    fn add(&self, server: &'static str, name: &'static str, result: &'static str, time: Option<Duration>) {
        let seconds = time.map(|t| format!(" in {:.1}s", t.as_secs_f64())).unwrap_or_default();
        println!("test {server}::{name} ... {result}{seconds}");
        if let Ok(mut lines) = self.lines.lock() {
            lines.push(Line { server, name, result, time });
        }
    }

    /// Whether all went well.
    fn finish(&self) -> bool {
        let Ok(lines) = self.lines.lock() else { return false };
        let count = |result: &str| lines.iter().filter(|l| l.result.starts_with(result)).count();
        let (passed, failed, ignored) = (count("ok"), count("FAILED"), count("ignored"));
        if passed + failed > 1 {
            println!("\n{:<60} {:>9} {:>9}", "seconds", "embedded", "real");
            let mut names: Vec<_> = lines.iter().map(|l| l.name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let cell = |server: &str| {
                    let line = lines.iter().find(|l| l.server == server && l.name == name);
                    let time = line.and_then(|l| l.time.map(|t| (l.result, t.as_secs_f64())));
                    time.map_or_else(String::new, |(r, t)| if r == "ok" { format!("{t:.1}") } else { "FAILED".into() })
                };
                println!("{name:<60} {:>9} {:>9}", cell(ON_EMBEDDED), cell(ON_REAL));
            }
        }
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; finished in {:.1}s\n",
            self.begun.elapsed().as_secs_f64()
        );
        failed == 0
    }
}
