//! Memory over the four quarters of a run: the last must be as the second. The first is not looked at: tables and
//! buffers find their size in it.

use anyhow::{Result, ensure};
use k8s_informer::store::StoreBytes;

use crate::counting::live_bytes;
use crate::process::resident_bytes;

/// How much more than the second quarter the last may take, in percent.
const TOLERANCE: f64 = 5.0;
/// Growth by less than this says nothing: a table of symbols is not tidied before it has 256 KiB, and how full it is on
/// average in a quarter is chance when only a few tables fit in one.
const LITTLE: f64 = 262_144.0;

const COLUMNS: [&str; 5] = ["resident", "live", "store", "symbols", "live, at most"];

/// The columns that are means, and checked. The most of a quarter is one moment of it, in the middle of a list perhaps.
const MEANS: usize = 4;

#[derive(Default)]
pub(crate) struct Quarters {
    quarters: [Sums; 4],
}

#[derive(Clone, Copy, Default)]
struct Sums {
    samples: usize,
    resident: usize,
    live: usize,
    live_peak: usize,
    store: usize,
    symbols: usize,
}

impl Quarters {
    /// Takes a sample in a quarter, counted from zero.
    pub(crate) fn sample(&mut self, quarter: usize, store: StoreBytes) {
        let sums = &mut self.quarters[quarter.min(3)];
        let live = live_bytes();
        sums.samples += 1;
        sums.resident += resident_bytes();
        sums.live += live;
        sums.live_peak = sums.live_peak.max(live);
        sums.store += store.total();
        sums.symbols += store.symbols;
    }

    pub(crate) fn print(&self) {
        println!("\n| quarter, MiB | {} |\n|---|{}", COLUMNS.join(" | "), "---:|".repeat(COLUMNS.len()));
        for (at, sums) in self.quarters.iter().enumerate() {
            let row: Vec<String> = sums.values().iter().map(|bytes| format!("{:.2}", bytes / 1_048_576.0)).collect();
            println!("| {} | {} |", at + 1, row.join(" | "));
        }
        let (second, last) = (self.quarters[1].values(), self.quarters[3].values());
        let growth: Vec<String> = second.iter().zip(last).map(|(a, b)| format!("{:+.1} %", growth(*a, b))).collect();
        println!("| last to second | {} |\n", growth.join(" | "));
    }

    /// A short run is too short for the allocator to find its size: what is resident is not looked at then.
    ///
    /// # Errors
    ///
    /// The last quarter takes more than the second.
    pub(crate) fn check(&self, is_short: bool) -> Result<()> {
        let (second, last) = (self.quarters[1].values(), self.quarters[3].values());
        let columns = COLUMNS.iter().zip(second).zip(last).take(MEANS);
        for ((column, before), after) in columns.skip(usize::from(is_short)) {
            let growth = growth(before, after);
            let is_steady = growth <= TOLERANCE || after - before <= LITTLE;
            ensure!(is_steady, "{column}: {growth:+.1} % from the second quarter to the last");
        }
        Ok(())
    }
}

impl Sums {
    fn values(self) -> [f64; COLUMNS.len()] {
        let mean = |sum: usize| sum as f64 / self.samples.max(1) as f64;
        [mean(self.resident), mean(self.live), mean(self.store), mean(self.symbols), self.live_peak as f64]
    }
}

/// In percent.
fn growth(before: f64, after: f64) -> f64 {
    100.0 * (after - before) / before.max(1.0)
}
