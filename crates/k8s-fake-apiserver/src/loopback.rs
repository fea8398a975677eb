//! The server on a port of 127.0.0.1, for kubectl and for clients in other processes.

use std::convert::Infallible;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;
use crate::service::FakeService;

/// An open port. Dropping it closes the port and all its connections.
#[derive(Debug)]
pub(crate) struct Listening {
    address: SocketAddr,
    accepting: JoinHandle<Infallible>,
}

impl Listening {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

pub(crate) async fn listen(service: FakeService, port: u16) -> Result<Listening, Error> {
    let address = format!("127.0.0.1:{port}");
    let failed = |source| Error::Listen { address: address.clone(), source };
    let listener = TcpListener::bind(&address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listening { address, accepting: tokio::spawn(accept(listener, service)) })
}

/// Owns all connections: they end with it.
async fn accept(listener: TcpListener, service: FakeService) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, service.clone()))),
                Err(error) => {
                    tracing::debug!(%error, "accept failed");
                    // Out of descriptors, most likely: others have to close first.
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, service: FakeService) {
    // Watch events are small and must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(service);
    if let Err(error) = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection ended");
    }
}

pub(crate) fn kubeconfig(url: &str, namespace: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: fake\n  cluster:\n    server: {url}\n\
         users:\n\
         - name: fake\n  user: {{}}\n\
         contexts:\n\
         - name: fake\n  context:\n    cluster: fake\n    user: fake\n    namespace: {namespace}\n\
         current-context: fake\n"
    )
}
