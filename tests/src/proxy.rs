//! A bad network between a client and the server: forwards bytes, breaks connections, goes silent.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::Target;
use crate::control_plane::config_of;

/// A loopback port that passes everything on to a [`Target`], as long as it is told to. Encrypted or not makes no
/// difference to it.
///
/// Other clients of the server are not affected. All connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    config: kube::Config,
    weather: watch::Sender<Weather>,
    task: JoinHandle<Infallible>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Weather {
    flow: Flow,
    /// How often all connections were broken; each remembers the number under which it began.
    cuts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Forward,
    Refuse,
    Hang,
}

impl Proxy {
    /// Opens a port in front of the server.
    ///
    /// # Errors
    ///
    /// There is no free port, or the target's kubeconfig cannot be read.
    pub async fn open(target: &Target) -> Result<Self> {
        let mut config = config_of(&target.kubeconfig()).await?;
        let authority = config.cluster_url.authority().context("the server has no address")?;
        let upstream: SocketAddr = authority.as_str().parse()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let scheme = config.cluster_url.scheme_str().context("the server has no scheme")?;
        // The certificate is for 127.0.0.1, whatever the port.
        config.cluster_url = format!("{scheme}://{}", listener.local_addr()?).parse()?;
        let weather = watch::Sender::new(Weather { flow: Flow::Forward, cuts: 0 });
        let task = tokio::spawn(accept(listener, upstream, weather.subscribe()));
        Ok(Self { config, weather, task })
    }

    /// The configuration of a client that goes through here, without kube's retries.
    #[must_use]
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// A client that goes through here, without kube's retries.
    ///
    /// # Errors
    ///
    /// The target's credentials cannot be used.
    pub fn client(&self) -> Result<kube::Client> {
        Ok(kube::Client::try_from(self.config())?)
    }

    /// Lets bytes through. Those that [`hang`](Self::hang) held back arrive now.
    pub fn forward(&self) {
        self.weather.send_modify(|w| w.flow = Flow::Forward);
    }

    /// Breaks all connections; new ones are broken at once, until [`forward`](Self::forward).
    pub fn cut(&self) {
        self.weather.send_modify(|w| *w = Weather { flow: Flow::Refuse, cuts: w.cuts + 1 });
    }

    /// Breaks all connections; new ones are let through.
    pub fn hiccup(&self) {
        self.weather.send_modify(|w| *w = Weather { flow: Flow::Forward, cuts: w.cuts + 1 });
    }

    /// Stops all bytes while connections stay open: neither side learns of it. New connections are silent too.
    pub fn hang(&self) {
        self.weather.send_modify(|w| w.flow = Flow::Hang);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, upstream: SocketAddr, weather: watch::Receiver<Weather>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(connection(stream, upstream, weather.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(client: TcpStream, upstream: SocketAddr, mut weather: watch::Receiver<Weather>) -> io::Result<()> {
    let began = *weather.borrow();
    if began.flow == Flow::Refuse {
        return Ok(());
    }
    let (mut first, upwards, downwards) = (weather.clone(), weather.clone(), weather.clone());
    let pass = async {
        clear(&mut first).await?;
        let server = TcpStream::connect(upstream).await?;
        // Watch events are small and must not wait for more to come.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::try_join!(pump(from_client, to_server, upwards), pump(from_server, to_client, downwards))?;
        Ok(())
    };
    tokio::select! {
        ended = pass => ended,
        _ = weather.wait_for(|w| w.cuts != began.cuts) => Ok(()),
    }
}

/// Waits until bytes may pass.
async fn clear(weather: &mut watch::Receiver<Weather>) -> io::Result<()> {
    let gone = |_| io::Error::other("the proxy is gone");
    weather.wait_for(|w| w.flow == Flow::Forward).await.map(drop).map_err(gone)
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        clear(&mut weather).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}
