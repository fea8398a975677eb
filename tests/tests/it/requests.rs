//! A client that remembers what it asked for: the same witness on both servers, encrypted or not.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use http::Request;
use kube::client::{Body, ClientBuilder};
use tower::util::MapRequestLayer;

/// The requests of a client, the oldest first, as `GET /path?query`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<(Instant, String)>>>);

impl Requests {
    /// A client whose requests are recorded here.
    pub(crate) fn client(&self, config: kube::Config) -> Result<kube::Client> {
        let log = self.0.clone();
        let layer = MapRequestLayer::new(move |request: Request<Body>| {
            if let Ok(mut log) = log.lock() {
                let uri = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                log.push((Instant::now(), format!("{} {uri}", request.method())));
            }
            request
        });
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().map(|log| log.iter().map(|(_, request)| request.clone()).collect()).unwrap_or_default()
    }

    /// How many lists and watches were begun (further pages and reads of one object are none), and how many of them
    /// within the busiest second.
    pub(crate) fn begun(&self) -> (usize, usize) {
        let Ok(log) = self.0.lock() else { return (0, 0) };
        let begins = |request: &str| request.contains('?') && !request.contains("continue=");
        let times: Vec<_> = log.iter().filter(|(_, request)| begins(request)).map(|(at, _)| *at).collect();
        let within = |from: usize| times[from..].partition_point(|at| *at - times[from] < Duration::from_secs(1));
        (times.len(), (0..times.len()).map(within).max().unwrap_or_default())
    }

    /// Requests with all of these texts in them.
    pub(crate) fn with(&self, texts: &[&str]) -> usize {
        self.all().iter().filter(|r| texts.iter().all(|t| r.contains(t))).count()
    }

    /// Requests for a collection that are no watch.
    pub(crate) fn lists(&self) -> usize {
        self.all().iter().filter(|r| r.contains('?') && !r.contains("watch=")).count()
    }

    pub(crate) fn watches(&self) -> usize {
        self.with(&["watch="])
    }
}
