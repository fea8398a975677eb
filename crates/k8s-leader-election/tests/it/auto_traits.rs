//! What may cross threads.

use k8s_leader_election::{
    AfterWork, ElectorHandle, Error, Lead, LeaderElector, LeaderElectorBuilder, Leadership, LeaseConfig, Outcome,
};
use tokio_util::sync::CancellationToken;

fn is_send<T: Send>(_: &T) {}
fn send_and_sync<T: Send + Sync + Unpin>() {}

#[test]
fn values_cross_threads() {
    send_and_sync::<LeaseConfig>();
    send_and_sync::<AfterWork>();
    send_and_sync::<Lead>();
    send_and_sync::<Leadership>();
    send_and_sync::<ElectorHandle>();
    send_and_sync::<Outcome>();
    send_and_sync::<Error>();
    fn can_be_moved<T: Send + Unpin>() {}
    can_be_moved::<LeaderElector>();
    can_be_moved::<LeaderElectorBuilder>();
}

#[tokio::test(start_paused = true)]
async fn so_does_the_future() {
    let server = k8s_fake_apiserver::FakeApiServer::builder().start().await.expect("a server");
    let config = LeaseConfig::new("shop", "cart", "a");
    let elector = LeaderElector::builder(server.client(), config).build().expect("a sound configuration");
    is_send(&elector.run(CancellationToken::new(), |lead| async move { lead.cancelled().await }));
}
