//! A work survives a trip through our types, and stays small on the way.

use std::fmt::Write as _;

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::spec::ManifestWork;
use crate::api::manifest::Manifest;

proptest! {
    // A failure prints its seed; files of them in the repository would only be read by nobody.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The hub's answer, decoded and encoded again, is the same value, and each manifest the same bytes.
    #[test]
    fn a_work_survives_decode_and_encode((head, manifests, tail) in work()) {
        let received = head + &manifests.join(" ,\n") + &tail;
        let decoded: ManifestWork = serde_json::from_str(&received).unwrap();

        let kept: Vec<&str> = decoded.spec.manifests().iter().map(Manifest::as_json).collect();
        prop_assert_eq!(&kept, &manifests.iter().map(String::as_str).collect::<Vec<_>>());

        let sent = serde_json::to_string(&decoded).unwrap();
        for manifest in &manifests {
            prop_assert!(sent.contains(manifest.as_str()), "{} lost its bytes", manifest);
        }
        let received: Value = serde_json::from_str(&received).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        prop_assert_eq!(sent, received);
    }
}

#[test]
fn an_unknown_enum_value_is_kept() {
    let received = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "a"},
        "spec": {"deleteOption": {"propagationPolicy": "Archive"}},
    });
    let decoded: ManifestWork = serde_json::from_value(received.clone()).unwrap();
    assert_eq!(serde_json::to_value(&decoded).unwrap(), received);
}

/// The budget of the design: a work is held as its text, not as fourteen times its text. The text is a hub's answer,
/// so it has `managedFields`, which every watch of works drops on arrival.
#[test]
fn a_work_with_five_deployments_takes_at_most_six_kib() {
    let received = work_with_five_deployments();
    assert!(
        (5_900..6_100).contains(&received.len()),
        "{} bytes",
        received.len()
    );

    let mut decoded = None;
    let usage = allocation_counter::measure(|| {
        let mut work: ManifestWork = serde_json::from_str(&received).unwrap();
        work.metadata.managed_fields = None;
        decoded = Some(work);
    });
    let kept = decoded.map_or(0, |work| work.spec.manifests().len());
    assert_eq!(kept, 5);
    assert!(
        usage.bytes_current <= 6 * 1024,
        "{} bytes of heap",
        usage.bytes_current
    );
}

/// As a hub answers: compact JSON with sorted keys.
fn work_with_five_deployments() -> String {
    let deployment = |index: usize| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "labels": {"app.kubernetes.io/name": format!("web-{index}"), "app.kubernetes.io/part-of": "shop"},
                "name": format!("web-{index}"),
                "namespace": "shop",
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app.kubernetes.io/name": format!("web-{index}")}},
                "template": {
                    "metadata": {"labels": {"app.kubernetes.io/name": format!("web-{index}")}},
                    "spec": {
                        "containers": [{
                            "args": ["--listen=:8080", "--upstream=http://orders.shop.svc.cluster.local:8080"],
                            "env": [
                                {"name": "LOG_LEVEL", "value": "info"},
                                {"name": "REGION", "value": "eu-1"},
                            ],
                            "volumeMounts": [{"mountPath": "/etc/web-config", "name": "config"}],
                            "image": "registry.example.com/shop/web:1.27.3",
                            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
                            "name": "web",
                            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
                            "resources": {
                                "limits": {"cpu": "500m", "memory": "256Mi"},
                                "requests": {"cpu": "100m", "memory": "128Mi"},
                            },
                        }],
                    },
                },
            },
        })
    };
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
            "generation": 1,
            "labels": {"gitspoke.dev/source": "fleet"},
            "managedFields": [
                {
                    "apiVersion": "work.open-cluster-management.io/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {
                            "f:annotations": {"f:gitspoke.dev/commit": {}, "f:gitspoke.dev/path": {}},
                            "f:finalizers": {"v:\"cluster.open-cluster-management.io/manifest-work-cleanup\"": {}},
                            "f:labels": {"f:gitspoke.dev/source": {}},
                        },
                        "f:spec": {"f:deleteOption": {"f:propagationPolicy": {}}, "f:workload": {"f:manifests": {}}},
                    },
                    "manager": "gitspoke-hub",
                    "operation": "Apply",
                    "time": "2026-11-01T08:00:00Z",
                },
                {
                    "apiVersion": "work.open-cluster-management.io/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:status": {"f:conditions": {}, "f:resourceStatus": {"f:manifests": {}}}},
                    "manager": "work-agent",
                    "operation": "Update",
                    "subresource": "status",
                    "time": "2026-11-01T08:00:00Z",
                },
            ],
            "name": "web",
            "namespace": "edge-0001",
            "resourceVersion": "123456",
            "uid": "0b1c7f8e-8f0e-4a53-9d1e-5d6c9f1b2a3c",
        },
        "spec": {"workload": {"manifests": (0..5).map(deployment).collect::<Vec<_>>()}},
    })
    .to_string()
}

/// A work as text in three parts: before, in and after `spec.workload.manifests`.
fn work() -> impl Strategy<Value = (String, Vec<String>, String)> {
    (metadata(), vec(manifest(), 0..4), spec_beside_workload(), option::of(status())).prop_map(
        |(metadata, manifests, spec, status)| {
            let head = format!(
                r#"{{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{metadata},"spec":{{"workload":{{"manifests":[ "#
            );
            let mut tail = " ]}".to_owned();
            for (key, value) in spec.as_object().expect("made as an object") {
                write!(tail, ",\"{key}\":{value}").expect("writing to memory cannot fail");
            }
            tail += "}";
            if let Some(status) = status {
                write!(tail, ",\"status\":{status}").expect("writing to memory cannot fail");
            }
            (head, manifests, tail + "}")
        },
    )
}

fn metadata() -> impl Strategy<Value = Value> {
    (
        text(),
        option::of(prop::collection::btree_map(text(), text(), 0..3)),
        option::of(vec(text(), 0..3)),
        0..i64::MAX,
    )
        .prop_map(|(name, labels, finalizers, generation)| {
            object([
                ("name", Some(json!(name))),
                ("namespace", Some(json!("edge"))),
                ("labels", labels.map(|labels| json!(labels))),
                ("finalizers", finalizers.map(|finalizers| json!(finalizers))),
                ("generation", Some(json!(generation))),
                ("creationTimestamp", Some(json!("2026-11-01T08:00:00Z"))),
            ])
        })
}

/// Objects in spellings no serializer of ours would choose: the bytes must come back all the same.
fn manifest() -> impl Strategy<Value = String> {
    let number = select(vec![
        "1",
        "1.0",
        "1e3",
        "-0",
        "12345678901234567890123",
        "0.10",
    ]);
    let blank = select(vec!["", " ", "\n\t", "\r\n  "]);
    (text(), number, blank, json_value()).prop_map(|(name, number, blank, value)| {
        let name = json!(name);
        format!(
            "{{{blank}\"kind\" :{blank}\"ConfigMap\",\"metadata\":{{\"name\":{name}}},\"z\":{number},\"a\":\"\\u003c\\/\",{blank}\"data\":{value},\"apiVersion\":\"v1\"}}"
        )
    })
}

fn spec_beside_workload() -> impl Strategy<Value = Value> {
    let delete_option = (
        option::of(select(vec!["Foreground", "Orphan", "SelectivelyOrphan"])),
        option::of(option::of(vec(identifier(), 0..3))),
        option::of(any::<i64>()),
    )
        .prop_map(|(policy, rules, ttl)| {
            object([
                ("propagationPolicy", policy.map(|policy| json!(policy))),
                (
                    "selectivelyOrphans",
                    rules
                        .map(|rules| object([("orphaningRules", rules.map(|rules| json!(rules)))])),
                ),
                ("ttlSecondsAfterFinished", ttl.map(|ttl| json!(ttl))),
            ])
        });
    let executor = option::of((text(), text())).prop_map(|account| {
        object([(
            "subject",
            account.map(|(namespace, name)| {
                json!({"type": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}})
            }),
        )])
    });
    (
        option::of(delete_option),
        option::of(vec(config(), 0..3)),
        option::of(executor),
    )
        .prop_map(|(delete_option, configs, executor)| {
            object([
                ("deleteOption", delete_option),
                ("manifestConfigs", configs.map(|configs| json!(configs))),
                ("executor", executor),
            ])
        })
}

fn config() -> impl Strategy<Value = Value> {
    let path = (text(), text(), option::of(text())).prop_map(|(name, path, version)| {
        object([
            ("name", Some(json!(name))),
            ("path", Some(json!(path))),
            ("version", version.map(|version| json!(version))),
        ])
    });
    let feedback = (
        select(vec!["WellKnownStatus", "JSONPaths"]),
        option::of(vec(path, 0..3)),
    )
        .prop_map(|(kind, paths)| {
            object([
                ("type", Some(json!(kind))),
                ("jsonPaths", paths.map(|paths| json!(paths))),
            ])
        });
    let ignore = (
        select(vec!["OnSpokePresent", "OnSpokeChange"]),
        option::of(vec(text(), 0..2)),
        option::of(vec(text(), 0..2)),
        option::of(vec(text(), 0..2)),
    )
        .prop_map(|(condition, paths, pointers, jq)| {
            object([
                ("condition", Some(json!(condition))),
                ("jsonPaths", paths.map(|paths| json!(paths))),
                ("jsonPointers", pointers.map(|pointers| json!(pointers))),
                ("jqPathExpressions", jq.map(|jq| json!(jq))),
            ])
        });
    let apply = (
        option::of(any::<bool>()),
        option::of(text()),
        option::of(vec(ignore, 0..2)),
    )
        .prop_map(|(force, name, ignore)| {
            object([
                ("force", force.map(|force| json!(force))),
                ("fieldManager", name.map(|name| json!(name))),
                ("ignoreFields", ignore.map(|ignore| json!(ignore))),
            ])
        });
    let strategy = (
        option::of(select(vec![
            "Update",
            "CreateOnly",
            "ServerSideApply",
            "ReadOnly",
        ])),
        option::of(apply),
    )
        .prop_map(|(kind, apply)| {
            object([
                ("type", kind.map(|kind| json!(kind))),
                ("serverSideApply", apply),
            ])
        });
    let rule = (
        text(),
        select(vec!["CEL", "WellKnownConditions"]),
        option::of(vec(text(), 0..3)),
        option::of(text()),
        option::of(text()),
    )
        .prop_map(|(condition, kind, expressions, message, expression)| {
            object([
                ("condition", Some(json!(condition))),
                ("type", Some(json!(kind))),
                (
                    "celExpressions",
                    expressions.map(|expressions| json!(expressions)),
                ),
                ("message", message.map(|message| json!(message))),
                (
                    "messageExpression",
                    expression.map(|expression| json!(expression)),
                ),
            ])
        });
    (
        identifier(),
        option::of(vec(feedback, 0..2)),
        option::of(strategy),
        option::of(vec(rule, 0..2)),
        option::of(select(vec!["Poll", "Watch"])),
    )
        .prop_map(|(identifier, feedback, strategy, rules, scrape)| {
            object([
                ("resourceIdentifier", Some(identifier)),
                ("feedbackRules", feedback.map(|feedback| json!(feedback))),
                ("updateStrategy", strategy),
                ("conditionRules", rules.map(|rules| json!(rules))),
                ("feedbackScrapeType", scrape.map(|scrape| json!(scrape))),
            ])
        })
}

fn status() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        any::<i64>().prop_map(|value| json!({"type": "Integer", "integer": value})),
        text().prop_map(|value| json!({"type": "String", "string": value})),
        any::<bool>().prop_map(|value| json!({"type": "Boolean", "boolean": value})),
        text().prop_map(|value| json!({"type": "JsonRaw", "jsonRaw": value})),
    ];
    let value =
        (text(), field).prop_map(|(name, field)| json!({"name": name, "fieldValue": field}));
    let meta = (
        0..i32::MAX,
        option::of(text()),
        option::of(text()),
        option::of(text()),
    )
        .prop_map(|(ordinal, group, name, namespace)| {
            object([
                ("ordinal", Some(json!(ordinal))),
                ("group", group.map(|group| json!(group))),
                ("version", Some(json!("v1"))),
                ("kind", Some(json!("ConfigMap"))),
                ("resource", Some(json!("configmaps"))),
                ("name", name.map(|name| json!(name))),
                ("namespace", namespace.map(|namespace| json!(namespace))),
            ])
        });
    let entry = (
        meta,
        option::of(option::of(vec(value, 0..3))),
        vec(condition(), 0..3),
    )
        .prop_map(|(meta, values, conditions)| {
            object([
                ("resourceMeta", Some(meta)),
                (
                    "statusFeedback",
                    values.map(|values| object([("values", values.map(|values| json!(values)))])),
                ),
                ("conditions", Some(json!(conditions))),
            ])
        });
    (
        option::of(vec(condition(), 0..3)),
        option::of(option::of(vec(entry, 0..3))),
    )
        .prop_map(|(conditions, entries)| {
            object([
                ("conditions", conditions.map(|conditions| json!(conditions))),
                (
                    "resourceStatus",
                    entries.map(|entries| {
                        object([("manifests", entries.map(|entries| json!(entries)))])
                    }),
                ),
            ])
        })
}

fn condition() -> impl Strategy<Value = Value> {
    (
        text(),
        select(vec!["True", "False", "Unknown"]),
        option::of(0..i64::MAX),
    )
        .prop_map(|(message, status, generation)| {
            object([
                ("type", Some(json!("Applied"))),
                ("status", Some(json!(status))),
                ("reason", Some(json!("AppliedManifestWorkComplete"))),
                ("message", Some(json!(message))),
                ("lastTransitionTime", Some(json!("2026-11-01T08:00:00Z"))),
                (
                    "observedGeneration",
                    generation.map(|generation| json!(generation)),
                ),
            ])
        })
}

fn identifier() -> impl Strategy<Value = Value> {
    (option::of(text()), text(), option::of(text()), text()).prop_map(
        |(group, resource, namespace, name)| {
            object([
                ("group", group.map(|group| json!(group))),
                ("resource", Some(json!(resource))),
                ("namespace", namespace.map(|namespace| json!(namespace))),
                ("name", Some(json!(name))),
            ])
        },
    )
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["", "a", "*", "web-1", "\"\\/<>\u{2028}"]).prop_map(str::to_owned),
        ".{0,8}"
    ]
}

/// An object of the fields that are present.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}
