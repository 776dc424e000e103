//! Whether a work is small enough to be recorded on the spoke and answered on the hub.
//!
//! What cannot be recorded must not be written: nobody would know afterwards what there is to clean up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::{
    desired::resource_meta,
    records::{self, Heard, Mark, Record, Records},
};
use crate::{
    api::{manifest::ObjectId, wellknown::AGENT_FIELD_MANAGER, work::spec::ManifestWork},
    spoke::seen::Stamp,
    status::{self, Applied, Availability, Feedback, Finding, Rules},
};

/// Smaller works are not measured: 500 manifests take a tenth of either limit.
const SMALL: usize = 500;

/// All annotations of an object together, by the API server's validation.
const ANNOTATIONS: usize = 256 * 1024;

/// An object in etcd, by its default for a request, less what the request has around it.
const OBJECT: usize = 1536 * 1024 - 8 * 1024;

/// Why a work is too large, if it is. `planned` is what it would record.
pub fn refusal(work: &ManifestWork, ids: &[Option<ObjectId>], planned: &Records) -> Option<String> {
    if ids.len().max(planned.len()) < SMALL {
        return None;
    }
    let count = ids.len();
    let annotations = annotations(planned);
    if annotations > ANNOTATIONS {
        return Some(format!(
            "the work is too large: the record of its {count} manifests on the spoke would take {annotations} bytes of the \
             {ANNOTATIONS} that annotations may have; split it into several works"
        ));
    }
    let object = object(work, ids);
    (object > OBJECT).then(|| {
        format!(
            "the work is too large: with the status of its {count} manifests it would take {object} bytes of the {OBJECT} that \
             the hub can store; split it into several works"
        )
    })
}

/// What the record's annotations take once everything is written.
fn annotations(planned: &Records) -> usize {
    let mark = Mark {
        heard: Heard {
            asked: "0".repeat(12),
            manager: AGENT_FIELD_MANAGER.into(),
            note: String::new(),
        },
        stamp: Stamp {
            fields: u64::MAX >> 16,
            time: 1_000_000_000,
        },
    };
    let marked = |record: &Record| Record {
        mark: record.mark.clone().or_else(|| Some(mark.clone())),
        ..record.clone()
    };
    let written = planned
        .iter()
        .map(|(key, record)| (key.clone(), marked(record)))
        .collect();
    let annotations = records::annotations(&written);
    let sizes = annotations.iter().map(|(key, text)| key.len() + text.len());
    sizes.sum()
}

/// What the work takes on the hub once it carries the shortest status it can have.
fn object(work: &ManifestWork, ids: &[Option<ObjectId>]) -> usize {
    let finding = |(ordinal, id): (usize, &Option<ObjectId>)| Finding {
        meta: resource_meta(ordinal, id.as_ref(), None),
        applied: Some(Applied::Complete),
        available: Some(Availability::Available),
        feedback: Feedback::NoRules,
        rules: Rules::Evaluated(Vec::new()),
    };
    let findings: Vec<Finding> = ids.iter().enumerate().map(finding).collect();
    let status = status::work_status(None, 1, &findings, &Time(Timestamp::UNIX_EPOCH));
    let length = |json: Result<String, serde_json::Error>| json.map_or(0, |json| json.len());
    length(serde_json::to_string(&work.metadata))
        + length(serde_json::to_string(&work.spec))
        + length(serde_json::to_string(&status))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spoke::cluster::ObjectKey;

    fn measured(count: usize, name: usize) -> Option<String> {
        let manifest = |number: usize| {
            let name = format!("{number:0name$}");
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
        };
        let manifests: Vec<_> = (0..count).map(manifest).collect();
        let work: ManifestWork = serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "large"}, "spec": {"workload": {"manifests": manifests}},
        }))
        .unwrap();
        let ids: Vec<_> = work
            .spec
            .manifests()
            .iter()
            .map(|manifest| manifest.id().ok())
            .collect();
        let key = |id: &ObjectId| ObjectKey {
            group: String::new(),
            resource: "configmaps".into(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
        };
        let record = Record {
            version: "v1".into(),
            ..Record::default()
        };
        let planned = ids
            .iter()
            .flatten()
            .map(|id| (key(id), record.clone()))
            .collect();
        refusal(&work, &ids, &planned)
    }

    #[test]
    fn a_work_is_refused_when_its_record_or_its_status_cannot_be_stored() {
        assert_eq!(measured(2_000, 10), None);
        let refused = measured(5_000, 10).unwrap();
        assert!(refused.contains("the hub can store"), "{refused}");
        let refused = measured(1_800, 120).unwrap();
        assert!(refused.contains("annotations"), "{refused}");
    }
}
