//! Index keys: sequences of segments in one allocation.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    iter::FusedIterator,
};

/// A key of a composite index: a sequence of text segments, never joined text, so no value can pretend to be two.
///
/// Equality, order and prefixes go segment by segment: `["a"]` comes before `["a", "b"]`, which comes before `["ab"]`.
/// A key may have fewer segments than its index has expressions; it is then *partial* (see the missing-key rule of the
/// indexer). One allocation, 16 bytes in place, one byte more than the text for each segment shorter than 64 bytes.
///
/// # Search without building a key
///
/// [`IndexKey::hash_segments`] feeds a hasher exactly as the key's own [`Hash`] does, and keys compare with slices of
/// text, so a hash table answers for `["shop", "cart"]` without an allocation.
///
/// ```
/// use k8s_types::IndexKey;
///
/// let key = IndexKey::from_segments(["shop", "cart"]);
/// assert_eq!(key.segments().collect::<Vec<_>>(), ["shop", "cart"]);
/// assert_eq!(key, ["shop", "cart"][..]);
/// assert!(key.starts_with(&["shop"]));
/// assert!(!key.starts_with(&["sh"]));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IndexKey {
    /// For each segment its length, then its text. The length is written in ASCII characters of six bits each, lowest
    /// first, with bit 6 for "more follow", so the whole is text and segments are borrowed without a UTF-8 check.
    /// Lengths come first, so equality is that of the bytes and so are prefixes.
    encoded: Box<str>,
}

const MORE: u8 = 0x40;
const BITS: u8 = 0x3f;

impl IndexKey {
    /// The key of these segments. Cost: one allocation of the exact size.
    pub fn from_segments<I>(segments: I) -> IndexKey
    where
        I: IntoIterator<Item: AsRef<str>, IntoIter: Clone>,
    {
        let segments = segments.into_iter();
        let size = segments
            .clone()
            .map(|segment| {
                let len = segment.as_ref().len();
                len + length_size(len)
            })
            .sum();
        let mut builder = IndexKeyBuilder { encoded: String::with_capacity(size) };
        for segment in segments {
            builder.push(segment.as_ref());
        }
        IndexKey { encoded: builder.encoded.into_boxed_str() }
    }

    /// The segments in order, borrowed. Cost: none beyond the walk.
    pub fn segments(&self) -> Segments<'_> {
        Segments { rest: &self.encoded }
    }

    /// The number of segments. Walks the key, which has few.
    pub fn len(&self) -> usize {
        self.segments().count()
    }

    /// Whether the key has no segment at all.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Whether `other` begins with all segments of this key (equal keys included).
    pub fn is_prefix_of(&self, other: &IndexKey) -> bool {
        other.encoded.starts_with(&*self.encoded)
    }

    /// Whether this key begins with all of these segments.
    pub fn starts_with<S: AsRef<str>>(&self, prefix: &[S]) -> bool {
        let mut own = self.segments();
        prefix.iter().all(|segment| own.next() == Some(segment.as_ref()))
    }

    /// Compares with segments that are not in a key yet, in the order of keys.
    pub fn cmp_segments<S: AsRef<str>>(&self, other: &[S]) -> Ordering {
        self.segments().cmp(other.iter().map(AsRef::as_ref))
    }

    /// Feeds `hasher` as [`Hash`] of the key of these segments does.
    ///
    /// ```
    /// use std::hash::{BuildHasher, Hasher, RandomState};
    /// use k8s_types::IndexKey;
    ///
    /// let state = RandomState::new();
    /// let mut hasher = state.build_hasher();
    /// IndexKey::hash_segments(["shop", "cart"], &mut hasher);
    /// assert_eq!(hasher.finish(), state.hash_one(IndexKey::from_segments(["shop", "cart"])));
    /// ```
    pub fn hash_segments<I, H>(segments: I, hasher: &mut H)
    where
        I: IntoIterator<Item: AsRef<str>>,
        H: Hasher,
    {
        for segment in segments {
            // `str` ends its own contribution, so segments cannot run into each other.
            segment.as_ref().hash(hasher);
        }
    }

    /// The bytes of the key's allocation.
    pub fn size(&self) -> usize {
        self.encoded.len()
    }
}

impl<S: AsRef<str>> PartialEq<[S]> for IndexKey {
    fn eq(&self, other: &[S]) -> bool {
        self.cmp_segments(other).is_eq()
    }
}

impl Hash for IndexKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        IndexKey::hash_segments(self.segments(), hasher);
    }
}

impl Ord for IndexKey {
    fn cmp(&self, other: &IndexKey) -> Ordering {
        self.segments().cmp(other.segments())
    }
}

impl PartialOrd for IndexKey {
    fn partial_cmp(&self, other: &IndexKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.segments()).finish()
    }
}

/// The segments of an [`IndexKey`].
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut len = 0_usize;
        let mut used = 0;
        for byte in self.rest.bytes() {
            len |= usize::from(byte & BITS) << (6 * used);
            used += 1;
            if byte & MORE == 0 {
                break;
            }
        }
        if used == 0 {
            return None;
        }
        let (segment, rest) = self.rest.get(used..)?.split_at_checked(len)?;
        self.rest = rest;
        Some(segment)
    }
}

impl FusedIterator for Segments<'_> {}

/// Builds [`IndexKey`]s one segment at a time; used again and again, it allocates nothing but the keys.
///
/// ```
/// use k8s_types::{IndexKey, IndexKeyBuilder};
///
/// let mut builder = IndexKeyBuilder::default();
/// builder.push("shop");
/// builder.push("cart");
/// assert_eq!(builder.key(), IndexKey::from_segments(["shop", "cart"]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexKeyBuilder {
    encoded: String,
}

impl IndexKeyBuilder {
    /// Adds a segment.
    pub fn push(&mut self, segment: &str) {
        let mut len = segment.len();
        loop {
            let low = len as u8 & BITS;
            len >>= 6;
            let digit = if len > 0 { low | MORE } else { low };
            self.encoded.push(char::from(digit));
            if len == 0 {
                break;
            }
        }
        self.encoded.push_str(segment);
    }

    /// The key of the segments so far. Cost: one allocation of the exact size.
    pub fn key(&self) -> IndexKey {
        IndexKey { encoded: self.encoded.as_str().into() }
    }

    /// A mark for [`truncate`](Self::truncate).
    pub fn mark(&self) -> usize {
        self.encoded.len()
    }

    /// Goes back to a mark taken since the last [`clear`](Self::clear): drops the segments added after it. A mark
    /// beyond the end changes nothing.
    pub fn truncate(&mut self, mark: usize) {
        if self.encoded.is_char_boundary(mark) {
            self.encoded.truncate(mark);
        }
    }

    /// Drops all segments and keeps the memory.
    pub fn clear(&mut self) {
        self.encoded.clear();
    }
}

fn length_size(mut len: usize) -> usize {
    let mut size = 1;
    while len > usize::from(BITS) {
        len >>= 6;
        size += 1;
    }
    size
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, Hasher, RandomState};

    use proptest::prelude::*;

    use super::{IndexKey, IndexKeyBuilder};

    fn segments() -> impl Strategy<Value = Vec<String>> {
        let segment = prop_oneof!["[a-c]{0,2}", any::<String>(), "x{60,70}", "ä{2040,2060}"];
        prop::collection::vec(segment, 0..4)
    }

    #[test]
    fn segments_are_never_joined() {
        let joined = IndexKey::from_segments(["a/b"]);
        let split = IndexKey::from_segments(["a", "b"]);
        assert_ne!(joined, split);
        assert_ne!(IndexKey::from_segments(["", "a"]), IndexKey::from_segments(["a", ""]));
        assert_ne!(IndexKey::from_segments([""]), IndexKey::from_segments::<[&str; 0]>([]));
        assert_eq!(IndexKey::from_segments([""]).len(), 1);
    }

    #[test]
    fn a_key_is_small() {
        assert_eq!(size_of::<IndexKey>(), 16);
        assert_eq!(IndexKey::from_segments(["shop", "cart"]).size(), 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_vector_of_strings(a in segments(), b in segments()) {
            let (x, y) = (IndexKey::from_segments(&a), IndexKey::from_segments(&b));
            prop_assert_eq!(x.segments().collect::<Vec<_>>(), a.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.cmp_segments(&b), a.cmp(&b));
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.is_prefix_of(&y), b.starts_with(&a));
            prop_assert_eq!(y.starts_with(&a), b.starts_with(&a));

            let state = RandomState::new();
            let mut hasher = state.build_hasher();
            IndexKey::hash_segments(&a, &mut hasher);
            prop_assert_eq!(hasher.finish(), state.hash_one(&x));

            let mut builder = IndexKeyBuilder::default();
            for segment in &a {
                builder.push(segment);
            }
            let mark = builder.mark();
            for segment in &b {
                builder.push(segment);
            }
            let both: Vec<&String> = a.iter().chain(&b).collect();
            prop_assert_eq!(builder.key(), IndexKey::from_segments(both));
            builder.truncate(mark);
            prop_assert_eq!(builder.key(), x);
        }
    }
}
