//! Loopback ports for servers that go away and come back.

use std::fs;
use std::io;
use std::net::TcpListener;

/// Below are those of well-known services.
const FIRST: u16 = 10_000;
/// Where Linux begins with the ports that it gives to clients, unless it is told otherwise.
const FIRST_OF_CLIENTS: u16 = 32_768;
/// How often another port is tried when one is taken.
const TRIES: usize = 100;

/// Listens on a free port that is free again later: not one of those that the kernel gives to clients, of which a
/// connection, even one that looks for the very server that is away, may have taken it meanwhile.
///
/// # Errors
///
/// Nothing can be listened on.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(FIRST_OF_CLIENTS);
    // A machine that gives all of them to clients has no better one.
    let tries = if FIRST < end { TRIES } else { 0 };
    let mut listeners = (0..tries).map(|_| TcpListener::bind(("127.0.0.1", fastrand::u16(FIRST..end))));
    listeners.find(Result::is_ok).unwrap_or_else(|| TcpListener::bind("127.0.0.1:0"))
}
