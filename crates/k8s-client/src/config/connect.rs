//! From kube's configuration to a client.

use http::header;
use http::uri::Scheme;
use kube::client::ClientBuilder;
use kube::config::AuthInfo;

use super::Loaded;
use crate::credential::Credentials;
use crate::error::Error;
use crate::throttle::ThrottleLayer;

/// Sends nothing, but runs the credential plugin. Dropping the future stops that.
pub(super) async fn connect(loaded: Loaded, throttle: Option<ThrottleLayer>) -> Result<kube::Client, Error> {
    let origin = loaded.origin.clone();
    let mut config = prepare(loaded)?;
    let taken = Credentials::take(&mut config.auth_info).await;
    let credentials = taken.map_err(|source| Error::Build { origin: origin.clone(), source })?;
    if let Credentials::Fixed(token) = &credentials {
        config.headers.push((header::AUTHORIZATION, token.clone()));
    }

    let builder = ClientBuilder::try_from(config).map_err(|e| Error::build(origin, e))?;
    let client = match throttle {
        Some(throttle) => builder.with_layer(&throttle).build(),
        None => builder.build(),
    };
    Ok(match credentials {
        Credentials::Renewed(token) => token.wrap(client),
        Credentials::Certificate { valid_until } => client.with_valid_until(valid_until),
        Credentials::Fixed(_) | Credentials::None => client,
    })
}

/// What all our clients have in common.
pub(super) fn prepare(loaded: Loaded) -> Result<kube::Config, Error> {
    let Loaded { mut config, origin, .. } = loaded;
    // The engine above owns retries: a hidden second layer would multiply them and replay writes.
    config.default_retry = false;
    // Compressed watches arrive in bursts, and lists are read as they come.
    config.disable_compression = true;
    // kube joins paths to this address, and panics when it is none.
    match config.cluster_url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => {}
        Some(scheme) if *scheme == Scheme::HTTP => withhold(&mut config.auth_info),
        _ => return Err(Error::config_text(origin, "the server's address has neither scheme http nor https")),
    }
    Ok(config)
}

/// As kubectl: nothing secret is sent in the clear, and a local `kubectl proxy` wants none. Whom to act as is no
/// secret.
fn withhold(user: &mut AuthInfo) {
    let given = std::mem::take(user);
    user.impersonate = given.impersonate;
    user.impersonate_uid = given.impersonate_uid;
    user.impersonate_groups = given.impersonate_groups;
    user.impersonate_user_extra = given.impersonate_user_extra;
}
