//! The binary: what it serves, how it ends, what it says to wrong arguments.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, api::ListParams};

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_k8s-fake-apiserver"))
}

#[tokio::test]
async fn serves_a_generated_cluster_until_its_input_closes() {
    let kubeconfig = std::env::temp_dir().join(format!("k8s-fake-apiserver-binary-{}", std::process::id()));
    let mut child = binary()
        .args([
            "--pods=12",
            "--services",
            "3",
            "--secrets",
            "1",
            "--secret-bytes",
            "1_000",
            "--until-stdin-closes",
            "--kubeconfig",
        ])
        .arg(&kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(Client::try_from(config).unwrap());
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 12);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    std::fs::remove_file(kubeconfig).unwrap();
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, expected) in [
        (&["--pots", "5"][..], "unknown option --pots"),
        (&["--pods"], "--pods needs a value"),
        (&["--pods", "many"], "--pods: many is no number that fits"),
        (&["--port", "70000"], "--port: 70000 is no number that fits"),
    ] {
        let output = binary().args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.starts_with(expected), "{arguments:?}: {text}");
    }
    let output = binary().arg("--help").output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"k8s-fake-apiserver [OPTIONS]"));
}
