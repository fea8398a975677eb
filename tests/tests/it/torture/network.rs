//! The network between some of the watchers and the server.

use std::time::Duration;

use anyhow::Result;
use e2e::{Proxy, Target};
use fastrand::Rng;
use tokio_util::sync::CancellationToken;

use super::disturbances::NOTICED;
use super::line::{Line, State};

/// A proxy, and what it does at the moment.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) proxy: Proxy,
    pub(super) line: Line,
}

impl Network {
    pub(super) async fn before(target: &Target) -> Result<Self> {
        Ok(Self { proxy: Proxy::open(target).await?, line: Line::new() })
    }

    pub(super) fn forward(&self) {
        self.line.set(State::Open);
        self.proxy.forward();
    }

    pub(super) fn hang(&self) {
        self.proxy.hang();
        self.line.set(State::Silent);
    }

    /// Breaks connections after any number of bytes for a while, which is in the middle of a list if one is under way.
    pub(super) async fn break_off(&self, mut rng: Rng) {
        self.proxy.cut_after(rng.u64(1..300_000));
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.forward();
    }

    /// One trouble after the other: each once, then any, until stopped. Gives their number.
    pub(super) async fn roughen(&self, mut rng: Rng, stop: &CancellationToken) -> u32 {
        let mut count = 0;
        loop {
            let is_any = count >= Weather::KINDS;
            let (weather, lasts) = Weather::of_kind(if is_any { rng.u32(..Weather::KINDS) } else { count }, &mut rng);
            self.let_it(weather);
            count += 1;
            let pass = async {
                tokio::time::sleep(lasts).await;
                self.forward();
                tokio::time::sleep(Duration::from_millis(rng.u64(500..4_000))).await;
            };
            if !is_any {
                pass.await;
            } else if stop.run_until_cancelled(pass).await.is_none() {
                self.forward();
                return count;
            }
        }
    }

    fn let_it(&self, weather: Weather) {
        match weather {
            Weather::CutAfter(bytes) => self.proxy.cut_after(bytes),
            Weather::Hang => self.hang(),
            Weather::Slow(rate) => self.proxy.slow(rate),
            Weather::Cut => {
                self.proxy.cut();
                self.line.set(State::Broken);
            }
            Weather::Hiccup => self.proxy.hiccup(),
        }
    }
}

/// What a network can do.
#[derive(Debug, Clone, Copy)]
enum Weather {
    /// Each connection breaks after so many bytes.
    CutAfter(u64),
    /// All is silent.
    Hang,
    /// So many bytes a second.
    Slow(u32),
    /// All connections break, and new ones too.
    Cut,
    /// All connections break, once.
    Hiccup,
}

impl Weather {
    const KINDS: u32 = 5;

    /// One of them, and how long it lasts.
    fn of_kind(kind: u32, rng: &mut Rng) -> (Self, Duration) {
        match kind {
            0 => (Self::CutAfter(rng.u64(1..30_000)), Duration::from_secs(4)),
            1 => (Self::Hang, NOTICED),
            2 => (Self::Slow(rng.u32(2_000..50_000)), Duration::from_secs(6)),
            3 => (Self::Cut, Duration::from_secs(8)),
            _ => (Self::Hiccup, Duration::ZERO),
        }
    }
}
