//! What the agent may do, as RBAC says it.

use serde_json::{Value, json};

/// The service account on the spoke, and the Deployment that uses it.
pub(super) const NAME: &str = "gitspoke-agent";

/// A `ClusterRole` with this label adds to what the agent may do with content.
const AGGREGATED: &str = "open-cluster-management.io/aggregate-to-work";

const RBAC: &str = "rbac.authorization.k8s.io";
const WORK: &str = "work.open-cluster-management.io";

/// Of an object, everything. Server-side apply is a patch.
const ALL: [&str; 7] = [
    "get", "list", "watch", "create", "update", "patch", "delete",
];

/// A namespace and who is in it, with every right there is to be had.
pub(super) fn on_spoke(namespace: &str) -> Vec<Value> {
    let (own, content, aggregated) = (
        "gitspoke:agent",
        "gitspoke:agent:content",
        "gitspoke:agent:aggregated",
    );
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": namespace},
        }),
        cluster_role(own, &own_rules()),
        cluster_role(content, &content_rules()),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": aggregated},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {AGGREGATED: "true"}}]},
        }),
    ];
    let subject = json!({"kind": "ServiceAccount", "name": NAME, "namespace": namespace});
    let bound = [
        (own, own),
        (content, content),
        (aggregated, aggregated),
        ("gitspoke:agent:admin", "admin"),
    ];
    objects.extend(bound.map(|(name, role)| {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        })
    }));
    objects.extend(in_namespace(own, namespace, &lock_rules(), &subject));
    objects
}

/// The namespace of a cluster, and the rights of its agent in it. It can neither create nor delete works.
pub(super) fn on_hub(cluster: &str, user: Option<&str>) -> Vec<Value> {
    let group = format!("system:open-cluster-management:{cluster}");
    let (kind, name) = user.map_or(("Group", group.as_str()), |user| ("User", user));
    let subject = json!({"apiGroup": RBAC, "kind": kind, "name": name});
    let rules = json!([
        rule(
            &[WORK],
            &["manifestworks"],
            &["get", "list", "watch", "update", "patch"]
        ),
        rule(&[WORK], &["manifestworks/status"], &["update", "patch"]),
        events(),
    ]);
    let mut objects =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster}})];
    objects.extend(in_namespace("gitspoke:agent", cluster, &rules, &subject));
    objects
}

/// What any agent needs, whatever its works hold.
fn own_rules() -> Value {
    json!([
        rule(&[WORK], &["appliedmanifestworks"], &ALL),
        rule(
            &[WORK],
            &["appliedmanifestworks/status"],
            &["update", "patch"]
        ),
        rule(&[WORK], &["appliedmanifestworks/finalizers"], &["update"]),
        rule(
            &["authorization.k8s.io"],
            &["subjectaccessreviews"],
            &["create"]
        ),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        events(),
    ])
}

/// What works may hold beyond what the built-in role `admin` covers.
fn content_rules() -> Value {
    let roles = ["clusterroles", "roles"];
    let bindings = ["clusterrolebindings", "rolebindings"];
    json!([
        rule(&[""], &["namespaces"], &ALL),
        rule(
            &["apiextensions.k8s.io"],
            &["customresourcedefinitions"],
            &ALL
        ),
        // Without these two the agent could grant no right that it does not have itself.
        rule(&[RBAC], &roles, &[&ALL[..], &["bind", "escalate"]].concat()),
        rule(&[RBAC], &bindings, &ALL),
        rule(&["scheduling.k8s.io"], &["priorityclasses"], &ALL),
        rule(&["monitoring.coreos.com"], &["servicemonitors"], &ALL),
        rule(&["oauth.openshift.io"], &["oauthclients"], &ALL),
        rule(
            &["admissionregistration.k8s.io"],
            &[
                "mutatingwebhookconfigurations",
                "validatingwebhookconfigurations"
            ],
            &ALL[..6],
        ),
    ])
}

/// The lease by which replicas agree who leads.
fn lock_rules() -> Value {
    let mut own = rule(
        &["coordination.k8s.io"],
        &["leases"],
        &["get", "list", "watch", "update"],
    );
    own["resourceNames"] = json!(["work-agent-lock"]);
    // What does not exist yet has no name that could be granted.
    json!([
        own,
        rule(&["coordination.k8s.io"], &["leases"], &["create"])
    ])
}

fn events() -> Value {
    rule(
        &["", "events.k8s.io"],
        &["events"],
        &["create", "update", "patch"],
    )
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    })
}

fn in_namespace(name: &str, namespace: &str, rules: &Value, subject: &Value) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    [
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "Role",
            "metadata": metadata,
            "rules": rules,
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        }),
    ]
}
