//! Leader election over a Kubernetes Lease: safe by locally observed time, releases after the work has ended.
//!
//! Several copies of a controller run, one of them works. Which one is written in a Lease object; this crate gets
//! it, renews it, runs the work while it has it, and hands over in good order. It is compatible with client-go's
//! election: Rust and Go candidates may compete for one Lease.
//!
//! Use something else when the work can be divided among the copies, when it is safe to do twice, or when what you
//! need is a lock for one short action.
//!
//! ```
//! use k8s_leader_election::{LeaderElector, LeaseConfig, Outcome};
//! use tokio_util::sync::CancellationToken;
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! // An API server in the box; in a cluster, the client that the controller has anyway.
//! let server = k8s_fake_apiserver::FakeApiServer::builder().start().await?;
//! let config = LeaseConfig::new("kube-system", "my-controller", "my-controller-7d4b9-x2x7p");
//!
//! let elector = LeaderElector::builder(server.client(), config)
//!     .on_new_leader(|leader| println!("{leader} leads"))
//!     .build()?; // fails fast: "renew_deadline: 20s is not less than lease_duration, 15s"
//! let handle = elector.handle().clone();
//! let token = CancellationToken::new();
//! # let stop = token.clone();
//!
//! let outcome = elector
//!     .run(token, move |lead| {
//!         # let (stop, handle) = (stop.clone(), handle.clone());
//!         async move {
//!             assert!(lead.is_leader() && handle.is_leader());
//!             # stop.cancel();
//!             lead.cancelled().await; // the work: until it is told to end
//!         }
//!     })
//!     .await?;
//! assert_eq!(outcome, Outcome::Stopped);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What you can rely on
//!
//! - **Never two**, by the lease's own rule: a leader is none from a renew deadline (10 s) after it *sent* the last
//!   request that renewed the lease; another candidate takes the lease no earlier than a lease duration (15 s) after
//!   it *saw* it renewed. Both by the machine's own monotonic clock. What wall clocks show, and what times the lease
//!   has in it, is never looked at; how fast the clocks run may differ by the ratio of the two durations.
//! - **The clock decides, not a task.** [`is_leader`](ElectorHandle::is_leader) compares with the clock at every call,
//!   also where the elector's task is late or its thread is blocked. What work must check itself is in [`Lead`].
//! - **Every write carries the version it was decided on.** Of two candidates that find the lease free, one is refused.
//!   Only a write that succeeded renews. An answer that never came is taken for a failure until the lease is read.
//! - **One soon again.** A lease that was released is taken within 1.2 retry periods (2.4 s) and two requests. After a
//!   crash it takes a lease duration from when the last renewal was seen: 17.4 s after it at most, and a request. A
//!   candidate that starts and finds a holder it knows nothing about waits for one lease duration, also if that holder
//!   has long been dead: that is the price for not believing clocks. Another's `leaseDurationSeconds` is respected.
//! - **Work ends before the lease is given up.** In order: `is_leader` turns false, the work's token is cancelled, the
//!   work ends, `on_stopped` is called, the lease is released, under the version that is known. Meanwhile the lease is
//!   renewed, though nobody leads. Work that does not end in time ends `run` with [`Error::Overdue`], and the lease is
//!   left to run out.
//! - **Nothing but the token, or the work, ends it.** Errors of the server, conflicts and timeouts are tried again;
//!   after a loss it campaigns again, when the old work has ended. Work that ends, fails or panics gives the lead away
//!   and [`run`](LeaderElector::run) tells how; or the elector campaigns again ([`AfterWork`]).
//! - **What else is in the Lease** (labels, annotations, fields of later versions) is written back as it was read.
//!
//! # What it cannot do
//!
//! - A Lease is a lock by agreement. Somebody may edit it by hand (noticed at the next renewal, within 2.4 s), or delete
//!   it: candidates that have seen its holder alive in the last lease duration wait all the same, but one that starts
//!   just then does not know.
//! - A machine that is suspended together with its monotonic clock wakes up in the belief that no time has passed, for
//!   up to a renew deadline. Guard what must never happen twice where it happens; see [`Lead`].
//!
//! # Cost
//!
//! One small request per candidate and retry period. A leader that renews undisturbed sends updates only.
//!
//! # Features and MSRV
//!
//! There are no features. The minimum supported Rust version is 1.89; a rise is a minor release.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod api;
mod config;
mod driver;
mod elector;
mod error;
mod handle;
mod hooks;
mod lead;
mod machine;
mod record;
mod term;
mod work;

pub use config::{AfterWork, LeaseConfig};
pub use elector::{LeaderElector, LeaderElectorBuilder};
pub use error::Error;
pub use handle::{ElectorHandle, Leadership};
pub use lead::Lead;
pub use work::{Outcome, WorkResult};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
