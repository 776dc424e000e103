//! A hub, a spoke and a real agent between them, as the cases about the agent see it.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use gitspoke::api::work::{applied::AppliedManifestWork, spec::ManifestWork};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    agent_process::{Answer, Running, ask, run_agent, run_quietly},
    servers::{Lab, control_plane::ControlPlane, install, wait},
};

/// How long anything may take that takes a second on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster on the hub, its spoke, and a real agent between them.
pub(crate) struct Pair {
    pub(crate) hub: Client,
    pub(crate) spoke: Client,
    pub(crate) cluster: String,
    arguments: Vec<String>,
    agent: Running,
}

impl Pair {
    pub(crate) async fn start(lab: &Lab) -> Self {
        Self::start_with(lab, &[]).await
    }

    /// With more flags for the agent.
    pub(crate) async fn start_with(lab: &Lab, flags: &[&str]) -> Self {
        let hub = lab.hub().await.admin_kubeconfig();
        let spoke_plane = lab.spoke().await;
        let spoke = spoke_plane.admin_kubeconfig();
        Self::begin(lab, &hub, spoke_plane, &spoke, flags).await
    }

    /// On a certain spoke, where the agent is whoever its kubeconfig says.
    pub(crate) async fn start_on(
        lab: &Lab,
        spoke_plane: &ControlPlane,
        spoke_kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let hub = lab.hub().await.admin_kubeconfig();
        Self::begin(lab, &hub, spoke_plane, spoke_kubeconfig, flags).await
    }

    /// With kubeconfigs of the agent's own.
    pub(crate) async fn start_between(
        lab: &Lab,
        hub_kubeconfig: &Path,
        spoke_kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let spoke_plane = lab.spoke().await;
        Self::begin(lab, hub_kubeconfig, spoke_plane, spoke_kubeconfig, flags).await
    }

    async fn begin(
        lab: &Lab,
        hub_kubeconfig: &Path,
        spoke_plane: &ControlPlane,
        spoke_kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let hub_plane = lab.hub().await;
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
            // The lock has one name, and the cases share one spoke.
            "--disable-leader-election".to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
            "--log=warn,gitspoke::web=info".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Self {
            hub,
            spoke,
            cluster,
            agent: run_agent(&arguments),
            arguments,
        }
    }

    /// With these arguments and no others, in namespaces that are there, and its log elsewhere.
    pub(crate) async fn run(lab: &Lab, cluster: &str, arguments: Vec<String>, log: Stdio) -> Self {
        Self {
            hub: lab.hub().await.client().await,
            spoke: lab.spoke().await.client().await,
            cluster: cluster.to_owned(),
            agent: run_quietly(&arguments, log),
            arguments,
        }
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.agent = run_agent(&self.arguments);
    }

    pub(crate) fn kill(&mut self) {
        self.agent.kill();
    }

    /// What the agent answers to a path of its own.
    pub(crate) async fn ask(&self, path: &str) -> Answer {
        ask(self.agent.address().await, path).await
    }

    /// The sum of a metric over all its labels that contain these.
    pub(crate) async fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let answer = self.ask("/metrics").await;
        let lines = answer.body.lines().filter(|line| {
            line.split(['{', ' ']).next() == Some(name)
                && labels.iter().all(|label| line.contains(label))
        });
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }

    /// Starts another agent with the same arguments.
    pub(crate) fn another(&self) -> Running {
        run_agent(&self.arguments)
    }

    /// The command line of its agent.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Waits for the agent to end by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        self.agent.ended().await
    }

    /// Asks the agent to end, and returns how it did.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.agent.terminate().await
    }

    /// The agent's process.
    pub(crate) fn agent_pid(&self) -> u32 {
        self.agent.child.id()
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
                    Err(serde_json::to_string(&work.status).unwrap())
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

    /// Objects of any kind in the spoke's namespace, or of a cluster-scoped one.
    pub(crate) fn objects(
        &self,
        api_version: &str,
        kind: &str,
        is_namespaced: bool,
    ) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if is_namespaced {
            Api::namespaced_with(self.spoke.clone(), &self.cluster, &resource)
        } else {
            Api::all_with(self.spoke.clone(), &resource)
        }
    }

    /// Waits until an object is as it should be. The object is `null` while there is none.
    pub(crate) async fn until_object(
        &self,
        what: &str,
        objects: &Api<DynamicObject>,
        name: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        wait::until(what, PATIENCE, || async {
            let found = objects
                .get_opt(name)
                .await
                .map_err(|error| error.to_string())?;
            let found = serde_json::to_value(found).unwrap();
            if is_right(&found) {
                Ok(found)
            } else {
                Err(found.to_string())
            }
        })
        .await
    }

    /// Changes an object on the spoke as somebody else would.
    pub(crate) async fn edit(
        &self,
        objects: &Api<DynamicObject>,
        name: &str,
        patch: &Value,
    ) -> DynamicObject {
        let params = PatchParams {
            field_manager: Some("somebody-else".to_owned()),
            ..PatchParams::default()
        };
        objects
            .patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap()
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

/// What a condition of a manifest says: status, reason and message.
pub(crate) fn condition(work: &ManifestWork, ordinal: usize, of: &str) -> (String, String, String) {
    let status = work
        .status
        .as_ref()
        .and_then(|status| status.resource_status.as_ref());
    let manifests = status.and_then(|status| status.manifests.as_ref()).unwrap();
    let conditions = &manifests[ordinal].conditions.0;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == of)
        .unwrap();
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
    )
}
