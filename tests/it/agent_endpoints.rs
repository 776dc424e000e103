//! What an agent answers about itself: `/healthz`, `/readyz`, `/metrics`.

use std::{collections::BTreeSet, net::TcpListener, path::Path, sync::Arc};

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use snapbox::str;

use crate::{
    agent_pair::{PATIENCE, Pair},
    agent_process::{ask, run_agent},
    cli_help::gitspoke,
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: a_taken_port_is_a_failure_with_a_way_out;
    kubernetes:
        an_agent_is_ready_once_it_sees_what_to_do,
        metrics_follow_what_the_agent_does,
        every_metric_is_documented_and_every_documented_one_exists,
);

fn a_taken_port_is_a_failure_with_a_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    gitspoke()
        .args([
            "agent",
            "--spoke-cluster-name=edge",
            "--hub-kubeconfig=/none",
        ])
        .arg(format!("--listen={address}"))
        .assert()
        .code(3)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: could not listen on 127.0.0.1:[..]
  because Address already in use (os error 98)
hint: give another address by --listen; port 0 is any that is free

"#]]);
}

async fn an_agent_is_ready_once_it_sees_what_to_do(lab: Arc<Lab>) {
    let (hub, spoke) = (lab.hub().await, lab.spoke().await);
    // Brings the namespace and the CRDs; its own agent has nothing to do here.
    let pair = Pair::start(&lab).await;
    let user = lab.unique_name("stranger");
    let arguments = [
        "agent".to_owned(),
        format!("--spoke-cluster-name={}", pair.cluster),
        format!("--agent-id={user}"),
        format!(
            "--hub-kubeconfig={}",
            hub.kubeconfig_for_user(&user, &[]).display()
        ),
        format!("--spoke-kubeconfig={}", spoke.admin_kubeconfig().display()),
        "--disable-leader-election".to_owned(),
        "--listen=127.0.0.1:0".to_owned(),
        "--log=error,gitspoke::web=info".to_owned(),
    ];
    let agent = run_agent(&arguments);
    let address = agent.address().await;
    let expected = format!(
        "the works on the hub have not been listed yet: manifestworks.work.open-cluster-management.io is forbidden: \
         User \"{user}\" cannot list resource \"manifestworks\" in API group \"work.open-cluster-management.io\" \
         in the namespace \"{}\"\n",
        pair.cluster
    );
    wait::until("the reason to be told", PATIENCE, || async {
        let answer = ask(address, "/readyz").await;
        if (answer.status, &answer.body) == (503, &expected) {
            Ok(())
        } else {
            Err(format!("{answer:?}"))
        }
    })
    .await;
    let alive = ask(address, "/healthz").await;
    assert_eq!(
        (alive.status, &*alive.body),
        (200, "ok\n"),
        "what a restart cannot mend is no reason to restart"
    );

    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": user},
        "rules": [{"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"], "verbs": ["list", "watch"]}],
    }))
    .unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
    .unwrap();
    let (client, params) = (hub.client().await, PostParams::default());
    Api::all(client.clone())
        .create(&params, &role)
        .await
        .unwrap();
    Api::all(client).create(&params, &binding).await.unwrap();
    wait::until("the agent to be ready", PATIENCE, || async {
        let answer = ask(address, "/readyz").await;
        if (answer.status, &*answer.body) == (200, "ok\n") {
            Ok(())
        } else {
            Err(format!("{answer:?}"))
        }
    })
    .await;
}

async fn metrics_follow_what_the_agent_does(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let answer = pair.ask("/metrics").await;
    assert_eq!(
        (answer.status, &*answer.content_type),
        (
            200,
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        )
    );
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    assert_eq!(pair.metric("gitspoke_writes_total", &[]).await, 0);

    pair.put_manifests("web", &[pair.map("one", "1"), pair.map("two", "1")])
        .await;
    pair.until("web", "Available", "True").await;
    // The record is written after the report.
    until_metric(&pair, "gitspoke_writes_total", &[r#"write="record""#], 3).await;
    let exact: [(&str, &[&str], u64); 9] = [
        ("gitspoke_writes_total", &[r#"write="apply""#], 2),
        ("gitspoke_writes_total", &[r#"write="status""#], 1),
        ("gitspoke_writes_total", &[r#"write="finalizer""#], 1),
        ("gitspoke_writes_total", &[r#"write="event""#], 0),
        (
            "gitspoke_requests_total",
            &[r#"side="spoke""#, r#"verb="apply""#, r#"answer="done""#],
            2,
        ),
        ("gitspoke_works", &[r#"state="available""#], 1),
        ("gitspoke_works", &[], 1),
        ("gitspoke_objects", &[r#"kind="ConfigMap""#], 2),
        ("gitspoke_drift_repaired_total", &[], 0),
    ];
    for (name, labels, expected) in exact {
        assert_eq!(
            pair.metric(name, labels).await,
            expected,
            "{name} {labels:?}"
        );
    }
    until_metric(&pair, "gitspoke_kind_synced", &[r#"kind="ConfigMap""#], 1).await;
    let done = pair
        .metric("gitspoke_passes_total", &[r#"outcome="done""#])
        .await;
    assert!(done >= 1, "{done}");

    pair.maps()
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    until_metric(&pair, "gitspoke_drift_repaired_total", &[], 1).await;

    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "a"}});
    pair.put_manifests("bad", &[unknown]).await;
    pair.until("bad", "Applied", "False").await;
    until_metric(&pair, "gitspoke_works", &[r#"state="failed""#], 1).await;
    until_metric(&pair, "gitspoke_events_total", &[r#"fate="written""#], 1).await;
    let failed = pair
        .metric("gitspoke_passes_total", &[r#"outcome="manifests_failed""#])
        .await;
    assert!(failed >= 1, "{failed}");
}

async fn every_metric_is_documented_and_every_documented_one_exists(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    let answer = pair.ask("/metrics").await;
    let types = answer.body.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        // As somebody who asks Prometheus writes it.
        Some(match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
    });
    let exposed: BTreeSet<String> = types.collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split(['`', '{']).next());
    let documented: BTreeSet<String> = names
        .filter(|name| name.starts_with("gitspoke_") || name.starts_with("process_"))
        .map(str::to_owned)
        .collect();
    let undocumented: Vec<_> = exposed.difference(&documented).collect();
    let absent: Vec<_> = documented.difference(&exposed).collect();
    assert!(
        undocumented.is_empty(),
        "not in docs/metrics.md: {undocumented:?}"
    );
    assert!(absent.is_empty(), "only in docs/metrics.md: {absent:?}");
}

async fn until_metric(pair: &Pair, name: &str, labels: &[&str], expected: u64) {
    wait::until(&format!("{name} {labels:?}"), PATIENCE, || async {
        let found = pair.metric(name, labels).await;
        if found == expected {
            Ok(())
        } else {
            Err(format!("{found}"))
        }
    })
    .await;
}
