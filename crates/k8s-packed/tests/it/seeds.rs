//! The corpus of the fuzz targets, and what chance makes of it, on any toolchain.

use std::path::Path;

use proptest::prelude::*;

use crate::fuzzed::{check_bytes, check_path};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    files.iter().map(|f| std::fs::read(f).unwrap()).collect()
}

/// Replaces, cuts, doubles or inserts somewhere.
fn mutate(bytes: &mut Vec<u8>, (kind, at, byte): (u8, prop::sample::Index, u8), other: &[u8]) {
    if bytes.is_empty() {
        return bytes.push(byte);
    }
    let at = at.index(bytes.len());
    let end = (at + usize::from(byte % 16)).min(bytes.len());
    match kind % 6 {
        0 => bytes[at] = byte,
        1 => bytes[at] = br#"{}[]":,\u019.-eEtfn"#[usize::from(byte) % 19],
        2 => drop(bytes.drain(at..end)),
        3 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => bytes.truncate(at),
        _ => {
            bytes.splice(at..end, other.iter().copied().take(usize::from(byte)));
        }
    }
}

fn mutations() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    prop::collection::vec(any::<(u8, prop::sample::Index, u8)>(), 1..6)
}

#[test]
fn seeds_hold() {
    let (packed, path) = (seeds("packed_roundtrip"), seeds("path"));
    assert!(packed.len() > 5 && path.len() > 5);
    packed.iter().for_each(|s| check_bytes(s));
    path.iter().for_each(|s| check_path(std::str::from_utf8(s).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn mutated_seeds_hold(which: prop::sample::Index, other: prop::sample::Index, changes in mutations()) {
        thread_local!(static SEEDS: Vec<Vec<u8>> = seeds("packed_roundtrip"));
        SEEDS.with(|seeds| {
            let mut bytes = which.get::<Vec<u8>>(seeds).clone();
            changes.into_iter().for_each(|c| mutate(&mut bytes, c, other.get::<Vec<u8>>(seeds)));
            check_bytes(&bytes);
        });
    }

    #[test]
    fn mutated_paths_hold(which: prop::sample::Index, other: prop::sample::Index, changes in mutations()) {
        thread_local!(static SEEDS: Vec<Vec<u8>> = seeds("path"));
        SEEDS.with(|seeds| {
            let mut bytes = which.get::<Vec<u8>>(seeds).clone();
            changes.into_iter().for_each(|c| mutate(&mut bytes, c, other.get::<Vec<u8>>(seeds)));
            check_path(&String::from_utf8_lossy(&bytes));
        });
    }

    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,30}") {
        check_bytes(&bytes);
        check_bytes(text.as_bytes());
        check_path(&text);
    }
}
