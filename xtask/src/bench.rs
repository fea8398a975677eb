//! Us beside kube's reflector, in one run, on the same Pods of the embedded API server. Each library and the server
//! have processes of their own, so nobody's memory counts as another's.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::metadata::Metadata;
use crate::run::{cargo, run};

/// Name in the table, and the options that make it.
const LIBRARIES: [(&str, &[&str]); 4] = [
    ("k8s-informer", &["--library", "k8s-informer", "--streaming", "--relist"]),
    ("k8s-informer, paged", &["--library", "k8s-informer", "--paged", "--relist"]),
    ("kube DynamicObject, no managedFields", &["--library", "kube-dynamic", "--streaming"]),
    ("kube typed Pod, no managedFields", &["--library", "kube-typed", "--streaming"]),
];

/// What the table shows: heading, field, decimals, and whether a ratio to ours makes sense.
const ROWS: [(&str, &str, usize, bool); 16] = [
    ("objects", "objects", 0, false),
    ("seconds to sync", "sync_s", 2, true),
    ("CPU seconds to sync", "cpu_s", 2, true),
    ("resident MiB after sync", "rss_mib", 1, true),
    ("resident MiB before trim", "rss_natural_mib", 1, true),
    ("peak MiB", "peak_mib", 1, true),
    ("get from two strings, ns", "get_ns", 0, true),
    ("get by the library's key, ns", "get_prebuilt_ns", 0, true),
    ("a bare HashMap in that process, ns", "bare_map_get_ns", 0, false),
    ("objects of a namespace, ns", "nslist_ns", 0, true),
    ("full list, ms", "list_ms", 3, true),
    ("updates seen", "updates_seen", 0, false),
    ("delay of an update, median ms", "lat_p50_ms", 2, true),
    ("CPU seconds for 1,000 updates", "upd_cpu_s", 3, true),
    ("resident MiB before a relist", "relist_steady_mib", 1, false),
    ("peak MiB of a relist", "relist_peak_mib", 1, false),
];

const UPDATES: &str = "1000";

/// `bench [--pods N] [--runs N]`
pub(crate) fn bench(arguments: &[&str]) -> Result<()> {
    let (mut pods, mut times) = ("20000", 3);
    for pair in arguments.chunks(2) {
        match pair {
            ["--pods", n] => pods = n,
            ["--runs", n] => times = n.parse().context("--runs")?,
            other => bail!("unknown option {}", other.join(" ")),
        }
    }
    run(&mut cargo(["build", "--release", "-p", "k8s-informer", "--example", "peer"]))?;
    run(&mut cargo(["build", "--release", "-p", "k8s-fake-apiserver"]))?;
    let release = Metadata::load()?.target_directory()?.join("release");
    let scratch = std::env::temp_dir().join(format!("k8s-informer-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let result = measure(&release, &scratch, pods, times);
    std::fs::remove_dir_all(&scratch)?;
    result
}

fn measure(release: &Path, scratch: &Path, pods: &str, times: usize) -> Result<()> {
    let kubeconfig = scratch.join("kubeconfig");
    let ready = scratch.join("ready");
    let _server = Server::start(release, &kubeconfig, pods)?;
    let peer = |options: &[&str]| {
        let mut command = Command::new(release.join("examples/peer"));
        command.arg("--kubeconfig").arg(&kubeconfig).args(["--updates", UPDATES]).args(options);
        command
    };
    let mut lines: Vec<Vec<Value>> = vec![vec![]; LIBRARIES.len()];
    for time in 1..=times {
        for (at, (name, options)) in LIBRARIES.iter().enumerate() {
            println!("run {time} of {times}: {name}");
            let _ = std::fs::remove_file(&ready);
            let mut child = peer(options).arg("--ready-file").arg(&ready).stdout(Stdio::piped()).spawn()?;
            wait_for(&ready, &mut child)?;
            let written = peer(&["--library", "writer"]).stdout(Stdio::null()).status()?;
            ensure!(written.success(), "the writer failed");
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "{name} failed");
            lines[at].push(serde_json::from_slice(&output.stdout).with_context(|| format!("the line of {name}"))?);
        }
    }
    print_table(&lines);
    Ok(())
}

/// Medians over the runs, each with its multiple of ours.
fn print_table(lines: &[Vec<Value>]) {
    let median = |at: usize, field: &str| {
        let mut values: Vec<f64> = lines[at].iter().filter_map(|line| line[field].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    print!("\n| median of {} |", lines[0].len());
    LIBRARIES.iter().for_each(|(name, _)| print!(" {name} |"));
    print!("\n|---|");
    LIBRARIES.iter().for_each(|_| print!("---:|"));
    println!();
    for (heading, field, decimals, has_ratio) in ROWS {
        print!("| {heading} |");
        let ours = median(0, field);
        for at in 0..LIBRARIES.len() {
            match (median(at, field), ours) {
                (Some(value), Some(ours)) if has_ratio && at > 0 && ours > 0.0 => {
                    print!(" {value:.decimals$} ({:.1}×) |", value / ours);
                }
                (Some(value), _) => print!(" {value:.decimals$} |"),
                (None, _) => print!(" - |"),
            }
        }
        println!();
    }
}

/// The embedded server in a process of its own; ended when this is dropped.
struct Server(Child);

impl Server {
    fn start(release: &Path, kubeconfig: &Path, pods: &str) -> Result<Self> {
        let mut server = Command::new(release.join("k8s-fake-apiserver"))
            .args(["--pods", pods, "--namespaces", "100", "--until-stdin-closes", "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the embedded server")?;
        // It prints its URL when it is ready.
        let mut first = [0];
        let read = server.stdout.as_mut().map(|out| out.read(&mut first));
        let server = Self(server);
        ensure!(matches!(read, Some(Ok(1))), "the embedded server ended while starting");
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn wait_for(file: &Path, child: &mut Child) -> Result<()> {
    let begin = Instant::now();
    while !file.exists() {
        ensure!(child.try_wait()?.is_none(), "the program ended before it was ready");
        ensure!(begin.elapsed() < Duration::from_secs(300), "the program was not ready in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
