//! Good and bad objects, and what a real API server must answer to each.

use serde_json::{Value, json};

/// One object and the answer to it.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) object: Value,
    pub(crate) answer: Answer,
}

/// What the API server must answer.
pub(crate) enum Answer {
    /// Accepted, with these defaults filled in.
    Accepted {
        defaults: Vec<(&'static str, Value)>,
    },
    /// Refused, naming the field.
    Refused {
        code: u16,
        reason: &'static str,
        field: &'static str,
        says: &'static str,
    },
}

/// Objects that are accepted.
pub(crate) fn good() -> Vec<Row> {
    let strategies = ["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]
        .map(|kind| json!({"resourceIdentifier": identifier(), "updateStrategy": {"type": kind}}));
    vec![
        accepted(
            "a work with nothing but a manifest",
            work(json!({})),
            vec![],
        ),
        accepted(
            "a work without manifests, which only admission refuses",
            work(json!({"workload": {}})),
            vec![],
        ),
        accepted(
            "a delete option",
            work(json!({"deleteOption": {}})),
            vec![("/spec/deleteOption/propagationPolicy", json!("Foreground"))],
        ),
        accepted(
            "selective orphaning and a TTL",
            work(json!({"deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [{"resource": "configmaps", "name": "a"}]},
                "ttlSecondsAfterFinished": 0,
            }})),
            vec![("/spec/deleteOption/ttlSecondsAfterFinished", json!(0))],
        ),
        accepted(
            "a manifest config",
            configured(
                json!({"updateStrategy": {"serverSideApply": {"ignoreFields": [{"jsonPaths": [".a"]}]}}}),
            ),
            vec![
                ("/spec/manifestConfigs/0/feedbackScrapeType", json!("Poll")),
                (
                    "/spec/manifestConfigs/0/updateStrategy/type",
                    json!("Update"),
                ),
                (
                    "/spec/manifestConfigs/0/updateStrategy/serverSideApply/fieldManager",
                    json!("work-agent"),
                ),
                (
                    "/spec/manifestConfigs/0/updateStrategy/serverSideApply/ignoreFields/0/condition",
                    json!("OnSpokePresent"),
                ),
            ],
        ),
        accepted(
            "every update strategy that exists",
            work(json!({"manifestConfigs": strategies})),
            vec![(
                "/spec/manifestConfigs/3/updateStrategy/type",
                json!("ReadOnly"),
            )],
        ),
        accepted(
            "a well-known condition without a name",
            configured(
                json!({"conditionRules": [{"condition": "", "type": "WellKnownConditions"}]}),
            ),
            vec![],
        ),
        accepted(
            "a manifest of a kind nobody knows, kept whole",
            work(json!({"workload": {"manifests": [{
                "apiVersion": "example.com/v9", "kind": "Odd", "metadata": {"name": "a"}, "anything": [1, {"b": null}],
            }]}})),
            vec![(
                "/spec/workload/manifests/0/anything",
                json!([1, {"b": null}]),
            )],
        ),
        accepted(
            "a record of an applied work",
            applied(json!({"hubHash": "abc", "manifestWorkName": "web"})),
            vec![],
        ),
        accepted(
            "a source with nothing but a URL",
            source(json!({})),
            vec![
                ("/spec/path", json!(".")),
                ("/spec/interval", json!("30s")),
                ("/spec/timeout", json!("60s")),
                ("/spec/caMode", json!("add")),
                ("/spec/insecure", json!(false)),
                ("/spec/polling", json!("auto")),
                ("/spec/suspend", json!(false)),
                ("/spec/onRewrite", json!("warn")),
                ("/spec/onDelete", json!("orphan")),
                (
                    "/spec/prune",
                    json!({"enabled": true, "maxDeletions": 10, "maxPercent": 10}),
                ),
                ("/spec/limits/maxFileBytes", json!("1Mi")),
                ("/spec/limits/maxWorks", json!(200_000)),
            ],
        ),
        accepted(
            "commit statuses",
            source(
                json!({"checks": {"provider": "gitea", "apiBase": "http://127.0.0.1:3000/api/v1"}}),
            ),
            vec![
                ("/spec/checks/deadline", json!("15m")),
                ("/spec/checks/offlineClusters", json!("wait")),
                ("/spec/checks/healthy", json!(true)),
            ],
        ),
        accepted(
            "an scp-like URL",
            source(json!({"url": "git@git.example:acme/fleet.git"})),
            vec![],
        ),
        accepted(
            "a local path",
            source(json!({"url": "/srv/git/fleet.git"})),
            vec![],
        ),
        accepted(
            "http that was asked for",
            source(json!({"url": "http://git.example/a", "insecure": true})),
            vec![],
        ),
        accepted(
            "the shortest interval",
            source(json!({"interval": "5s"})),
            vec![],
        ),
        accepted(
            "no polling, with a webhook",
            source(json!({"polling": "disabled", "webhook": {"secretRef": {"name": "hook"}}})),
            vec![],
        ),
        accepted(
            "a path with dots that leave nothing",
            source(json!({"path": "fleet/..hidden/a..b"})),
            vec![],
        ),
        accepted(
            "limits as numbers and as quantities",
            source(json!({"limits": {"maxWorks": 5, "maxPackBytes": "10Gi"}})),
            vec![("/spec/limits/maxWorks", json!(5))],
        ),
        accepted(
            "nothing allowed",
            source(json!({"allow": {"clusters": []}})),
            vec![("/spec/allow/clusters", json!([]))],
        ),
    ]
}

/// Objects that are refused.
pub(crate) fn refused() -> Vec<Row> {
    const STRATEGY: &str = "spec.manifestConfigs[0].updateStrategy";
    let commit = "0123456789abcdef0123456789abcdef01234567";
    vec![
        invalid(
            "a delete policy that does not exist",
            work(json!({"deleteOption": {"propagationPolicy": "Background"}})),
            "spec.deleteOption.propagationPolicy",
            "supported values: \"Foreground\", \"Orphan\", \"SelectivelyOrphan\"",
        ),
        invalid(
            "null for a field that may be absent",
            work(json!({"executor": null, "deleteOption": {"ttlSecondsAfterFinished": "soon"}})),
            "spec.deleteOption.ttlSecondsAfterFinished",
            "must be of type integer",
        ),
        invalid(
            "an orphaning rule without a name",
            work(
                json!({"deleteOption": {"selectivelyOrphans": {"orphaningRules": [{"resource": "secrets"}]}}}),
            ),
            "spec.deleteOption.selectivelyOrphans.orphaningRules[0].name",
            "Required value",
        ),
        invalid(
            "a config that names no object",
            work(json!({"manifestConfigs": [{"feedbackRules": []}]})),
            "spec.manifestConfigs[0].resourceIdentifier",
            "Required value",
        ),
        invalid(
            "an update strategy that does not exist",
            configured(json!({"updateStrategy": {"type": "Replace"}})),
            "spec.manifestConfigs[0].updateStrategy.type",
            "supported values: \"Update\", \"CreateOnly\", \"ServerSideApply\", \"ReadOnly\"",
        ),
        invalid(
            "a field manager under a strange name",
            configured(json!({"updateStrategy": {"serverSideApply": {"fieldManager": "kubectl"}}})),
            "spec.manifestConfigs[0].updateStrategy.serverSideApply.fieldManager",
            "^work-agent",
        ),
        invalid(
            "one ignore condition twice",
            configured(
                json!({"updateStrategy": {"serverSideApply": {"ignoreFields": [
                    {"condition": "OnSpokeChange"}, {"condition": "OnSpokeChange"},
                ]}}}),
            ),
            "spec.manifestConfigs[0].updateStrategy.serverSideApply.ignoreFields[1]",
            "Duplicate value",
        ),
        invalid(
            "a feedback type that does not exist",
            configured(json!({"feedbackRules": [{"type": "Everything"}]})),
            "spec.manifestConfigs[0].feedbackRules[0].type",
            "supported values: \"WellKnownStatus\", \"JSONPaths\"",
        ),
        invalid(
            "one feedback name twice",
            configured(
                json!({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                    {"name": "a", "path": ".a"}, {"name": "a", "path": ".b"},
                ]}]}),
            ),
            "spec.manifestConfigs[0].feedbackRules[0].jsonPaths[1]",
            "Duplicate value",
        ),
        invalid(
            "a feedback path without a path",
            configured(
                json!({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "a"}]}]}),
            ),
            "spec.manifestConfigs[0].feedbackRules[0].jsonPaths[0].path",
            "Required value",
        ),
        invalid(
            "two rules for one condition",
            configured(json!({"conditionRules": [
                {"condition": "Ready", "type": "CEL"}, {"condition": "Ready", "type": "CEL"},
            ]})),
            "spec.manifestConfigs[0].conditionRules[1]",
            "Duplicate value",
        ),
        invalid(
            "a CEL rule for a condition without a name",
            configured(json!({"conditionRules": [{"condition": "", "type": "CEL"}]})),
            "spec.manifestConfigs[0].conditionRules[0].condition",
            "a CEL rule needs the name of its condition",
        ),
        invalid(
            "a scrape type that does not exist",
            configured(json!({"feedbackScrapeType": "Push"})),
            "spec.manifestConfigs[0].feedbackScrapeType",
            "supported values: \"Poll\", \"Watch\"",
        ),
        invalid(
            "an executor of an unknown kind",
            work(json!({"executor": {"subject": {"type": "User"}}})),
            "spec.executor.subject.type",
            "supported values: \"ServiceAccount\"",
        ),
        invalid(
            "an executor with an impossible name",
            work(json!({"executor": {"subject": {
                "type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "No_Such"},
            }}})),
            "spec.executor.subject.serviceAccount.name",
            "should match",
        ),
        invalid(
            "an executor without a namespace",
            work(
                json!({"executor": {"subject": {"type": "ServiceAccount", "serviceAccount": {"name": "a"}}}}),
            ),
            "spec.executor.subject.serviceAccount.namespace",
            "Required value",
        ),
        invalid(
            "a manifest without a kind",
            work(
                json!({"workload": {"manifests": [{"apiVersion": "v1", "metadata": {"name": "a"}}]}}),
            ),
            "spec.workload.manifests[0].kind",
            "Required value",
        ),
        invalid(
            "a manifest that is a text",
            work(json!({"workload": {"manifests": ["configmap"]}})),
            "spec.workload.manifests[0]",
            "must be of type object",
        ),
        invalid(
            "a work without a spec",
            json!({
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "ManifestWork",
                "metadata": {"name": "bad", "namespace": "default"},
            }),
            "spec",
            "Required value",
        ),
        invalid(
            "a record that belongs to no hub",
            applied(json!({"manifestWorkName": "web"})),
            "spec.hubHash",
            "Required value",
        ),
        invalid(
            "a source without a URL",
            json!({
                "apiVersion": "gitspoke.dev/v1alpha1",
                "kind": "GitSource",
                "metadata": {"name": "bad", "namespace": "default"},
                "spec": {},
            }),
            "spec.url",
            "Required value",
        ),
        invalid(
            "an ftp URL",
            source(json!({"url": "ftp://git.example/a"})),
            "spec.url",
            "use an https://, ssh://",
        ),
        invalid(
            "plain http",
            source(json!({"url": "http://git.example/a"})),
            "spec.url",
            "set insecure: true",
        ),
        invalid(
            "a URL that is an option",
            source(json!({"url": "--upload-pack=x"})),
            "spec.url",
            "must not begin",
        ),
        invalid(
            "a transport helper",
            source(json!({"url": "ext::sh -c x"})),
            "spec.url",
            "must not begin",
        ),
        invalid(
            "an interval of 1s",
            source(json!({"interval": "1s"})),
            "spec.interval",
            "must be at least 5s",
        ),
        invalid(
            "an interval in words",
            source(json!({"interval": "often"})),
            "spec.interval",
            "should match",
        ),
        invalid(
            "a path that leaves",
            source(json!({"path": "a/../../b"})),
            "spec.path",
            "without '..'",
        ),
        invalid(
            "an absolute path",
            source(json!({"path": "/etc"})),
            "spec.path",
            "relative",
        ),
        invalid(
            "no polling and no webhook",
            source(json!({"polling": "disabled"})),
            "spec.polling",
            "only a webhook brings new commits",
        ),
        invalid(
            "a policy for rewrites that does not exist",
            source(json!({"onRewrite": "ignore"})),
            "spec.onRewrite",
            "supported values: \"allow\", \"warn\", \"block\"",
        ),
        invalid(
            "more than all works",
            source(json!({"prune": {"maxPercent": 101}})),
            "spec.prune.maxPercent",
            "less than or equal to 100",
        ),
        invalid(
            "a short commit",
            source(json!({"ref": {"commit": &commit[..7]}})),
            "spec.ref.commit",
            "should match",
        ),
        invalid(
            "a short ref",
            source(json!({"ref": {"name": "main"}})),
            "spec.ref.name",
            "^refs/",
        ),
        invalid(
            "a variable that is no name",
            source(json!({"vars": {"my-var": "a"}})),
            "spec.vars",
            "a variable's name has letters",
        ),
        invalid(
            "a forge that does not exist",
            source(json!({"checks": {"provider": "sourcehut"}})),
            "spec.checks.provider",
            "supported values: \"github\"",
        ),
        invalid(
            "a forge over http",
            source(json!({"checks": {"apiBase": "http://127.evil.example/api"}})),
            "spec.checks.apiBase",
            "only for a loopback address",
        ),
        invalid(
            "a limit in words",
            source(json!({"limits": {"maxPackBytes": "huge"}})),
            "spec.limits.maxPackBytes",
            "should match",
        ),
        invalid(
            "a strategy that is a text",
            configured(json!({"updateStrategy": "Update"})),
            STRATEGY,
            "must be of type object",
        ),
    ]
}

/// Objects whose status is refused.
pub(crate) fn bad_status() -> Vec<Row> {
    let condition = |kind: &str, reason: &str, status: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2026-11-01T08:00:00Z",
        })
    };
    let with_status = |mut object: Value, status: Value| {
        object["status"] = status;
        object
    };
    let manifest = |value: Value| {
        json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0},
            "conditions": [],
            "statusFeedback": {"values": [value]},
        }]}})
    };
    vec![
        invalid(
            "one condition twice",
            with_status(
                work(json!({})),
                json!({"conditions": [condition("Applied", "A", "True"), condition("Applied", "B", "True")]}),
            ),
            "status.conditions[1]",
            "Duplicate value",
        ),
        invalid(
            "a condition that is neither true nor false",
            with_status(
                work(json!({})),
                json!({"conditions": [condition("Applied", "A", "Maybe")]}),
            ),
            "status.conditions[0].status",
            "supported values: \"True\", \"False\", \"Unknown\"",
        ),
        invalid(
            "a reason that is a sentence",
            with_status(
                source(json!({})),
                json!({"conditions": [condition("Ready", "It failed.", "False")]}),
            ),
            "status.conditions[0].reason",
            "should match",
        ),
        invalid(
            "a finding about no manifest",
            with_status(
                work(json!({})),
                json!({"resourceStatus": {"manifests": [{"conditions": []}]}}),
            ),
            "status.resourceStatus.manifests[0].resourceMeta",
            "Required value",
        ),
        invalid(
            "a value of a type that does not exist",
            with_status(
                work(json!({})),
                manifest(json!({"name": "a", "fieldValue": {"type": "Float"}})),
            ),
            "status.resourceStatus.manifests[0].statusFeedback.values[0].fieldValue.type",
            "supported values: \"Integer\", \"String\", \"Boolean\", \"JsonRaw\"",
        ),
        invalid(
            "a raw value that is too long",
            with_status(
                work(json!({})),
                manifest(
                    json!({"name": "a", "fieldValue": {"type": "JsonRaw", "jsonRaw": "x".repeat(1025)}}),
                ),
            ),
            "status.resourceStatus.manifests[0].statusFeedback.values[0].fieldValue.jsonRaw",
            "Too long",
        ),
        invalid(
            "more than twenty problems",
            with_status(
                source(json!({})),
                json!({"problems": vec![json!({"reason": "A", "message": "a"}); 21]}),
            ),
            "status.problems",
            "must have at most 20 items",
        ),
    ]
}

fn accepted(what: &'static str, object: Value, defaults: Vec<(&'static str, Value)>) -> Row {
    Row {
        what,
        object,
        answer: Answer::Accepted { defaults },
    }
}

fn invalid(what: &'static str, object: Value, field: &'static str, says: &'static str) -> Row {
    Row {
        what,
        object,
        answer: Answer::Refused {
            code: 422,
            reason: "Invalid",
            field,
            says,
        },
    }
}

/// A work with one manifest; `spec` says the rest and may replace the manifest.
fn work(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "row", "namespace": "default"},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}},
        ]}},
    });
    merge(&mut object["spec"], spec);
    object
}

fn configured(config: Value) -> Value {
    let mut entry = json!({"resourceIdentifier": identifier()});
    merge(&mut entry, config);
    work(json!({"manifestConfigs": [entry]}))
}

fn identifier() -> Value {
    json!({"resource": "configmaps", "name": "a", "namespace": "default"})
}

fn applied(spec: Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {"name": "row"},
        "spec": spec,
    })
}

fn source(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "gitspoke.dev/v1alpha1",
        "kind": "GitSource",
        "metadata": {"name": "row", "namespace": "default"},
        "spec": {"url": "https://git.example/acme/fleet.git"},
    });
    merge(&mut object["spec"], spec);
    object
}

fn merge(into: &mut Value, fields: Value) {
    let (Value::Object(into), Value::Object(fields)) = (into, fields) else {
        panic!("both are objects")
    };
    into.extend(fields);
}
