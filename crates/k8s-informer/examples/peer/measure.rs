//! What all libraries are asked, and how it is measured.

use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::Args;

/// The annotation with the wall clock of the write, in nanoseconds.
pub(crate) const STAMP: &str = "bench.peers/written-ns";

const LOOKUPS: usize = 400_000;

/// A library's reads, in its own types.
pub(crate) trait Cache {
    /// The library's own key, made beforehand.
    type Key;

    /// Namespace and name of everything, in any order.
    fn names(&self) -> Vec<(String, String)>;
    fn key(&self, namespace: &str, name: &str) -> Self::Key;
    /// An exact look-up from two texts, as a caller has them.
    fn get(&self, namespace: &str, name: &str) -> bool;
    fn get_by_key(&self, key: &Self::Key) -> bool;
    /// The objects of a namespace as a list; its length.
    fn namespace(&self, namespace: &str) -> usize;
    /// All objects as a list; its length.
    fn list(&self) -> usize;
}

/// The delays of updates, filled from the library's own notification.
#[derive(Default)]
pub(crate) struct Updates {
    /// Only what was written after this counts; zero before the phase begins.
    after: AtomicU64,
    delays: Mutex<Vec<u64>>,
}

impl Updates {
    /// An object reached the handler; `stamp` is its annotation.
    pub(crate) fn seen(&self, stamp: Option<&str>) {
        let after = self.after.load(Ordering::Relaxed);
        let Some(written) = stamp.and_then(|s| s.parse().ok()).filter(|w| after > 0 && *w > after) else { return };
        let delay = now_ns().saturating_sub(written);
        self.delays.lock().unwrap_or_else(|e| e.into_inner()).push(delay);
    }

    fn count(&self) -> usize {
        self.delays.lock().unwrap_or_else(|e| e.into_inner()).len()
    }
}

/// The line that grows from phase to phase.
pub(crate) struct Line(Map<String, Value>);

impl Line {
    /// The end of the first phase: everything is in the cache.
    pub(crate) fn synced(args: &Args, begin: Instant) -> Self {
        let mut line = Self(Map::new());
        line.set("peer", json!(args.name.as_deref().unwrap_or(&args.library)));
        line.set("resource", json!(args.resource));
        line.number("sync_s", begin.elapsed().as_secs_f64());
        line.number("cpu_s", cpu());
        line
    }

    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.into(), value);
    }

    pub(crate) fn number(&mut self, key: &str, value: f64) {
        self.set(key, json!((value * 1000.0).round() / 1000.0));
    }

    /// The second phase: resident memory, as it is and after giving back what is free.
    pub(crate) async fn memory(&mut self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.number("rss_natural_mib", proc_mib("status", "VmRSS:"));
        self.number("peak_mib", proc_mib("status", "VmHWM:"));
        trim();
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.number("rss_mib", proc_mib("status", "VmRSS:"));
        self.number("pss_mib", proc_mib("smaps_rollup", "Pss:"));
        self.number("anon_mib", proc_mib("smaps_rollup", "Anonymous:"));
    }

    /// The third phase: look-ups in a shuffled order.
    pub(crate) fn lookups(&mut self, cache: &impl Cache) {
        let mut names = cache.names();
        names.sort();
        shuffle(&mut names);
        let per = |begin: Instant, calls: usize| begin.elapsed().as_nanos() as f64 / calls as f64;
        let keys: Vec<_> = names.iter().map(|(namespace, name)| cache.key(namespace, name)).collect();
        let (mut exact, mut prebuilt) = (vec![], vec![]);
        for _ in 0..5 {
            let begin = Instant::now();
            let found = names.iter().cycle().take(LOOKUPS).filter(|(ns, name)| cache.get(ns, name)).count();
            exact.push(per(begin, LOOKUPS));
            assert_eq!(found, LOOKUPS, "every key is found");
            let begin = Instant::now();
            let found = keys.iter().cycle().take(LOOKUPS).filter(|key| cache.get_by_key(key)).count();
            prebuilt.push(per(begin, LOOKUPS));
            assert_eq!(found, LOOKUPS, "every key is found");
        }
        self.number("get_ns", median(exact));
        self.number("get_prebuilt_ns", median(prebuilt));

        let namespaces: BTreeSet<_> = names.iter().map(|(namespace, _)| namespace.as_str()).collect();
        let (mut calls, mut found) = (0, 0);
        let begin = Instant::now();
        for namespace in namespaces.iter().cycle() {
            found += black_box(cache.namespace(namespace));
            calls += 1;
            if begin.elapsed() > Duration::from_secs(1) {
                break;
            }
        }
        self.number("nslist_ns", per(begin, calls));
        self.number("nslist_n", found as f64 / calls as f64);

        let mut calls = 0;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            black_box(cache.list());
            calls += 1;
        }
        self.number("list_ms", per(begin, calls) / 1e6);
        self.set("objects", json!(names.len()));

        // What nothing can be faster than by much: a plain map with the keys in it, and nothing else.
        let text = |s: &String| -> Arc<str> { s.as_str().into() };
        // Filled in another order than it is read, or the processor would guess where the next key lies.
        let mut sorted: Vec<_> = names.iter().collect();
        sorted.sort();
        let plain: HashMap<_, _, foldhash::fast::RandomState> =
            sorted.iter().enumerate().map(|(i, (ns, name))| ((text(ns), text(name)), i)).collect();
        let plain_keys: Vec<_> = names.iter().map(|(ns, name)| (text(ns), text(name))).collect();
        let mut bare = vec![];
        for _ in 0..5 {
            let begin = Instant::now();
            let found = plain_keys.iter().cycle().take(LOOKUPS).filter(|k| black_box(plain.get(*k)).is_some()).count();
            bare.push(per(begin, LOOKUPS));
            assert_eq!(found, LOOKUPS, "every key is found");
        }
        self.number("bare_map_get_ns", median(bare));
    }

    /// The last phase: others write, and the handler sees it.
    pub(crate) async fn updates(&mut self, args: &Args, updates: &Updates) -> anyhow::Result<()> {
        if args.updates == 0 {
            return Ok(());
        }
        updates.after.store(now_ns(), Ordering::Relaxed);
        let cpu_before = cpu();
        let mut cpu_after = cpu_before;
        if let Some(file) = &args.ready_file {
            std::fs::write(file, b"ready")?;
        }
        let begin = Instant::now();
        let (mut count, mut last) = (0, Instant::now());
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = updates.count();
            if now != count {
                (count, last, cpu_after) = (now, Instant::now(), cpu());
            }
            let done = count as u64 >= args.updates;
            let quiet = count > 0 && last.elapsed() > Duration::from_secs(10);
            if done || quiet || begin.elapsed() > Duration::from_secs(180) {
                break;
            }
        }
        let mut delays = updates.delays.lock().unwrap_or_else(|e| e.into_inner()).clone();
        delays.sort_unstable();
        let at = |share: usize| delays.get(delays.len() * share / 100).copied().unwrap_or_default() as f64 / 1e6;
        self.set("updates_seen", json!(delays.len()));
        self.number("lat_p50_ms", at(50));
        self.number("lat_p99_ms", at(99));
        self.number("upd_cpu_s", cpu_after - cpu_before);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.number("rss_after_updates_mib", proc_mib("status", "VmRSS:"));
        Ok(())
    }

    pub(crate) fn finish(self) -> String {
        Value::Object(self.0).to_string()
    }
}

/// Starts the peak of resident memory anew, where the kernel allows it.
pub(crate) fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", b"5").is_ok()
}

pub(crate) fn rss_mib() -> f64 {
    proc_mib("status", "VmRSS:")
}

pub(crate) fn peak_mib() -> f64 {
    proc_mib("status", "VmHWM:")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shuffle<T>(items: &mut [T]) {
    let mut x = 0x2545_f491_4f6c_dd1du64;
    for i in (1..items.len()).rev() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        items.swap(i, (x % (i as u64 + 1)) as usize);
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// User and system time of this process.
fn cpu() -> f64 {
    let usage = rusage();
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[allow(unsafe_code)]
fn rusage() -> libc::rusage {
    // SAFETY: all bits zero are a `rusage`, and the call fills the one it is given.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    }
}

/// Gives free memory back to the system, where the allocator can.
#[allow(unsafe_code)]
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn proc_mib(file: &str, key: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix(key)?.trim().split(' ').next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}
