//! Clients and their futures move between threads.

use k8s_client::{Client, ClientConfig, Error, ResourceScope, StatusError, Throttle, ThrottleLayer};
use k8s_types::Gvr;

fn send_sync<T: Send + Sync + 'static>() {}
fn send<T: Send>(_: &T) {}

#[test]
fn types_are_send_and_sync() {
    send_sync::<Client>();
    send_sync::<ClientConfig>();
    send_sync::<Error>();
    send_sync::<ResourceScope>();
    send_sync::<StatusError>();
    send_sync::<ThrottleLayer>();
    send_sync::<Throttle<()>>();
}

#[tokio::test]
async fn futures_are_send() {
    let client = crate::support::Server::answering(|_| (200, "{}".into())).client();
    let gvr: Gvr = "v1/pods".parse().unwrap();
    send(&client.get(&gvr, None, "a"));
    send(&client.resource_scope(&gvr));
    send(&client.send(http::Request::new(Vec::new())));
    send(&Client::try_default());
    send(&ClientConfig::in_cluster().build());
}
