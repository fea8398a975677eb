//! The state of watchers as metrics, read when somebody scrapes.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::WatcherHandle;
use crate::backlog::Backlog;
use crate::control::Control;
use crate::single::SingleWatcherHandle;
use crate::status::{ErrorClass, Status};

/// Metrics of watchers, for a registry of `prometheus_client` that the program has anyway.
///
/// Nothing is counted twice: each scrape reads the watchers' [`Status`] and the sizes of their stores. All metrics have
/// the labels `watcher`, the name under which it was [added](Self::add), and `resource`; those of failures have `reason`,
/// those of changes `op`. No label has a namespace or a name of an object, so there are few series.
///
/// | metric | what it is |
/// |---|---|
/// | `watcher_synced` | 1 once the initial load is complete |
/// | `watcher_objects` | objects in the store |
/// | `watcher_store_bytes` | bytes of the store, indexes included; of a cached store, of its references |
/// | `watcher_changes_total` | what happened to objects, the initial load included (`op`: created, modified, deleted) |
/// | `watcher_failures_total` | lists and watches that failed (`reason`: see [`ErrorClass::as_str`]) |
/// | `watcher_relists_total` | full lists after the first |
/// | `watcher_restarts_total` | watches that were opened again |
/// | `watcher_skipped_objects_total` | objects that could not be decoded |
/// | `watcher_callback_panics_total` | callbacks that panicked |
/// | `watcher_stale_seconds` | how long ago the store was last known to be current; absent before the initial load |
/// | `watcher_running_callback_seconds` | for how long the callback that runs has been running; absent while none does |
/// | `watcher_untold_changes` | changes that no callback was told of yet; of a single watcher, calls that are due |
/// | `watcher_unread_objects` | objects that have changed since the slowest stream was read; absent without streams |
/// | `watcher_last_contact_seconds` | for how long the server has said nothing; absent before the first word |
/// | `watcher_last_event_seconds` | how old the last watch event is; absent before the first |
///
/// With a [cached store](Self::add_cached) also `watcher_cache_hits_total`, `watcher_cache_misses_total`,
/// `watcher_cache_fetches_total`, `watcher_cache_fetch_errors_total` and `watcher_cache_bytes`.
///
/// A watcher that has ended leaves with its last handle. Clones are the same metrics.
///
/// # Examples
///
/// ```
/// use k8s_types::WatcherConfig;
/// use k8s_watcher::{Metrics, Watcher};
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let server = k8s_fake_apiserver::FakeApiServer::builder().start().await?;
/// let mut registry = Registry::default();
/// let metrics = Metrics::register(registry.sub_registry_with_prefix("my_controller"));
///
/// let config = WatcherConfig::new("v1/services").index_by(["metadata.namespace"]);
/// let services = Watcher::builder(server.client(), config).spawn()?;
/// metrics.add("services", &services);
/// services.wait_for_sync(std::time::Duration::from_secs(10)).await?;
///
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// assert!(text.contains(r#"my_controller_watcher_synced{watcher="services",resource="v1/services"} 1"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Metrics {
    watchers: Arc<Mutex<Vec<Observed>>>,
}

/// What there is of a watcher to read.
pub(crate) trait Source: Send + Sync {
    fn control(&self) -> &Control;

    /// Bytes of its store, if it has one.
    fn store_bytes(&self) -> Option<usize>;

    /// What waits for those who listen.
    fn backlog(&self) -> Backlog;
}

struct Observed {
    name: String,
    source: Weak<dyn Source>,
    #[cfg(feature = "cached")]
    cache: Option<k8s_store::CachedStore>,
}

/// A watcher at the moment of a scrape.
struct Reading {
    name: String,
    resource: String,
    status: Status,
    store_bytes: Option<usize>,
    backlog: Backlog,
    #[cfg(feature = "cached")]
    cache: Option<k8s_store::CacheStats>,
}

impl Metrics {
    /// Metrics of no watcher yet, registered in the caller's registry, which may have a prefix and labels of its own.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Adds a watcher under a name. A second watcher of the same name and resource would be indistinguishable: it
    /// replaces the first.
    pub fn add<S>(&self, name: impl Into<String>, watcher: &WatcherHandle<S>) {
        self.push(name.into(), watcher.source());
    }

    /// Adds a watcher over one object.
    pub fn add_single(&self, name: impl Into<String>, watcher: &SingleWatcherHandle) {
        self.push(name.into(), watcher.source());
    }

    /// Adds a watcher with a cached store, with the metrics of its cache.
    #[cfg(feature = "cached")]
    pub fn add_cached(&self, name: impl Into<String>, watcher: &WatcherHandle<k8s_store::CachedStore>) {
        let name = name.into();
        self.push(name.clone(), watcher.source());
        if let Some(observed) = self.watchers.lock().iter_mut().rfind(|o| o.name == name) {
            observed.cache = Some(watcher.store().clone());
        }
    }

    fn push(&self, name: String, source: Weak<dyn Source>) {
        let resource = |source: &Weak<dyn Source>| source.upgrade().map(|s| s.control().resource.clone());
        let mut watchers = self.watchers.lock();
        watchers
            .retain(|o| o.source.strong_count() > 0 && (o.name != name || resource(&o.source) != resource(&source)));
        watchers.push(Observed {
            name,
            source,
            #[cfg(feature = "cached")]
            cache: None,
        });
    }

    fn read(&self) -> Vec<Reading> {
        let mut watchers = self.watchers.lock();
        watchers.retain(|o| o.source.strong_count() > 0);
        watchers.iter().filter_map(Observed::read).collect()
    }
}

impl Observed {
    fn read(&self) -> Option<Reading> {
        let source = self.source.upgrade()?;
        Some(Reading {
            name: self.name.clone(),
            resource: source.control().resource.to_string(),
            status: source.control().status.get(),
            store_bytes: source.store_bytes(),
            backlog: source.backlog(),
            #[cfg(feature = "cached")]
            cache: self.cache.as_ref().map(k8s_store::CachedStore::stats),
        })
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (now, readings) = (Instant::now(), self.read());
        let mut sheet = Sheet { encoder: &mut encoder, readings: &readings };
        sheet.gauge("watcher_synced", "Whether the initial load is complete", None, |r| {
            Some(u64::from(r.status.synced))
        })?;
        sheet.gauge("watcher_objects", "Objects in the store", None, |r| Some(r.status.objects as u64))?;
        sheet.gauge("watcher_store", "Size of the store with its indexes", Some(&Unit::Bytes), |r| {
            r.store_bytes.map(|bytes| bytes as u64)
        })?;
        sheet.counters("watcher_changes", "What happened to objects", "op", |r| {
            let changes = &r.status.changes;
            vec![("created", changes.created), ("modified", changes.modified), ("deleted", changes.deleted)]
        })?;
        sheet.counters("watcher_failures", "Lists and watches that failed", "reason", |r| {
            ErrorClass::ALL.iter().map(|class| (class.as_str(), r.status.failures.of(*class))).collect()
        })?;
        sheet.counter("watcher_relists", "Full lists after the first", |r| Some(r.status.relists))?;
        sheet.counter("watcher_restarts", "Watches that were opened again", |r| Some(r.status.restarts))?;
        sheet.counter("watcher_skipped_objects", "Objects that could not be decoded", |r| Some(r.status.skipped))?;
        sheet.counter("watcher_callback_panics", "Callbacks that panicked", |r| Some(r.status.callback_panics))?;
        sheet.gauge("watcher_untold_changes", "Changes that no callback was told of yet", None, |r| {
            Some(r.backlog.untold.total())
        })?;
        sheet.gauge("watcher_unread_objects", "Objects that the slowest stream has yet to be told of", None, |r| {
            r.backlog.longest_stream().map(|objects| objects as u64)
        })?;
        let age = |moment: Option<Instant>| {
            moment.map(|m| now.saturating_duration_since(m)).as_ref().map(Duration::as_secs_f64)
        };
        sheet.gauge(
            "watcher_stale",
            "How long ago the store was last known to be current",
            Some(&Unit::Seconds),
            |r| age(r.status.current_at),
        )?;
        let callback = "For how long the callback that runs has been running";
        sheet.gauge("watcher_running_callback", callback, Some(&Unit::Seconds), |r| age(r.status.callback_since))?;
        sheet.gauge("watcher_last_contact", "For how long the server has said nothing", Some(&Unit::Seconds), |r| {
            age(r.status.last_contact)
        })?;
        sheet.gauge("watcher_last_event", "How old the last watch event is", Some(&Unit::Seconds), |r| {
            age(r.status.last_event)
        })?;
        #[cfg(feature = "cached")]
        if readings.iter().any(|r| r.cache.is_some()) {
            let cache = |read: fn(&k8s_store::CacheStats) -> u64| move |r: &Reading| r.cache.as_ref().map(read);
            sheet.counter("watcher_cache_hits", "Reads that the cache answered", cache(|c| c.hits))?;
            sheet.counter("watcher_cache_misses", "Reads that it did not", cache(|c| c.misses))?;
            sheet.counter("watcher_cache_fetches", "Requests for objects", cache(|c| c.fetches))?;
            sheet.counter(
                "watcher_cache_fetch_errors",
                "Requests for objects that failed",
                cache(|c| c.fetch_errors),
            )?;
            sheet.gauge("watcher_cache", "Size of the cached objects", Some(&Unit::Bytes), cache(|c| c.bytes))?;
        }
        Ok(())
    }
}

/// Writes one metric after the other, each for all watchers.
struct Sheet<'a, 'e> {
    encoder: &'a mut DescriptorEncoder<'e>,
    readings: &'a [Reading],
}

type NoExemplar = Vec<(String, String)>;

impl Sheet<'_, '_> {
    fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: impl Fn(&Reading) -> Option<V>,
    ) -> fmt::Result {
        let readings = self.readings;
        let mut metric = self.encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for reading in readings {
            if let Some(value) = value(reading) {
                metric.encode_family(&reading.labels())?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn counter<V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        value: impl Fn(&Reading) -> Option<V>,
    ) -> fmt::Result {
        let readings = self.readings;
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for reading in readings {
            if let Some(value) = value(reading) {
                metric.encode_family(&reading.labels())?.encode_counter::<NoExemplar, _, u64>(&value, None)?;
            }
        }
        Ok(())
    }

    /// One series for each value of one more label.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Fn(&Reading) -> Vec<(&'static str, u64)>,
    ) -> fmt::Result {
        let readings = self.readings;
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for reading in readings {
            for (value, count) in values(reading) {
                let [watcher, resource] = reading.labels();
                let labels = [watcher, resource, (label, value)];
                metric.encode_family(&labels)?.encode_counter::<NoExemplar, _, u64>(&count, None)?;
            }
        }
        Ok(())
    }
}

impl Reading {
    fn labels(&self) -> [(&str, &str); 2] {
        [("watcher", &self.name), ("resource", &self.resource)]
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("watchers", &self.watchers.lock().len()).finish_non_exhaustive()
    }
}
