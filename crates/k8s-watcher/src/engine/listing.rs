//! Reading the full state: as a stream that is closed by a marked bookmark, or in pages.

use std::time::Duration;

use super::version::{is_before, is_usable};
use super::*;

/// After so many failed streams (other than refusals) within one list, it is read in pages.
const STREAM_ATTEMPTS: u32 = 5;
/// A stream that ends by itself before its mark so often is taken for an ignored flag.
const EARLY_ENDS: u32 = 2;
/// After so many failures of one page the list begins again: its token may be what is wrong.
const PAGE_ATTEMPTS: u32 = 8;
/// A list that leads back so often to a page that was read is taken for a mistake.
const STALLED_PAGES: u32 = 8;
/// So many expired lists in a row are forgiven before pages get bigger, and lists thus shorter.
const PATIENT_EXPIRIES: u32 = 2;

/// A full list that is needed or under way, from the first attempt until it is complete.
#[derive(Debug, Default)]
pub(super) struct Relist {
    /// What was seen before does not bind.
    pub(super) scratch: bool,
    /// Asked without a version, as the server will not have the one we know; the answer must not
    /// be older all the same.
    pub(super) unversioned: bool,
    /// [`Action::BeginRelist`] is out.
    begun: bool,
    pages: u32,
    items: u64,
    token: Option<String>,
    /// Version of the attempt under way: of its first page, or the newest one of its initial events.
    version: Option<String>,
    /// The newest version of an attempt that failed.
    seen: Option<String>,
    /// A token that was given, to find out when it is given again, and how often it was.
    landmark: Option<String>,
    stalled: u32,
    /// How often the next page was asked for and failed.
    page_failures: u32,
    /// How many continue tokens have expired.
    pub(super) expiries: u32,
    /// In pages until it is complete.
    paged: bool,
    /// In pages this time.
    pub(super) paged_once: bool,
    /// In pages, since the stream was silent; if they go well, the server has ignored the flag.
    suspect: bool,
    stream_failures: u32,
    early_ends: u32,
}

impl Relist {
    pub(super) fn phase(&self) -> Phase {
        Phase::Listing { pages: self.pages, items: self.items }
    }

    pub(super) fn is_continuing(&self) -> bool {
        self.token.is_some()
    }

    /// Counts a failure of a page; says whether it is time to do without its token.
    pub(super) fn token_failed_for_good(&mut self) -> bool {
        self.page_failures += u32::from(self.is_continuing());
        self.page_failures >= PAGE_ATTEMPTS
    }
}

impl Engine {
    /// From here on a full list is due.
    pub(super) fn need_list(&mut self, scratch: bool) {
        if self.relist.is_none() {
            let stream_failures = if self.distrust_streams { STREAM_ATTEMPTS - 1 } else { 0 };
            self.relist = Some(Relist { stream_failures, ..Relist::default() });
            self.progress.relists += u64::from(self.progress.synced);
        }
        if let Some(relist) = &mut self.relist {
            relist.scratch |= scratch;
            if scratch {
                relist.seen = None;
            }
        }
    }

    pub(super) fn on_relist(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.relist.is_some() {
            return;
        }
        let earliest = match self.state {
            State::Idle => return,
            // Whoever asked for patience, gets it.
            State::Waiting { until, .. } => until,
            State::Active(_) => {
                out.push(Action::CancelRequest);
                now
            }
        };
        self.need_list(false);
        let spaced = match self.listed_at {
            Some(at) => later(at, self.backoff.step(0)),
            None => now,
        };
        self.schedule(Next::List, earliest.max(spaced), now, out);
    }

    /// Below this version the store has to stay current.
    fn floor(&self) -> Option<&str> {
        let relist = self.relist.as_ref()?;
        if relist.scratch {
            return None;
        }
        match (relist.seen.as_deref(), self.resume.as_deref()) {
            (Some(seen), Some(resume)) if is_before(seen, resume) => Some(resume),
            (Some(seen), _) => Some(seen),
            (None, resume) => resume,
        }
    }

    /// Asks for a list; says of what kind the request is, and for how long a stream may last.
    pub(super) fn ask_list(&mut self, now: Instant, out: &mut Vec<Action>) -> (RequestKind, Duration) {
        self.need_list(false);
        let floor = self.floor().map(str::to_owned);
        let may_stream = self.config.list_mode == ListMode::Streaming && !self.streaming_refused;
        let seconds = self.backoff.watch_seconds(self.config.watch_timeout);
        let Some(relist) = &mut self.relist else {
            return (RequestKind::Page, Duration::ZERO);
        };
        let not_older_than = floor.filter(|_| !relist.unversioned);
        if relist.token.is_none() {
            self.listed_at = Some(now);
        }
        let in_pages = relist.is_continuing() || relist.paged || relist.paged_once || relist.suspect;
        if may_stream && !in_pages {
            out.push(Action::Watch(WatchQuery::Initial { not_older_than, timeout_seconds: seconds }));
            return (RequestKind::Stream, Duration::from_secs(seconds));
        }
        let growth = 2 * relist.expiries.saturating_sub(PATIENT_EXPIRIES).min(16);
        let limit = u64::from(self.config.page_size) << growth;
        out.push(Action::List(ListQuery {
            // A page as large as that is as good as none.
            limit: u32::try_from(limit).ok().filter(|&limit| limit > 0),
            continue_token: relist.token.clone(),
            not_older_than: not_older_than.filter(|_| relist.token.is_none()),
        }));
        (RequestKind::Page, Duration::ZERO)
    }

    pub(super) fn begin_relist(&mut self, out: &mut Vec<Action>) {
        if let Some(relist) = &mut self.relist {
            relist.begun = true;
            out.push(Action::BeginRelist { from_scratch: relist.scratch });
        }
    }

    /// The attempt under way is lost; the next one begins at the beginning.
    pub(super) fn abort_relist(&mut self, out: &mut Vec<Action>) {
        let Some(relist) = &mut self.relist else { return };
        if std::mem::take(&mut relist.begun) {
            out.push(Action::AbortRelist);
        }
        relist.pages = 0;
        relist.items = 0;
        relist.token = None;
        relist.landmark = None;
        relist.stalled = 0;
        relist.page_failures = 0;
        if let Some(version) = relist.version.take()
            && is_usable(&version)
            && !relist.seen.as_deref().is_some_and(|seen| is_before(&version, seen))
        {
            relist.seen = Some(version);
        }
    }

    fn finish_relist(&mut self, version: &str, now: Instant, out: &mut Vec<Action>) {
        let suspect = self.relist.take().is_some_and(|relist| relist.suspect);
        self.resume = Some(version.to_owned());
        self.progress.synced = true;
        self.progress.current_at = Some(now);
        self.compared_at = Some(now);
        // A list that only stands in for watches that do not work heals nothing.
        let stands_in = self.churn > 1;
        if !stands_in {
            self.failures = 0;
        }
        self.silent = 0;
        self.rejected = 0;
        self.behind_since = None;
        out.push(Action::FinishRelist { resource_version: version.to_owned() });
        if suspect {
            // The server is well and answers lists: it was the flag.
            self.note_refusal("the initial stream stays silent", out);
        }
        self.settle(now);
        if !stands_in {
            self.episode.recover(out);
        }
    }

    fn note_refusal(&mut self, message: &str, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.streaming_refused, true) {
            out.push(Action::NoteStreamingRefused { message: message.to_owned() });
        }
    }

    // === pages ===

    pub(super) fn on_page(
        &mut self,
        version: &str,
        token: Option<&str>,
        items: usize,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        match &self.state {
            State::Active(request) if request.kind == RequestKind::Page => {}
            State::Active(request) if request.kind == RequestKind::Probe => {
                out.push(Action::Ignore);
                self.on_probe(version, now, out);
                return;
            }
            _ => {
                out.push(Action::Ignore);
                return;
            }
        }
        let token = token.filter(|token| !token.is_empty());
        if let Err(problem) = self.check_page(version, token) {
            out.push(Action::Ignore);
            self.abort_relist(out);
            if problem.class == ErrorClass::Backwards {
                self.state = State::Idle;
                self.start_over(Verb::List, &problem, now, out);
            } else {
                self.on_problem(problem, now, out);
            }
            return;
        }
        self.state = State::Idle;
        if self.relist.as_ref().is_some_and(|relist| !relist.begun) {
            self.begin_relist(out);
        }
        out.push(Action::Apply);
        let Some(relist) = &mut self.relist else { return };
        relist.pages = relist.pages.saturating_add(1);
        relist.items += items as u64;
        relist.page_failures = 0;
        relist.token = token.map(str::to_owned);
        // Pages of one list have one version; if not, the lowest is the one to resume from.
        let first = relist.version.get_or_insert_with(|| version.to_owned()).clone();
        if token.is_some() {
            // A page without objects is odd, and many of them could go on for ever.
            let at = if items == 0 { later(now, self.backoff.step(0)) } else { now };
            self.schedule(Next::List, at, now, out);
        } else {
            self.finish_relist(&first, now, out);
            self.progress.reopening = false;
            self.launch(Next::Watch, now, out);
        }
    }

    fn check_page(&mut self, version: &str, token: Option<&str>) -> Result<(), Problem> {
        let protocol = |message| Err(Problem::own(ErrorClass::Protocol, Origin::Body, message));
        let floor = self.floor().map(str::to_owned);
        let Some(relist) = &mut self.relist else { return Ok(()) };
        match &relist.version {
            None if !is_usable(version) => {
                return protocol("the list has no resourceVersion; the kind may not support watches");
            }
            None if floor.as_deref().is_some_and(|floor| is_before(version, floor)) => {
                let message =
                    format!("the list is at version {version}, but {} was seen before", floor.unwrap_or_default());
                return Err(Problem::own(ErrorClass::Backwards, Origin::Body, &message));
            }
            Some(first) if is_before(version, first) && is_usable(version) => {
                return protocol("a page is older than the page before it");
            }
            _ => {}
        }
        // Each token is compared with one that is kept, which is replaced ever more rarely: that finds any circle.
        if token.is_some() && token == relist.landmark.as_deref() {
            relist.stalled += 1;
            if relist.stalled > STALLED_PAGES {
                return protocol("the list leads back to a page that was read");
            }
        } else if relist.pages.wrapping_add(1).is_power_of_two() {
            relist.landmark = token.map(str::to_owned);
        }
        Ok(())
    }

    // === the initial stream ===

    pub(super) fn on_initial_event(&mut self, kind: EventKind, version: &str, now: Instant, out: &mut Vec<Action>) {
        let limit = self.config.silence_limit();
        if let State::Active(request) = &mut self.state {
            request.heard = true;
            if kind != EventKind::Added {
                // Initial events are additions: this is a change, so the mark must be near.
                let near = later(now, limit);
                request.mark_by = Some(request.mark_by.map_or(near, |at| at.min(near)));
            }
        }
        if let Some(relist) = &mut self.relist {
            relist.items += 1;
            // What goes to the store stays there when the attempt is lost: the next one must not be older.
            let newest = relist.version.get_or_insert_default();
            if is_usable(version) && (newest.is_empty() || is_before(newest, version)) {
                newest.clear();
                newest.push_str(version);
            }
        }
        out.push(Action::Apply);
    }

    pub(super) fn on_initial_bookmark(&mut self, version: &str, marked: bool, now: Instant, out: &mut Vec<Action>) {
        if !marked || !is_usable(version) {
            // A server that knows the flag sends no bookmark before the mark, and its mark has a
            // version.
            self.refuse_stream("a bookmark without the mark among the initial events", true, out);
            self.launch(Next::List, now, out);
            return;
        }
        if self.floor().is_some_and(|floor| is_before(version, floor)) {
            out.push(Action::CancelRequest);
            self.state = State::Idle;
            let message = format!("the initial events end at version {version}, below one seen before");
            let problem = Problem::own(ErrorClass::Backwards, Origin::Body, &message);
            self.abort_relist(out);
            self.start_over(Verb::Watch, &problem, now, out);
            return;
        }
        if let State::Active(request) = &mut self.state {
            request.kind = RequestKind::Watch;
            request.opened = Some(now);
            request.heard = true;
            request.moved = true;
        }
        self.distrust_streams = false;
        self.expects_bookmarks = true;
        self.progress.reopening = true;
        self.finish_relist(version, now, out);
    }

    /// The server will not stream, or does not know how: pages from now on. The caller asks for
    /// the list.
    pub(super) fn refuse_stream(&mut self, message: &str, open: bool, out: &mut Vec<Action>) {
        if open {
            out.push(Action::CancelRequest);
        }
        self.state = State::Idle;
        self.abort_relist(out);
        self.note_refusal(message, out);
    }

    /// Nothing at all comes: an ignored flag on a quiet kind, or a dead connection. Pages will
    /// tell.
    pub(super) fn suspect_stream(&mut self, now: Instant, out: &mut Vec<Action>) {
        out.push(Action::CancelRequest);
        self.state = State::Idle;
        self.abort_relist(out);
        if let Some(relist) = &mut self.relist {
            relist.suspect = true;
        }
        self.launch(Next::List, now, out);
    }

    /// Whether a stream that ended by itself before its mark has done so once too often.
    pub(super) fn ended_early(&mut self) -> bool {
        let Some(relist) = &mut self.relist else { return false };
        relist.early_ends += 1;
        relist.early_ends >= EARLY_ENDS
    }

    pub(super) fn count_stream_failure(&mut self) {
        if let Some(relist) = &mut self.relist {
            relist.stream_failures += 1;
            if relist.stream_failures >= STREAM_ATTEMPTS {
                relist.paged = true;
                self.distrust_streams = true;
            }
        }
    }

    /// Pages fail too, so the silence of the stream proved nothing.
    pub(super) fn clear_suspicion(&mut self) {
        if let Some(relist) = &mut self.relist {
            relist.suspect &= relist.pages > 0;
        }
    }
}
