//! `gitspoke install agent`: exactly the printed command line, with exactly the printed rights, on real clusters.

use std::{fs::File, sync::Arc};

use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
    rbac::v1::{ClusterRole, Role},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, file, str};

use crate::{
    agent_pair::{PATIENCE, Pair},
    cli_help::gitspoke,
    harness::cases,
    servers::{
        Lab,
        control_plane::{ControlPlane, client_from},
        install, wait,
    },
};

cases!(
    plain:
        what_is_in_deploy_is_what_it_prints,
        names_are_for_scripts,
        an_agent_without_an_image_is_wrong_usage;
    kubernetes:
        the_printed_agent_runs_with_the_printed_rights,
        the_printed_pod_is_allowed_where_little_is,
);

fn what_is_in_deploy_is_what_it_prints() {
    let common = ["--spoke-cluster-name=cluster1"];
    let spoke = ["--image=example.com/gitspoke:v0.1.0"];
    assert_data_eq!(
        printed(&[&common[..], &spoke].concat()),
        file!["../../deploy/agent/spoke.yaml"].raw()
    );
    assert_data_eq!(
        printed(&[&common[..], &["--side=hub"]].concat()),
        file!["../../deploy/agent/hub.yaml"].raw()
    );
}

fn names_are_for_scripts() {
    let arguments = ["--spoke-cluster-name=edge-1", "--side=hub", "-o", "name"];
    assert_data_eq!(
        printed(&arguments),
        str![[r#"
namespace/edge-1
role.rbac.authorization.k8s.io/gitspoke:agent
rolebinding.rbac.authorization.k8s.io/gitspoke:agent

"#]]
    );
    let arguments = ["--spoke-cluster-name=edge-1", "--image=i", "-o=json"];
    let list: Value = serde_json::from_str(&printed(&arguments)).unwrap();
    let last = list["items"].as_array().unwrap().last().unwrap();
    assert_eq!(last["kind"], "Deployment");
}

fn an_agent_without_an_image_is_wrong_usage() {
    gitspoke()
        .args(["install", "agent", "--spoke-cluster-name=edge-1"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: no image to run
hint: give one by --image, or ask for the hub by --side hub

"#]]);
}

async fn the_printed_agent_runs_with_the_printed_rights(lab: Arc<Lab>) {
    let (hub, spoke) = (lab.hub().await, lab.spoke().await);
    let admin = spoke.client().await;
    install::crds(&hub.client().await).await;
    install::crds(&admin).await;
    let cluster = lab.unique_name("edge");
    let namespace = lab.unique_name("agents");
    let user = format!("system:open-cluster-management:{cluster}:agent");
    let named = format!("--spoke-cluster-name={cluster}");
    apply(
        hub,
        &printed(&[&named, "--side=hub", &format!("--hub-user={user}")]),
    )
    .await;
    let own = format!("--namespace={namespace}");
    apply(
        spoke,
        &printed(&[&named, "--image=example.com/gitspoke:v0.1.0", &own]),
    )
    .await;

    let log = tempfile::NamedTempFile::new().unwrap();
    let hub_kubeconfig = hub.kubeconfig_with_certificate(&namespace, &user);
    let mut arguments = command_line(&admin, &namespace).await;
    for argument in &mut arguments {
        // This is where the Secret would be mounted.
        *argument = argument.replace(
            "/spoke/hub-kubeconfig/kubeconfig",
            hub_kubeconfig.to_str().unwrap(),
        );
    }
    // And this is what the kubelet would give to a Pod of this service account.
    let account = spoke.kubeconfig_for_service_account(&namespace, "gitspoke-agent");
    let account = account.await;
    may_act_as_an_executor(&client_from(&account).await).await;
    arguments.push(format!("--spoke-kubeconfig={}", account.display()));
    let stderr = File::create(log.path()).unwrap();
    let pair = Pair::run(&lab, &cluster, arguments, stderr.into()).await;

    let mut content = Content::new(&cluster);
    content.allow_widgets(&admin).await;
    pair.put_manifests("all", &content.manifests()).await;
    pair.until("all", "Available", "True").await;
    let leases: Api<Lease> = Api::namespaced(admin.clone(), &namespace);
    let lease = leases.get("work-agent-lock").await.unwrap();
    assert!(
        lease
            .spec
            .unwrap()
            .holder_identity
            .is_some_and(|holder| !holder.is_empty())
    );

    content.value = "2";
    pair.put_manifests("all", &content.manifests()).await;
    pair.until("all", "Available", "True").await;
    content.is_updated(&admin).await;

    // Without the account, and without what was made of the definition.
    let mut fewer = content.manifests();
    fewer.retain(|manifest| {
        !["ServiceAccount", "Widget"].contains(&manifest["kind"].as_str().unwrap())
    });
    pair.put_manifests("all", &fewer).await;
    pair.until("all", "Available", "True").await;
    content.is_pruned(&admin).await;

    pair.delete("all").await;
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    assert_eq!(namespaces.get_opt(&content.namespace).await.unwrap(), None);
    drop(pair);
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("leading"), "{said}");
    assert!(!said.to_lowercase().contains("forbidden"), "{said}");
}

/// Checks of a work's executor are made in its name.
async fn may_act_as_an_executor(agent: &Client) {
    let executor = "system:serviceaccount:default:executor";
    let body = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .header("impersonate-user", executor)
        .body(body.as_bytes().to_vec())
        .unwrap();
    let answer: Value = agent.request(request).await.unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], executor);
}

/// The API server itself judges by the Pod Security Standard "restricted".
async fn the_printed_pod_is_allowed_where_little_is(lab: Arc<Lab>) {
    let admin = lab.spoke().await.client().await;
    let name = lab.unique_name("restricted");
    let strict = json!({"metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespace: Namespace = serde_json::from_value(strict).unwrap();
    Api::all(admin.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(admin, &name);
    let arguments = [
        "--spoke-cluster-name=edge-1",
        "--image=example.com/gitspoke:v0.1.0",
        "-o=json",
    ];
    let list: Value = serde_json::from_str(&printed(&arguments)).unwrap();
    let deployment = list["items"].as_array().unwrap().last().unwrap();
    let mut pod = deployment["spec"]["template"].clone();
    pod["metadata"]["name"] = json!("agent");
    let judged = async |pod: &Value| {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        pods.create(&dry_run, &pod).await
    };
    judged(&pod).await.unwrap();
    pod["spec"]["containers"][0]["securityContext"] = json!({});
    assert!(judged(&pod).await.is_err(), "nobody judges");
}

/// A bit of everything that a work may hold.
struct Content {
    namespace: String,
    group: String,
    value: &'static str,
}

impl Content {
    fn new(cluster: &str) -> Self {
        Self {
            namespace: format!("{cluster}-content"),
            group: format!("{cluster}.example.com"),
            value: "1",
        }
    }

    fn manifests(&self) -> Vec<Value> {
        let named = |name: &str| json!({"name": name, "namespace": self.namespace});
        let names = json!({"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"});
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let (group, rbac) = (&self.group, "rbac.authorization.k8s.io");
        vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("one"), "data": {"key": self.value}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("robot")}),
            // A right that the agent does not have itself.
            json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": named("robot"),
                "rules": [{"apiGroups": ["robots.example.com"], "resources": ["arms"], "verbs": ["get"],
                    "resourceNames": [self.value]}],
            }),
            json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": named("robot"),
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "robot"},
                "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": self.namespace}],
            }),
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("widgets.{group}")},
                "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
            }),
            json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": named("one"), "spec": {"key": self.value}}),
        ]
    }

    /// What the agent may do beyond the usual comes by a label.
    async fn allow_widgets(&self, admin: &Client) {
        let roles: Api<ClusterRole> = Api::all(admin.clone());
        let name = format!("widgets-{}", self.namespace);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"open-cluster-management.io/aggregate-to-work": "true"}},
            "rules": [{"apiGroups": [self.group], "resources": ["widgets"],
                "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}],
        });
        let params = PatchParams::apply("somebody");
        roles
            .patch(&name, &params, &Patch::Apply(role))
            .await
            .unwrap();
        wait::until("the rights to be aggregated", PATIENCE, || async {
            let role = roles.get("gitspoke:agent:aggregated").await;
            let rules = role
                .map_err(|error| error.to_string())?
                .rules
                .unwrap_or_default();
            let is_there = rules.iter().any(|rule| {
                rule.api_groups
                    .as_deref()
                    .is_some_and(|groups| groups.contains(&self.group))
            });
            if is_there {
                Ok(())
            } else {
                Err(format!("{rules:?}"))
            }
        })
        .await;
    }

    async fn is_updated(&self, admin: &Client) {
        let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), &self.namespace);
        let roles: Api<Role> = Api::namespaced(admin.clone(), &self.namespace);
        let map = maps.get("one").await.unwrap();
        assert_eq!(map.data.unwrap()["key"], self.value);
        let rules = roles.get("robot").await.unwrap().rules.unwrap();
        assert_eq!(
            rules[0].resource_names.as_deref(),
            Some(&[self.value.to_owned()][..])
        );
        let widget = self.widgets(admin).get("one").await.unwrap();
        assert_eq!(widget.data["spec"]["key"], self.value);
    }

    async fn is_pruned(&self, admin: &Client) {
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &self.namespace);
        let widgets = self.widgets(admin);
        wait::until("what was dropped to be gone", PATIENCE, || async {
            let account = accounts.get_opt("robot").await.unwrap();
            let widget = widgets.get_opt("one").await.unwrap();
            if account.is_none() && widget.is_none() {
                return Ok(());
            }
            Err(format!("{account:?} {widget:?}"))
        })
        .await;
    }

    fn widgets(&self, admin: &Client) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&self.group, "v1", "Widget"));
        Api::namespaced_with(admin.clone(), &self.namespace, &kind)
    }
}

/// What the kubelet would run, without the program's name.
async fn command_line(admin: &Client, namespace: &str) -> Vec<String> {
    let deployments: Api<Deployment> = Api::namespaced(admin.clone(), namespace);
    let deployment = deployments.get("gitspoke-agent").await.unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let container = pod.containers.into_iter().next().unwrap();
    assert_eq!(container.command, Some(vec!["gitspoke".to_owned()]));
    container.args.unwrap()
}

async fn apply(plane: &ControlPlane, yaml: &str) {
    let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let output = plane.kubectl(&arguments, yaml.as_bytes()).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

fn printed(arguments: &[&str]) -> String {
    let output = gitspoke()
        .args(["install", "agent"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}
