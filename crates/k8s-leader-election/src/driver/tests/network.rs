//! A network between one candidate and the server: late, lossy, cut, or silent. What was sent arrives also when its
//! sender no longer waits for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_fake_apiserver::FakeService;
use kube::client::Body;
use tower::Service;

/// No request or answer is under way for longer than this.
pub(super) const LATEST: Duration = Duration::from_secs(8);
/// The longest Retry-After.
const RETRY_AFTER: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weather {
    Fine,
    /// Each request has a fate of its own.
    Bad,
    /// Connections break at once.
    Cut,
    /// Nothing arrives and nothing is said.
    Silent,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    before: Duration,
    after: Duration,
    way: Way,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Served,
    Refused(u16),
    /// Breaks before the server sees it.
    BrokenBefore,
    /// Breaks when the server has done what was asked.
    BrokenAfter,
    SilentBefore,
    SilentAfter,
}

/// The network as the test sees it.
#[derive(Clone)]
pub(super) struct Network {
    state: Arc<Mutex<(Weather, fastrand::Rng)>>,
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new((Weather::Fine, fastrand::Rng::with_seed(seed)))) }
    }

    pub(super) fn set(&self, weather: Weather) {
        self.state.lock().expect("no panic under the lock").0 = weather;
    }

    pub(super) fn client(&self, service: FakeService) -> kube::Client {
        kube::Client::new(Link { network: self.clone(), service }, "default")
    }

    fn fate(&self) -> Fate {
        let (weather, rng) = &mut *self.state.lock().expect("no panic under the lock");
        let mut some = |most: Duration| most.mul_f64(rng.f64());
        match weather {
            Weather::Fine => Fate { before: Duration::ZERO, after: Duration::ZERO, way: Way::Served },
            Weather::Cut => Fate { before: Duration::ZERO, after: Duration::ZERO, way: Way::BrokenBefore },
            Weather::Silent => Fate { before: Duration::ZERO, after: Duration::ZERO, way: Way::SilentBefore },
            Weather::Bad => {
                let (before, after) = (some(LATEST / 2), some(LATEST / 2));
                // Half of them are quick, so that some succeed.
                let (before, after) = if rng.bool() { (before, after) } else { (before / 100, after / 100) };
                let way = match rng.u8(0..12) {
                    0 => Way::Refused(500),
                    1 => Way::Refused(409),
                    2 => Way::Refused(429),
                    3 => Way::BrokenBefore,
                    4 => Way::BrokenAfter,
                    5 => Way::SilentBefore,
                    6 => Way::SilentAfter,
                    _ => Way::Served,
                };
                Fate { before, after, way }
            }
        }
    }
}

/// The service of one client.
struct Link {
    network: Network,
    service: FakeService,
}

impl Service<Request<Body>> for Link {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (fate, service) = (self.network.fate(), self.service.clone());
        let on_its_way = tokio::spawn(travel(fate, service, request));
        Box::pin(async move { on_its_way.await.map_err(io::Error::other)? })
    }
}

async fn travel(fate: Fate, mut service: FakeService, request: Request<Body>) -> io::Result<Response<Body>> {
    let broken = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    tokio::time::sleep(fate.before).await;
    let answer = match fate.way {
        Way::BrokenBefore => return broken(),
        Way::SilentBefore => return std::future::pending().await,
        Way::Refused(code) => {
            let answer = Response::builder().status(code).header("retry-after", RETRY_AFTER.to_string());
            return answer.body(Body::empty()).map_err(io::Error::other);
        }
        _ => service.call(request).await?,
    };
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    tokio::time::sleep(fate.after).await;
    match fate.way {
        Way::BrokenAfter => broken(),
        Way::SilentAfter => std::future::pending().await,
        _ => Ok(Response::from_parts(head, Body::from(body))),
    }
}
