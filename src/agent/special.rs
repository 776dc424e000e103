//! Kinds that an apply alone does not do justice to: Pods, and what cannot be changed but only replaced.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use tokio::time::Instant;

use super::{desired::Desired, index::Sight, pod, send::Sent, state::Agent, unwritten::Unwritten};
use crate::{api::wellknown::AGENT_FIELD_MANAGER, spoke};

/// How long a write waits for an object to make room for its successor, before it is left to a later pass.
const ROOM: Duration = Duration::from_secs(2);

/// Whether an object with this annotation is its cluster's default is for the cluster to say.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

impl Agent {
    /// Deletes an object that cannot become what is asked for, once it is sure that its successor would be accepted.
    pub(super) async fn make_room(
        &self,
        desired: &Desired<'_>,
        body: &Value,
        refusal: &spoke::error::Error,
    ) -> Result<(), Unwritten> {
        let (kind, key) = (&desired.kind, &desired.key);
        let mut trial = body.clone();
        trial["metadata"]["name"] = format!("{}.trial", key.name).into();
        self.spoke.try_create(kind, key, trial).await?;
        let Some(live) = self.spoke.look(kind, key).await? else {
            return Ok(());
        };
        if live.deletion_timestamp.is_none() {
            let uid = live.uid.as_deref().unwrap_or_default();
            match self.spoke.delete(kind, key, uid, None).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        let end = Instant::now() + ROOM;
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        while Instant::now() < end {
            tick.tick().await;
            match self.spoke.look(kind, key).await? {
                Some(there) if there.uid == live.uid => {}
                _ => return Ok(()),
            }
        }
        Err(Unwritten::MakingRoom(refusal.to_string()))
    }

    /// Which storage class is the default is decided on the spoke: the live annotation wins over the manifest's.
    pub(super) async fn keep_default_class(
        &self,
        desired: &Desired<'_>,
        body: &mut Value,
    ) -> Result<(), Unwritten> {
        let annotations = body["metadata"].get_mut("annotations");
        let annotation = annotations.and_then(|annotations| annotations.get_mut(DEFAULT_CLASS));
        let Some(annotation) = annotation.filter(|_| desired.key.resource == "storageclasses")
        else {
            return Ok(());
        };
        let live = self.spoke.look(&desired.kind, &desired.key).await?;
        let live = live.and_then(|live| live.annotations?.remove(DEFAULT_CLASS));
        if let Some(live) = live {
            *annotation = live.into();
        }
        Ok(())
    }

    /// Creates a Pod, or brings the metadata of a live one to what is asked for.
    pub(super) async fn update_pod(
        &self,
        desired: &Desired<'_>,
        body: Value,
        owners: &[OwnerReference],
        sight: &Sight,
    ) -> Result<Sent, Unwritten> {
        let (kind, key) = (&desired.kind, &desired.key);
        if !matches!(sight, Sight::Present(_)) {
            match self.update(desired, body.clone()).await {
                Err(Unwritten::Spoke(error)) if error.is_invalid() => {}
                answer => return answer,
            }
        }
        let Some(live) = self.spoke.read(kind, key).await? else {
            return self.update(desired, body).await;
        };
        let meta = serde_json::from_value(live["metadata"].clone());
        let meta: ObjectMeta = meta
            .map_err(kube::Error::SerdeError)
            .map_err(spoke::error::Error::from)?;
        let meta = match pod::patch(&body, &meta, owners) {
            Some(patch) => {
                self.spoke
                    .merge(kind, key, &patch, AGENT_FIELD_MANAGER)
                    .await?
            }
            None => meta,
        };
        let differs = match self
            .spoke
            .try_apply(kind, key, &body, AGENT_FIELD_MANAGER)
            .await
        {
            Ok(tried) => tried["spec"] != live["spec"],
            Err(error) if error.is_invalid() => true,
            Err(error) => return Err(error.into()),
        };
        let note = if differs { pod::SPEC_DIFFERS } else { "" };
        Ok(Sent {
            meta,
            note: note.to_owned(),
        })
    }
}

/// Kinds of which an object that cannot be changed is replaced, as Open Cluster Management's agent does.
pub(super) fn is_recreated(desired: &Desired<'_>) -> bool {
    matches!(
        (&*desired.key.group, &*desired.key.resource),
        ("", "secrets") | ("storage.k8s.io", "storageclasses" | "csidrivers")
    )
}
