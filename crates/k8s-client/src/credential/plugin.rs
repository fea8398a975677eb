//! A credential plugin: a program that prints a token or a certificate.

use std::io::{self, IsTerminal};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine;
use futures_util::future::join;
use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::Instant;

use super::bearer;
use crate::error::Cause;

/// The API versions that kubectl knows.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// A token is replaced this long before it expires: requests take their time.
const MARGIN: Duration = Duration::from_secs(10);

/// A plugin that has just answered is not asked again, even if the server refuses its token: it would answer the same.
const MIN_PAUSE: Duration = Duration::from_secs(10);

/// No answer is longer.
const MAX_ANSWER: u64 = 1 << 20;

/// What a plugin says to a person is a line in an error.
const MAX_WORDS: usize = 512;

/// What went wrong with a plugin. Its standard output is the credential, so that nothing of it is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum PluginError {
    #[error("the user's exec section {0}")]
    Config(String),
    #[error("the credential plugin {command:?} cannot be run{hint}")]
    Start { command: String, hint: String, source: io::Error },
    #[error("the credential plugin {command:?} ended with {status}{words}")]
    Failed { command: String, status: ExitStatus, words: String },
    #[error("the answer of the credential plugin {command:?} {what}")]
    Answer { command: String, what: &'static str },
}

/// A plugin that gives tokens.
pub(super) struct Plugin {
    exec: ExecConfig,
    header: HeaderValue,
    /// When the token is as good as expired.
    due: Option<Instant>,
    ran_at: Instant,
}

/// What the first run gave.
pub(super) enum Started {
    /// A token, perhaps beside a certificate.
    Token(Box<Plugin>),
    /// Only a certificate.
    Certificate { valid_until: Option<Timestamp> },
}

impl Plugin {
    /// Runs the plugin for the first time. A certificate that it gives goes into `user`.
    pub(super) async fn start(exec: ExecConfig, user: &mut AuthInfo, now: Instant) -> Result<Started, Cause> {
        let answer = run(&exec).await?;
        if let Some((certificate, key)) = answer.identity {
            let encode = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
            user.client_certificate_data = Some(encode(certificate));
            user.client_key_data = Some(encode(key).into());
        }
        Ok(match answer.header {
            Some(header) => Started::Token(Box::new(Self { exec, header, due: due(now, answer.expires), ran_at: now })),
            None => Started::Certificate { valid_until: answer.expires },
        })
    }

    /// The token; runs the plugin when it expires.
    pub(super) async fn current(&mut self, now: Instant) -> Result<HeaderValue, Cause> {
        if self.due.is_some_and(|due| due <= now) {
            self.renew(now).await?;
        }
        Ok(self.header.clone())
    }

    /// A new token, unless there has been one since `refused` was used.
    pub(super) async fn after_refusal(&mut self, refused: &HeaderValue, now: Instant) -> Result<HeaderValue, Cause> {
        if self.header == *refused && now.saturating_duration_since(self.ran_at) >= MIN_PAUSE {
            self.renew(now).await?;
        }
        Ok(self.header.clone())
    }

    async fn renew(&mut self, now: Instant) -> Result<(), Cause> {
        self.ran_at = now;
        let answer = run(&self.exec).await?;
        self.header = answer.header.ok_or_else(|| broken(&self.exec, "holds no token any more"))?;
        self.due = due(now, answer.expires);
        Ok(())
    }
}

/// The wall clock is asked once, here: from then on time is Tokio's.
fn due(now: Instant, expires: Option<Timestamp>) -> Option<Instant> {
    let left = Duration::try_from(expires?.duration_since(Timestamp::now())).unwrap_or_default();
    now.checked_add(left.saturating_sub(MARGIN))
}

struct Answer {
    header: Option<HeaderValue>,
    /// Certificate and key in PEM.
    identity: Option<(String, String)>,
    expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    status: Option<WireStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireStatus {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    client_certificate_data: Option<String>,
    #[serde(default)]
    client_key_data: Option<String>,
    #[serde(default)]
    expiration_timestamp: Option<String>,
}

fn command_of(exec: &ExecConfig) -> &str {
    exec.command.as_deref().unwrap_or_default()
}

fn broken(exec: &ExecConfig, what: &'static str) -> PluginError {
    PluginError::Answer { command: command_of(exec).to_owned(), what }
}

/// One run. The program is killed when the future is dropped.
async fn run(exec: &ExecConfig) -> Result<Answer, PluginError> {
    let config = |text: &str| PluginError::Config(text.to_owned());
    let command = exec.command.as_deref().ok_or_else(|| config("names no command"))?;
    let version = exec.api_version.as_deref().ok_or_else(|| config("names no apiVersion"))?;
    if !VERSIONS.contains(&version) {
        return Err(PluginError::Config(format!("has an apiVersion that is not supported: {version:?}")));
    }
    let terminal = io::stdin().is_terminal();
    let interactive = match exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            return Err(config("needs a terminal (interactiveMode Always), and standard input is none"));
        }
        _ => terminal,
    };

    let mut child = prepare(exec, command, version, interactive).spawn().map_err(|source| PluginError::Start {
        command: command.to_owned(),
        hint: hint(exec, &source),
        source,
    })?;
    let (output, words) = join(
        read(child.stdout.take(), MAX_ANSWER),
        // Characters of up to four bytes.
        read(child.stderr.take(), 4 * MAX_WORDS as u64),
    )
    .await;
    let lost = |source| PluginError::Start { command: command.to_owned(), hint: String::new(), source };
    let status = child.wait().await.map_err(lost)?;
    if !status.success() {
        let words: String = String::from_utf8_lossy(&words).trim().chars().take(MAX_WORDS).collect();
        let words = if words.is_empty() { words } else { format!(": {words}") };
        return Err(PluginError::Failed { command: command.to_owned(), status, words });
    }
    parse(exec, version, &output)
}

fn prepare(exec: &ExecConfig, command: &str, version: &str, interactive: bool) -> Command {
    let mut spec = serde_json::json!({"interactive": interactive});
    if let Some(cluster) = &exec.cluster {
        spec["cluster"] = serde_json::json!(cluster);
    }
    let info = serde_json::json!({"kind": "ExecCredential", "apiVersion": version, "spec": spec});
    let mut program = Command::new(command);
    program.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            program.env(name, value);
        }
    }
    program.env("KUBERNETES_EXEC_INFO", info.to_string());
    program.stdout(Stdio::piped()).kill_on_drop(true);
    if interactive {
        program.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        program.stdin(Stdio::null()).stderr(Stdio::piped());
    }
    program
}

/// What the kubeconfig tells a person who lacks the program.
fn hint(exec: &ExecConfig, error: &io::Error) -> String {
    let hint = exec.install_hint.as_deref().map(str::trim).unwrap_or_default();
    if hint.is_empty() || error.kind() != io::ErrorKind::NotFound {
        return String::new();
    }
    format!(" ({})", hint.chars().take(MAX_WORDS).collect::<String>())
}

/// At most `limit` bytes. Then, or at the end, the pipe is closed, so that a program that says more does not wait.
async fn read(pipe: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before an error of the pipe is what there is; the program's status tells the rest.
        let _ = pipe.take(limit).read_to_end(&mut bytes).await;
    }
    bytes
}

/// JSON or YAML, as in kubectl. Whatever is wrong, nothing of the text is told.
fn parse(exec: &ExecConfig, version: &str, output: &[u8]) -> Result<Answer, PluginError> {
    let broken = |what| broken(exec, what);
    if output.trim_ascii().is_empty() {
        return Err(broken("is empty"));
    }
    let answer: WireAnswer = serde_saphyr::from_slice(output).map_err(|_| broken("cannot be read"))?;
    if answer.api_version.is_some_and(|given| given != version) {
        return Err(broken("has another apiVersion than the kubeconfig asks for"));
    }
    let status = answer.status.ok_or_else(|| broken("holds no status"))?;
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let header = given(status.token)
        .map(|token| bearer(&token).ok_or_else(|| broken("holds a token that is no valid header")))
        .transpose()?;
    let identity = match (given(status.client_certificate_data), given(status.client_key_data)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(broken("holds a certificate without its key, or the reverse")),
    };
    if header.is_none() && identity.is_none() {
        return Err(broken("holds neither a token nor a certificate"));
    }
    let expires = given(status.expiration_timestamp)
        .map(|text| text.trim().parse().map_err(|_| broken("holds an expirationTimestamp that is no time")))
        .transpose()?;
    Ok(Answer { header, identity, expires })
}
