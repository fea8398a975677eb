//! The two calls to etcd that a test needs, over its JSON gateway: no client library, no etcdctl.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Forgets all history before the present revision.
pub(super) fn compact(port: u16) -> Result<()> {
    let found = call(port, "/v3/kv/range", &json!({"key": "AA==", "limit": 1}))?;
    let revision = found["header"]["revision"].as_str().context("etcd told no revision")?;
    call(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}))?;
    Ok(())
}

fn call(port: u16, path: &str, body: &Value) -> Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let body = body.to_string();
    // HTTP/1.0: the answer comes unchunked and ends with the connection.
    write!(stream, "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("etcd sent no answer")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("etcd answered {status} to {path}: {body}");
    }
    Ok(serde_json::from_str(body)?)
}
