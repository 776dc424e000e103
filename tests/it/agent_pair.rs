//! A hub, a spoke and a real agent between them, as the cases about the agent see it.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use gitspoke::api::work::{applied::AppliedManifestWork, spec::ManifestWork};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::servers::{Lab, install, wait};

/// How long anything may take that takes a second on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster on the hub, its spoke, and a real agent between them.
pub(crate) struct Pair {
    pub(crate) hub: Client,
    pub(crate) spoke: Client,
    pub(crate) cluster: String,
    arguments: Vec<String>,
    agent: Child,
}

impl Pair {
    pub(crate) async fn start(lab: &Lab) -> Self {
        Self::start_with(lab, &[]).await
    }

    /// With more flags for the agent.
    pub(crate) async fn start_with(lab: &Lab, flags: &[&str]) -> Self {
        let hub = lab.hub().await.admin_kubeconfig();
        let spoke = lab.spoke().await.admin_kubeconfig();
        Self::start_between(lab, &hub, &spoke, flags).await
    }

    /// With kubeconfigs of the agent's own.
    pub(crate) async fn start_between(
        lab: &Lab,
        hub_kubeconfig: &Path,
        spoke_kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let (hub_plane, spoke_plane) = (lab.hub().await, lab.spoke().await);
        let (hub, spoke) = (hub_plane.client().await, spoke_plane.client().await);
        install::crds(&hub).await;
        install::crds(&spoke).await;
        let cluster = lab.unique_name("edge");
        for client in [&hub, &spoke] {
            let namespace: Namespace =
                serde_json::from_value(json!({"metadata": {"name": cluster}})).unwrap();
            Api::all(client.clone())
                .create(&PostParams::default(), &namespace)
                .await
                .unwrap();
        }
        let mut arguments = vec![
            "agent".to_owned(),
            format!("--spoke-cluster-name={cluster}"),
            format!("--hub-kubeconfig={}", hub_kubeconfig.display()),
            format!("--spoke-kubeconfig={}", spoke_kubeconfig.display()),
            format!("--agent-id={cluster}"),
            "--log=warn".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let agent = run_agent(&arguments);
        Self {
            hub,
            spoke,
            cluster,
            arguments,
            agent,
        }
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.agent = run_agent(&self.arguments);
    }

    pub(crate) fn kill(&mut self) {
        self.agent.kill().unwrap();
        self.agent.wait().unwrap();
    }

    /// The agent's process.
    pub(crate) fn agent_pid(&self) -> u32 {
        self.agent.id()
    }

    pub(crate) fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.clone(), &self.cluster)
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.spoke.clone(), &self.cluster)
    }

    pub(crate) fn map(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.cluster},
            "data": {"key": value},
        })
    }

    /// The spec of a work with one map and an update strategy for it.
    pub(crate) fn with_strategy(&self, name: &str, value: &str, strategy: &Value) -> Value {
        json!({
            "workload": {"manifests": [self.map(name, value)]},
            "manifestConfigs": [{
                "resourceIdentifier": {"resource": "configmaps", "name": name, "namespace": self.cluster},
                "updateStrategy": strategy,
            }],
        })
    }

    /// The spec of a work with one map and condition rules about it.
    pub(crate) fn with_rules(&self, name: &str, rules: &Value) -> Value {
        json!({
            "workload": {"manifests": [self.map(name, "1")]},
            "manifestConfigs": [{
                "resourceIdentifier": {"resource": "configmaps", "name": name, "namespace": self.cluster},
                "conditionRules": rules,
            }],
        })
    }

    /// The work's full name. Records on a spoke are named after hub and work, and the cases share both.
    pub(crate) fn named(&self, work: &str) -> String {
        format!("{}-{work}", self.cluster)
    }

    pub(crate) async fn put(&self, name: &str, spec: Value) {
        let name = &self.named(name);
        let object = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"name": name},
            "spec": spec,
        });
        let params = PatchParams::apply("somebody").force();
        self.works()
            .patch(name, &params, &Patch::Apply(object))
            .await
            .unwrap();
    }

    pub(crate) async fn put_manifests(&self, name: &str, manifests: &[Value]) {
        self.put(name, json!({"workload": {"manifests": manifests}}))
            .await;
    }

    /// Waits until a condition of the work says this, about the work as it is now.
    pub(crate) async fn until(&self, work: &str, condition: &str, status: &str) -> ManifestWork {
        let (works, name) = (self.works(), self.named(work));
        wait::until(
            &format!("{work} to be {condition}={status}"),
            PATIENCE,
            || async {
                let work = works.get(&name).await.map_err(|error| error.to_string())?;
                let conditions = work
                    .status
                    .clone()
                    .and_then(|status| status.conditions)
                    .unwrap_or_default()
                    .0;
                let holds = conditions.iter().any(|found| {
                    found.type_ == condition
                        && found.status == status
                        && found.observed_generation == work.metadata.generation
                });
                if holds {
                    Ok(work)
                } else {
                    Err(format!("{conditions:?}"))
                }
            },
        )
        .await
    }

    /// Asks for a work to be deleted, and does not wait.
    pub(crate) async fn begin_delete(&self, work: &str) {
        self.works()
            .delete(&self.named(work), &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, work: &str) {
        self.begin_delete(work).await;
        let (works, name) = (self.works(), self.named(work));
        wait::until(&format!("{work} to be gone"), PATIENCE, || async {
            match works.get_opt(&name).await {
                Ok(None) => Ok(()),
                Ok(Some(work)) => Err(format!("{:?} {:?}", work.metadata.finalizers, work.status)),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    pub(crate) async fn value_of(&self, name: &str) -> Option<String> {
        let map = self.maps().get_opt(name).await.unwrap()?;
        map.data.and_then(|data| data.get("key").cloned())
    }

    pub(crate) async fn record_of(&self, work: &str) -> AppliedManifestWork {
        let records: Api<AppliedManifestWork> = Api::all(self.spoke.clone());
        let all = records
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        all.items
            .into_iter()
            .find(|record| {
                record.spec.manifest_work_name == self.named(work)
                    && record.spec.agent_id.as_deref() == Some(&self.cluster)
            })
            .unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run_agent(arguments: &[String]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}
