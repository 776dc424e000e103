//! The Deployment that runs the agent.

use serde_json::{Value, json};

use super::rights::NAME;

/// Where the Secret with the hub's kubeconfig is mounted.
const HUB_KUBECONFIG: &str = "/spoke/hub-kubeconfig";

const PORT: u16 = 8443;

/// What differs from one agent to another.
pub(super) struct Settings<'a> {
    pub(super) cluster: &'a str,
    pub(super) image: &'a str,
    pub(super) replicas: u16,
    pub(super) namespace: &'a str,
    pub(super) agent_id: Option<&'a str>,
}

pub(super) fn deployment(settings: &Settings<'_>) -> Value {
    let labels = json!({"app.kubernetes.io/name": NAME});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": settings.namespace, "labels": labels},
        "spec": {
            "replicas": settings.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container(settings)],
                    // Open Cluster Management's registration agent writes a Secret of this name, and keeps it fresh.
                    "volumes": [{
                        "name": "hub-kubeconfig",
                        "secret": {"secretName": "hub-kubeconfig-secret"},
                    }],
                },
            },
        },
    })
}

fn container(settings: &Settings<'_>) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}});
    json!({
        "name": "agent",
        "image": settings.image,
        "command": ["gitspoke"],
        "args": arguments(settings),
        // One arena of the C library's allocator: more of them cost memory, and it is hardly ever contended.
        "env": [{"name": "MALLOC_ARENA_MAX", "value": "1"}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        // The budget is 40 MiB for a thousand works of five objects; expressions run in children of their own.
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{
            "name": "hub-kubeconfig",
            "mountPath": HUB_KUBECONFIG,
            "readOnly": true,
        }],
    })
}

/// Every setting, also where it is the default: what is printed here is where people look for what they can change.
fn arguments(settings: &Settings<'_>) -> Vec<String> {
    let mut arguments = vec![
        "agent".to_owned(),
        format!("--spoke-cluster-name={}", settings.cluster),
        format!("--hub-kubeconfig={HUB_KUBECONFIG}/kubeconfig"),
        format!("--namespace={}", settings.namespace),
        format!("--listen=0.0.0.0:{PORT}"),
        "--workers=10".to_owned(),
        "--appliedmanifestwork-eviction-grace-period=60m".to_owned(),
        "--max-json-raw-length=1024".to_owned(),
        "--feature-gates=RawFeedbackJsonString=false".to_owned(),
        "--leader-election-lease-duration=15s".to_owned(),
        "--leader-election-renew-deadline=10s".to_owned(),
        "--leader-election-retry-period=3s".to_owned(),
        "--log-format=json".to_owned(),
        "--log=info".to_owned(),
    ];
    arguments.extend(settings.agent_id.map(|id| format!("--agent-id={id}")));
    arguments
}
