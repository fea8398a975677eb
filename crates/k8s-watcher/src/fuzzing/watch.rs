//! Bodies of watches.

use bytes::Bytes;
use k8s_packed::{Encoder, Object};
use serde_json::Value;

use super::{is_our_reason, is_special, portions};
use crate::engine::EventKind;
use crate::frame::{Frame, Lines, decode_event};

/// However a body is cut, its lines are the same events; each says what `serde_json` says it does, whatever the lines
/// before it were.
///
/// # Panics
///
/// When that does not hold.
pub fn check_watch(body: &[u8]) {
    let whole = frames(body, body.len().max(1));
    for size in portions(body) {
        assert_eq!(frames(body, size), whole, "portions of {size}");
    }
    let lines: Vec<_> = body.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let alone: Vec<_> = lines.iter().map(|line| told(&decode_event(&mut Encoder::new(), line))).collect();
    assert_eq!(whole, alone);
    lines.into_iter().for_each(check_line);
}

fn frames(body: &[u8], size: usize) -> Vec<String> {
    let (mut lines, mut encoder, mut frames) = (Lines::default(), Encoder::new(), vec![]);
    for portion in body.chunks(size) {
        lines.push(Bytes::copy_from_slice(portion)).expect("it is short");
        frames.extend(std::iter::from_fn(|| lines.next()).map(|line| told(&decode_event(&mut encoder, &line))));
    }
    frames.extend(lines.rest().map(|line| told(&decode_event(&mut encoder, &line))));
    frames
}

fn told(frame: &Frame) -> String {
    match frame {
        Frame::Object { kind, object } => format!("{kind:?} {}", serde_json::to_string(object).expect("JSON")),
        other => format!("{other:?}"),
    }
}

fn check_line(line: &[u8]) {
    #[derive(serde::Deserialize)]
    struct Event {
        #[serde(rename = "type")]
        kind: String,
        object: Value,
    }

    let frame = decode_event(&mut Encoder::new(), line);
    match &frame {
        Frame::Unreadable(message) => {
            let what = message.strip_prefix("no watch event: ").expect("our own words");
            let column = what.strip_prefix("unreadable at column ").and_then(|column| column.parse::<usize>().ok());
            assert!(what == "not UTF-8" || column.is_some_and(|column| column <= line.len() + 1), "{message}");
        }
        Frame::Bad { bad, .. } => {
            assert!(is_our_reason(&bad.reason), "{bad}");
            assert!(bad.to_string().len() < 600);
        }
        Frame::Object { object, .. } => assert!(!object.name().is_empty()),
        Frame::Bookmark { .. } | Frame::Error(_) => {}
    }
    let Ok(event) = serde_json::from_slice::<Event>(line) else { return };
    if is_special(line) {
        return;
    }
    let expected = match event.kind.as_str() {
        "ADDED" => EventKind::Added,
        "MODIFIED" => EventKind::Modified,
        "DELETED" => EventKind::Deleted,
        "BOOKMARK" => return check_bookmark(&frame, &event.object),
        "ERROR" => return assert!(matches!(frame, Frame::Error(_)), "{frame:?}"),
        _ => return assert!(matches!(frame, Frame::Unreadable(_)), "{frame:?}"),
    };
    match (frame, Object::from_value(&event.object)) {
        (Frame::Object { kind, object }, Ok(said)) => {
            assert_eq!(kind, expected);
            assert_eq!(object, said);
        }
        (Frame::Bad { kind, .. }, said) => {
            assert_eq!(kind, expected);
            assert!(said.is_ok_and(|said| said.name().is_empty()) || !event.object.is_object());
        }
        (frame, said) => panic!("{frame:?} of {said:?}"),
    }
}

fn check_bookmark(frame: &Frame, object: &Value) {
    let Ok(object) = Object::from_value(object) else { return };
    let Frame::Bookmark { resource_version, initial_events_end } = frame else { panic!("{frame:?}") };
    assert_eq!(Some(&**resource_version).filter(|version| !version.is_empty()), object.resource_version());
    assert_eq!(*initial_events_end, object.annotation("k8s.io/initial-events-end") == Some("true"));
}
