//! watch: replay from a revision, then live, with bookmarks.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::get::wait_until_fresh;
use super::list::CHUNK;
use super::{Answer, Call, answer};
use crate::body::ResponseBody;
use crate::core::StreamingLists;
use crate::fault::Interrupt;
use crate::log::{Event, Op};
use crate::query::ListOptions;
use crate::represent::{Form, bookmark, write_object};
use crate::selector::Filter;
use crate::status::Status;
use crate::stored::Stored;

pub(crate) async fn watch(mut call: Call) -> Answer {
    if call.query.has("sendInitialEvents") {
        // Whoever asks for the state resumes nothing, also where the flag is not known.
        call.plan.replay(0);
    }
    if call.core.options.streaming == StreamingLists::Ignored {
        call.query.0.retain(|(name, _)| name != "sendInitialEvents" && name != "resourceVersionMatch");
    }
    let options = ListOptions::new(&call.query, true, call.core.options.streaming != StreamingLists::Refused)?;
    let filter = Filter::new(&call.kind, call.namespace(), &options.labels, &options.fields)?;
    let wanted = options.revision().map_err(|e| Status::new(500, "", e))?;
    if options.initial_events == Some(true)
        && let Err(status) = wait_until_fresh(&call, wanted).await
    {
        return Ok(errored(&status));
    }
    if call.form == Form::MetadataList {
        // The real server finds out at its first event that this is no list, and ends the stream without a word.
        return Ok(answer(StatusCode::OK, "application/json", ResponseBody::full("")));
    }
    match Watching::start(call, &options, filter, wanted) {
        Ok(watching) => {
            let stream = futures_util::stream::unfold(Some(watching), |state| async move {
                let mut watching = state?;
                match watching.next().await? {
                    Ok(bytes) => {
                        watching.handed = Instant::now();
                        Some((Ok(bytes), Some(watching)))
                    }
                    Err(error) => Some((Err(error), None)),
                }
            });
            Ok(answer(StatusCode::OK, "application/json", ResponseBody::stream(stream)))
        }
        Err(status) => Ok(errored(&status)),
    }
}

/// Past the checks of its parameters a watch fails by an event, not by an HTTP status.
fn errored(status: &Status) -> http::Response<ResponseBody> {
    answer(StatusCode::OK, "application/json", ResponseBody::full(error_line(status)))
}

pub(crate) fn error_line(status: &Status) -> Bytes {
    let mut line = b"{\"type\":\"ERROR\",\"object\":".to_vec();
    line.extend_from_slice(status.to_json().trim_ascii_end());
    line.extend_from_slice(b"}\n");
    line.into()
}

struct Watching {
    call: Call,
    filter: Filter,
    notify: Arc<Notify>,
    epoch: u64,
    /// Objects that are sent as ADDED before anything else.
    initial: VecDeque<Arc<Stored>>,
    /// The revision of the bookmark that ends them.
    initial_end: Option<u64>,
    /// Only events after this revision are sent.
    after: u64,
    /// The newest revision that the client was told.
    told: u64,
    /// Place of the next event in the history.
    place: u64,
    bookmarks: bool,
    bookmarked: u64,
    next_bookmark: Instant,
    deadline: Instant,
    /// Lines sent so far.
    lines: u64,
    columns_sent: bool,
    handed: Instant,
    ended: bool,
}

enum Found {
    Bytes(Vec<u8>),
    Nothing,
    End,
}

impl Watching {
    fn start(call: Call, options: &ListOptions, filter: Filter, wanted: u64) -> Result<Self, Status> {
        let log = call.core.log.lock();
        let table = log.table(call.table).ok_or_else(Status::no_such_path)?;
        // A stream of the state that names no version is as new as the storage, whatever the replica has seen.
        let is_consistent = options.initial_events == Some(true) && options.version.is_empty();
        let visible = if is_consistent { log.revision() } else { call.view.visible(&log) };
        let from_store = options.initial_events == Some(true) || (options.initial_events.is_none() && wanted == 0);
        let mut initial = VecDeque::new();
        let after = if from_store {
            initial = table.at(visible, filter.prefix(), "").filter(|o| filter.matches(o)).collect();
            visible
        } else if wanted == 0 {
            visible
        } else if wanted < log.horizon() {
            return Err(Status::expired(format!("too old resource version: {wanted} ({})", log.horizon())));
        } else {
            call.plan.begin_after(wanted, log.horizon())
        };
        let initial_end = (options.initial_events == Some(true) && options.bookmarks).then_some(visible);
        let (notify, place, epoch) = (table.notify.clone(), table.place_after(after), log.epoch);
        drop(log);
        let now = Instant::now();
        let interval = call.core.options.bookmark_interval;
        let timeout = options.timeout.unwrap_or(call.core.options.watch_timeout);
        Ok(Self {
            filter,
            notify,
            epoch,
            initial,
            initial_end,
            after,
            told: after,
            place,
            bookmarks: options.bookmarks,
            bookmarked: 0,
            next_bookmark: now + interval,
            deadline: now + timeout,
            lines: 0,
            columns_sent: false,
            handed: now,
            ended: false,
            call,
        })
    }

    /// The next piece of the body; `None` at the end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let stalled = self.handed.elapsed();
        let mut first = true;
        while !self.ended {
            match self.call.plan.interrupt(self.lines).await {
                Some(Interrupt::End) => return None,
                Some(Interrupt::Reset) => return Some(Err(crate::body::reset())),
                Some(Interrupt::Line(line)) => return Some(Ok(line)),
                Some(Interrupt::Error(status)) => {
                    self.ended = true;
                    return Some(Ok(error_line(&status)));
                }
                None => {}
            }
            let most = self.call.plan.next_at().unwrap_or(u64::MAX).saturating_sub(self.lines);
            if !self.initial.is_empty() {
                return Some(Ok(self.write_initial(most)));
            }
            if let Some(revision) = self.initial_end.take() {
                return Some(Ok(self.write_bookmark(revision, true)));
            }
            let notify = self.notify.clone();
            let mut notified = std::pin::pin!(notify.notified());
            // From here on a write wakes us, so that none is missed between the look and the wait.
            notified.as_mut().enable();
            let slow = std::mem::take(&mut first) && stalled > self.call.core.options.watch_grace;
            match self.read(most, slow) {
                Found::Bytes(bytes) => return Some(Ok(bytes.into())),
                Found::End => return None,
                Found::Nothing => {}
            }
            let wake = if self.bookmarks { self.deadline.min(self.next_bookmark) } else { self.deadline };
            tokio::select! {
                biased;
                () = notified => continue,
                () = tokio::time::sleep_until(wake) => {}
            }
            let at_end = Instant::now() >= self.deadline;
            if at_end {
                self.ended = true;
            }
            if self.bookmarks {
                self.next_bookmark = Instant::now() + self.call.core.options.bookmark_interval;
                let revision = self.seen();
                if !self.is_behind(revision) && (!at_end || revision > self.bookmarked) {
                    return Some(Ok(self.write_bookmark(revision, false)));
                }
            }
        }
        None
    }

    /// Everything up to this revision has been sent.
    fn seen(&self) -> u64 {
        self.call.view.visible(&self.call.core.log.lock())
    }

    /// Whether this replica, and not the storage, is behind what the client knows: then it has nothing to tell.
    fn is_behind(&self, seen: u64) -> bool {
        seen < self.told && self.call.core.log.lock().revision() >= self.told
    }

    fn read(&mut self, most: u64, slow: bool) -> Found {
        let core = self.call.core.clone();
        let mut events: Vec<Event> = Vec::new();
        {
            let log = core.log.lock();
            let Some(table) = log.table(self.call.table).filter(|_| log.epoch == self.epoch) else { return Found::End };
            if slow && table.end().saturating_sub(self.place) > core.options.watch_buffer {
                return Found::End;
            }
            let visible = self.call.view.visible(&log);
            let mut size = 0;
            while (events.len() as u64) < most && size < CHUNK {
                match table.event(self.place) {
                    Err(_) => return Found::End,
                    Ok(Some(event)) if event.revision <= visible => {
                        self.place += 1;
                        if event.revision > self.after && self.interested(event) {
                            size += event.object.json.len();
                            self.told = self.told.max(event.revision);
                            events.push(event.clone());
                        }
                    }
                    Ok(_) => break,
                }
            }
        }
        if events.is_empty() {
            return Found::Nothing;
        }
        let mut out = Vec::with_capacity(events.iter().map(|e| e.object.json.len() + 64).sum());
        for event in events {
            let before = event.previous.as_ref().filter(|p| self.filter.matches(p));
            let now = event.op != Op::Deleted && self.filter.matches(&event.object);
            match (before, now) {
                (None, true) => self.write_event(&mut out, "ADDED", &event.object),
                (Some(_), true) => self.write_event(&mut out, "MODIFIED", &event.object),
                // Left the selection: the last state that was in it, under the revision of the change.
                (Some(before), false) if event.op != Op::Deleted => {
                    self.write_event(&mut out, "DELETED", &before.with_revision(event.revision));
                }
                (Some(_), false) => self.write_event(&mut out, "DELETED", &event.object),
                (None, false) => {}
            }
        }
        Found::Bytes(out)
    }

    fn interested(&self, event: &Event) -> bool {
        event.object.key.starts_with(self.filter.prefix())
            && (self.filter.matches(&event.object) || event.previous.as_ref().is_some_and(|p| self.filter.matches(p)))
    }

    fn write_initial(&mut self, most: u64) -> Bytes {
        let mut out = Vec::with_capacity(CHUNK);
        let mut sent = 0;
        while sent < most && out.len() < CHUNK {
            let Some(object) = self.initial.pop_front() else { break };
            self.write_event(&mut out, "ADDED", &object);
            sent += 1;
        }
        out.into()
    }

    fn write_event(&mut self, out: &mut Vec<u8>, event: &str, object: &Stored) {
        out.extend_from_slice(format!("{{\"type\":\"{event}\",\"object\":").as_bytes());
        let start = out.len();
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        write_object(out, self.call.form, &self.call.kind, object, &self.call.core.clock, columns);
        self.call.plan.edit(out, start);
        out.extend_from_slice(b"}\n");
        self.lines += 1;
    }

    fn write_bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        self.bookmarked = revision;
        self.told = self.told.max(revision);
        self.lines += 1;
        let mut out = b"{\"type\":\"BOOKMARK\",\"object\":".to_vec();
        out.extend_from_slice(&bookmark(self.call.form, &self.call.kind, revision, initial_end));
        out.extend_from_slice(b"}\n");
        out.into()
    }
}
