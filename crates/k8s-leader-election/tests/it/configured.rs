//! What is wrong with a configuration shows before anything is sent.

use k8s_leader_election::LeaderElector;

use crate::support::{config, secs, server};

#[tokio::test(start_paused = true)]
async fn build_names_the_field_and_sends_nothing() {
    let server = server().await;
    let error = LeaderElector::builder(server.client(), config("a").renew_deadline(secs(20))).build().unwrap_err();
    assert_eq!((error.field(), error.message()), ("renew_deadline", "20s is not less than lease_duration, 15s"));
    let elector = LeaderElector::builder(server.client(), config("a")).build().unwrap();
    tokio::time::sleep(secs(60)).await;
    assert!(server.journal().requests().is_empty());
    assert_eq!((elector.identity(), elector.is_leader(), elector.leader()), ("a", false, None));
    let debug = format!("{elector:?} {:?}", elector.handle());
    assert!(debug.contains(r#"ElectorHandle { identity: "a", is_leader: false, leader: None }"#), "{debug}");
}
