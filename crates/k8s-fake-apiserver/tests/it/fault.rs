//! Scripted faults.

use k8s_fake_apiserver::{FakeApiServer, Watch};

use crate::support::{Next, config_map, watch};

#[tokio::test(start_paused = true)]
async fn gone_in_mid_stream_as_in_the_readme() {
    let server = FakeApiServer::builder().objects((0..5).map(|i| config_map(&format!("m{i}")))).start().await.unwrap();
    server.faults().on(Watch::of("v1/configmaps")).after(3).gone();
    let mut lines = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert!(lines.shorts(3).await.iter().all(|l| l.starts_with("ADDED")));
    assert_eq!(lines.short().await, "ERROR 410 Expired");
    assert_eq!(lines.next().await, Next::End);
    let mut again = watch(&server, "/api/v1/configmaps?watch=1").await;
    assert!(again.shorts(5).await.iter().all(|l| l.starts_with("ADDED")));
}
