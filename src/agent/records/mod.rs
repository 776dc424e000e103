//! What must survive a crash: kept on the AppliedManifestWork, beside the objects it is about.
//!
//! Before anything is written, the list of objects that are about to be written (the *intent*) is there; afterwards come
//! their uids in `status.appliedResources`, and with each the digest of what was asked for and the stamp of the answer
//! (the *mark*), so that a restarted agent applies nothing that is still as it was left.

mod write;

use std::collections::BTreeMap;

use crate::{
    api::{
        wellknown::AGENT_FIELD_MANAGER,
        work::applied::{AppliedManifestWork, AppliedResource},
    },
    spoke::{
        cluster::ObjectKey,
        seen::{FieldManager, Stamp},
    },
};

/// Annotation with the objects that are about to be written.
pub const INTENT: &str = "gitspoke.dev/intent";
/// Annotation with the marks of the objects that have been written.
pub const APPLIED: &str = "gitspoke.dev/applied";

/// Texts about objects, by where the objects are: group, version, resource and namespace.
type Places = BTreeMap<String, Vec<String>>;

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
    /// What was asked for.
    pub heard: Heard,
    /// Our entry in the answer's `managedFields`.
    pub stamp: Stamp,
}

/// A write that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The digest of what was asked for.
    pub asked: String,
    /// The field manager it was written by.
    pub manager: FieldManager,
    /// What there is to say about it beyond its success; usually nothing.
    pub note: String,
}

/// Reads what an AppliedManifestWork records. What cannot be read is left out: it costs an apply, not an object, because
/// uids are in the status and owner references on the objects.
pub fn read(applied_work: &AppliedManifestWork) -> Records {
    let mut records = Records::new();
    let mut marks: Places = annotation(applied_work, APPLIED);
    for (place, names) in annotation::<Places>(applied_work, INTENT) {
        let mut marks = marks.remove(&place).unwrap_or_default().into_iter();
        for name in names {
            if let Some((key, version)) = object_at(&place, name) {
                let mark = marks.next().and_then(|mark| parse_mark(&mark));
                let record = records.entry(key).or_default();
                record.version = version;
                record.mark = mark;
            }
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
    records
}

/// The annotations that record these objects: the intent of writing them, and the marks of those that have been
/// written. They are always written together, because the marks are in the order of the intent: a name of each object
/// is enough, and all annotations of an object have 256 KiB to share.
pub fn annotations(records: &Records) -> BTreeMap<String, String> {
    let mut names = Places::new();
    let mut marks = Places::new();
    for (key, record) in records {
        let place = place(key, &record.version);
        let mark = record.mark.as_ref().map(mark_text).unwrap_or_default();
        marks.entry(place.clone()).or_default().push(mark);
        names.entry(place).or_default().push(key.name.clone());
    }
    let text = |places: &Places| serde_json::to_string(places).expect("a map of texts is JSON");
    let mut annotations = BTreeMap::from([(INTENT.to_owned(), text(&names))]);
    if records.values().any(|record| record.mark.is_some()) {
        annotations.insert(APPLIED.to_owned(), text(&marks));
    }
    annotations
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

/// None of the four may contain a slash, so it can stand between them.
fn place(key: &ObjectKey, version: &str) -> String {
    format!("{}/{version}/{}/{}", key.group, key.resource, key.namespace)
}

fn object_at(place: &str, name: String) -> Option<(ObjectKey, String)> {
    let mut parts = place.splitn(4, '/').map(str::to_owned);
    let (group, version) = (parts.next()?, parts.next()?);
    let (resource, namespace) = (parts.next()?, parts.next()?);
    let key = ObjectKey {
        group,
        resource,
        namespace,
        name,
    };
    Some((key, version))
}

/// What is usual is left out: nearly every object is written by one field manager, and nearly always there is nothing
/// more to say.
fn mark_text(mark: &Mark) -> String {
    let Mark { heard, stamp } = mark;
    let text = format!("{} {:x} {}", heard.asked, stamp.fields, stamp.time);
    match (&*heard.manager, &*heard.note) {
        (AGENT_FIELD_MANAGER, "") => text,
        (manager, "") => format!("{text} {manager}"),
        (manager, note) => format!("{text} {manager} {note}"),
    }
}

fn parse_mark(text: &str) -> Option<Mark> {
    let mut parts = text.splitn(5, ' ').map(str::to_owned);
    let asked = parts.next()?;
    let fields = u64::from_str_radix(&parts.next()?, 16).ok()?;
    let time = parts.next()?.parse().ok()?;
    let manager = parts.next();
    let manager = manager.as_deref().unwrap_or(AGENT_FIELD_MANAGER).into();
    let note = parts.next().unwrap_or_default();
    Some(Mark {
        heard: Heard {
            asked,
            manager,
            note,
        },
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
        let mark = |manager: &str, note: &str| Mark {
            heard: Heard {
                asked: "aaa".into(),
                manager: manager.into(),
                note: note.into(),
            },
            stamp: Stamp {
                fields: 0xbbb,
                time: 42,
            },
        };
        let done = |name: &str, mark: Mark| {
            (
                key("", "default", name),
                Record {
                    version: "v1".into(),
                    uid: Some("u".into()),
                    mark: Some(mark),
                },
            )
        };
        let records = Records::from([
            done("usual", mark("work-agent", "")),
            done("by-another-manager", mark("work-agent-web", "")),
            done("with-a-note", mark("work-agent", "left out .spec.a b")),
            (
                key("", "default", "intended-beside-them"),
                Record {
                    version: "v1".into(),
                    uid: None,
                    mark: None,
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
        applied_work.metadata.annotations = Some(annotations(&records));
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
            (INTENT.to_owned(), "{\"one/two\": [\"a\"]}".to_owned()),
            (APPLIED.to_owned(), "[]".to_owned()),
        ]));
        assert_eq!(read(&applied_work), Records::new());
    }
}
