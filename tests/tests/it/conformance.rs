//! Is the embedded server like the real one? Requests with the answers that a real server gave, held against both.
//!
//! Each file in `tests/conformance` is read from top to bottom, in a namespace of its own:
//!
//! ```text
//! === title
//! METHOD /path?query=$saved          or COMPACT, which throws the history away
//! Header: value
//! save NAME metadata.continue        a text of the answer, for later as $NAME
//! show metadata status               these members of the answer (and of its items), not all
//! lines 3                            of a watch; else all until it ends
//! differs message REASON             these members (commas between) are others in the embedded server, on purpose
//!
//! {"the": "body"}
//! --- 200 application/json
//! { the answer: identities, times and versions replaced, members in order }
//! ```
//!
//! With `E2E_RECORD=1` the answers of the real server are written into the files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use e2e::Target;
use futures_util::StreamExt;
use http::Request;
use http_body_util::BodyStream;
use kube::client::Body;
use serde_json::Value;

use crate::scopes::define_widgets;
use crate::support::{Rest, is_stale};

use normal::Normal;

mod normal;

/// How long an answer may take; a watch is asked to end earlier.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn answers_about_objects(target: &Target) -> Result<()> {
    play("objects", Server::Shared(target)).await
}

pub(crate) async fn answers_about_status(target: &Target) -> Result<()> {
    play("status", Server::Shared(target)).await
}

pub(crate) async fn answers_to_lists(target: &mut Target) -> Result<()> {
    play("lists", Server::Alone(target)).await
}

pub(crate) async fn answers_to_watches(target: &mut Target) -> Result<()> {
    play("watches", Server::Alone(target)).await
}

/// Only who is alone may throw the history away.
enum Server<'a> {
    Shared(&'a Target),
    Alone(&'a mut Target),
}

impl Server<'_> {
    fn target(&self) -> &Target {
        match self {
            Self::Shared(target) => target,
            Self::Alone(target) => target,
        }
    }
}

/// Reads a file; every exchange that is not as recorded is named.
async fn play(name: &str, mut server: Server<'_>) -> Result<()> {
    let rest = Rest::of(server.target());
    define_widgets(server.target(), &rest, "conformance.example.com").await?;
    rest.namespace(&format!("conformance-{name}")).await?;
    let is_embedded = server.target().as_embedded().is_some();
    let record = env::var_os("E2E_RECORD").is_some() && !is_embedded;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(format!("{name}.http"));
    let mut script = Script::parse(&fs::read_to_string(&file)?)?;
    let mut session = Session { normal: Normal::default(), saved: BTreeMap::new() };
    session.saved.insert("ns".into(), format!("conformance-{name}"));
    let mut wrong = String::new();
    for exchange in &mut script.exchanges {
        let answer = session.run(&mut server, exchange).await.with_context(|| exchange.title.clone())?;
        if record {
            exchange.answer = answer;
            continue;
        }
        let (mut recorded, mut found) = (exchange.answer.clone(), answer);
        if let Some((members, reason)) = exchange.differs.as_ref().filter(|_| is_embedded) {
            if recorded == found {
                write!(wrong, "\n{}: differs no more ({reason})", exchange.title)?;
            }
            for text in [&mut recorded, &mut found] {
                *text = without(text, members)?;
            }
        }
        if recorded != found {
            write!(wrong, "\n{}{}", exchange.title, difference(&recorded, &found))?;
        }
    }
    if record {
        fs::write(&file, script.to_string())?;
    }
    ensure!(wrong.is_empty(), "not as recorded in {}:{wrong}", file.display());
    Ok(())
}

/// An answer without these members, wherever they are.
fn without(answer: &str, members: &[String]) -> Result<String> {
    fn remove(value: &mut Value, members: &[String]) {
        match value {
            Value::Object(map) => {
                map.retain(|name, _| !members.contains(name));
                map.values_mut().for_each(|value| remove(value, members));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| remove(item, members)),
            _ => {}
        }
    }
    let (status, body) = answer.split_once('\n').context("an answer with a body")?;
    let mut value = serde_json::from_str(body)?;
    remove(&mut value, members);
    Ok(format!("{status}\n{value:#}"))
}

/// What is recorded (-) and what came (+), from the first line to the last in which they differ.
fn difference(recorded: &str, found: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (recorded.lines().collect(), found.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let lines = |mark: &str, lines: &[&str]| lines.iter().map(|l| format!("\n    {mark} {l}")).collect::<String>();
    lines("-", &old[..old.len() - tail]) + &lines("+", &new[..new.len() - tail])
}

struct Session {
    normal: Normal,
    saved: BTreeMap<String, String>,
}

impl Session {
    async fn run(&mut self, server: &mut Server<'_>, exchange: &Exchange) -> Result<String> {
        if exchange.request == "COMPACT" {
            let Server::Alone(target) = server else { bail!("others need the history") };
            target.compact().await?;
            return Ok(String::new());
        }
        let (method, path) = exchange.request.split_once(' ').context("METHOD /path")?;
        let body = self.fill(&exchange.body).into_bytes();
        let response = loop {
            let mut request = Request::builder().method(method).uri(self.fill(path));
            if !exchange.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
                request = request.header("accept", "application/json");
            }
            for (name, value) in &exchange.headers {
                request = request.header(name, value);
            }
            match server.target().client().send(request.body(Body::from(body.clone()))?).await {
                Err(error) if is_stale(&error) => {}
                answer => break answer?,
            }
        };
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let mut answer = format!("{} {}", response.status().as_u16(), header("content-type"));
        if !header("retry-after").is_empty() {
            write!(answer, " retry-after {}", header("retry-after"))?;
        }
        let is_watch = path.contains("watch=") && response.status().is_success();
        let text =
            tokio::time::timeout(LIMIT, read(response.into_body(), exchange.lines)).await.context("no end")??;
        if is_watch {
            for line in text.lines() {
                answer = answer + "\n" + &self.show(exchange, line, false)?;
            }
        } else if !text.trim().is_empty() {
            answer = answer + "\n" + &self.show(exchange, &text, true)?;
        }
        Ok(answer)
    }

    fn show(&mut self, exchange: &Exchange, text: &str, pretty: bool) -> Result<String> {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return Ok(text.trim_end().to_owned()) };
        for (name, path) in &exchange.saves {
            let found = path.split('.').try_fold(&value, |value, step| match step.parse::<usize>() {
                Ok(index) => value.get(index),
                Err(_) => value.get(step),
            });
            if let Some(text) = found.and_then(Value::as_str) {
                self.saved.insert(name.clone(), text.to_owned());
            }
        }
        self.normal.normalise(&mut value);
        if !exchange.show.is_empty() {
            select(&mut value, &exchange.show);
        }
        Ok(if pretty { serde_json::to_string_pretty(&value)? } else { value.to_string() })
    }

    fn fill(&self, text: &str) -> String {
        self.saved.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }
}

/// Leaves these members, in the value or in the items or the object inside it.
fn select(value: &mut Value, members: &[String]) {
    let Value::Object(map) = value else { return };
    if let Some(Value::Array(items)) = map.get_mut("items") {
        items.iter_mut().for_each(|item| select(item, members));
    } else if let Some(object) = map.get_mut("object") {
        select(object, members);
    } else if map.get("kind") != Some(&Value::from("Status")) || members.iter().any(|m| m == "reason") {
        // A refusal is shown whole unless its members are named.
        map.retain(|name, _| members.contains(name));
    }
}

/// The body, up to so many lines.
async fn read(body: Body, lines: Option<usize>) -> Result<String> {
    let mut text = Vec::new();
    let mut frames = BodyStream::new(body);
    while let Some(frame) = frames.next().await {
        if let Ok(data) = frame.map_err(|e| anyhow::anyhow!("{e}"))?.into_data() {
            text.extend_from_slice(&data);
        }
        if lines.is_some_and(|most| text.iter().filter(|b| **b == b'\n').count() >= most) {
            break;
        }
    }
    Ok(String::from_utf8(text)?)
}

/// A file.
struct Script {
    /// What stands before the first exchange.
    preface: String,
    exchanges: Vec<Exchange>,
}

#[derive(Default)]
struct Exchange {
    title: String,
    request: String,
    headers: Vec<(String, String)>,
    saves: Vec<(String, String)>,
    show: Vec<String>,
    lines: Option<usize>,
    differs: Option<(Vec<String>, String)>,
    body: String,
    /// What stands before the answer, as it is.
    text: String,
    /// Status line and body as recorded.
    answer: String,
}

impl Script {
    fn parse(text: &str) -> Result<Self> {
        let (preface, rest) = text.split_once("=== ").context("no exchange")?;
        let exchanges = rest.split("\n=== ").map(Exchange::parse).collect::<Result<_>>()?;
        Ok(Self { preface: preface.to_owned(), exchanges })
    }
}

impl Exchange {
    fn parse(text: &str) -> Result<Self> {
        let (request, answer) = text.split_once("\n--- ").unwrap_or((text, ""));
        let mut exchange =
            Self { answer: answer.trim_end().into(), text: request.trim_end().into(), ..Self::default() };
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        exchange.body = body.trim().into();
        let mut lines = head.lines();
        exchange.title = lines.next().context("a title")?.into();
        exchange.request = lines.next().with_context(|| format!("{}: no request", exchange.title))?.into();
        for line in lines {
            match line.split_once(' ').with_context(|| format!("{}: {line}", exchange.title))? {
                ("save", rest) => {
                    let (name, path) = rest.split_once(' ').context("save NAME PATH")?;
                    exchange.saves.push((name.into(), path.into()));
                }
                ("show", rest) => exchange.show = rest.split(' ').map(str::to_owned).collect(),
                ("lines", rest) => exchange.lines = Some(rest.parse()?),
                ("differs", rest) => {
                    let (members, reason) = rest.split_once(' ').context("differs MEMBERS REASON")?;
                    exchange.differs = Some((members.split(',').map(str::to_owned).collect(), reason.into()));
                }
                (header, value) if header.ends_with(':') => {
                    exchange.headers.push((header.trim_end_matches(':').into(), value.into()));
                }
                _ => bail!("{}: {line:?} is no directive", exchange.title),
            }
        }
        Ok(exchange)
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.preface)?;
        for (i, exchange) in self.exchanges.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n" };
            write!(f, "{gap}=== {}", exchange.text)?;
            match exchange.answer.as_str() {
                "" => writeln!(f)?,
                answer => writeln!(f, "\n--- {answer}")?,
            }
        }
        Ok(())
    }
}
