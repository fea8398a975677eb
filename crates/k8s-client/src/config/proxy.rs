//! Through which proxy a server is reached, if any.
//!
//! The rule is kubectl's: the cluster's `proxy-url` always; else `HTTPS_PROXY`, for servers that are reached by TLS,
//! are not on this machine and are not named by `NO_PROXY`. kube compares `NO_PROXY` with the proxy's own address and
//! refuses lists with an empty entry, so that it is not asked.

use std::net::IpAddr;

use http::Uri;

/// Looks a variable up by its name, empty ones counting as absent.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's own.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// # Errors
///
/// A text without the proxy's address, which may hold a password.
pub(super) fn choose(
    server: &Uri,
    proxy_url: Option<&str>,
    environment: Environment<'_>,
) -> Result<Option<Uri>, String> {
    if let Some(text) = proxy_url {
        return parse(text).map(Some).map_err(|problem| format!("the cluster's proxy-url {problem}"));
    }
    let either = |upper: &str, lower: &str| environment(upper).or_else(|| environment(lower));
    let Some(text) = either("HTTPS_PROXY", "https_proxy") else {
        return Ok(None);
    };
    let exempt = either("NO_PROXY", "no_proxy").unwrap_or_default();
    if server.scheme_str() != Some("https") || is_local(server) || is_exempt(server, &exempt) {
        return Ok(None);
    }
    // As everywhere else where this variable is read, the scheme may be left out.
    let text = if text.contains("://") { text } else { format!("http://{text}") };
    parse(text.trim()).map(Some).map_err(|problem| format!("HTTPS_PROXY {problem}"))
}

fn parse(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|e: http::uri::InvalidUri| format!("is no address: {e}"))?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if !["http", "https", "socks5"].contains(&scheme) {
        return Err(format!("has the scheme {scheme:?}: only http, https and socks5 are supported"));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("names no host".to_owned());
    }
    // kube does not hand them to the proxy, and the proxy's refusal would not say why.
    if scheme == "socks5" && uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err("has a user and password: with socks5 these are not supported".to_owned());
    }
    Ok(uri)
}

/// The host without the brackets of IPv6.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn is_local(server: &Uri) -> bool {
    let host = host(server);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Whether a `NO_PROXY` list names the server: `*`; an address, a CIDR block, a domain (with all below it) or `.domain`
/// (only what is below it), each with an optional port.
fn is_exempt(server: &Uri, list: &str) -> bool {
    let host = host(server).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(443);
    let ip: Option<IpAddr> = host.parse().ok();
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        let entry = entry.to_ascii_lowercase();
        if let Some(inside) = block_contains(&entry, ip) {
            return inside;
        }
        let (name, only_port) = split_port(&entry);
        if only_port.is_some_and(|only| only != port) {
            return false;
        }
        if let Ok(named) = name.parse::<IpAddr>() {
            return ip == Some(named);
        }
        match name.strip_prefix('*').unwrap_or(name).strip_prefix('.') {
            Some(domain) => is_below(&host, domain),
            None => host == name || is_below(&host, name),
        }
    })
}

fn is_below(host: &str, domain: &str) -> bool {
    !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((v6, rest)) = entry.strip_prefix('[').and_then(|e| e.split_once(']')) {
        return (v6, rest.strip_prefix(':').and_then(|p| p.parse().ok()));
    }
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => (name, port.parse().ok()),
        _ => (entry, None),
    }
}

/// Whether a CIDR block holds the address; `None` when `entry` is no block.
fn block_contains(entry: &str, ip: Option<IpAddr>) -> Option<bool> {
    let (base, length) = entry.split_once('/')?;
    let (base, length): (IpAddr, u32) = (base.parse().ok()?, length.parse().ok()?);
    // Whole addresses as numbers; a shift by all bits keeps none of them, which is what /0 means.
    let same = |a: u128, b: u128, bits: u32| (a ^ b).checked_shr(bits - length).unwrap_or(0) == 0;
    match (base, ip) {
        (IpAddr::V4(_), _) if length > 32 => None,
        (IpAddr::V6(_), _) if length > 128 => None,
        (IpAddr::V4(base), Some(IpAddr::V4(ip))) => Some(same(base.to_bits().into(), ip.to_bits().into(), 32)),
        (IpAddr::V6(base), Some(IpAddr::V6(ip))) => Some(same(base.to_bits(), ip.to_bits(), 128)),
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, proxy_url: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
        let look_up = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        choose(&server.parse().unwrap(), proxy_url, &look_up).map(|p| p.map_or("-".to_owned(), |p| p.to_string()))
    }

    #[test]
    fn c84_the_clusters_proxy_comes_before_the_environments() {
        let (https, env) = ("https://api.example.test:6443", "http://env.test:3128/");
        type Case<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str)], &'a str);
        let cases: &[Case<'_>] = &[
            (https, None, &[], "-"),
            (https, Some("http://own.test:1"), &[("HTTPS_PROXY", env), ("NO_PROXY", "*")], "http://own.test:1/"),
            (https, None, &[("HTTPS_PROXY", env)], env),
            (https, None, &[("https_proxy", env)], env),
            (https, None, &[("HTTPS_PROXY", "env.test:3128")], env),
            (https, None, &[("HTTP_PROXY", env), ("ALL_PROXY", env)], "-"),
            (https, None, &[("HTTPS_PROXY", env), ("NO_PROXY", "a.test,,api.example.test,")], "-"),
            // The proxy's own name means nothing.
            (https, None, &[("HTTPS_PROXY", env), ("NO_PROXY", "env.test")], env),
            ("http://api.example.test", None, &[("HTTPS_PROXY", env)], "-"),
            ("http://api.example.test", Some("socks5://own.test:1"), &[], "socks5://own.test:1/"),
            ("https://localhost:6443", None, &[("HTTPS_PROXY", env)], "-"),
            ("https://127.0.0.7:6443", None, &[("HTTPS_PROXY", env)], "-"),
            ("https://[::1]:6443", None, &[("HTTPS_PROXY", env)], "-"),
        ];
        for (server, proxy_url, variables, expected) in cases {
            assert_eq!(
                chosen(server, *proxy_url, variables).as_deref(),
                Ok(*expected),
                "{server} {proxy_url:?} {variables:?}"
            );
        }
    }

    #[test]
    fn c84_what_no_proxy_names() {
        let cases = [
            // list, server, exempt
            ("*", "https://a.test", true),
            ("a.test", "https://a.test", true),
            ("A.test", "https://a.TEST", true),
            ("a.test", "https://b.a.test", true),
            ("a.test", "https://ba.test", false),
            (".a.test", "https://a.test", false),
            (".a.test", "https://b.a.test", true),
            ("*.a.test", "https://b.a.test", true),
            ("a.test:6443", "https://a.test:6443", true),
            ("a.test:443", "https://a.test", true),
            ("a.test:443", "https://a.test:6443", false),
            ("10.0.0.1", "https://10.0.0.1:6443", true),
            ("10.0.0.1:6443", "https://10.0.0.1", false),
            ("10.0.0.0/8", "https://10.1.2.3", true),
            ("10.0.0.0/8", "https://11.1.2.3", false),
            ("10.0.0.0/8", "https://a.test", false),
            ("10.0.0.0/33", "https://10.0.0.1", false),
            ("0.0.0.0/0", "https://10.1.2.3", true),
            ("::/0", "https://[fd00::1]", true),
            ("::/0", "https://10.1.2.3", false),
            ("fd00::/8", "https://[fd00::1]", true),
            ("fd00::/8", "https://[fe00::1]", false),
            ("fd00::1", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("[fd00::1]:443", "https://[fd00::1]:6443", false),
            (".", "https://a.test", false),
            (":", "https://a.test", false),
            ("/", "https://a.test", false),
            ("", "https://a.test", false),
        ];
        for (list, server, expected) in cases {
            assert_eq!(is_exempt(&server.parse().unwrap(), list), expected, "{list} {server}");
        }
    }

    #[test]
    fn c84_a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        let cases = [
            ("ftp://me:hunter2@p.test", "has the scheme \"ftp\": only http, https and socks5 are supported"),
            ("p.test:3128", "has the scheme \"\": only http, https and socks5 are supported"),
            ("http://me:hunter2@@p test", "is no address: invalid uri character"),
            ("socks5://me:hunter2@p.test:1", "has a user and password: with socks5 these are not supported"),
        ];
        for (proxy, expected) in cases {
            assert_eq!(chosen("https://a.test", Some(proxy), &[]), Err(format!("the cluster's proxy-url {expected}")));
        }
        let told = chosen("https://a.test", None, &[("HTTPS_PROXY", "ftp://me:hunter2@p.test")]);
        assert_eq!(told, Err("HTTPS_PROXY has the scheme \"ftp\": only http, https and socks5 are supported".into()));
    }

    proptest::proptest! {
        #[test]
        fn c84_no_list_panics(list in "([0-9a-f.:*,/\\[\\]]|\\PC){0,30}", host in "[0-9]{1,3}\\.0\\.0\\.1|a\\.test|\\[fd00::1\\]") {
            if let Ok(server) = format!("https://{host}").parse() {
                is_exempt(&server, &list);
            }
        }
    }
}
