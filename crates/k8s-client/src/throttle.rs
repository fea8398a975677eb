//! A tower layer that limits how many requests a second are sent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer, Service};

use crate::error::Error;
use bucket::Bucket;

mod bucket;

/// A wait as long as this is worth a line in the log.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Limits the rate of requests: up to `burst` at once, then `qps` a second.
///
/// Not used by default: API Priority and Fairness of the server shares out its capacity better than any client can.
/// [`ClientConfig::rate_limit`](crate::ClientConfig::rate_limit) puts it into a client built here; give it to
/// [`ClientBuilder::with_layer`](kube::client::ClientBuilder::with_layer) for a client of your own.
///
/// A request counts when it is sent, whatever becomes of it. A watch counts once, when it is opened. A request that
/// is given up while it waits does not count: its turn goes to the next.
///
/// The wait is in `poll_ready`, so that requests go in the order in which they come, and the service holds nothing
/// for those that wait. A `kube::Client` queues them, in that order and at most 1,024; further callers wait for a
/// place, also in order. Each service that the layer makes counts for itself.
///
/// # Examples
///
/// ```
/// use k8s_client::{Client, ThrottleLayer};
/// use kube::client::ClientBuilder;
///
/// # fn build(config: kube::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let throttle = ThrottleLayer::new(20.0, 30)?;
/// let client = Client::from(ClientBuilder::try_from(config)?.with_layer(&throttle).build());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ThrottleLayer {
    bucket: Bucket,
}

impl ThrottleLayer {
    /// Up to `burst` requests at once, then `qps` a second.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSetting`] names `qps` when it is not between 0.001 and 1,000,000, and `burst` when it is 0.
    pub fn new(qps: f64, burst: u32) -> Result<Self, Error> {
        Ok(Self { bucket: Bucket::new(qps, burst)? })
    }
}

impl<S> Layer<S> for ThrottleLayer {
    type Service = Throttle<S>;

    fn layer(&self, inner: S) -> Throttle<S> {
        Throttle { inner, bucket: self.bucket.clone(), granted: false, wait: None }
    }
}

/// The service that [`ThrottleLayer`] makes.
///
/// Runs on Tokio's clock, and must be polled inside a Tokio runtime.
pub struct Throttle<S> {
    inner: S,
    bucket: Bucket,
    /// A request's worth has been taken from the bucket and not been used yet.
    granted: bool,
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S, R> Service<R> for Throttle<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        ready!(self.inner.poll_ready(cx))?;
        while !self.granted {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match self.bucket.take(Instant::now()) {
                Ok(()) => self.granted = true,
                Err(delay) => {
                    if delay >= LONG_WAIT {
                        tracing::debug!(?delay, "a request waits for the client's rate limit");
                    }
                    self.wait = Some(Box::pin(sleep(delay)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> S::Future {
        self.granted = false;
        self.inner.call(request)
    }
}

impl<S> fmt::Debug for Throttle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("bucket", &self.bucket).field("granted", &self.granted).finish_non_exhaustive()
    }
}
