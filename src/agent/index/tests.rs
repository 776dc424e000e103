//! What the index makes of what watches and passes tell it.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{
        FieldsV1, ManagedFieldsEntry, ObjectMeta, OwnerReference, Time,
    },
    jiff::Timestamp,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use std::collections::HashSet;

use super::*;

fn kind() -> Kind {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Kind {
        resource,
        is_namespaced: true,
        is_watchable: true,
        is_patchable: true,
    }
}

fn key() -> ObjectKey {
    ObjectKey {
        group: String::new(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        name: "a".into(),
    }
}

fn author() -> Author {
    Author::applying("work-agent")
}

fn heard() -> Heard {
    Heard {
        asked: "asked".into(),
        manager: "work-agent".into(),
        note: String::new(),
    }
}

fn claim(mark: Option<&Mark>) -> Claim<'_> {
    Claim {
        author: author(),
        mark,
        is_owner: true,
        is_observer: false,
    }
}

fn meta(version: u64, fields: &serde_json::Value, second: i64) -> ObjectMeta {
    ObjectMeta {
        uid: Some("u".into()),
        resource_version: Some(version.to_string()),
        managed_fields: Some(vec![entry("work-agent", fields, second)]),
        ..ObjectMeta::default()
    }
}

fn entry(manager: &str, fields: &serde_json::Value, second: i64) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.into()),
        operation: Some("Apply".into()),
        fields_v1: Some(FieldsV1(fields.clone())),
        time: Some(Time(Timestamp::from_second(second).unwrap())),
        ..ManagedFieldsEntry::default()
    }
}

/// The same, and somebody else has written something of their own.
fn beside(mut meta: ObjectMeta, manager: &str) -> ObjectMeta {
    let theirs = entry(manager, &json!({"f:theirs": {}}), 200);
    meta.managed_fields.get_or_insert_default().push(theirs);
    meta
}

/// The same object with a status that its controller writes.
fn reported(meta: ObjectMeta) -> ObjectMeta {
    let mut meta = beside(meta, "controller");
    let entries = meta.managed_fields.iter_mut().flatten();
    let theirs = entries.last().expect("it has just been put there");
    theirs.subresource = Some("status".into());
    meta
}

/// An index with one object, applied by one work, its watch up to date.
fn applied() -> Index {
    applied_as(&meta(10, &json!({"f:a": {}, "f:b": {}}), 100))
}

fn applied_as(answer: &ObjectMeta) -> Index {
    let mut index = Index::default();
    index.hold("web", &key(), &kind(), &claim(None));
    index.listing(&kind());
    index.listed(&kind());
    index.writing(&key());
    index.written("web", &key(), Some((heard(), answer)));
    index
}

#[test]
fn our_own_write_is_no_drift() {
    let mut index = Index::default();
    index.hold("web", &key(), &kind(), &claim(None));
    index.writing(&key());
    let answer = meta(10, &json!({"f:a": {}}), 100);
    assert_eq!(
        index.appeared(&kind(), &key(), &answer, None),
        Awake::default()
    );
    index.written("web", &key(), Some((heard(), &answer)));
    assert!(!index.view("web", &key()).is_drifted);
    assert_eq!(
        index.appeared(&kind(), &key(), &answer, None),
        Awake::default()
    );
}

#[test]
fn a_field_taken_from_us_is_drift_and_anything_else_is_noise() {
    let ours = json!({"f:a": {}, "f:b": {}});
    let table = [
        (
            "a foreign field",
            beside(meta(11, &ours, 100), "them"),
            false,
        ),
        (
            "a write in our name within the second",
            meta(11, &ours, 100),
            true,
        ),
        (
            "the same, of a kind that counts changes, which is its status",
            ObjectMeta {
                generation: Some(1),
                ..meta(11, &ours, 100)
            },
            false,
        ),
        (
            "the same, which is its spec",
            ObjectMeta {
                generation: Some(2),
                ..meta(11, &ours, 100)
            },
            true,
        ),
        (
            "the same, while its controller reports status",
            ObjectMeta {
                generation: Some(2),
                ..reported(meta(11, &ours, 100))
            },
            true,
        ),
        (
            "a controller that reports status",
            ObjectMeta {
                generation: Some(1),
                ..reported(meta(11, &ours, 100))
            },
            false,
        ),
        ("a field of ours", meta(11, &json!({"f:b": {}}), 100), true),
        ("a write in our name", meta(11, &ours, 101), true),
        (
            "our entry is gone",
            ObjectMeta {
                managed_fields: None,
                ..meta(11, &ours, 100)
            },
            true,
        ),
        ("old news", meta(9, &json!({}), 100), false),
    ];
    for (what, shown, is_drift) in table {
        let mut index = applied();
        if shown.generation.is_some() {
            let first = ObjectMeta {
                generation: Some(1),
                ..meta(10, &ours, 100)
            };
            index = applied_as(&first);
        }
        let awake = index.appeared(&kind(), &key(), &shown, None);
        assert_eq!(index.view("web", &key()).is_drifted, is_drift, "{what}");
        assert_eq!(awake.works.is_empty(), !is_drift, "{what}");
    }
}

/// An autoscaler changes what nobody owns, and the API server does not say who it was.
#[tokio::test(start_paused = true)]
async fn what_leaves_no_trace_is_noise_once_our_second_is_over() {
    let ours = json!({"f:a": {}, "f:b": {}});
    let shown = |version, generation| ObjectMeta {
        generation: Some(generation),
        ..meta(version, &ours, 100)
    };
    let mut index = applied_as(&shown(10, 1));
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let awake = index.appeared(&kind(), &key(), &shown(11, 2), None);
    assert_eq!(awake, Awake::default());
    assert!(!index.view("web", &key()).is_drifted);
}

#[test]
fn what_happens_during_a_write_is_judged_by_its_answer() {
    let mut index = applied();
    index.writing(&key());
    assert_eq!(
        index.appeared(&kind(), &key(), &meta(13, &json!({"f:b": {}}), 100), None),
        Awake::default()
    );
    index.written(
        "web",
        &key(),
        Some((heard(), &meta(12, &json!({"f:a": {}, "f:b": {}}), 100))),
    );
    assert!(index.view("web", &key()).is_drifted);
}

#[test]
fn somebody_who_writes_their_own_twice_in_a_second_is_noise() {
    let mut index = applied();
    let shown = |version| beside(meta(version, &json!({"f:a": {}, "f:b": {}}), 100), "them");
    for version in [11, 12] {
        let awake = index.appeared(&kind(), &key(), &shown(version), None);
        assert_eq!(awake, Awake::default(), "{version}");
    }
}

#[test]
fn a_write_that_changes_nothing_ends_the_suspicion() {
    let mut index = applied();
    let seen = meta(11, &json!({"f:a": {}, "f:b": {}}), 100);
    index.appeared(&kind(), &key(), &seen, None);
    assert!(index.view("web", &key()).is_drifted, "it may be");
    index.writing(&key());
    index.written("web", &key(), Some((heard(), &seen)));
    assert!(!index.view("web", &key()).is_drifted, "it was not");
}

#[test]
fn a_list_that_does_not_show_an_object_proves_nothing() {
    let mut index = applied();
    index.listing(&kind());
    assert_eq!(index.view("web", &key()).watching, Watching::Begun);
    assert_eq!(index.listed(&kind()).len(), 1);
    assert_eq!(index.view("web", &key()).sight, Sight::Unknown);
    index.looked(&key(), None);
    assert_eq!(index.view("web", &key()).sight, Sight::Gone);
}

#[test]
fn a_deletion_of_an_earlier_object_is_old_news() {
    let mut index = applied();
    let earlier = ObjectMeta {
        uid: Some("earlier".into()),
        ..ObjectMeta::default()
    };
    assert!(index.vanished(&key(), &earlier).is_empty());
    assert_eq!(index.vanished(&key(), &meta(11, &json!({}), 100)), ["web"]);
    assert_eq!(index.view("web", &key()).sight, Sight::Gone);
}

#[test]
fn a_record_spares_the_apply_when_the_object_is_as_it_was_left() {
    let fields = json!({"f:a": {}});
    let answer = meta(10, &fields, 100);
    let mark = Mark {
        heard: heard(),
        stamp: Seen::of(&answer).stamp(&author()).unwrap(),
    };
    for (shown, is_drift) in [
        (meta(99, &fields, 100), false),
        (meta(99, &json!({}), 100), true),
    ] {
        let mut index = Index::default();
        index.hold("web", &key(), &kind(), &claim(Some(&mark)));
        index.appeared(&kind(), &key(), &shown, None);
        let view = index.view("web", &key());
        assert_eq!((view.heard, view.is_drifted), (Some(heard()), is_drift));
    }
}

#[test]
fn a_kind_is_watched_while_somebody_holds_one() {
    let mut index = applied();
    index.hold("other", &key(), &kind(), &claim(None));
    index.release("web", &key());
    assert_eq!(index.wanted().len(), 1);
    index.release("other", &key());
    assert!(index.wanted().is_empty());
}

#[test]
fn noise_wakes_only_those_who_have_rules_about_it_and_does_not_hurry() {
    let mut index = applied();
    let fields = json!({"f:a": {}, "f:b": {}});
    let noise = |version, by| beside(meta(version, &fields, 100), by);
    let shown = index.appeared(&kind(), &key(), &noise(11, "one"), None);
    assert_eq!(shown, Awake::default());
    let curious = Claim {
        is_observer: true,
        ..claim(None)
    };
    assert!(
        index.hold("curious", &key(), &kind(), &curious),
        "the kind is to be watched whole"
    );
    let expected = Awake {
        works: vec!["curious".into()],
        is_urgent: false,
    };
    let shown = index.appeared(&kind(), &key(), &noise(12, "two"), None);
    assert_eq!(shown, expected);
    let shown = index.appeared(&kind(), &key(), &noise(12, "two"), None);
    assert_eq!(shown, Awake::default(), "old news");
}

#[test]
fn rules_are_asked_once_about_what_a_watch_has_shown() {
    let mut index = applied();
    let curious = Claim {
        is_observer: true,
        ..claim(None)
    };
    index.hold("web", &key(), &kind(), &curious);
    let observation = |index: &Index, rules| match index.observation("web", &key(), rules) {
        Observation::Known(..) => "known".to_owned(),
        Observation::Ask(version, _) => format!("ask about {version}"),
        Observation::Read => "read".to_owned(),
        Observation::Gone => "gone".to_owned(),
    };
    assert_eq!(observation(&index, "rules"), "read");
    let shown = beside(meta(11, &json!({"f:a": {}, "f:b": {}}), 100), "them");
    index.appeared(&kind(), &key(), &shown, Some(json!({})));
    assert_eq!(observation(&index, "rules"), "ask about 11");
    let observed = Observed {
        resource_version: 11,
        asked: "rules".into(),
        feedback: Feedback::NoRules,
        rules: Rules::Untouched,
    };
    index.observed("web", &key(), observed);
    assert_eq!(observation(&index, "rules"), "known");
    assert_eq!(observation(&index, "other rules"), "read");
    index.vanished(&key(), &shown);
    assert_eq!(observation(&index, "rules"), "gone");
}

#[test]
fn works_that_write_by_different_names_watch_different_entries() {
    let mut index = applied();
    let other = Claim {
        author: Author::applying("work-agent-b"),
        ..claim(None)
    };
    index.hold("other", &key(), &kind(), &other);
    index.writing(&key());
    let mut answer = meta(11, &json!({"f:a": {}}), 100);
    let theirs = entry("work-agent-b", &json!({"f:b": {}}), 101);
    answer.managed_fields.as_mut().unwrap().push(theirs);
    let theirs = Heard {
        manager: "work-agent-b".into(),
        ..heard()
    };
    let awake = index.written("other", &key(), Some((theirs, &answer)));
    assert_eq!(awake, ["web"], "its field was taken from it");
    assert!(!index.view("other", &key()).is_drifted);
}

#[test]
fn an_object_that_vanishes_during_a_write_is_gone() {
    let mut index = applied();
    index.writing(&key());
    let answer = meta(12, &json!({"f:a": {}, "f:b": {}}), 100);
    assert!(index.vanished(&key(), &answer).is_empty(), "not yet");
    let awake = index.written("web", &key(), Some((heard(), &answer)));
    assert_eq!(awake, ["web"]);
    assert_eq!(index.view("web", &key()).sight, Sight::Gone);
}

#[test]
fn an_answer_that_was_overtaken_is_old_news() {
    let mut index = applied();
    index.hold("second", &key(), &kind(), &claim(None));
    index.writing(&key());
    index.writing(&key());
    let (first, second) = (json!({"f:a": {}}), json!({"f:a": {}, "f:o": {}}));
    index.written("second", &key(), Some((heard(), &meta(12, &second, 100))));
    let awake = index.written("web", &key(), Some((heard(), &meta(11, &first, 100))));
    assert!(awake.is_empty());
    assert!(!index.view("web", &key()).is_drifted);
}

#[test]
fn what_cannot_be_watched_is_in_doubt() {
    let mut index = applied();
    assert_eq!(index.unwatchable(&kind(), false).len(), 1);
    let view = index.view("web", &key());
    assert_eq!(
        (view.sight, view.watching),
        (Sight::Unknown, Watching::Impossible)
    );
    index.looked(&key(), Some(&meta(10, &json!({"f:a": {}, "f:b": {}}), 100)));
    assert!(!index.view("web", &key()).is_drifted);
}

#[test]
fn a_kind_that_was_gone_is_back_once_an_object_of_it_is_written() {
    let mut index = applied();
    index.unwatchable(&kind(), true);
    let mut gone = HashSet::from([kind()]);
    assert_eq!(index.back(&mut gone), []);
    index.writing(&key());
    let answer = meta(12, &json!({"f:a": {}}), 101);
    index.written("web", &key(), Some((heard(), &answer)));
    assert_eq!(index.back(&mut gone), [kind()]);
    assert!(gone.is_empty());
}

#[test]
fn a_field_manager_that_nobody_uses_any_more_is_former() {
    let mut index = applied();
    assert_eq!(index.former("web", &key()), None);
    let other = Claim {
        author: Author::applying("work-agent-b"),
        ..claim(None)
    };
    index.hold("web", &key(), &kind(), &other);
    assert_eq!(index.former("web", &key()).as_deref(), Some("work-agent"));
    index.hold("second", &key(), &kind(), &claim(None));
    assert_eq!(index.former("web", &key()), None, "it is somebody else's");
}

/// 5,000 objects and everything else of an agent share 40 MiB.
#[test]
fn an_object_takes_little_memory() {
    const OBJECTS: usize = 1_000;
    let mut index = Index::default();
    let used = allocation_counter::measure(|| {
        for number in 0..OBJECTS {
            let work = format!("work-{}", number / 5);
            let key = ObjectKey {
                name: format!("{work}-map-{number}"),
                ..key()
            };
            let owner = OwnerReference {
                api_version: "work.open-cluster-management.io/v1".into(),
                kind: "AppliedManifestWork".into(),
                name: format!("{}-{work}", "0".repeat(64)),
                uid: "0".repeat(36),
                ..OwnerReference::default()
            };
            let answer = ObjectMeta {
                uid: Some("0".repeat(36)),
                owner_references: Some(vec![owner]),
                ..meta(10, &json!({"f:data": {"f:key": {}}}), 100)
            };
            index.hold(&work, &key, &kind(), &claim(None));
            index.writing(&key);
            index.written(&work, &key, Some((heard(), &answer)));
        }
    });
    let bytes = used.bytes_current / i64::try_from(OBJECTS).unwrap();
    assert!(
        (1..=1_300).contains(&bytes),
        "{bytes} bytes for each object"
    );
}
