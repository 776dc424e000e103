//! Writes records to the spoke.

use std::{collections::BTreeMap, sync::Arc};

use kube::{
    ResourceExt,
    api::{Patch, PostParams},
};
use serde_json::{Value, json};

use super::Records;
use crate::{
    agent::{
        records,
        state::{Agent, Error, params, spoke_error},
    },
    api::{
        wellknown::{AGENT_FIELD_MANAGER, APPLIED_WORK_FINALIZER},
        work::{
            applied::{AppliedManifestWork, AppliedManifestWorkSpec},
            spec::ManifestWork,
        },
    },
};

impl Agent {
    /// The record on the spoke, with the intent to write what is planned.
    pub(in crate::agent) async fn with_intent(
        &self,
        work: &ManifestWork,
        applied_work: Option<Arc<AppliedManifestWork>>,
        record_name: &str,
        planned: &Records,
    ) -> Result<Arc<AppliedManifestWork>, Error> {
        let answer = if let Some(applied_work) = applied_work {
            let is_known = records::read(&applied_work).keys().eq(planned.keys());
            let labels = label_changes(&applied_work, work);
            if is_known && labels.is_empty() && applied_work.spec == self.record_spec(work) {
                return Ok(applied_work);
            }
            let patch = json!({
                "metadata": {"annotations": annotation_changes(planned), "labels": labels},
                "spec": self.record_spec(work),
            });
            self.applied
                .patch(record_name, &params(), &Patch::Merge(patch))
                .await
        } else {
            let mut object = AppliedManifestWork::new(record_name, self.record_spec(work));
            object.metadata.labels.clone_from(&work.metadata.labels);
            object.metadata.finalizers = Some(vec![APPLIED_WORK_FINALIZER.to_owned()]);
            object.metadata.annotations = Some(records::annotations(planned));
            let params = PostParams {
                field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            self.applied.create(&params, &object).await
        };
        let answer = answer.map_err(spoke_error(format!(
            "write AppliedManifestWork {record_name}"
        )))?;
        self.applied_works().put(answer.clone());
        Ok(Arc::new(answer))
    }

    fn record_spec(&self, work: &ManifestWork) -> AppliedManifestWorkSpec {
        AppliedManifestWorkSpec {
            hub_hash: self.identity.hub.to_string(),
            agent_id: Some(self.identity.agent_id.clone()),
            manifest_work_name: work.name_any(),
        }
    }

    /// Records what is there now. Off the path to Available: the work has been reported before.
    pub(in crate::agent) async fn record(
        &self,
        applied_work: &AppliedManifestWork,
        before: &Records,
        after: &Records,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let name = applied_work.name_any();
        let fail = || spoke_error(format!("write AppliedManifestWork {name}"));
        if records::applied_resources(before) != records::applied_resources(after) {
            let patch = json!({"status": {"appliedResources": records::applied_resources(after)}});
            self.applied
                .patch_status(&name, &params(), &Patch::Merge(patch))
                .await
                .map_err(fail())?;
        }
        let patch = json!({"metadata": {"annotations": annotation_changes(after)}});
        let answer = self
            .applied
            .patch(&name, &params(), &Patch::Merge(patch))
            .await
            .map_err(fail())?;
        self.applied_works().put(answer);
        Ok(())
    }
}

/// The annotations of a record as a merge patch takes them: what is not there any more is `null`.
fn annotation_changes(records: &Records) -> Value {
    let annotations = records::annotations(records);
    json!({
        records::INTENT: annotations.get(records::INTENT),
        records::APPLIED: annotations.get(records::APPLIED),
    })
}

/// What is to be changed of a record's labels so that they are the work's; `None` takes a label away.
fn label_changes(
    applied_work: &AppliedManifestWork,
    work: &ManifestWork,
) -> BTreeMap<String, Option<String>> {
    let (there, wanted) = (applied_work.labels(), work.labels());
    let gone = there.keys().filter(|name| !wanted.contains_key(*name));
    let new = wanted
        .iter()
        .filter(|(name, value)| there.get(*name) != Some(value));
    let gone = gone.map(|name| (name.clone(), None));
    gone.chain(new.map(|(name, value)| (name.clone(), Some(value.clone()))))
        .collect()
}
