//! Plays many histories on all cores; the first that diverges is shrunk and told.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::time::Duration;

use super::plan::{History, Kind, Setup, Step};
use super::play::play;
use super::shrink::{shrink, simplify};
use super::story::Story;

/// How many are played by default, of all kinds together: some seconds of a debug build.
const HISTORIES: u64 = 600;
/// How many replays a shorter history may cost.
const REPLAYS: usize = 400;
/// Nothing was heard for so many seconds: a history does not end.
const PATIENCE: u32 = 180;
/// After so many a line says how far it is.
const PROGRESS: u64 = 20_000;

/// Plays those histories of a kind that are among the wanted ones.
///
/// # Panics
///
/// With seed, shortest form and story of the first that diverges. The report is also written to the file that
/// `K8S_WATCHER_REPORT` names.
pub(crate) fn play_all(kind: Kind) {
    let seeds = wanted();
    let this_kind: Vec<u64> =
        (seeds.start..seeds.end.min(seeds.start + 3)).filter(|seed| Kind::of(*seed) == kind).collect();
    let Some(first) = this_kind.first().copied() else { return };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, stop) = (Arc::new(AtomicU64::new(first)), Arc::new(AtomicBool::new(false)));
    let (sender, news) = mpsc::channel();
    for _ in 0..threads {
        let (next, stop, sender) = (next.clone(), stop.clone(), sender.clone());
        // Not scoped: one that never ends must not keep the others from telling.
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let seed = next.fetch_add(3, Ordering::SeqCst);
                if seed >= seeds.end {
                    break;
                }
                let told = match check(&History::of(seed), play) {
                    Ok(()) => News::Played(seed),
                    Err(_) if stop.swap(true, Ordering::SeqCst) => break,
                    Err(failure) => News::Diverged(diverged(seed, failure, &sender)),
                };
                let _ = sender.send(told);
            }
        });
    }
    drop(sender);
    listen(kind, &news, next.load(Ordering::SeqCst));
}

/// What a thread has to tell.
enum News {
    Played(u64),
    /// A shorter form was tried.
    Shrinking,
    Diverged(String),
}

fn listen(kind: Kind, news: &mpsc::Receiver<News>, first: u64) {
    let (mut played, mut silent, mut newest) = (0, 0, first);
    loop {
        match news.recv_timeout(Duration::from_secs(1)) {
            Ok(News::Played(seed)) => {
                (played, silent, newest) = (played + 1, 0, newest.max(seed));
                if played % PROGRESS == 0 {
                    let _ = writeln!(std::io::stderr(), "{played} histories of {kind:?}");
                }
            }
            Ok(News::Shrinking) => silent = 0,
            Ok(News::Diverged(report)) => fail(&report),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                silent += 1;
                if silent > PATIENCE {
                    fail(&format!("a history of {kind:?} does not end: its seed is {newest} or near"));
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn fail(report: &str) -> ! {
    if let Some(path) = std::env::var_os("K8S_WATCHER_REPORT") {
        std::fs::write(path, report).expect("the report can be written");
    }
    panic!("{report}");
}

/// The seeds of the histories that are to be played: the one of `K8S_WATCHER_SEED`, or `K8S_WATCHER_HISTORIES` from
/// `K8S_WATCHER_FIRST` on.
fn wanted() -> Range<u64> {
    let variable = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    if let Some(seed) = variable("K8S_WATCHER_SEED") {
        return seed..seed + 1;
    }
    let first = variable("K8S_WATCHER_FIRST").unwrap_or(0);
    first..first + variable("K8S_WATCHER_HISTORIES").unwrap_or(HISTORIES)
}

/// Where a history diverged from its model, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// File and line of the check.
    pub(crate) place: String,
    pub(crate) message: String,
}

/// Plays a history without a story.
pub(crate) fn check(history: &History, play: impl Fn(&History, &Story)) -> Result<(), Failure> {
    told(history, &Story::default(), play)
}

fn told(history: &History, story: &Story, play: impl Fn(&History, &Story)) -> Result<(), Failure> {
    listen_to_panics();
    HEARD.set(Some(vec![]));
    let played = catch_unwind(AssertUnwindSafe(|| play(history, story)));
    let heard = HEARD.take().unwrap_or_default();
    match played {
        Ok(()) => Ok(()),
        // The first panic is the cause of the others.
        Err(_) => Err(heard.into_iter().next().unwrap_or(Failure { place: "nowhere".into(), message: "".into() })),
    }
}

thread_local! {
    /// What panicked while this thread plays a history: a paused runtime has one thread.
    static HEARD: RefCell<Option<Vec<Failure>>> = const { RefCell::new(None) };
}

/// Panics within a history are kept instead of printed: a shorter one will follow.
fn listen_to_panics() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_ours =
                HEARD.with_borrow_mut(|heard| heard.as_mut().map(|heard| heard.push(failure(info))).is_some());
            if !is_ours {
                others(info);
            }
        }));
    });
}

fn failure(info: &PanicHookInfo<'_>) -> Failure {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()));
    Failure { place, message: text.unwrap_or("no text").to_owned() }
}

/// A history in which nothing can be spared, and that fails at the same place.
pub(crate) fn shortest(history: &History, failure: &Failure, play: impl Fn(&History, &Story)) -> History {
    let fails = |history: &History| check(history, &play).is_err_and(|found| found.place == failure.place);
    let with =
        |setup: &Setup, steps: &[Step]| History { kind: history.kind, setup: setup.clone(), steps: steps.to_vec() };
    let (mut budget, mut setup) = (REPLAYS, history.setup.clone());
    let mut steps = shrink(&history.steps, &mut budget, &mut |steps| fails(&with(&setup, steps)));
    setup = simplify(&setup, &mut budget, Setup::simpler, |setup| fails(&with(setup, &steps)));
    for at in 0..steps.len() {
        steps[at] = simplify(&steps[at], &mut budget, Step::simpler, |step| {
            let mut changed = steps.clone();
            changed[at] = step.clone();
            fails(&with(&setup, &changed))
        });
    }
    // In a simpler world fewer steps may do.
    steps = shrink(&steps, &mut budget, &mut |steps| fails(&with(&setup, steps)));
    with(&setup, &steps)
}

fn diverged(seed: u64, failure: Failure, sender: &mpsc::Sender<News>) -> String {
    let alive = |history: &History, story: &Story| {
        let _ = sender.send(News::Shrinking);
        play(history, story);
    };
    let history = History::of(seed);
    let short = shortest(&history, &failure, alive);
    let story = Story::kept();
    let again = told(&short, &story, play);
    let mut report = String::new();
    let _ = writeln!(report, "what happened in the shortest form found:");
    for line in story.lines() {
        let _ = writeln!(report, "  {line}");
    }
    let how = again.err().unwrap_or(Failure { message: "nothing, when it was played once more".into(), ..failure });
    let _ = write!(report, "{}", Shrunk { seed, failure: &how, history: &short, of: history.steps.len() });
    report
}

/// A failure, its seed and its shortest history, for a person.
struct Shrunk<'a> {
    seed: u64,
    failure: &'a Failure,
    history: &'a History,
    of: usize,
}

impl fmt::Display for Shrunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, failure, history, of } = self;
        writeln!(f, "setup: {:?}", history.setup)?;
        writeln!(f, "{} of {of} steps:", history.steps.len())?;
        for step in &history.steps {
            writeln!(f, "  {step:?}")?;
        }
        writeln!(f, "diverges at {}: {}", failure.place, failure.message)?;
        write!(f, "K8S_WATCHER_SEED={seed} plays the whole history of {:?} again", history.kind)
    }
}
