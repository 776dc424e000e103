//! Works that cannot go on until something else happens on the spoke, and what that is.
//!
//! A work that fails is tried again, later each time. When what it waits for happens, it need not wait for its turn.

use std::collections::{BTreeSet, HashMap, HashSet};

use k8s_openapi::{
    api::{
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

use crate::spoke::{cluster::ObjectKey, kinds::Kind};

/// What a manifest waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// This namespace to appear, or to be gone.
    Namespace(String),
    /// A definition in this API group.
    Definition(String),
    /// Rights that the agent lacks.
    Rights,
}

/// What every blocked work waits for.
#[derive(Default)]
pub(super) struct Blocked {
    works: HashMap<String, BTreeSet<Blocker>>,
}

impl Blocked {
    /// Replaces what a work waits for. Returns whether other kinds are to be watched now.
    pub(super) fn put(&mut self, work: &str, blockers: BTreeSet<Blocker>) -> bool {
        let before = self.works.get(work);
        if before.map_or(blockers.is_empty(), |before| *before == blockers) {
            return false;
        }
        let watched = self.kinds();
        if blockers.is_empty() {
            self.works.remove(work);
        } else {
            self.works.insert(work.to_owned(), blockers);
        }
        self.kinds() != watched
    }

    /// The kinds whose events may unblock a work.
    pub(super) fn kinds(&self) -> HashSet<Kind> {
        let blockers = self.works.values().flatten();
        blockers
            .flat_map(|blocker| match blocker {
                Blocker::Namespace(_) => vec![Kind::of::<Namespace>(false)],
                Blocker::Definition(_) => vec![Kind::of::<CustomResourceDefinition>(false)],
                Blocker::Rights => vec![
                    Kind::of::<ClusterRole>(false),
                    Kind::of::<ClusterRoleBinding>(false),
                    Kind::of::<Role>(true),
                    Kind::of::<RoleBinding>(true),
                ],
            })
            .collect()
    }

    /// The works that something which happened to an object may unblock.
    pub(super) fn by(&self, key: &ObjectKey) -> Vec<String> {
        let works = self.works.iter();
        let unblocked = works.filter(|(_, blockers)| blockers.iter().any(|one| one.ends_by(key)));
        unblocked.map(|(work, _)| work.clone()).collect()
    }
}

impl Blocker {
    fn ends_by(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Namespace(name) => {
                key.group.is_empty() && key.resource == "namespaces" && key.name == *name
            }
            // A definition is called `<plural>.<group>`.
            Self::Definition(group) => {
                key.resource == "customresourcedefinitions"
                    && key
                        .name
                        .split_once('.')
                        .is_some_and(|(_, of)| of == group.as_str())
            }
            Self::Rights => key.group == "rbac.authorization.k8s.io",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, resource: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.into(),
            resource: resource.into(),
            namespace: String::new(),
            name: name.into(),
        }
    }

    #[test]
    fn a_work_wakes_when_what_it_waits_for_happens() {
        let mut blocked = Blocked::default();
        let waits = [
            ("homeless", Blocker::Namespace("later".into())),
            ("undefined", Blocker::Definition("example.com".into())),
            ("powerless", Blocker::Rights),
        ];
        for (work, blocker) in waits {
            assert!(blocked.put(work, BTreeSet::from([blocker.clone()])));
            assert!(
                !blocked.put(work, BTreeSet::from([blocker])),
                "nothing is new"
            );
        }
        let definitions = "customresourcedefinitions";
        let table = [
            (key("", "namespaces", "later"), vec!["homeless"]),
            (key("", "namespaces", "other"), vec![]),
            (
                key("apiextensions.k8s.io", definitions, "widgets.example.com"),
                vec!["undefined"],
            ),
            (
                key("apiextensions.k8s.io", definitions, "widgets.other.com"),
                vec![],
            ),
            (
                key("rbac.authorization.k8s.io", "clusterroles", "any"),
                vec!["powerless"],
            ),
        ];
        for (key, expected) in table {
            assert_eq!(blocked.by(&key), expected, "{key:?}");
        }
        assert_eq!(blocked.kinds().len(), 6);
        assert!(blocked.put("powerless", BTreeSet::new()));
        assert_eq!(blocked.kinds().len(), 2);
    }
}
