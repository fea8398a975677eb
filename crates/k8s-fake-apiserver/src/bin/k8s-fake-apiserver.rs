//! Serves generated objects on a loopback port, for benchmarks and trials in other processes.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use k8s_fake_apiserver::FakeApiServer;
use k8s_fake_apiserver::generate::Cluster;

const USAGE: &str = "\
k8s-fake-apiserver [OPTIONS]

Serves a generated cluster on 127.0.0.1 until it is killed. Prints the URL when it is ready.

  --pods N              Pods (0)
  --services N          Services (0)
  --endpointslices N    EndpointSlices (0)
  --ingresses N         Ingresses (0)
  --configmaps N        ConfigMaps (0)
  --secrets N           Secrets (0)
  --secret-bytes N      bytes of data in a Secret (1024)
  --namespaces N        namespaces (10)
  --nodes N             Nodes (20)
  --no-managed-fields   objects without metadata.managedFields
  --seed N              other uids, hashes and names
  --load FOLDER         objects from the JSON files of a folder
  --port P              port (a free one)
  --kubeconfig FILE     write a kubeconfig
  --history N           revisions of history (10000)
  --no-streaming-lists  refuse sendInitialEvents
  --until-stdin-closes  end when standard input does
";

struct Arguments {
    cluster: Cluster,
    port: u16,
    history: usize,
    streaming: bool,
    kubeconfig: Option<PathBuf>,
    load: Vec<PathBuf>,
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return say(&mut io::stdout(), USAGE, ExitCode::SUCCESS),
        Err(wrong) => return say(&mut io::stderr(), &format!("{wrong}\n\n{USAGE}"), ExitCode::from(2)),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return say(&mut io::stderr(), &format!("cannot start: {error}\n"), ExitCode::FAILURE),
    };
    match runtime.block_on(serve(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}")).unwrap_or_default();
            say(&mut io::stderr(), &format!("{error}{cause}\n"), ExitCode::FAILURE)
        }
    }
}

async fn serve(arguments: Arguments) -> Result<(), k8s_fake_apiserver::Error> {
    let mut builder = FakeApiServer::builder()
        .port(arguments.port)
        .history(arguments.history)
        .streaming_lists(arguments.streaming)
        .journal_capacity(1_000);
    for folder in &arguments.load {
        builder = builder.load_dir(folder)?;
    }
    let server = builder.start().await?;
    // Object by object: a tree of each is alive only while it is stored.
    server.apply_all(arguments.cluster.objects())?;
    if let Some(path) = &arguments.kubeconfig {
        server.write_kubeconfig(path)?;
    }
    say(&mut io::stdout(), &format!("{}\n", server.url()?), ());
    if arguments.until_stdin_closes {
        let (closed, stdin) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
            drop(closed);
        });
        let _ = stdin.await;
    } else {
        std::future::pending::<()>().await;
    }
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut parsed = Arguments {
        cluster: Cluster::default(),
        port: 0,
        history: 10_000,
        streaming: true,
        kubeconfig: None,
        load: Vec::new(),
        until_stdin_closes: false,
    };
    while let Some(argument) = arguments.next() {
        // Both `--pods 5` and `--pods=5`.
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let mut value = || inline.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"));
        let cluster = &mut parsed.cluster;
        match name.as_str() {
            "--pods" => cluster.pods = number(&name, &value()?)?,
            "--services" => cluster.services = number(&name, &value()?)?,
            "--endpointslices" => cluster.endpoint_slices = number(&name, &value()?)?,
            "--ingresses" => cluster.ingresses = number(&name, &value()?)?,
            "--configmaps" => cluster.config_maps = number(&name, &value()?)?,
            "--secrets" => cluster.secrets = number(&name, &value()?)?,
            "--secret-bytes" => cluster.secret_bytes = number(&name, &value()?)?,
            "--namespaces" => cluster.namespaces = number(&name, &value()?)?,
            "--nodes" => cluster.nodes = number(&name, &value()?)?,
            "--seed" => cluster.seed = number(&name, &value()?)?,
            "--no-managed-fields" => cluster.managed_fields = false,
            "--load" => parsed.load.push(value()?.into()),
            "--port" => parsed.port = number(&name, &value()?)?,
            "--kubeconfig" => parsed.kubeconfig = Some(value()?.into()),
            "--history" => parsed.history = number(&name, &value()?)?,
            "--no-streaming-lists" => parsed.streaming = false,
            "--until-stdin-closes" => parsed.until_stdin_closes = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(Some(parsed))
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, String> {
    value.replace('_', "").parse().map_err(|_| format!("{name}: {value} is no number that fits"))
}

/// Writes and gives back `then`: nobody is left to tell when the output is closed.
fn say<T>(to: &mut dyn Write, text: &str, then: T) -> T {
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    then
}
