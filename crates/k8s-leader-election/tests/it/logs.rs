//! What an operator reads in the log: changes, and each trouble once; nothing that is anybody's secret.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once};

use k8s_fake_apiserver::FakeApiServer;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::{Candidate, config, lease, ms, requests_of, secs, server};

type Lines = Arc<Mutex<Vec<(Level, String)>>>;

thread_local! {
    /// Where the lines of this thread's test go; a paused runtime has one thread.
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// Hears everything that this crate logs, as `message field=value …`.
struct Collector;

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
        metadata.target().starts_with("k8s_leader_election")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut line = Line::default();
        attributes.record(&mut line);
        tell(*attributes.metadata().level(), format!("span {}{}", attributes.metadata().name(), line.0));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        tell(*event.metadata().level(), line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn tell(level: Level, line: String) {
    LINES.with_borrow(|lines| {
        if let Some(lines) = lines {
            lines.lock().expect("no panic under the lock").push((level, line));
        }
    });
}

/// One subscriber for all tests, before any of them logs: whether a place in the code is heard is decided when it logs
/// for the first time, for the whole process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Collector).expect("nobody else listens"));
}

/// A server, and what is logged on this thread from now on.
async fn collect() -> (FakeApiServer, Lines) {
    let (server, lines) = (server().await, Lines::default());
    LINES.set(Some(lines.clone()));
    (server, lines)
}

/// The lines that everybody sees.
fn of_interest(lines: &Lines) -> Vec<String> {
    let lines = lines.lock().expect("no panic under the lock");
    lines.iter().filter(|(level, _)| *level <= Level::INFO).map(|(level, line)| format!("{level} {line}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_life_in_the_log() {
    let (server, lines) = collect().await;
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(ms(1)).await;
    tokio::time::sleep(secs(60)).await;
    let fault = server.faults().on(requests_of("a")).always().status(503);
    // Ten minutes of trouble are one line, and its end is one.
    tokio::time::sleep(secs(600)).await;
    fault.clear();
    a.leads_within(secs(3)).await;
    a.stop().await.unwrap();
    let told: Vec<_> = of_interest(&lines)
        .into_iter()
        .map(|line| line.split_once(" failures=").map_or(line.clone(), |(line, _)| line.to_owned()))
        .collect();
    assert_eq!(
        told,
        [
            "INFO span elect namespace=shop name=cart identity=a",
            "INFO new leader leader=\"a\"",
            "INFO leading",
            "WARN cannot reach the lease; trying again error=503 ServiceUnavailable: the server is currently unable to handle the request",
            "INFO not leading any more reason=Lost",
            "INFO the lease is reached again",
            "INFO leading",
            "INFO not leading any more reason=Stopped",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_never_reach_the_log() {
    let (server, lines) = collect().await;
    let mut object = lease(&json!({"holderIdentity": "b", "leaseDurationSeconds": 3, "secret": "hunter2"}));
    object["metadata"]["annotations"]["password"] = "hunter2".into();
    server.apply(object).unwrap();
    let a = Candidate::start(&server, config("a"), "a");
    a.leads_within(secs(5)).await;
    for body in [r#"{"password":"hunter2"}"#, "hunter2", r#"{"kind":"Secret","message":"hunter2"}"#] {
        let fault = server.faults().on(requests_of("a")).always().body("application/json", body);
        tokio::time::sleep(secs(30)).await;
        fault.clear();
        a.leads_within(secs(20)).await;
    }
    a.stop().await.unwrap();
    let lines = lines.lock().unwrap();
    assert!(lines.len() > 30 && lines.iter().all(|(_, line)| !line.contains("hunter2")), "{lines:?}");
}
