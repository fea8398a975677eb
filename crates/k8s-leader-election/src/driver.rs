//! Does what the machine decides, and runs the work beside it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::api::{Failure, LeaseApi};
use crate::config::{AfterWork, JITTER, LeaseConfig};
use crate::error::Error;
use crate::handle::Announcer;
use crate::hooks::Hooks;
use crate::lead::Lead;
use crate::machine::{Answer, Machine, Step};
use crate::term::{Term, WorkEnd};
use crate::work::{Outcome, WorkResult};

/// Where the times in the lease come from.
pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

type InFlight = Pin<Box<dyn Future<Output = (Answer, Option<Failure>)> + Send>>;

pub(crate) struct Driver {
    api: LeaseApi,
    machine: Machine,
    announcer: Announcer,
    wall_clock: WallClock,
    /// The request that is under way. It is kept here, so that whoever waits for progress may stop waiting.
    in_flight: Option<InFlight>,
    /// In a row.
    failures: u64,
}

/// Why a term is over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// Not renewed in time, or somebody else holds the lease.
    Lost,
    /// The elector is to stop.
    Stopped,
    /// The work ended by itself.
    WorkEnded,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Progress {
    Made,
    /// There is nothing to do any more.
    Done,
}

impl Driver {
    pub(crate) fn new(api: LeaseApi, machine: Machine, announcer: Announcer, wall_clock: WallClock) -> Self {
        Self { api, machine, announcer, wall_clock, in_flight: None, failures: 0 }
    }

    /// Campaigns and leads until the token or the work puts an end to it.
    pub(crate) async fn run<W, F>(
        mut self,
        config: &LeaseConfig,
        hooks: &Hooks,
        token: CancellationToken,
        work: Arc<W>,
    ) -> Result<Outcome, Error>
    where
        W: Fn(Lead) -> F + Send + Sync + 'static,
        F: Future<Output: WorkResult> + Send + 'static,
    {
        let lease = || format!("{}/{}", config.namespace, config.name);
        let mut pause = Duration::ZERO;
        loop {
            self.machine.campaign(Instant::now(), pause);
            pause = Duration::ZERO;
            let Some(until) = self.win(&token).await else {
                self.release(config).await;
                return Ok(Outcome::Stopped);
            };
            let lead = Lead::new(until);
            self.announcer.lead(&lead);
            tracing::info!("leading");
            let mut term = Term::begin(lead.clone(), hooks, work.clone());
            let ending = self.keep(&lead, &mut term, &token).await;
            self.announcer.end();
            tracing::info!(reason = ?ending, "not leading any more");
            if !self.wind_down(&mut term, ending, config.stop_timeout).await {
                let what = term.give_up();
                return Err(Error::Overdue { lease: lease(), what, waited: config.stop_timeout });
            }
            let end = term.into_end();
            if ending == Ending::Lost {
                end.log();
                continue;
            }
            self.release(config).await;
            if ending == Ending::WorkEnded && config.after_work == AfterWork::Campaign {
                end.log();
                // In which every other candidate looks at the lease and finds it free.
                pause = config.retry_period.mul_f64(2.0 * (1.0 + JITTER));
                continue;
            }
            return match end {
                WorkEnd::Done if ending == Ending::Stopped => Ok(Outcome::Stopped),
                WorkEnd::Done => Ok(Outcome::WorkDone),
                WorkEnd::Failed(source) => Err(Error::WorkFailed { lease: lease(), source }),
                WorkEnd::Panicked => Err(Error::WorkPanicked { lease: lease() }),
            };
        }
    }

    /// Campaigns until the lead is won, and says until when it lasts; none when the elector is to stop.
    async fn win(&mut self, token: &CancellationToken) -> Option<Instant> {
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return None,
                _ = self.progress() => {}
            }
            if self.machine.leads(Instant::now()) {
                return self.machine.lead_until();
            }
        }
    }

    /// Renews for as long as there is a lead, and says why there is none any more.
    async fn keep(&mut self, lead: &Lead, term: &mut Term, token: &CancellationToken) -> Ending {
        loop {
            tokio::select! {
                // The clock first: after a stall everything is due at once, and the lead is over.
                biased;
                () = sleep_until(lead.expires_at()) => return Ending::Lost,
                () = token.cancelled() => return Ending::Stopped,
                () = term.work_ends() => return Ending::WorkEnded,
                _ = self.progress() => {}
            }
            match self.machine.lead_until() {
                Some(until) if lead.extend(until) => {}
                _ => return Ending::Lost,
            }
        }
    }

    /// Waits until work and hook have ended, and renews the lease meanwhile unless it was lost. False when they take
    /// too long.
    async fn wind_down(&mut self, term: &mut Term, ending: Ending, patience: Duration) -> bool {
        let mut is_holding = ending != Ending::Lost;
        if is_holding {
            self.machine.hold();
        }
        let overdue = sleep(patience);
        tokio::pin!(overdue);
        loop {
            tokio::select! {
                biased;
                () = term.ends() => return true,
                () = &mut overdue => return false,
                progress = self.progress(), if is_holding => is_holding = progress == Progress::Made,
            }
        }
    }

    /// Gives the lease up if it is ours. Tries for as long as the renew deadline; a lease that is not given up runs
    /// out by itself.
    async fn release(&mut self, config: &LeaseConfig) {
        if !config.release {
            return;
        }
        if !self.machine.is_writing() {
            self.in_flight = None;
        }
        self.machine.release();
        let release = async { while self.progress().await == Progress::Made {} };
        if timeout(config.renew_deadline, release).await.is_err() {
            tracing::warn!("could not release the lease; it runs out by itself");
        }
    }

    /// Takes one step: waits until something is due, or for the answer to a request. Dropping the future loses
    /// nothing.
    async fn progress(&mut self) -> Progress {
        let in_flight = match &mut self.in_flight {
            Some(in_flight) => in_flight,
            None => {
                let now = Instant::now();
                match self.machine.step(now, (self.wall_clock)()) {
                    Step::Wait(until) => {
                        sleep_until(until).await;
                        return Progress::Made;
                    }
                    Step::Done => return Progress::Done,
                    Step::Send(request) => {
                        let patience = self.machine.patience(now);
                        self.in_flight.insert(Box::pin(self.api.clone().send(request, patience)))
                    }
                }
            }
        };
        let (answer, failure) = in_flight.await;
        self.in_flight = None;
        self.machine.answer(answer, Instant::now());
        self.tell(failure);
        Progress::Made
    }

    /// One line for a time of trouble, one for its end.
    fn tell(&mut self, failure: Option<Failure>) {
        let text = failure.as_ref().map(ToString::to_string);
        self.announcer.failure(text.as_deref());
        if let Some(failure) = failure {
            if self.failures == 0 {
                tracing::warn!(error = %failure, "cannot reach the lease; trying again");
            } else {
                tracing::debug!(error = %failure, attempt = self.failures, "cannot reach the lease");
            }
            self.failures = self.failures.saturating_add(1);
            return;
        }
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "the lease is reached again");
            self.failures = 0;
        }
        let leader = self.machine.leader();
        if self.announcer.leader(leader) {
            match leader {
                Some(leader) => tracing::info!(leader, "new leader"),
                None => tracing::debug!("the lease is free"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
