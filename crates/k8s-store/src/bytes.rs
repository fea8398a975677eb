//! The size of a store.
use std::fmt;

/// Bytes that a store takes, by what they are for. The rounding of the allocator is not in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreBytes {
    /// The packed objects.
    pub objects: usize,
    /// Everything by which they are found: identity, order, all indexes with their keys.
    pub indexes: usize,
    /// The symbols that the objects have in common, and what the encoder needs to share them.
    pub symbols: usize,
}

impl StoreBytes {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.objects + self.indexes + self.symbols
    }
}

/// `39.1 MiB (objects 36.2, indexes 0.5, symbols 2.4)`.
impl fmt::Display for StoreBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:.1} MiB (objects {:.1}, indexes {:.1}, symbols {:.1})",
            mib(self.total()),
            mib(self.objects),
            mib(self.indexes),
            mib(self.symbols),
        )
    }
}
