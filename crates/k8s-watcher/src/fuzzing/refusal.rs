//! Bodies of refusals, and what an ERROR in a watch holds.

use std::time::Duration;

use k8s_types::{ApiStatus, shorten};
use serde_json::Value;
use tokio::time::Instant;

use crate::engine::{Action, Engine, EngineConfig, Input, ListMode};

/// A mistyped Retry-After waits no longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(660);
/// A text of the server is cut here.
const LONGEST_TEXT: usize = 520;

/// Whatever the server says with a refusal or an ERROR, the next attempt is due in a bounded time, what is told of it is
/// short, and nothing is told of a body that is no Status.
///
/// # Panics
///
/// When that does not hold.
pub fn check_refusal(body: &[u8]) {
    let failure = ApiStatus::from_json(body);
    // What is no text in a member that nobody reads is no hindrance to us.
    if let Some(failure) = &failure
        && let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(body)
    {
        assert!(value.get("kind").is_none_or(|kind| kind == "Status" || kind.is_null()), "{failure:?}");
        let code = value.get("code").and_then(Value::as_u64).unwrap_or_default();
        assert_eq!(u64::from(failure.code), code);
        assert_eq!(failure.reason, shorten(value.get("reason").and_then(Value::as_str).unwrap_or_default()));
    }
    for status in [100, 302, 400, 401, 403, 404, 406, 410, 422, 429, 500, 501, 503, 504, 599] {
        for seconds in [None, Some(0), Some(7), Some(u64::MAX)] {
            let retry_after = seconds.map(Duration::from_secs);
            for list_mode in [ListMode::Paged, ListMode::Streaming] {
                let refused = Input::Response { status, retry_after, failure: failure.as_ref() };
                check_inputs(list_mode, &[refused], failure.is_none());
            }
        }
    }
    let error = failure.clone().unwrap_or_default();
    let opened = Input::Response { status: 200, retry_after: None, failure: None };
    check_inputs(ListMode::Streaming, &[opened, Input::Error(&error)], failure.is_none());
}

fn check_inputs(list_mode: ListMode, inputs: &[Input<'_>], no_status: bool) {
    let (now, mut actions) = (Instant::now(), vec![]);
    let mut engine = Engine::new(EngineConfig { list_mode, ..EngineConfig::default() });
    engine.step(Input::Start, now, &mut actions);
    for input in inputs {
        engine.step(*input, now, &mut actions);
    }
    let bound = |text: &str| assert!(text.len() <= LONGEST_TEXT, "{} bytes of text", text.len());
    for action in &actions {
        match action {
            Action::Report(report) => {
                bound(&report.message);
                bound(&report.reason);
                assert!(report.retry_at <= now + LONGEST_WAIT, "{:?}", report.retry_at - now);
                assert!(!no_status || (report.message.is_empty() && report.reason.is_empty()), "{report:?}");
            }
            Action::NoteStreamingRefused { message } => bound(message),
            _ => {}
        }
    }
    let deadline = engine.deadline().expect("it goes on");
    assert!(deadline <= now + LONGEST_WAIT, "{:?}", deadline - now);
}
