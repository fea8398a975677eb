//! Tokens that change, on a clock that is told and with a server in the process.

use std::path::{Path, PathBuf};
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_fake_apiserver::FakeApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, WatchEvent, WatchParams};
use kube::config::ExecConfig;
use tokio::time::{advance, sleep};

use super::*;

/// A server that takes one token, and keeps which it was given and with which body.
#[derive(Clone, Default)]
struct Choosy {
    accepted: Arc<StdMutex<String>>,
    given: Arc<StdMutex<Vec<(String, String)>>>,
}

impl Choosy {
    fn accept(&self, token: &str) {
        *self.accepted.lock().unwrap() = format!("Bearer {token}");
    }

    /// The tokens given since the last call.
    fn tokens(&self) -> Vec<String> {
        let given = std::mem::take(&mut *self.given.lock().unwrap());
        given.into_iter().map(|(token, _)| token.trim_start_matches("Bearer ").to_owned()).collect()
    }

    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let token = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
                let body = request.into_body().collect_bytes().await?;
                let status = if token == *server.accepted.lock().unwrap() { 200 } else { 401 };
                server.given.lock().unwrap().push((token, String::from_utf8(body.to_vec()).unwrap()));
                // Others get their turn between question and answer.
                tokio::task::yield_now().await;
                Ok::<_, kube::Error>(Response::builder().status(status).body(Body::empty()).unwrap())
            }
        });
        kube::Client::new(service, "shop")
    }
}

async fn ask(client: &kube::Client, body: impl Into<Body>) -> u16 {
    client.send(Request::post("/").body(body.into()).unwrap()).await.unwrap().status().as_u16()
}

async fn renewed(user: AuthInfo) -> Renewed {
    let mut user = user;
    match Credentials::take(&mut user).await.unwrap() {
        Credentials::Renewed(token) => token,
        _ => panic!("the token is not renewed"),
    }
}

async fn token_file(path: &Path) -> Renewed {
    renewed(AuthInfo { token_file: Some(path.display().to_string()), ..Default::default() }).await
}

fn folder_with_token(token: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, token).unwrap();
    (folder, path)
}

#[tokio::test(start_paused = true)]
async fn c81_a_rotation_costs_at_most_one_refusal_and_the_user_sees_none() {
    let (_folder, path) = folder_with_token("one");
    let server = Choosy::default();
    server.accept("one");
    let client = token_file(&path).await.wrap(server.client());
    assert_eq!(client.default_namespace(), "shop");
    for second in 0..600 {
        if second == 300 {
            std::fs::write(&path, "two").unwrap();
            server.accept("two");
        }
        if second == 450 {
            // For a second the file is empty.
            std::fs::write(&path, "").unwrap();
        }
        if second == 451 {
            std::fs::write(&path, "two").unwrap();
        }
        assert_eq!(ask(&client, Body::empty()).await, 200, "second {second}");
        sleep(Duration::from_secs(1)).await;
    }
    let tokens = server.tokens();
    assert_eq!(tokens.iter().position(|t| t == "two").unwrap_or(0), tokens.iter().filter(|t| *t == "one").count());
    assert!(tokens.len() <= 601, "{}", tokens.len());
}

#[tokio::test(start_paused = true)]
async fn c81_a_token_that_the_server_still_takes_is_replaced_within_a_minute() {
    let (_folder, path) = folder_with_token("one");
    let server = Choosy::default();
    server.accept("one");
    let client = token_file(&path).await.wrap(server.client());
    advance(Duration::from_secs(30)).await;
    std::fs::write(&path, "two").unwrap();
    assert_eq!(ask(&client, Body::empty()).await, 200);
    advance(Duration::from_secs(30)).await;
    server.accept("two");
    assert_eq!(ask(&client, Body::empty()).await, 200);
    assert_eq!(server.tokens(), ["one", "two"], "nothing was refused");
}

#[tokio::test(start_paused = true)]
async fn c81_many_requests_at_a_rotation_are_each_sent_twice_at_most() {
    let (_folder, path) = folder_with_token("one");
    let server = Choosy::default();
    let client = token_file(&path).await.wrap(server.client());
    std::fs::write(&path, "two").unwrap();
    server.accept("two");
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..50 {
        let client = client.clone();
        tasks.spawn(async move { ask(&client, format!("body {i}").into_bytes()).await });
    }
    while let Some(status) = tasks.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    let mut given: Vec<_> = server.given.lock().unwrap().clone();
    given.sort();
    given.dedup();
    // Each body as it was, whichever token went with it.
    assert_eq!(given.iter().filter(|(token, _)| token == "Bearer two").count(), 50);
    assert!(given.len() <= 100 && server.given.lock().unwrap().len() == given.len());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_streams_is_sent_once_and_the_callers_own_token_stays() {
    let (_folder, path) = folder_with_token("one");
    let server = Choosy::default();
    let client = token_file(&path).await.wrap(server.client());
    std::fs::write(&path, "two").unwrap();
    server.accept("two");

    let own = Request::get("/").header(header::AUTHORIZATION, "Bearer own").body(Body::empty()).unwrap();
    assert_eq!(client.send(own).await.unwrap().status(), 401);
    assert_eq!(server.tokens(), ["own"]);

    // An answer's body is a stream; any other would do.
    let echo = kube::Client::new(
        tower::service_fn(|_: Request<Body>| {
            std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Body::from(b"stream".to_vec()))))
        }),
        "",
    );
    let stream = echo.send(Request::new(Body::empty())).await.unwrap().into_body();
    assert!(stream.try_clone().is_none());
    assert_eq!(ask(&client, stream).await, 401);
    assert_eq!(server.given.lock().unwrap().drain(..).collect::<Vec<_>>(), [("Bearer one".into(), "stream".into())]);
    // The next one brings the new token.
    assert_eq!(ask(&client, Body::empty()).await, 200);
}

#[tokio::test(start_paused = true)]
async fn c81_a_watch_that_is_open_lives_on_through_a_rotation() {
    let (_folder, path) = folder_with_token("one");
    let server = FakeApiServer::builder().start().await.unwrap();
    let client = token_file(&path).await.wrap(server.client());
    let api: kube::Api<ConfigMap> = kube::Api::namespaced(client, "shop");
    let params = WatchParams::default().disable_bookmarks().timeout(290);
    let mut watch = std::pin::pin!(api.watch(&params, "0").await.unwrap());
    std::fs::write(&path, "two").unwrap();
    advance(Duration::from_secs(120)).await;
    let metadata = ObjectMeta { name: Some("a".into()), ..Default::default() };
    api.create(&Default::default(), &ConfigMap { metadata, ..Default::default() }).await.unwrap();
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Added(object) => assert_eq!(object.metadata.name.as_deref(), Some("a")),
        other => panic!("{other:?}"),
    }
}

/// A plugin that numbers its tokens `t1`, `t2`, …, and whose answer has `more` members. It is run by the shell, so
/// that nothing has to be made executable.
fn counting_plugin(folder: &Path, more: &str) -> AuthInfo {
    let count = folder.join("count").display().to_string();
    let script = format!(
        "n=$(($(cat {count} 2>/dev/null || echo 0) + 1)); echo $n >{count}; echo \"status: {{token: t$n{more}}}\""
    );
    let exec = ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1".into()),
        command: Some("sh".into()),
        args: Some(vec!["-c".into(), script]),
        interactive_mode: Some(kube::config::ExecInteractiveMode::Never),
        ..Default::default()
    };
    AuthInfo { exec: Some(exec), ..Default::default() }
}

/// An expiry so many seconds from now, for [`counting_plugin`].
fn expiring_in(seconds: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    format!(", expirationTimestamp: {at}")
}

#[tokio::test(start_paused = true)]
async fn a_plugins_token_is_replaced_before_it_expires_and_when_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Choosy::default();
    let client = renewed(counting_plugin(folder.path(), &expiring_in(3600))).await.wrap(server.client());
    server.accept("t1");
    for _ in 0..3 {
        assert_eq!(ask(&client, Body::empty()).await, 200);
    }
    advance(Duration::from_secs(3500)).await;
    assert_eq!(ask(&client, Body::empty()).await, 200);
    assert_eq!(server.tokens(), ["t1"; 4]);
    advance(Duration::from_secs(95)).await;
    server.accept("t2");
    assert_eq!(ask(&client, Body::empty()).await, 200);
    assert_eq!(server.tokens(), ["t2"], "before it expires, not after");

    // Refused: at once, but not twice within moments.
    let folder = tempfile::tempdir().unwrap();
    let client = renewed(counting_plugin(folder.path(), "")).await.wrap(server.client());
    server.accept("never");
    assert_eq!(ask(&client, Body::empty()).await, 401);
    assert_eq!(server.tokens(), ["t1"], "it has just been asked");
    advance(Duration::from_secs(60)).await;
    server.accept("t2");
    assert_eq!(ask(&client, Body::empty()).await, 200);
    assert_eq!(server.tokens(), ["t1", "t2"]);
    server.accept("never");
    for _ in 0..3 {
        assert_eq!(ask(&client, Body::empty()).await, 401);
    }
    assert_eq!(server.tokens(), ["t2"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_is_run_once_for_all_who_wait() {
    let folder = tempfile::tempdir().unwrap();
    let server = Choosy::default();
    let client = renewed(counting_plugin(folder.path(), "")).await.wrap(server.client());
    server.accept("t2");
    advance(Duration::from_secs(60)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        tasks.spawn(async move { ask(&client, Body::empty()).await });
    }
    while let Some(status) = tasks.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("count")).unwrap().trim(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_fails_later_fails_the_request_and_may_recover() {
    let folder = tempfile::tempdir().unwrap();
    let server = Choosy::default();
    let user = counting_plugin(folder.path(), &expiring_in(60));
    let client = renewed(user).await.wrap(server.client());
    server.accept("t2");
    advance(Duration::from_secs(60)).await;
    // The shell cannot add to what is no number.
    std::fs::write(folder.path().join("count"), "1 x").unwrap();
    let error = client.send(Request::new(Body::empty())).await.unwrap_err();
    let error = crate::Error::transport("GET /", error);
    let told = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(
        told.starts_with("GET /: no answer from the server: the credential plugin \"sh\" ended with exit status: "),
        "{told}"
    );
    std::fs::write(folder.path().join("count"), "1").unwrap();
    assert_eq!(ask(&client, Body::empty()).await, 200);
}
