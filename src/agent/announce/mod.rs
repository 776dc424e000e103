//! What people are told by Events on a work: that something fails, and that it does no more.
//!
//! [`decide`] compares a work's status before and after a pass. Success that nothing went before is not worth an Event,
//! and a failure that stays as it is has been told. Because the status before is the hub's, a restart repeats nothing.

pub mod publish;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::work::status::{ManifestCondition, ManifestWorkStatus, ResourceMeta};

/// An Event's text is a kilobyte at most, or the API server refuses it.
const LONGEST: usize = 1024;

/// How many objects one pass may tell about. The status names all of them.
const MOST: usize = 10;

/// One thing to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Whether something is wrong, or right again.
    pub is_warning: bool,
    /// For programs: the reason of the condition.
    pub reason: String,
    /// For people.
    pub note: String,
}

/// Decides what a pass that turned one status into another has to tell.
pub fn decide(
    before: Option<&ManifestWorkStatus>,
    after: &ManifestWorkStatus,
) -> Vec<Announcement> {
    let known = by_object(before);
    let mut failures = Vec::new();
    let mut ends = Vec::new();
    for entry in manifests(Some(after)) {
        let then = known.get(&key(&entry.resource_meta));
        let then = then.and_then(|entry| find(&entry.conditions.0, "Applied"));
        let Some(now) = find(&entry.conditions.0, "Applied") else {
            continue;
        };
        let object = describe(&entry.resource_meta);
        match now.status.as_str() {
            "False" if then.is_none_or(|then| !says_the_same(then, now)) => {
                let said = &now.message;
                failures.push(warning(&now.reason, format!("{object}: {said}")));
            }
            "True" if then.is_some_and(is_false) => {
                ends.push(normal(&now.reason, format!("{object}: applied after all")));
            }
            _ => {}
        }
    }
    let has_told = !failures.is_empty() || !ends.is_empty();
    let mut told = shortened(failures, "could not be applied, too");
    told.extend(shortened(ends, "were applied after all, too"));
    if !has_told {
        told.extend(about_the_work(before, after));
    }
    told
}

/// What no manifest tells by itself: objects that are not there although they were applied, and failures that ended
/// because their manifests were dropped.
fn about_the_work(
    before: Option<&ManifestWorkStatus>,
    after: &ManifestWorkStatus,
) -> Option<Announcement> {
    let of = |status, kind| find(conditions(status), kind);
    let (then, now) = (of(before, "Available"), of(Some(after), "Available"));
    let applied = (of(before, "Applied"), of(Some(after), "Applied"));
    if applied.1.is_some_and(is_false) {
        return None;
    }
    if let (Some(then), Some(now)) = applied
        && is_false(then)
        && now.status == "True"
    {
        let note = "what could not be applied is not asked for any more";
        return Some(normal(&now.reason, note.to_owned()));
    }
    let now = now?;
    let was_missing = then.is_some_and(is_false);
    match now.status.as_str() {
        "False" if !was_missing => {
            let missing = missing(after);
            let note = format!("{}: {missing}", now.message);
            Some(warning(&now.reason, note))
        }
        "True" if was_missing => Some(normal(&now.reason, now.message.clone())),
        _ => None,
    }
}

fn missing(status: &ManifestWorkStatus) -> String {
    let missing: Vec<String> = manifests(Some(status))
        .iter()
        .filter(|entry| find(&entry.conditions.0, "Available").is_some_and(is_false))
        .map(|entry| describe(&entry.resource_meta))
        .collect();
    missing.join(", ")
}

/// A work of a thousand manifests whose namespace is missing must not write a thousand Events.
fn shortened(mut told: Vec<Announcement>, what: &str) -> Vec<Announcement> {
    if told.len() > MOST {
        let more = told.len() - (MOST - 1);
        told.truncate(MOST);
        if let Some(last) = told.last_mut() {
            last.note = format!("{more} more manifests {what}; the status of the work names them");
        }
    }
    told
}

fn warning(reason: &str, note: String) -> Announcement {
    Announcement {
        is_warning: true,
        ..normal(reason, note)
    }
}

fn normal(reason: &str, note: String) -> Announcement {
    Announcement {
        is_warning: false,
        reason: reason.to_owned(),
        note: cut(note),
    }
}

fn cut(mut note: String) -> String {
    if note.len() > LONGEST {
        note.truncate(note.floor_char_boundary(LONGEST - '…'.len_utf8()));
        note.push('…');
    }
    note
}

fn says_the_same(then: &Condition, now: &Condition) -> bool {
    then.status == now.status && then.reason == now.reason && then.message == now.message
}

fn is_false(condition: &Condition) -> bool {
    condition.status == "False"
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|found| found.type_ == kind)
}

fn conditions(status: Option<&ManifestWorkStatus>) -> &[Condition] {
    status
        .and_then(|status| status.conditions.as_ref())
        .map(|conditions| conditions.0.as_slice())
        .unwrap_or_default()
}

fn manifests(status: Option<&ManifestWorkStatus>) -> &[ManifestCondition] {
    status
        .and_then(|status| status.resource_status.as_ref())
        .and_then(|status| status.manifests.as_deref())
        .unwrap_or_default()
}

/// Group, kind, namespace and name. A kind that the spoke does not serve yet has no resource and may change its
/// version. Manifests that cannot be read have nothing but their position.
type ObjectName<'a> = ([&'a str; 4], Option<i32>);

fn key(meta: &ResourceMeta) -> ObjectName<'_> {
    let parts = [&meta.group, &meta.kind, &meta.namespace, &meta.name]
        .map(|part| part.as_deref().unwrap_or_default());
    (parts, (parts == [""; 4]).then_some(meta.ordinal))
}

fn by_object(status: Option<&ManifestWorkStatus>) -> HashMap<ObjectName<'_>, &ManifestCondition> {
    let entries = manifests(status).iter();
    entries
        .map(|entry| (key(&entry.resource_meta), entry))
        .collect()
}

/// How an object is named to a person: `ConfigMap shop/settings`.
fn describe(meta: &ResourceMeta) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (kind, namespace, name) = (text(&meta.kind), text(&meta.namespace), text(&meta.name));
    if kind.is_empty() {
        format!("manifest {}", meta.ordinal)
    } else if namespace.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {namespace}/{name}")
    }
}
