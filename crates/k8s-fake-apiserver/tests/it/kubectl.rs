//! kubectl against a loopback port. Skipped, loudly, where there is no kubectl.

use std::process::Stdio;

use k8s_fake_apiserver::FakeApiServer;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::support::pod;

struct Kubectl {
    kubeconfig: std::path::PathBuf,
    server: FakeApiServer,
}

impl Kubectl {
    /// `None` when kubectl is not in PATH.
    async fn new(name: &str) -> Option<Self> {
        if Command::new("kubectl").args(["version", "--client"]).output().await.is_err() {
            // Past the test runner, which keeps what passing tests print to itself.
            let text = format!(
                "SKIPPED: kubectl is not in PATH; {name} was not tested
"
            );
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            return None;
        }
        let server = FakeApiServer::builder()
            .loopback()
            .object(pod("shop", "cart-1", json!({"app": "cart"})))
            .object(pod("shop", "cart-2", json!({"app": "cart"})))
            .start()
            .await
            .unwrap();
        let kubeconfig = std::env::temp_dir().join(format!("k8s-fake-apiserver-{name}-{}", std::process::id()));
        server.write_kubeconfig(&kubeconfig).unwrap();
        Some(Self { kubeconfig, server })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        let cache = self.kubeconfig.with_extension("cache");
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--cache-dir").arg(cache).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str], input: &str) -> String {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
        let _ = std::fs::remove_dir_all(self.kubeconfig.with_extension("cache"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads() {
    let Some(kubectl) = Kubectl::new("reads").await else { return };
    let table = kubectl.run(&["get", "pods", "-A"], "").await;
    assert!(table.lines().next().unwrap().split_whitespace().eq(["NAMESPACE", "NAME", "AGE"]), "{table}");
    assert!(table.contains("cart-1") && table.contains("shop"), "{table}");
    let names = kubectl
        .run(&["get", "po", "-n", "shop", "-l", "app=cart", "-o", "jsonpath={.items[*].metadata.name}"], "")
        .await;
    assert_eq!(names, "cart-1 cart-2");
    let json = kubectl.run(&["get", "pod", "cart-1", "-n", "shop", "-o", "json"], "").await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["kind"], "Pod");
    let resources = kubectl.run(&["api-resources", "-o", "name"], "").await;
    assert!(resources.lines().any(|l| l == "ingresses.networking.k8s.io"), "{resources}");
    let version = kubectl.run(&["version"], "").await;
    assert!(version.contains("Server Version: v1.36"), "{version}");
    let wait =
        kubectl.run(&["get", "pods", "-n", "shop", "--field-selector", "metadata.name=cart-2", "-o", "name"], "").await;
    assert_eq!(wait.trim(), "pod/cart-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes() {
    let Some(kubectl) = Kubectl::new("writes").await else { return };
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}).to_string();
    assert_eq!(kubectl.run(&["create", "--validate=false", "-f", "-"], &map).await.trim(), "configmap/a created");
    assert_eq!(kubectl.run(&["label", "configmap", "a", "x=y"], "").await.trim(), "configmap/a labeled");
    assert_eq!(kubectl.run(&["annotate", "configmap", "a", "n=1"], "").await.trim(), "configmap/a annotated");
    assert_eq!(kubectl.run(&["label", "configmap", "a", "x-"], "").await.trim(), "configmap/a unlabeled");
    let patch = r#"{"data":{"k":"w"}}"#;
    assert_eq!(kubectl.run(&["patch", "configmap", "a", "-p", patch], "").await.trim(), "configmap/a patched");
    assert_eq!(kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data.k}"], "").await, "w");
    let map = map.replace("\"v\"", "\"z\"");
    let apply = ["apply", "--validate=false", "-f", "-"];
    assert_eq!(kubectl.run(&apply, &map).await.trim(), "configmap/a configured");
    assert_eq!(kubectl.run(&apply, &map).await.trim(), "configmap/a unchanged");
    let server_side = ["apply", "--validate=false", "--server-side", "-f", "-"];
    assert_eq!(
        kubectl.run(&server_side, &map.replace("\"a\"", "\"b\"")).await.trim(),
        "configmap/b serverside-applied"
    );
    let replaced = kubectl.run(&["replace", "--validate=false", "-f", "-"], &map.replace("\"z\"", "\"y\"")).await;
    assert_eq!(replaced.trim(), "configmap/a replaced");
    assert_eq!(kubectl.run(&["delete", "configmap", "a"], "").await.trim(), "configmap \"a\" deleted");
    kubectl.run(&["delete", "pods", "-n", "shop", "-l", "app=cart"], "").await;
    assert_eq!(kubectl.run(&["get", "pods", "-A", "-o", "name"], "").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn watches() {
    let Some(kubectl) = Kubectl::new("watches").await else { return };
    let mut child = kubectl.command(&["get", "pods", "-n", "shop", "--watch", "-o", "name"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = async {
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(lines.next_line().await.unwrap());
        }
        kubectl.server.apply(pod("shop", "cart-3", json!({}))).unwrap();
        seen.extend(lines.next_line().await.unwrap());
        seen
    };
    let seen = tokio::time::timeout(std::time::Duration::from_secs(30), read).await.unwrap();
    assert_eq!(seen, ["pod/cart-1", "pod/cart-2", "pod/cart-3"]);
    child.kill().await.unwrap();
}
