//! Inputs of one check, and what chance makes of them.

use std::fmt;
use std::fs;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

/// The settings of a property test. Miri is some hundred times slower than a processor, and sees no files.
pub fn cases(cases: u32) -> ProptestConfig {
    if cfg!(miri) {
        return ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases.min(2)) };
    }
    ProptestConfig::with_cases(cases)
}

/// The seeds that a fuzz target begins with, for the tests that run its check on any toolchain.
pub struct Corpus {
    seeds: Vec<(String, Vec<u8>)>,
    pieces: &'static [&'static str],
}

impl Corpus {
    /// Reads the seeds of a fuzz target from the folder of its crate. The pieces are what the grammar is made of;
    /// mutations use them.
    ///
    /// # Panics
    ///
    /// When the folder cannot be read or there is nothing in it.
    pub fn new(of_crate: &str, target: &str, pieces: &'static [&'static str]) -> Self {
        let folder = Path::new(of_crate).join("tests/seeds").join(target);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let read = |file: fs::DirEntry| {
            (file.file_name().to_string_lossy().into_owned(), fs::read(file.path()).expect("a seed"))
        };
        let mut seeds: Vec<_> = files.map(|file| read(file.expect("a seed"))).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{}: no seeds", folder.display());
        Self { seeds, pieces }
    }

    /// Checks each seed.
    ///
    /// # Panics
    ///
    /// When the check does, with the name of the seed.
    pub fn check(&self, check: impl Fn(&[u8])) {
        for (name, seed) in &self.seeds {
            assert!(catch_unwind(AssertUnwindSafe(|| check(seed))).is_ok(), "the seed {name} does not hold");
        }
    }

    /// Seeds with a few places replaced, cut, doubled or filled from other seeds.
    pub fn mutated(&self) -> impl Strategy<Value = Mutated> + use<> {
        let seeds: Vec<_> = self.seeds.iter().map(|(_, seed)| seed.clone()).collect();
        let pieces = self.pieces;
        let change = any::<(u8, Index, Index, u8)>();
        let changes = prop::collection::vec(change, 1..6);
        (prop::sample::select(seeds.clone()), prop::sample::select(seeds), changes).prop_map(
            move |(mut bytes, other, changes)| {
                for change in changes {
                    mutate(&mut bytes, change, pieces, &other);
                }
                Mutated(bytes)
            },
        )
    }
}

/// Bytes that are shown as text.
#[derive(Clone)]
pub struct Mutated(Vec<u8>);

impl Deref for Mutated {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Mutated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// The names of the seeds only: some are long.
impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.seeds.iter().map(|(name, _)| name)).finish()
    }
}

fn mutate(bytes: &mut Vec<u8>, (kind, at, which, byte): (u8, Index, Index, u8), pieces: &[&str], other: &[u8]) {
    if bytes.is_empty() {
        return bytes.push(byte);
    }
    let at = at.index(bytes.len());
    let end = (at + usize::from(byte % 16)).min(bytes.len());
    match kind % 7 {
        0 => bytes[at] = byte,
        1 => drop(bytes.splice(at..at, which.get(pieces).bytes())),
        2 => drop(bytes.splice(at..end, which.get(pieces).bytes())),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        5 => bytes.truncate(at),
        _ => {
            let from = which.index(other.len().max(1)).min(other.len());
            bytes.splice(at..end, other[from..].iter().copied().take(usize::from(byte)));
        }
    }
}
