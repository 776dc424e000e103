//! What becomes of an object that a work no longer asks for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::records::Records;
use crate::{
    api::manifest::ObjectId,
    spoke::{cluster::ObjectKey, seen::Seen},
};

/// What to do with it.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is not ours, or not there: forget it.
    Forget,
    /// Another applied work holds it too: take our reference away and forget it.
    Release(Vec<OwnerReference>),
    /// It is being deleted: wait until it is gone.
    Pending,
    /// Delete it, and wait until it is gone.
    Delete,
}

/// Decides about one object. `applied_work` is the uid of our AppliedManifestWork, `recorded` the object's uid when it
/// was applied, if that is known.
///
/// Owners that are not AppliedManifestWorks do not protect an object: whoever made the work meant it to go.
pub fn removal(live: Option<&Seen>, applied_work: &str, recorded: Option<&str>) -> Removal {
    let Some(live) = live else {
        return Removal::Forget;
    };
    let owners = &live.owners;
    if !owners.iter().any(|owner| owner.uid == applied_work) {
        return Removal::Forget;
    }
    let others: Vec<OwnerReference> = owners
        .iter()
        .filter(|owner| owner.uid != applied_work)
        .cloned()
        .collect();
    if others.iter().any(is_applied_work) {
        return Removal::Release(others);
    }
    if recorded.is_some_and(|uid| live.uid != uid) {
        return Removal::Forget;
    }
    if live.is_deleting {
        return Removal::Pending;
    }
    Removal::Delete
}

/// The objects on record that a work certainly no longer asks for. `unplaced` are the manifests whose object is not
/// known: their kind is not served right now, or they cannot be read at all (`None`).
///
/// Invariant: what cannot be told is kept. The former may be any recorded object of their group and name, the latter any
/// object.
pub fn untracked(
    recorded: &Records,
    asked_for: &Records,
    unplaced: &[Option<ObjectId>],
) -> Records {
    let may_be_meant = |key: &ObjectKey| {
        unplaced.iter().any(|id| {
            id.as_ref().is_none_or(|id| {
                id.group == key.group
                    && id.name == key.name
                    && (key.namespace.is_empty() || id.namespace == key.namespace)
            })
        })
    };
    recorded
        .iter()
        .filter(|(key, _)| !asked_for.contains_key(key) && !may_be_meant(key))
        .map(|(key, record)| (key.clone(), record.clone()))
        .collect()
}

/// Whether an owner is an AppliedManifestWork, ours or another hub's.
pub fn is_applied_work(owner: &OwnerReference) -> bool {
    owner.kind == "AppliedManifestWork"
        && owner
            .api_version
            .starts_with("work.open-cluster-management.io/")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
        jiff::Timestamp,
    };

    use super::*;
    use crate::agent::records::Record;

    fn owner(kind: &str, uid: &str) -> OwnerReference {
        OwnerReference {
            api_version: "work.open-cluster-management.io/v1".into(),
            kind: kind.into(),
            name: uid.into(),
            uid: uid.into(),
            ..OwnerReference::default()
        }
    }

    fn live(uid: &str, owners: &[&OwnerReference], is_deleting: bool) -> Seen {
        Seen::of(&ObjectMeta {
            uid: Some(uid.into()),
            owner_references: Some(owners.iter().copied().cloned().collect()),
            deletion_timestamp: is_deleting.then_some(Time(Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        })
    }

    #[test]
    fn only_what_is_ours_alone_is_deleted() {
        let ours = owner("AppliedManifestWork", "us");
        let other = owner("AppliedManifestWork", "them");
        let stranger = owner("Deployment", "stranger");
        let table = [
            (None, Some("1"), Removal::Forget),
            (Some(live("1", &[], false)), Some("1"), Removal::Forget),
            (
                Some(live("1", &[&other], false)),
                Some("1"),
                Removal::Forget,
            ),
            (
                Some(live("1", &[&ours, &other], false)),
                Some("1"),
                Removal::Release(vec![other.clone()]),
            ),
            (Some(live("2", &[&ours], false)), Some("1"), Removal::Forget),
            (Some(live("1", &[&ours], true)), Some("1"), Removal::Pending),
            (Some(live("1", &[&ours], false)), Some("1"), Removal::Delete),
            (
                Some(live("1", &[&ours, &stranger], false)),
                Some("1"),
                Removal::Delete,
            ),
            (Some(live("1", &[&ours], false)), None, Removal::Delete),
        ];
        for (number, (live, recorded, expected)) in table.into_iter().enumerate() {
            assert_eq!(
                removal(live.as_ref(), "us", recorded),
                expected,
                "row {number}"
            );
        }
    }

    #[test]
    fn what_may_still_be_asked_for_is_kept() {
        let key = |group: &str, name: &str| ObjectKey {
            group: group.into(),
            resource: "things".into(),
            namespace: "default".into(),
            name: name.into(),
        };
        let records = |keys: &[ObjectKey]| {
            keys.iter()
                .map(|key| (key.clone(), Record::default()))
                .collect::<Records>()
        };
        let id = |group: &str, name: &str| {
            Some(ObjectId {
                group: group.into(),
                version: "v1".into(),
                kind: "Thing".into(),
                namespace: "default".into(),
                name: name.into(),
            })
        };
        let recorded = records(&[key("", "kept"), key("", "dropped"), key("x", "dropped")]);
        let asked_for = records(&[key("", "kept")]);
        let gone = |unplaced: &[Option<ObjectId>]| -> Vec<ObjectKey> {
            untracked(&recorded, &asked_for, unplaced)
                .into_keys()
                .collect()
        };
        assert_eq!(gone(&[]), [key("", "dropped"), key("x", "dropped")]);
        assert_eq!(
            gone(&[id("x", "other")]),
            [key("", "dropped"), key("x", "dropped")]
        );
        assert_eq!(gone(&[id("x", "dropped")]), [key("", "dropped")]);
        assert_eq!(gone(&[None]), []);
    }
}
