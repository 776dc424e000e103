//! The newest that is known of each object of one kind, by name.
//!
//! Fed by a watch and by the answers to our own writes, whichever is newer: a pass that follows a write must not act on
//! what was there before it.

use std::{collections::HashMap, sync::Arc};

use kube::{Resource, ResourceExt};

/// Objects of one kind.
pub struct Cache<K> {
    objects: HashMap<String, Arc<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
        }
    }
}

impl<K: Resource> Cache<K> {
    /// The newest of that name.
    pub fn get(&self, name: &str) -> Option<Arc<K>> {
        self.objects.get(name).cloned()
    }

    /// Takes an object in unless a newer one is known. Returns what was known before.
    pub fn put(&mut self, object: K) -> Option<Arc<K>> {
        let name = object.name_any();
        let known = self.objects.get(&name).cloned();
        let is_news = known.as_ref().is_none_or(|known| {
            version(&**known) <= version(&object) || known.meta().uid != object.meta().uid
        });
        if is_news {
            self.objects.insert(name, Arc::new(object));
        }
        known
    }

    /// Takes an object in only if one of its name is known. For answers about what may be gone by now: a watch that has
    /// said so will not say it again.
    pub fn refresh(&mut self, object: K) {
        if self.objects.contains_key(&object.name_any()) {
            self.put(object);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, name: &str) {
        self.objects.remove(name);
    }

    /// Takes out what a new list no longer has. Returns the names.
    pub fn keep_only(&mut self, is_listed: impl Fn(&str) -> bool) -> Vec<String> {
        let gone: Vec<String> = self
            .objects
            .keys()
            .filter(|name| !is_listed(name))
            .cloned()
            .collect();
        for name in &gone {
            self.objects.remove(name);
        }
        gone
    }

    /// Every object.
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.objects.values().map(|object| &**object)
    }

    /// Every name.
    pub fn names(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }
}

fn version<K: Resource>(object: &K) -> u64 {
    object
        .meta()
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}
