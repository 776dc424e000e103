//! Works and maps of the benchmark: as small as a small ConfigMap in a fleet.

use serde_json::{Value, json};

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) works: usize,
    /// Maps in each work.
    pub(crate) maps: usize,
}

impl Size {
    pub(crate) fn manifests(self) -> usize {
        self.works * self.maps
    }

    pub(crate) fn text(self) -> String {
        format!("{} × {}", self.works, self.maps)
    }
}

pub(crate) fn work_name(number: usize) -> String {
    format!("work-{number:04}")
}

pub(crate) fn map_name(work: &str, map: usize) -> String {
    format!("{work}-map-{map}")
}

pub(crate) fn map(namespace: &str, work: &str, map: usize, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": map_name(work, map),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "bench"},
        },
        "data": {"value": value, "text": "x".repeat(200)},
    })
}

pub(crate) fn spec(namespace: &str, work: &str, maps: usize, value: &str) -> Value {
    let manifests: Vec<Value> = (0..maps)
        .map(|number| map(namespace, work, number, value))
        .collect();
    json!({"workload": {"manifests": manifests}})
}

pub(crate) fn work(namespace: &str, work: &str, maps: usize, value: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": work, "namespace": namespace},
        "spec": spec(namespace, work, maps, value),
    })
}
