//! The service account of the Pod that the program runs in.

use std::path::Path;

use kube::config::Cluster;

use super::{Loaded, select};
use crate::error::Error;
use crate::namespace;

pub(super) const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
const ORIGIN: &str = "the in-cluster configuration";

pub(super) fn load() -> Result<Loaded, Error> {
    let read = |name: &str| {
        std::env::var(name).map_err(|_| Error::config_text(ORIGIN, format!("the environment has no {name}")))
    };
    service_account(&read(HOST)?, &read(PORT)?, Path::new(namespace::SERVICE_ACCOUNT))
}

/// kube's in-cluster loader refuses a service account without a namespace file; ours goes on without a namespace.
pub(super) fn service_account(host: &str, port: &str, folder: &Path) -> Result<Loaded, Error> {
    let fail = |text: String| Error::config_text(ORIGIN, text);
    let port: u16 = port.parse().map_err(|_| fail(format!("{PORT} is no port number: {port:?}")))?;
    let host = match host.parse::<std::net::Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]"),
        Err(_) => host.to_owned(),
    };
    let server = format!("https://{host}:{port}").parse().map_err(|e| fail(format!("{HOST} is no host: {e}")))?;
    let file = |name: &str| folder.join(name).to_str().map(str::to_owned);
    if let Err(error) = std::fs::metadata(folder.join("token")) {
        return Err(fail(format!("no service account token: {error}")));
    }
    let mut config = kube::Config::new(server);
    let cluster = Cluster { certificate_authority: file("ca.crt"), ..Default::default() };
    select::trust(&mut config, &cluster, ORIGIN)?;
    // No proxy: the server is next door, and HTTPS_PROXY of a Pod is for the outside.
    config.auth_info.token_file = file("token");
    let namespace = namespace::of_service_account(folder);
    if let Some(namespace) = &namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(Loaded { config, namespace, origin: ORIGIN.to_owned() })
}
