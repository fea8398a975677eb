//! What is logged, as lines.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    /// Where the lines of this thread's test go; a paused runtime has one thread.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// The lines of one test: `WARN message field=value …`, and `INFO span name field=value …` where a span begins.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// The lines that everybody sees: INFO and above.
    pub fn of_interest(&self) -> Vec<String> {
        self.lines(Level::INFO)
    }

    /// Every line, down to TRACE.
    pub fn all(&self) -> Vec<String> {
        self.lines(Level::TRACE)
    }

    fn lines(&self, lowest: Level) -> Vec<String> {
        let lines = self.0.lock().expect("no panic under the lock");
        lines.iter().filter(|(level, _)| *level <= lowest).map(|(level, line)| format!("{level} {line}")).collect()
    }
}

/// Hears what one crate logs. Call it before anything logs: whether a place in the code is heard is decided when it
/// logs for the first time, for the whole process.
///
/// # Panics
///
/// When there is another subscriber already.
pub fn listen_to(target: &'static str) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| tracing::subscriber::set_global_default(Collector { target }).expect("nobody else listens"));
}

/// Collects what is logged on this thread from now on.
pub fn collect_log() -> Log {
    let log = Log::default();
    LOG.set(Some(log.clone()));
    log
}

struct Collector {
    target: &'static str,
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.target)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        tell(attributes.metadata(), |line| {
            attributes.record(line);
            line.0.insert_str(0, &format!("span {}", attributes.metadata().name()));
        });
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        tell(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn tell(metadata: &Metadata<'_>, write: impl FnOnce(&mut Line)) {
    LOG.with_borrow(|log| {
        let Some(log) = log else { return };
        let mut line = Line::default();
        write(&mut line);
        log.0.lock().expect("no panic under the lock").push((*metadata.level(), line.0));
    });
}
