//! The embedded API server behind a door that can be shut: what a crash of a real server looks like from outside.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context, Result};
use k8s_fake_apiserver::FakeApiServer;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::ports;

/// A running embedded server, reached over a loopback port like the real one.
#[derive(Debug)]
pub struct Embedded {
    server: FakeApiServer,
    door: Option<Door>,
    address: SocketAddr,
    behind: SocketAddr,
    scratch: TempDir,
}

impl Embedded {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// A port or the kubeconfig's folder cannot be had.
    pub async fn start() -> Result<Self> {
        // As strict as the real server, with bookmarks as rare as its own.
        let server = FakeApiServer::builder().strict_namespaces(true).loopback().start().await?;
        let url = server.url()?;
        let behind: SocketAddr = url.strip_prefix("http://").context("no plain HTTP address")?.parse()?;
        let listener = ports::listen()?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let scratch = tempfile::Builder::new().prefix("embedded-").tempdir()?;
        let kubeconfig = server.kubeconfig()?.replace(&url, &format!("http://{address}"));
        fs::write(scratch.path().join("kubeconfig"), kubeconfig)?;
        Ok(Self { server, door: Some(Door::open(listener, behind)), address, behind, scratch })
    }

    /// The server itself, for what only the embedded one can: faults, journal.
    #[must_use]
    pub fn server(&self) -> &FakeApiServer {
        &self.server
    }

    /// The kubeconfig file, valid as long as this value lives.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.scratch.path().join("kubeconfig")
    }

    /// Breaks all connections and refuses new ones. Does nothing when it is shut already.
    pub async fn shut(&mut self) {
        if let Some(door) = self.door.take() {
            door.close().await;
        }
    }

    /// Lets connections in again, at the same address.
    ///
    /// # Errors
    ///
    /// Somebody took the port meanwhile.
    pub async fn open(&mut self) -> Result<()> {
        if self.door.is_none() {
            let listener = TcpListener::bind(self.address).await?;
            self.door = Some(Door::open(listener, self.behind));
        }
        Ok(())
    }
}

/// Passes bytes on between a port and the server behind it, until it is closed or dropped.
#[derive(Debug)]
struct Door {
    close: oneshot::Sender<()>,
    task: AbortOnDrop,
}

impl Door {
    fn open(listener: TcpListener, behind: SocketAddr) -> Self {
        let (close, mut closed) = oneshot::channel();
        let task = AbortOnDrop(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    _ = &mut closed => break,
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        connections.spawn(pass(stream, behind));
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
            drop(listener);
            connections.shutdown().await;
        }));
        Self { close, task }
    }

    /// Comes back when the port and all its connections are closed.
    async fn close(mut self) {
        let _ = self.close.send(());
        let _ = (&mut self.task.0).await;
    }
}

#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass(mut outside: TcpStream, behind: SocketAddr) -> io::Result<()> {
    let mut inside = TcpStream::connect(behind).await?;
    // Watch events are small and must not wait for more to come.
    outside.set_nodelay(true)?;
    inside.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut outside, &mut inside).await?;
    Ok(())
}
