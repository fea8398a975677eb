//! Who the client is to the server: bearer tokens that change while it runs.
//!
//! kube's own layer would take a kubeconfig's token as it is and panic when it cannot be a header, keep a token that
//! the server refuses until its minute is over, and run a credential plugin several times at the start. Client
//! certificates and basic authentication stay with kube.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, StatusCode, header};
use jiff::Timestamp;
use kube::client::Body;
use kube::config::AuthInfo;
use secrecy::ExposeSecret;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::error::Cause;
use plugin::{Plugin, Started};
use token_file::TokenFile;

mod plugin;
#[cfg(test)]
mod tests;
mod token_file;

/// What the user part of a configuration says about tokens, taken out of it.
pub(crate) enum Credentials {
    /// Nothing, or nothing that concerns this module.
    None,
    /// A token that never changes.
    Fixed(HeaderValue),
    /// A token that is read or made again.
    Renewed(Renewed),
    /// A certificate that a plugin gave. kube cannot replace it in a client.
    Certificate { valid_until: Option<Timestamp> },
}

impl Credentials {
    /// Takes the tokens out of `user`, so that kube does not see them. Runs the credential plugin; a certificate that
    /// it gives is put into `user`, and kube uses it like one from the file.
    pub(crate) async fn take(user: &mut AuthInfo) -> Result<Self, Cause> {
        let (token, file, exec) = (user.token.take(), user.token_file.take(), user.exec.take());
        let mut token = token.map(|t| t.expose_secret().to_owned());
        if let Some(mut provider) = user.auth_provider.take() {
            // The only one that kubectl still has; it is not renewed.
            if provider.name != "oidc" {
                return Err(format!(
                    "auth-provider {:?} is not supported: use a credential plugin (exec)",
                    provider.name
                )
                .into());
            }
            token = token.or_else(|| provider.config.remove("id-token"));
        }
        let basic = user.username.is_some() || user.password.is_some();
        if basic && (token.is_some() || file.is_some()) {
            return Err("username and password are set beside a token: only one of them can be used".into());
        }
        let now = Instant::now();
        if let Some(path) = file {
            // As in kubectl the file comes first, and the token is there for the time before the file is.
            match TokenFile::open(&path, now) {
                Ok(file) => return Ok(Self::Renewed(Renewed::new(Source::File(file)))),
                Err(error) if token.is_none() => return Err(Box::new(error)),
                Err(_) => {}
            }
        }
        if let Some(token) = token {
            return Ok(Self::Fixed(bearer(&token).ok_or("the user's token cannot be sent: it is no valid header")?));
        }
        match exec {
            Some(exec) if !basic => Ok(match Plugin::start(exec, user, now).await? {
                Started::Token(plugin) => Self::Renewed(Renewed::new(Source::Plugin(plugin))),
                Started::Certificate { valid_until } => Self::Certificate { valid_until },
            }),
            _ => Ok(Self::None),
        }
    }
}

enum Source {
    File(TokenFile),
    Plugin(Box<Plugin>),
}

/// A token that is read or made again when it is old, and at once when the server refuses it.
#[derive(Clone)]
pub(crate) struct Renewed {
    /// Held while a plugin runs: all requests wait for the one run.
    source: Arc<Mutex<Source>>,
}

impl Renewed {
    fn new(source: Source) -> Self {
        Self { source: Arc::new(Mutex::new(source)) }
    }

    /// `client` with this token on each request.
    pub(crate) fn wrap(self, client: kube::Client) -> kube::Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        kube::Client::new(Authorized { client, token: self }, namespace).with_valid_until(valid_until)
    }

    async fn current(&self) -> Result<HeaderValue, Cause> {
        match &mut *self.source.lock().await {
            Source::File(file) => Ok(file.current(Instant::now())),
            Source::Plugin(plugin) => plugin.current(Instant::now()).await,
        }
    }

    /// Another token than the refused one, if there is one to be had.
    async fn other_than(&self, refused: &HeaderValue) -> Option<HeaderValue> {
        let source = &mut *self.source.lock().await;
        let now = Instant::now();
        let fresh = match source {
            Source::File(file) => file.after_refusal(refused, now),
            Source::Plugin(plugin) => match plugin.after_refusal(refused, now).await {
                Ok(fresh) => fresh,
                Err(error) => {
                    tracing::warn!(%error, "the server refuses the token and the credential plugin gives no other");
                    return None;
                }
            },
        };
        (fresh != *refused).then_some(fresh)
    }
}

/// Sends each request with the present token. A 401 has changed nothing on the server, so that a request that met one
/// is sent once more if there is another token by now, whatever its verb.
struct Authorized {
    client: kube::Client,
    token: Renewed,
}

impl Service<Request<Body>> for Authorized {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The client below queues requests when they come.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, token) = (self.client.clone(), self.token.clone());
        Box::pin(send(client, token, request))
    }
}

async fn send(client: kube::Client, token: Renewed, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        // The caller's own.
        return Ok(client.send(request).await?);
    }
    let used = token.current().await?;
    request.headers_mut().insert(header::AUTHORIZATION, used.clone());
    let again = copy(&request);
    let response = client.send(request).await?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(response);
    }
    let (Some(mut again), Some(fresh)) = (again, token.other_than(&used).await) else {
        return Ok(response);
    };
    drop(response);
    tracing::debug!("the server refused the token; the request is sent once more with a new one");
    again.headers_mut().insert(header::AUTHORIZATION, fresh);
    Ok(client.send(again).await?)
}

/// The same request, unless its body is a stream.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// The header for a token, without the space around it that editors leave; `None` when it cannot be one.
fn bearer(token: &str) -> Option<HeaderValue> {
    let token = token.trim();
    if token.is_empty() {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
