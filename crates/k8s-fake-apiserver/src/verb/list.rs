//! list: one consistent snapshot, whole or in pages.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::get::wait_until_fresh;
use super::{Answer, Call, answer};
use crate::base64;
use crate::body::ResponseBody;
use crate::fault::Interrupt;
use crate::query::{ListOptions, Match};
use crate::represent::{Form, write_item, write_list_head};
use crate::selector::Filter;
use crate::status::Status;
use crate::stored::Stored;

/// Bodies leave in pieces of about this size.
pub(crate) const CHUNK: usize = 64 * 1024;

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a \
     new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
     results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
     deleted between the time the first chunk was returned and now may show up in the list.";

/// A page of objects, all as of one revision.
struct Page {
    revision: u64,
    items: Vec<Arc<Stored>>,
    next: Option<String>,
    remaining: Option<u64>,
}

pub(crate) async fn list(call: Call) -> Answer {
    if call.form == Form::Metadata {
        let text = "you requested PartialObjectMetadata, but the requested object is a list";
        return Err(Status::new(406, "NotAcceptable", format!("{text} ({})", call.kind.go_type(true))));
    }
    let options = ListOptions::new(&call.query, false, true)?;
    let filter = Filter::new(&call.kind, call.namespace(), &options.labels, &options.fields)?;
    let wanted = options.revision().map_err(|e| Status::bad_request(format!("invalid resource version: {e}")))?;
    if options.next.is_empty() {
        wait_until_fresh(&call, wanted).await?;
    }
    let page = page(&call, &options, &filter, wanted)?;
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if let Some(next) = page.next {
        metadata["continue"] = next.into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    Ok(answer(StatusCode::OK, "application/json", body(call, &metadata, page.items)))
}

fn page(call: &Call, options: &ListOptions, filter: &Filter, wanted: u64) -> Result<Page, Status> {
    let log = call.core.log.lock();
    let table = log.table(call.table).ok_or_else(Status::no_such_path)?;
    let current = log.revision();
    let (mut revision, mut start) = (current, String::new());
    let mut limit = options.limit;
    if !options.next.is_empty() {
        if wanted > 0 {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let token = Token::read(&options.next)?;
        start = format!("{}{}", filter.prefix(), token.start.trim_start_matches('/'));
        if let Some(at) = token.revision {
            if at < log.horizon() {
                let again = Token { revision: None, start: token.start }.write();
                return Err(Status::expired(CONTINUE_EXPIRED).with_continue(again));
            }
            revision = at;
        }
    } else if options.version.is_empty() {
        // Consistent read: the newest there is, whatever the replica has seen.
    } else if options.version_match == Match::Exact
        || (options.version_match == Match::Unset && limit.is_some() && wanted > 0)
    {
        if wanted < log.horizon() {
            return Err(Status::expired("The resourceVersion for the provided list is too old."));
        }
        revision = wanted;
    } else {
        revision = call.view.visible(&log);
        if wanted == 0 && options.version_match == Match::Unset {
            // From the cache, which does not page.
            limit = None;
        }
    }
    let limit = limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
    let mut items = Vec::new();
    let mut found = table.at(revision, filter.prefix(), &start);
    let mut last = None;
    while items.len() < limit {
        let Some(object) = found.next() else { break };
        last = Some(object.key.clone());
        if filter.matches(&object) {
            items.push(object);
        }
    }
    let (mut next, mut remaining) = (None, None);
    if items.len() == limit && found.next().is_some() {
        let last = last.unwrap_or_default();
        let relative = last.strip_prefix(filter.prefix()).unwrap_or(&last);
        next = Some(Token { revision: Some(revision), start: format!("/{relative}\0") }.write());
        remaining = (!filter.selects()).then(|| 1 + found.count() as u64);
    }
    Ok(Page { revision, items, next, remaining })
}

/// Where the next page begins. The same text as the real server's.
struct Token {
    /// `None`: go on at the newest revision, inconsistent as that is.
    revision: Option<u64>,
    start: String,
}

impl Token {
    fn read(text: &str) -> Result<Self, Status> {
        let bad = |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = base64::decode(text).ok_or_else(|| bad("illegal base64 data"))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|e| bad(&e.to_string()))?;
        if value["v"] != "meta.k8s.io/v1" {
            return Err(bad("server does not recognize this encoded version"));
        }
        let revision = match value["rv"].as_i64() {
            Some(-1) => None,
            Some(n) if n > 0 => Some(n.unsigned_abs()),
            _ => return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        };
        match value["start"].as_str() {
            Some(start) if !start.is_empty() => Ok(Self { revision, start: start.to_owned() }),
            _ => Err(bad("encoded start key empty (version meta.k8s.io/v1)")),
        }
    }

    fn write(&self) -> String {
        let revision = self.revision.map_or(-1, |r| i64::try_from(r).unwrap_or(i64::MAX));
        let text =
            format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{revision},\"start\":{}}}", Value::from(self.start.as_str()));
        base64::encode_token(text.as_bytes())
    }
}

/// The body of a list. Small ones at once, big ones piece by piece.
pub(crate) fn body(call: Call, metadata: &Value, items: Vec<Arc<Stored>>) -> ResponseBody {
    let mut head = Vec::with_capacity(1024);
    let mut metadata = metadata.clone();
    if call.form == Form::Full && !call.kind.rules.built_in && metadata.get("continue").is_none() {
        // Lists without a type of their own have the member always.
        metadata["continue"] = "".into();
    }
    write_list_head(&mut head, call.form, &call.kind, &metadata);
    if items.is_empty() && matches!(call.form, Form::Metadata | Form::MetadataList) {
        // The real server gathers them one by one, and what was never begun is null.
        head.pop();
        head.extend_from_slice(b"null}\n");
        return ResponseBody::full(head);
    }
    let size: usize = items.iter().map(|o| o.json.len()).sum();
    let mut pieces = Pieces { call, head, items: items.into_iter(), written: 0, done: false };
    if size < CHUNK && pieces.call.plan.is_empty() {
        let mut all = Vec::with_capacity(size + 1024);
        while let Some(piece) = pieces.fill(usize::MAX) {
            all.extend_from_slice(&piece);
        }
        return ResponseBody::full(all);
    }
    let stream = futures_util::stream::unfold(Some(pieces), |state| async move {
        let mut pieces = state?;
        match pieces.next().await {
            Some(Ok(piece)) => Some((Ok(piece), Some(pieces))),
            Some(Err(error)) => Some((Err(error), None)),
            None => None,
        }
    });
    ResponseBody::stream(stream)
}

struct Pieces {
    call: Call,
    head: Vec<u8>,
    items: std::vec::IntoIter<Arc<Stored>>,
    written: u64,
    done: bool,
}

impl Pieces {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.done {
                return None;
            }
            match self.call.plan.interrupt(self.written).await {
                Some(Interrupt::End) => {
                    self.done = true;
                    return (!self.head.is_empty()).then(|| Ok(std::mem::take(&mut self.head).into()));
                }
                // A list has no place for an error event: the connection breaks.
                Some(Interrupt::Reset | Interrupt::Error(_)) => return Some(Err(crate::body::reset())),
                Some(Interrupt::Line(line)) => return Some(Ok(line)),
                None => {}
            }
            let until = self.call.plan.next_at().unwrap_or(u64::MAX).saturating_sub(self.written);
            if let Some(piece) = self.fill(usize::try_from(until).unwrap_or(usize::MAX)) {
                return Some(Ok(piece));
            }
        }
    }

    /// Up to `most` items, or what fits into a piece.
    fn fill(&mut self, most: usize) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let mut out = std::mem::take(&mut self.head);
        out.reserve(self.items.as_slice().first().map_or(16, |o| o.json.len() + CHUNK));
        for _ in 0..most {
            if out.len() >= CHUNK {
                break;
            }
            let Some(object) = self.items.next() else {
                out.extend_from_slice(b"]}\n");
                self.done = true;
                break;
            };
            if self.written > 0 {
                out.push(b',');
            }
            self.written += 1;
            let start = out.len();
            write_item(&mut out, self.call.form, &self.call.kind, &object, &self.call.core.clock);
            self.call.plan.edit(&mut out, start);
        }
        Some(out.into())
    }
}
