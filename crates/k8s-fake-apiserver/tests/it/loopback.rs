//! The same server behind a socket. Real time: sockets do not wait for a paused clock.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use k8s_fake_apiserver::{Error, FakeApiServer, List};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::support::{config_map, server};

async fn client(server: &FakeApiServer) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig().unwrap()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_by_kubeconfig_lists_writes_and_watches() {
    let server = FakeApiServer::builder().loopback().start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let map: ConfigMap = serde_json::from_value(config_map("a")).unwrap();
    api.create(&PostParams::default(), &map).await.unwrap();
    let event = tokio::time::timeout(Duration::from_secs(10), events.try_next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(m) if m.metadata.name.as_deref() == Some("a")));
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    // In-process clients see the same state.
    assert_eq!(
        Api::<ConfigMap>::default_namespaced(server.client()).list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    server.close_watches();
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(10), events.try_next()).await.unwrap().unwrap().map(|_| ()),
        None
    );
}

#[tokio::test]
async fn a_dropped_connection_is_one() {
    let server = FakeApiServer::builder().loopback().start().await.unwrap();
    let api: Api<Pod> = Api::all(client(&server).await);
    server.faults().on(List::of("v1/pods")).drop_connection();
    assert!(api.list(&ListParams::default()).await.is_err());
    server.faults().on(List::of("v1/pods")).reset_at_byte(10);
    assert!(api.list(&ListParams::default()).await.is_err());
    assert!(api.list(&ListParams::default()).await.is_ok());
}

#[tokio::test]
async fn the_port_goes_with_the_last_handle() {
    let server = server().await;
    assert!(matches!(server.url(), Err(Error::NotListening)));
    assert_eq!(server.kubeconfig().unwrap_err().to_string(), "the server does not listen on a port");
    let url = server.listen().await.unwrap();
    assert_eq!((server.listen().await.unwrap(), server.url().unwrap()), (url.clone(), url.clone()));
    let address = url.strip_prefix("http://").unwrap().to_owned();
    let clone = server.clone();
    drop(server);
    assert!(tokio::net::TcpStream::connect(&address).await.is_ok());
    drop(clone);
    let closed = async {
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = FakeApiServer::builder().port(port).start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on 127.0.0.1:{port}"));
}

#[tokio::test]
async fn many_connections_at_once() {
    let server = FakeApiServer::builder().loopback().object(config_map("a")).start().await.unwrap();
    let client = client(&server).await;
    let lists: Vec<_> = (0..64)
        .map(|_| {
            let api: Api<ConfigMap> = Api::all(client.clone());
            tokio::spawn(async move { api.list(&ListParams::default()).await.unwrap().items.len() })
        })
        .collect();
    for list in lists {
        assert_eq!(list.await.unwrap(), 1);
    }
}
