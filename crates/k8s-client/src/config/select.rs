//! From a kubeconfig and the name of a context to kube's configuration.
//!
//! kube's own step is not used: it reads the proxy from the environment by other rules than kubectl, and does not read
//! a CA file again.

use http::Uri;
use kube::config::{Cluster, ExecAuthCluster, Kubeconfig};

use super::{Loaded, proxy};
use crate::error::Error;
use crate::namespace;

/// Resolves a context: the given one, else the kubeconfig's own.
pub(super) fn select(kubeconfig: Kubeconfig, context: Option<&str>, origin: String) -> Result<Loaded, Error> {
    let fail = |text: String| Error::config_text(&origin, text);
    let name = context
        .or(kubeconfig.current_context.as_deref())
        .ok_or_else(|| fail("no context is chosen and current-context is not set".to_owned()))?
        .to_owned();
    let context = kubeconfig
        .contexts
        .into_iter()
        .find(|c| c.name == name)
        .and_then(|c| c.context)
        .ok_or_else(|| fail(format!("there is no context {name:?}")))?;
    let cluster =
        kubeconfig.clusters.into_iter().find(|c| c.name == context.cluster).and_then(|c| c.cluster).ok_or_else(
            || fail(format!("context {name:?} names the cluster {:?}, which is not there", context.cluster)),
        )?;
    // As in kubectl a user that is not there, or is null, is nobody.
    let mut user = kubeconfig
        .auth_infos
        .into_iter()
        .find(|u| Some(&u.name) == context.user.as_ref())
        .and_then(|u| u.auth_info)
        .unwrap_or_default();

    let secured = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let server = address(&cluster, secured).map_err(|text| fail(format!("cluster {:?} {text}", context.cluster)))?;
    let mut config = kube::Config::new(server);
    let for_plugin = trust(&mut config, &cluster, &origin)?;
    if let Some(exec) = user.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = Some(for_plugin);
    }
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.proxy_url =
        proxy::choose(&config.cluster_url, cluster.proxy_url.as_deref(), &proxy::environment).map_err(fail)?;
    config.tls_server_name = cluster.tls_server_name;
    config.auth_info = user;
    let namespace = context.namespace.as_deref().and_then(namespace::non_empty);
    if let Some(namespace) = &namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(Loaded { config, namespace, origin })
}

/// Where the cluster is. An address without a scheme is reached by TLS when anything in the kubeconfig is about TLS.
fn address(cluster: &Cluster, secured: bool) -> Result<Uri, String> {
    let given = cluster.server.as_deref().map(str::trim).filter(|s| !s.is_empty()).ok_or("names no server")?;
    let secured = secured
        || cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some()
        || cluster.insecure_skip_tls_verify == Some(true);
    let scheme = if given.contains("://") {
        ""
    } else if secured {
        "https://"
    } else {
        "http://"
    };
    let server: Uri =
        format!("{scheme}{given}").parse().map_err(|e| format!("has a server that is no address: {e}"))?;
    // They would stand in every line that kube traces.
    if server.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err("has a server with a user in its address: that belongs to the user's entry".to_owned());
    }
    Ok(server)
}

/// Sets the certificate authorities that `cluster` names, and gives what a credential plugin is told about it.
pub(super) fn trust(config: &mut kube::Config, cluster: &Cluster, origin: &str) -> Result<ExecAuthCluster, Error> {
    let for_plugin = ExecAuthCluster::try_from(cluster).map_err(|e| Error::config(origin, e))?;
    if let Some(bundle) = &for_plugin.certificate_authority_data {
        let blocks = pem::parse_many(bundle).map_err(|e| Error::Config {
            origin: origin.to_owned(),
            source: format!("certificate authority: {e}").into(),
        })?;
        let certificates: Vec<_> =
            blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE").map(pem::Pem::into_contents).collect();
        if certificates.is_empty() {
            return Err(Error::config_text(origin, "the certificate authority holds no certificate"));
        }
        config.root_cert = Some(certificates);
        if cluster.certificate_authority_data.is_none() {
            // A cluster's CA is rotated: kube reads this file again for new connections.
            config.root_cert_file = cluster.certificate_authority.as_ref().map(Into::into);
        }
    }
    Ok(for_plugin)
}
