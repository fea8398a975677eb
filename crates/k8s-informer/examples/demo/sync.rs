//! Waiting for the initial load, with something to look at.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{Watched, table};

/// How long a load may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// How often a wait is explained where there is no terminal to draw on.
const EACH: Duration = Duration::from_secs(5);

/// Shows a line for each watcher until all are synced.
pub(crate) async fn wait(watched: &[Watched]) -> Result<()> {
    let begin = Instant::now();
    let mut told = begin;
    let on_terminal = std::io::stderr().is_terminal();
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("   {spinner} {prefix:24} {pos:>8} objects  {msg}")?;
    let lines: Vec<_> = watched
        .iter()
        .map(|w| bars.add(ProgressBar::new_spinner().with_style(style.clone()).with_prefix(w.name.clone())))
        .collect();
    let mut waiting: Vec<_> = watched.iter().zip(&lines).collect();
    while !waiting.is_empty() {
        for (w, line) in &waiting {
            line.set_position(w.watcher.status().objects as u64);
            line.set_message(w.watcher.last_watch_error().map(|e| e.to_string()).unwrap_or_default());
            line.tick();
        }
        let mut rest = vec![];
        for (w, line) in waiting {
            if !w.watcher.is_synced() {
                rest.push((w, line));
                continue;
            }
            let took = table::time(begin.elapsed());
            let objects = w.watcher.status().objects;
            if on_terminal {
                line.set_position(objects as u64);
                line.finish_with_message(format!("synced after {took}"));
            } else {
                println!("   {:24} {:>8} objects  synced after {took}", w.name, table::count(objects));
            }
        }
        waiting = rest;
        if let Some((w, _)) = waiting.first() {
            // The error says what is waited for and what went wrong last.
            if begin.elapsed() > DEADLINE {
                w.watcher.wait_for_sync(Duration::ZERO).await?;
            }
            if !on_terminal && told.elapsed() > EACH {
                told = Instant::now();
                let status = w.watcher.status();
                let trouble = status.last_watch_error.map(|e| format!("; {e}")).unwrap_or_default();
                println!("   {:24} {:>8} objects  {}{trouble}", w.name, table::count(status.objects), status.phase);
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
    Ok(())
}
