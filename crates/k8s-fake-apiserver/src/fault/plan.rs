//! What happens inside a body: after so many lines, or after so many bytes.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;

use crate::body::{ResponseBody, reset};
use crate::status::Status;

/// Changes an object, or a whole body, on its way out.
pub(crate) type Edit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// How a body stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// As if it were complete.
    End,
    /// The connection breaks.
    Reset,
    /// Nothing more comes, and nobody says so.
    Hang,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Break(Break),
    Error(Status),
    Line(Bytes),
    Pause(Duration),
}

/// The steps of one list or watch, in the order of their places.
#[derive(Default, Clone)]
pub(crate) struct StreamPlan {
    steps: Vec<(u64, Step)>,
    edits: Vec<Edit>,
    /// So many revisions before the one that it was asked for a watch begins.
    replay: u64,
}

/// What the writer of a body has to do now.
pub(crate) enum Interrupt {
    End,
    Reset,
    Error(Status),
    Line(Bytes),
}

impl StreamPlan {
    pub(crate) fn add(&mut self, after: u64, step: Step) {
        let at = self.steps.partition_point(|(place, _)| *place <= after);
        self.steps.insert(at, (after, step));
    }

    pub(crate) fn add_edit(&mut self, edit: Edit) {
        self.edits.push(edit);
    }

    pub(crate) fn replay(&mut self, revisions: u64) {
        self.replay = revisions;
    }

    /// Where a watch begins that was asked for what follows `revision`.
    pub(crate) fn begin_after(&self, revision: u64, oldest: u64) -> u64 {
        if self.replay == 0 { revision } else { revision.saturating_sub(self.replay).max(oldest).min(revision) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.edits.is_empty()
    }

    /// The place of the next step.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.steps.first().map(|(at, _)| *at)
    }

    /// Carries out the steps that are due after `written` lines; never returns from a hang.
    pub(crate) async fn interrupt(&mut self, written: u64) -> Option<Interrupt> {
        while self.next_at().is_some_and(|at| at <= written) {
            match self.steps.remove(0).1 {
                Step::Break(Break::End) => return Some(Interrupt::End),
                Step::Break(Break::Reset) => return Some(Interrupt::Reset),
                Step::Break(Break::Hang) => std::future::pending().await,
                Step::Error(status) => return Some(Interrupt::Error(status)),
                Step::Line(line) => return Some(Interrupt::Line(line)),
                Step::Pause(time) => tokio::time::sleep(time).await,
            }
        }
        None
    }

    /// Applies the edits to the object that was written from `start` on.
    pub(crate) fn edit(&self, out: &mut Vec<u8>, start: usize) {
        if self.edits.is_empty() {
            return;
        }
        let edited = edited(&out[start..], &self.edits);
        out.truncate(start);
        out.extend_from_slice(&edited);
    }

    /// For answers without lines: how the body stops at once.
    pub(crate) fn first_break(&self) -> Option<Break> {
        self.steps.iter().find_map(|(_, step)| match step {
            Step::Break(how) => Some(*how),
            Step::Error(_) => Some(Break::Reset),
            Step::Line(_) | Step::Pause(_) => None,
        })
    }
}

impl fmt::Debug for StreamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamPlan").field("steps", &self.steps).field("edits", &self.edits.len()).finish()
    }
}

fn edited(json: &[u8], edits: &[Edit]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else { return json.to_vec() };
    for edit in edits {
        edit(&mut value);
    }
    value.to_string().into_bytes()
}

/// Changes the whole body, breaks it off and cuts it into chunks, in that order.
pub(crate) fn shape(
    body: ResponseBody,
    edits: Vec<Edit>,
    cut: Option<(u64, Break)>,
    chunk: Option<usize>,
) -> ResponseBody {
    let mut body = body;
    if !edits.is_empty() {
        body = edit_whole(body, edits);
    }
    if let Some((at, how)) = cut {
        body = cut_at(body, at, how);
    }
    match chunk {
        Some(size) => rechunk(body, size.max(1)),
        None => body,
    }
}

fn edit_whole(body: ResponseBody, edits: Vec<Edit>) -> ResponseBody {
    let collected = async move {
        let mut stream = body.into_stream();
        let mut all = Vec::new();
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => all.extend_from_slice(&piece),
                Err(error) => return Err(error),
            }
        }
        Ok(Bytes::from(edited(&all, &edits)))
    };
    ResponseBody::stream(futures_util::stream::once(collected))
}

fn cut_at(body: ResponseBody, at: u64, how: Break) -> ResponseBody {
    let state = Some((body.into_stream(), at));
    ResponseBody::stream(futures_util::stream::unfold(state, move |state| async move {
        let (mut stream, left) = state?;
        if left == 0 {
            return match how {
                Break::End => None,
                Break::Reset => Some((Err(reset()), None)),
                Break::Hang => std::future::pending().await,
            };
        }
        let piece: io::Result<Bytes> = stream.next().await?;
        match piece {
            Ok(mut piece) => {
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                piece.truncate(most);
                let left = left - piece.len() as u64;
                Some((Ok(piece), Some((stream, left))))
            }
            Err(error) => Some((Err(error), None)),
        }
    }))
}

fn rechunk(body: ResponseBody, size: usize) -> ResponseBody {
    let stream = body.into_stream().flat_map(move |piece| {
        let pieces: Vec<io::Result<Bytes>> = match piece {
            Ok(bytes) => {
                (0..bytes.len()).step_by(size).map(|at| Ok(bytes.slice(at..bytes.len().min(at + size)))).collect()
            }
            Err(error) => vec![Err(error)],
        };
        futures_util::stream::iter(pieces)
    });
    ResponseBody::stream(stream)
}
