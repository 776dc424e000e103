//! A map of few entries, in the room they take.
//!
//! Nearly every object is held by one work and written by one field manager. A hash map of one entry takes a kilobyte here,
//! and there is one for each object.

/// A map of few entries.
pub(super) struct Few<K, V>(Vec<(K, V)>);

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Few<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get<Q: ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: PartialEq<Q>,
    {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn get_mut<Q: ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: PartialEq<Q>,
    {
        let found = self.0.iter_mut().find(|(known, _)| known == key);
        found.map(|(_, value)| value)
    }

    /// The value of a key, put there first if there is none.
    pub(super) fn or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let known = self.0.iter().position(|(known, _)| *known == key);
        let position = known.unwrap_or_else(|| {
            self.0.reserve_exact(1);
            self.0.push((key, value()));
            self.0.len() - 1
        });
        &mut self.0[position].1
    }

    pub(super) fn remove<Q: ?Sized>(&mut self, key: &Q)
    where
        K: PartialEq<Q>,
    {
        self.0.retain(|(known, _)| known != key);
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.0.retain(|(key, _)| is_kept(key));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}
