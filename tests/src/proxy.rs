//! A bad network between a client and the server: forwards bytes, breaks connections, goes silent, gets slow.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::Target;
use crate::control_plane::config_of;

/// How many bytes it takes at a time.
const MOST: usize = 64 * 1024;
/// How much the kernel may keep of what the server sends: with its usual megabytes a slow client would not be felt.
const KEPT: u32 = 64 * 1024;
/// A slow connection passes on a share of its bytes this often.
const BEAT: Duration = Duration::from_millis(50);

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
    /// How often the flow was changed; what is counted is counted from then on.
    turn: u64,
    /// How often all connections were broken; each remembers the number under which it began.
    cuts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Forward,
    Refuse,
    Hang,
    /// Bytes a second, in each direction of each connection.
    Slow(u32),
    /// So many bytes come down on each connection, then it breaks.
    Fuse(u64),
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
        let weather = watch::Sender::new(Weather { flow: Flow::Forward, turn: 0, cuts: 0 });
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

    fn turn_to(&self, flow: Flow, cuts: u64) {
        self.weather.send_modify(|w| *w = Weather { flow, turn: w.turn + 1, cuts: w.cuts + cuts });
    }

    /// Lets bytes through. Those that [`hang`](Self::hang) held back arrive now.
    pub fn forward(&self) {
        self.turn_to(Flow::Forward, 0);
    }

    /// Breaks all connections; new ones are broken at once, until [`forward`](Self::forward).
    pub fn cut(&self) {
        self.turn_to(Flow::Refuse, 1);
    }

    /// Breaks all connections; new ones are let through.
    pub fn hiccup(&self) {
        self.turn_to(Flow::Forward, 1);
    }

    /// Stops all bytes while connections stay open: neither side learns of it. New connections are silent too.
    pub fn hang(&self) {
        self.turn_to(Flow::Hang, 0);
    }

    /// Lets through so many bytes a second, in each direction of each connection, new ones too.
    pub fn slow(&self, bytes_per_second: u32) {
        self.turn_to(Flow::Slow(bytes_per_second), 0);
    }

    /// Breaks each connection when so many more bytes have come down on it from the server, to the byte, new ones too,
    /// until [`forward`](Self::forward).
    pub fn cut_after(&self, bytes: u64) {
        self.turn_to(Flow::Fuse(bytes), 0);
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
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(KEPT)?;
        let server = socket.connect(upstream).await?;
        // Watch events are small and must not wait for more to come.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (up, down) = (pump(from_client, to_server, upwards, false), pump(from_server, to_client, downwards, true));
        tokio::try_join!(up, down)?;
        Ok(())
    };
    tokio::select! {
        ended = pass => ended,
        _ = weather.wait_for(|w| w.cuts != began.cuts) => Ok(()),
    }
}

/// Waits until bytes may pass.
async fn clear(weather: &mut watch::Receiver<Weather>) -> io::Result<Weather> {
    let passes = |w: &Weather| !matches!(w.flow, Flow::Hang | Flow::Refuse);
    weather.wait_for(passes).await.map(|w| *w).map_err(|_| io::Error::other("the proxy is gone"))
}

/// Passes bytes on in one direction until one side ends it, or the fuse does if it `may_burn`.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut weather: watch::Receiver<Weather>,
    may_burn: bool,
) -> io::Result<()> {
    let mut buffer = vec![0; MOST];
    let (mut turn, mut passed) = (0, 0_u64);
    loop {
        let count = from.read(&mut buffer).await?;
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let now = clear(&mut weather).await?;
            if turn != now.turn {
                (turn, passed) = (now.turn, 0);
            }
            let left = match now.flow {
                Flow::Slow(rate) => (rate as usize / 20).max(1),
                Flow::Fuse(bytes) if may_burn => usize::try_from(bytes.saturating_sub(passed)).unwrap_or(MOST),
                _ => MOST,
            };
            if left == 0 {
                return Err(io::Error::other("the fuse has burnt"));
            }
            let (next, later) = rest.split_at(left.min(rest.len()));
            to.write_all(next).await?;
            passed += next.len() as u64;
            rest = later;
            if let Flow::Slow(_) = now.flow {
                tokio::time::sleep(BEAT).await;
            }
        }
        if count == 0 {
            clear(&mut weather).await?;
            return to.shutdown().await;
        }
    }
}
