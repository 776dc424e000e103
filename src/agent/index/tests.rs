//! What the index makes of what watches and passes tell it.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::*;

fn kind() -> Kind {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Kind {
        resource,
        is_namespaced: true,
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

fn claim(mark: Option<&Mark>) -> Claim<'_> {
    Claim {
        field_manager: "work-agent",
        mark,
        is_owner: true,
        is_observer: false,
    }
}

fn meta(version: u64, fields: &serde_json::Value, second: i64) -> ObjectMeta {
    ObjectMeta {
        uid: Some("u".into()),
        resource_version: Some(version.to_string()),
        managed_fields: Some(vec![ManagedFieldsEntry {
            manager: Some("work-agent".into()),
            operation: Some("Apply".into()),
            fields_v1: Some(FieldsV1(fields.clone())),
            time: Some(Time(Timestamp::from_second(second).unwrap())),
            ..ManagedFieldsEntry::default()
        }]),
        ..ObjectMeta::default()
    }
}

/// An index with one object, applied by one work, its watch up to date.
fn applied() -> Index {
    let mut index = Index::default();
    index.hold("web", &key(), &kind(), &claim(None));
    index.listing(&kind());
    index.listed(&kind());
    index.writing(&key());
    index.written(
        "web",
        &key(),
        "asked",
        Some(&meta(10, &json!({"f:a": {}, "f:b": {}}), 100)),
    );
    index
}

#[test]
fn our_own_write_is_no_drift() {
    let mut index = Index::default();
    index.hold("web", &key(), &kind(), &claim(None));
    index.writing(&key());
    let answer = meta(10, &json!({"f:a": {}}), 100);
    assert_eq!(index.appeared(&kind(), &key(), &answer), Awake::default());
    index.written("web", &key(), "asked", Some(&answer));
    assert!(!index.view("web", &key()).is_drifted);
    assert_eq!(index.appeared(&kind(), &key(), &answer), Awake::default());
}

#[test]
fn a_field_taken_from_us_is_drift_and_anything_else_is_noise() {
    let ours = json!({"f:a": {}, "f:b": {}});
    let table = [
        ("a status or a foreign field", meta(11, &ours, 100), false),
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
        let awake = index.appeared(&kind(), &key(), &shown);
        assert_eq!(index.view("web", &key()).is_drifted, is_drift, "{what}");
        assert_eq!(awake.works.is_empty(), !is_drift, "{what}");
    }
}

#[test]
fn what_happens_during_a_write_is_judged_by_its_answer() {
    let mut index = applied();
    index.writing(&key());
    assert_eq!(
        index.appeared(&kind(), &key(), &meta(13, &json!({"f:b": {}}), 100)),
        Awake::default()
    );
    index.written(
        "web",
        &key(),
        "asked",
        Some(&meta(12, &json!({"f:a": {}, "f:b": {}}), 100)),
    );
    assert!(index.view("web", &key()).is_drifted);
}

#[test]
fn a_list_that_does_not_show_an_object_proves_nothing() {
    let mut index = applied();
    index.listing(&kind());
    assert!(!index.view("web", &key()).is_watched);
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
    let stamp = Seen::of(&answer, "work-agent").stamp.unwrap();
    let mark = Mark {
        asked: "asked".into(),
        stamp,
    };
    for (shown, is_drift) in [
        (meta(99, &fields, 100), false),
        (meta(99, &json!({}), 100), true),
    ] {
        let mut index = Index::default();
        index.hold("web", &key(), &kind(), &claim(Some(&mark)));
        index.appeared(&kind(), &key(), &shown);
        let view = index.view("web", &key());
        assert_eq!(
            (view.asked.as_deref(), view.is_drifted),
            (Some("asked"), is_drift)
        );
    }
}

#[test]
fn a_kind_is_watched_while_somebody_holds_one() {
    let mut index = applied();
    index.hold("other", &key(), &kind(), &claim(None));
    index.release("web", &key());
    assert_eq!(index.kinds().len(), 1);
    index.release("other", &key());
    assert!(index.kinds().is_empty());
}

#[test]
fn noise_wakes_only_those_who_have_rules_about_it_and_does_not_hurry() {
    let mut index = applied();
    let fields = json!({"f:a": {}, "f:b": {}});
    assert_eq!(
        index.appeared(&kind(), &key(), &meta(11, &fields, 100)),
        Awake::default()
    );
    index.hold(
        "curious",
        &key(),
        &kind(),
        &Claim {
            is_observer: true,
            ..claim(None)
        },
    );
    let expected = Awake {
        works: vec!["curious".into()],
        is_urgent: false,
    };
    assert_eq!(
        index.appeared(&kind(), &key(), &meta(12, &fields, 100)),
        expected
    );
    assert_eq!(
        index.appeared(&kind(), &key(), &meta(12, &fields, 100)),
        Awake::default(),
        "old news"
    );
}
