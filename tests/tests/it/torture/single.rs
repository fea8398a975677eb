//! Watchers of one object: each call is about something later than the one before.

use std::time::Duration;

use anyhow::Result;
use e2e::{Target, config_of};
use k8s_types::{Object, SingleWatcherConfig};
use k8s_watcher::{RunningSingleWatcher, SingleWatcher};
use std::sync::{Arc, Mutex};

use super::line::Line;
use super::onlookers::Complaints;
use super::watched::{IDLE_LIMIT, backoff};
use super::witness::identity;
use crate::requests::Requests;
use crate::support::{Key, PATIENCE};

/// A watcher of one object that is written to more often than others.
pub(super) struct Single {
    pub(super) key: Key,
    pub(super) watcher: RunningSingleWatcher,
    pub(super) requests: Requests,
    pub(super) lines: Vec<Line>,
    calls: Arc<Mutex<Calls>>,
}

/// What its callback was told.
#[derive(Debug, Default)]
struct Calls {
    /// The object as it was told last, and whether it is there.
    last: Option<(u128, u64)>,
    is_there: bool,
    count: u64,
}

impl Calls {
    fn take(&mut self, object: Option<&Object>) -> Result<(), String> {
        self.count += 1;
        let was_there = std::mem::replace(&mut self.is_there, object.is_some());
        let Some(object) = object else {
            return if was_there { Ok(()) } else { Err("an object that was not there was deleted".into()) };
        };
        let (uid, version) = identity(object).map_err(|e| e.to_string())?;
        let Some((last_uid, last_version)) = self.last.replace((uid, version)) else { return Ok(()) };
        if version <= last_version {
            Err(format!("{object:?} is not later than version {last_version}"))
        } else if was_there == (uid == last_uid) {
            Ok(())
        } else {
            Err(format!("{object:?} follows another object without a delete, or a delete of itself"))
        }
    }
}

impl Single {
    pub(super) async fn start(target: &Target, server: &Line, key: Key, complaints: &Complaints) -> Result<Self> {
        let requests = Requests::default();
        let client = requests.client(config_of(&target.kubeconfig()).await?)?;
        let config = SingleWatcherConfig::new("v1/configmaps", &*key.0, &*key.1);
        let calls = Arc::<Mutex<Calls>>::default();
        let (at_sync, on_change) = (calls.clone(), calls.clone());
        let complain = complaints.clone();
        let watcher = SingleWatcher::builder(client, config.idle_limit(IDLE_LIMIT).backoff(backoff()))
            .on_sync_complete(move |object| {
                let mut calls = at_sync.lock().expect("no panic under the lock");
                calls.is_there = object.is_some();
                calls.last = object.as_ref().and_then(|o| identity(o).ok());
            })
            .on_change(move |object: Option<Object>| {
                let taken = on_change.lock().expect("no panic under the lock").take(object.as_ref());
                if let Err(wrong) = taken {
                    complain.add(|| format!("single watcher: {wrong}"));
                }
            })
            .spawn()?;
        watcher.wait_for_sync(PATIENCE).await?;
        Ok(Self { key, watcher, requests, lines: vec![server.clone()], calls })
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.lock().map_or(0, |calls| calls.count)
    }

    pub(super) fn version(&self) -> Option<String> {
        self.watcher.object().and_then(|o| o.resource_version().map(str::to_owned))
    }

    pub(super) async fn finish(self) -> Result<()> {
        Ok(tokio::time::timeout(Duration::from_secs(10), self.watcher.shutdown()).await?)
    }
}
