//! Credentials that are replaced while the agent runs.

use std::{fs, path::Path, process::Stdio, sync::Arc};

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        a_replaced_certificate_is_used_without_a_restart,
        a_kubeconfig_of_another_hub_ends_the_agent,
        a_file_can_end_the_agent,
);

async fn a_replaced_certificate_is_used_without_a_restart(lab: Arc<Lab>) {
    let hub = lab.hub().await;
    let admin = hub.client().await;
    let (name, old, new) = (
        lab.unique_name("rotated"),
        lab.unique_name("old"),
        lab.unique_name("new"),
    );
    make_role(&admin, &name).await;
    allow(&admin, &name, &old).await;
    let kubeconfig = hub.kubeconfig_with_certificate(&name, &old);
    let flag = format!("--hub-kubeconfig={}", kubeconfig.display());
    let pair = Pair::start_with(&lab, &[&flag]).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    pair.put_manifests("still", &[pair.map("still", "1")]).await;
    pair.until("still", "Available", "True").await;
    let before = versions(&pair).await;

    // What is half written, or wrong, does no harm.
    let certificate = kubeconfig.with_extension("crt");
    fs::write(&certificate, "no certificate at all").unwrap();
    pair.put_manifests("web", &[pair.map("one", "2")]).await;
    pair.until("web", "Available", "True").await;

    allow(&admin, &name, &new).await;
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    bindings
        .delete(&old, &DeleteParams::default())
        .await
        .unwrap();
    hub.kubeconfig_with_certificate(&name, &new);
    pair.put_manifests("web", &[pair.map("one", "3")]).await;
    pair.until("web", "Available", "True").await;
    assert_eq!(pair.value_of("one").await.as_deref(), Some("3"));
    assert_eq!(versions(&pair).await, before, "something was written again");
}

async fn a_kubeconfig_of_another_hub_ends_the_agent(lab: Arc<Lab>) {
    let hub = lab.hub().await;
    let name = lab.unique_name("moved");
    let kubeconfig = hub.kubeconfig_with_certificate(&name, &name);
    let flag = format!("--hub-kubeconfig={}", kubeconfig.display());
    let mut pair = Pair::start_with(&lab, &[&flag, "--log=info", "--log-format=json"]).await;
    pair.kill();
    let mut agent = tokio::process::Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .args(pair.arguments())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let ended = timeout(PATIENCE, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("serving") {
                replace(&kubeconfig, &hub.server(), "https://localhost:1");
            }
            said.push_str(&line);
            said.push('\n');
        }
        agent.wait().await.unwrap()
    });
    let status = ended.await.expect("the agent ends");
    assert_eq!(status.code(), Some(3), "{said}");
    let expected = format!(
        "error: the hub's kubeconfig names another server: https://localhost:1 instead of {}\nhint: ",
        hub.server()
    );
    assert!(said.contains(&expected), "{said}");
}

async fn a_file_can_end_the_agent(lab: Arc<Lab>) {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    fs::write(&one, "1").unwrap();
    let flags = [&one, &two].map(|file| format!("--terminate-on-files={}", file.display()));
    let mut pair = Pair::start_with(&lab, &[&flags[0], &flags[1]]).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    fs::write(&one, "2").unwrap();
    assert_eq!(pair.ended().await.code(), Some(0));
}

/// Of what must not be written again.
async fn versions(pair: &Pair) -> (Option<String>, Option<String>, Option<String>) {
    let map = pair.maps().get("still").await.unwrap();
    let record = pair.record_of("still").await;
    let work = pair.works().get(&pair.named("still")).await.unwrap();
    (
        map.resource_version(),
        record.resource_version(),
        work.resource_version(),
    )
}

async fn make_role(admin: &Client, name: &str) {
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": name},
        "rules": [{
            "apiGroups": ["work.open-cluster-management.io"],
            "resources": ["manifestworks", "manifestworks/status"],
            "verbs": ["get", "list", "watch", "update", "patch"],
        }],
    }))
    .unwrap();
    Api::all(admin.clone())
        .create(&PostParams::default(), &role)
        .await
        .unwrap();
}

/// Binds a user to a role.
async fn allow(admin: &Client, role: &str, user: &str) {
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
    .unwrap();
    Api::all(admin.clone())
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}
