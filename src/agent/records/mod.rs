//! What must survive a crash: kept on the AppliedManifestWork, beside the objects it is about.
//!
//! Before anything is written, the list of objects that are about to be written (the *intent*) is there; afterwards come
//! their uids in `status.appliedResources`, and with each the digest of what was asked for and the stamp of the answer
//! (the *mark*), so that a restarted agent applies nothing that is still as it was left.

mod write;

use std::collections::BTreeMap;

use crate::{
    api::work::applied::{AppliedManifestWork, AppliedResource},
    spoke::{cluster::ObjectKey, seen::Stamp},
};

/// Annotation with the objects that are about to be written.
pub const INTENT: &str = "gitspoke.dev/intent";
/// Annotation with the marks of the objects that have been written.
pub const APPLIED: &str = "gitspoke.dev/applied";

/// Everything a record says, by object.
pub type Records = BTreeMap<ObjectKey, Record>;

/// What is recorded of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// API version it was applied with.
    pub version: String,
    /// Its uid; absent for what was only intended.
    pub uid: Option<String>,
    /// What was asked for, and the answer.
    pub mark: Option<Mark>,
}

/// What was asked for, and the stamp of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Digest of what was asked for.
    pub asked: String,
    /// Our entry in the answer's `managedFields`.
    pub stamp: Stamp,
}

/// Reads what an AppliedManifestWork records. What cannot be read is left out: it costs an apply, not an object, because
/// uids are in the status and owner references on the objects.
pub fn read(applied_work: &AppliedManifestWork) -> Records {
    let mut records = Records::new();
    for path in annotation::<Vec<String>>(applied_work, INTENT) {
        if let Some((key, version)) = parse_path(&path) {
            records.entry(key).or_default().version = version;
        }
    }
    let resources = applied_work
        .status
        .as_ref()
        .and_then(|status| status.applied_resources.as_ref());
    for resource in resources.into_iter().flatten() {
        let record = records.entry(key_of(resource)).or_default();
        record.version.clone_from(&resource.version);
        record.uid.clone_from(&resource.uid);
    }
    for (path, text) in annotation::<BTreeMap<String, String>>(applied_work, APPLIED) {
        if let Some((key, _)) = parse_path(&path)
            && let Some(record) = records.get_mut(&key)
        {
            record.mark = parse_mark(&text);
        }
    }
    records
}

/// The intent of writing these objects.
pub fn intent(records: &Records) -> String {
    let paths: Vec<String> = records
        .iter()
        .map(|(key, record)| path(key, &record.version))
        .collect();
    serde_json::to_string(&paths).expect("a list of texts is JSON")
}

/// The marks of these objects.
pub fn marks(records: &Records) -> String {
    let marks: BTreeMap<String, String> = records
        .iter()
        .filter_map(|(key, record)| {
            let Mark { asked, stamp } = record.mark.as_ref()?;
            Some((
                path(key, &record.version),
                format!("{asked}.{}.{}", stamp.fields, stamp.time),
            ))
        })
        .collect();
    serde_json::to_string(&marks).expect("a map of texts is JSON")
}

/// The objects that exist, sorted by group, version, resource, namespace and name.
pub fn applied_resources(records: &Records) -> Vec<AppliedResource> {
    let mut resources: Vec<AppliedResource> = records
        .iter()
        .filter(|(_, record)| record.uid.is_some())
        .map(|(key, record)| AppliedResource {
            group: Some(key.group.clone()),
            version: record.version.clone(),
            resource: key.resource.clone(),
            namespace: Some(key.namespace.clone()),
            name: key.name.clone(),
            uid: record.uid.clone(),
        })
        .collect();
    resources.sort_by(|a, b| {
        let order = |r: &AppliedResource| {
            (
                r.group.clone(),
                r.version.clone(),
                r.resource.clone(),
                r.namespace.clone(),
                r.name.clone(),
            )
        };
        order(a).cmp(&order(b))
    });
    resources
}

fn annotation<T: serde::de::DeserializeOwned + Default>(
    applied_work: &AppliedManifestWork,
    name: &str,
) -> T {
    applied_work
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| serde_json::from_str(annotations.get(name)?).ok())
        .unwrap_or_default()
}

fn key_of(resource: &AppliedResource) -> ObjectKey {
    ObjectKey {
        group: resource.group.clone().unwrap_or_default(),
        resource: resource.resource.clone(),
        namespace: resource.namespace.clone().unwrap_or_default(),
        name: resource.name.clone(),
    }
}

/// None of the five may contain a slash, so it can stand between them.
fn path(key: &ObjectKey, version: &str) -> String {
    format!(
        "{}/{version}/{}/{}/{}",
        key.group, key.resource, key.namespace, key.name
    )
}

fn parse_path(path: &str) -> Option<(ObjectKey, String)> {
    let mut parts = path.splitn(5, '/').map(str::to_owned);
    let (group, version, resource) = (parts.next()?, parts.next()?, parts.next()?);
    let (namespace, name) = (parts.next()?, parts.next()?);
    Some((
        ObjectKey {
            group,
            resource,
            namespace,
            name,
        },
        version,
    ))
}

fn parse_mark(text: &str) -> Option<Mark> {
    let mut parts = text.splitn(3, '.').map(str::to_owned);
    let (asked, fields) = (parts.next()?, parts.next()?);
    let time = parts.next()?.parse().ok()?;
    Some(Mark {
        asked,
        stamp: Stamp { fields, time },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::work::applied::{AppliedManifestWorkSpec, AppliedManifestWorkStatus};

    #[test]
    fn what_is_recorded_is_read_back() {
        let key = |group: &str, namespace: &str, name: &str| ObjectKey {
            group: group.into(),
            resource: "things".into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let mark = Mark {
            asked: "aaa".into(),
            stamp: Stamp {
                fields: "bbb".into(),
                time: 42,
            },
        };
        let records = Records::from([
            (
                key("", "default", "done"),
                Record {
                    version: "v1".into(),
                    uid: Some("u".into()),
                    mark: Some(mark),
                },
            ),
            (
                key("apps", "", "intended"),
                Record {
                    version: "v1".into(),
                    uid: None,
                    mark: None,
                },
            ),
        ]);
        let mut applied_work = AppliedManifestWork::new("a", AppliedManifestWorkSpec::default());
        applied_work.metadata.annotations = Some(BTreeMap::from([
            (INTENT.to_owned(), intent(&records)),
            (APPLIED.to_owned(), marks(&records)),
        ]));
        applied_work.status = Some(AppliedManifestWorkStatus {
            applied_resources: Some(applied_resources(&records)),
            eviction_start_time: None,
        });
        assert_eq!(read(&applied_work), records);
    }

    #[test]
    fn a_damaged_record_is_no_record() {
        let mut applied_work = AppliedManifestWork::new("a", AppliedManifestWorkSpec::default());
        applied_work.metadata.annotations = Some(BTreeMap::from([
            (INTENT.to_owned(), "[\"one/two\", \"".to_owned()),
            (APPLIED.to_owned(), "{\"a/b/c/d/e\": \"no\"}".to_owned()),
        ]));
        assert_eq!(read(&applied_work), Records::new());
    }
}
