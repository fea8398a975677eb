//! The few calls to etcd that a test needs, over its JSON gateway: no client library, no etcdctl.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How many puts etcd takes at once, unless it is told otherwise.
const AT_ONCE: usize = 128;

/// Forgets all history before the present revision.
pub(super) fn compact(port: u16) -> Result<()> {
    let found = call(port, "/v3/kv/range", &json!({"key": "AA==", "limit": 1}))?;
    let revision = found["header"]["revision"].as_str().context("etcd told no revision")?;
    call(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}))?;
    Ok(())
}

/// Puts values under their keys, many in one revision.
pub(super) fn put(port: u16, values: &[(String, Value)]) -> Result<()> {
    let put = |(key, value): &(String, Value)| json!({"requestPut": {"key": STANDARD.encode(key), "value": STANDARD.encode(value.to_string())}});
    for values in values.chunks(AT_ONCE) {
        let puts: Vec<_> = values.iter().map(put).collect();
        call(port, "/v3/kv/txn", &json!({"success": puts}))?;
    }
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
