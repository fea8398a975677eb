//! A client that remembers what it asked for: the same witness on both servers, encrypted or not.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use http::Request;
use kube::client::{Body, ClientBuilder};
use tower::util::MapRequestLayer;

/// The requests of a client, the oldest first, as `GET /path?query`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// A client whose requests are recorded here.
    pub(crate) fn client(&self, config: kube::Config) -> Result<kube::Client> {
        let log = self.0.clone();
        let layer = MapRequestLayer::new(move |request: Request<Body>| {
            if let Ok(mut log) = log.lock() {
                let uri = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                log.push(format!("{} {uri}", request.method()));
            }
            request
        });
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().map(|log| log.clone()).unwrap_or_default()
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
