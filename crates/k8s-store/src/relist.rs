//! Which objects a running relist has seen.

/// Marks of one relist: a bit for each id of the store, so the size of the objects does not matter.
pub(crate) struct Relist {
    /// The namespace that is listed, or none for everything.
    pub(crate) scope: Option<Box<str>>,
    seen: Vec<u64>,
}

impl Relist {
    pub(crate) fn new(scope: Option<&str>) -> Self {
        Self { scope: scope.map(Box::from), seen: vec![] }
    }

    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.scope.is_none() || self.scope.as_deref() == namespace
    }

    pub(crate) fn mark(&mut self, id: u32) {
        let (word, bit) = place(id);
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        self.seen[word] |= bit;
    }

    pub(crate) fn has_seen(&self, id: u32) -> bool {
        let (word, bit) = place(id);
        self.seen.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn place(id: u32) -> (usize, u64) {
    (id as usize / 64, 1 << (id % 64))
}
