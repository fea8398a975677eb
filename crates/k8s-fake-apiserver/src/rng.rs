//! A small seeded generator for uids, name suffixes and generated objects.

/// SplitMix64: one word of state, good enough for names and uids, the same everywhere for one seed.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit` (0 when the limit is 0).
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }

    /// A suffix from the letters that Kubernetes uses for generated names (no vowels, no look-alikes).
    pub(crate) fn suffix(&mut self, len: usize) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..len).map(|_| char::from(LETTERS[self.below(27) as usize])).collect()
    }

    /// Lower-case hexadecimal digits.
    pub(crate) fn hex(&mut self, len: usize) -> String {
        let mut text = String::with_capacity(len + 16);
        while text.len() < len {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(len);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_words_and_uids_look_like_uids() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..100 {
            let uid = a.uid();
            assert_eq!(uid, b.uid());
            assert_eq!(uid.len(), 36);
            assert_eq!(uid.as_bytes()[14], b'4');
            assert!(b"89ab".contains(&uid.as_bytes()[19]));
        }
        assert_eq!(a.suffix(5).len(), 5);
        assert_eq!(a.hex(40).len(), 40);
    }
}
