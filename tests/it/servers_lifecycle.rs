//! The referee itself: it comes up, lets anyone in, survives a crash and leaves nothing behind.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::{
        authentication::v1::SelfSubjectReview,
        core::v1::{ConfigMap, Namespace, ServiceAccount},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    ROLE,
    harness::cases,
    servers::{Lab, control_plane::client_from, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_control_plane_says_which_kubernetes_it_is,
        anyone_can_be_let_in,
        controllers_collect_garbage,
        a_crashed_api_server_comes_back_with_its_data,
        no_server_outlives_a_killed_test_run,
        no_server_outlives_an_interrupted_test_run,
);

const PATIENCE: Duration = Duration::from_mins(1);

async fn a_control_plane_says_which_kubernetes_it_is(lab: Arc<Lab>) {
    let version = lab
        .hub()
        .await
        .client()
        .await
        .apiserver_version()
        .await
        .unwrap();
    assert_eq!(version.major, "1");
    assert!(
        version.git_version.starts_with("v1."),
        "{}",
        version.git_version
    );
}

async fn anyone_can_be_let_in(lab: Arc<Lab>) {
    let hub = lab.hub().await;
    let admin = hub.client().await;
    let namespace = namespace(&lab, &admin).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, &namespace);
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some("robot".into()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();

    let user = hub.kubeconfig_for_user("system:open-cluster:alice", &["fleet", "auditors"]);
    let (name, groups) = whoami(client_from(&user).await).await;
    assert_eq!(name, "system:open-cluster:alice");
    assert!(
        groups.contains(&"fleet".into()) && groups.contains(&"auditors".into()),
        "{groups:?}"
    );

    let robot = hub
        .kubeconfig_for_service_account(&namespace, "robot")
        .await;
    let (name, _) = whoami(client_from(&robot).await).await;
    assert_eq!(name, format!("system:serviceaccount:{namespace}:robot"));
}

async fn controllers_collect_garbage(lab: Arc<Lab>) {
    let client = lab.hub().await.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&lab, &client).await);
    let owner = maps
        .create(&PostParams::default(), &config_map("owner", &[]))
        .await
        .unwrap();
    let mut owned = config_map("owned", &[]);
    owned.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: owner.name_any(),
        uid: owner.uid().unwrap(),
        ..OwnerReference::default()
    }]);
    maps.create(&PostParams::default(), &owned).await.unwrap();

    maps.delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    wait::until("the owned object to be collected", PATIENCE, || async {
        match maps.get_opt("owned").await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("it is still there".into()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

async fn a_crashed_api_server_comes_back_with_its_data(lab: Arc<Lab>) {
    let mut plane = lab.start("crash").await;
    let client = plane.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(
        &PostParams::default(),
        &config_map("kept", &[("answer", "42")]),
    )
    .await
    .unwrap();

    plane.kill_api_server();
    assert!(
        maps.get("kept").await.is_err(),
        "a killed API server answered"
    );

    plane.start_api_server().await;
    let found = maps.get("kept").await.unwrap();
    assert_eq!(found.data.unwrap()["answer"], "42");
}

async fn no_server_outlives_a_killed_test_run(_: Arc<Lab>) {
    no_server_outlives(Signal::KILL).await;
}

async fn no_server_outlives_an_interrupted_test_run(_: Arc<Lab>) {
    no_server_outlives(Signal::INT).await;
}

async fn no_server_outlives(signal: Signal) {
    let mut run = Command::new(std::env::current_exe().unwrap())
        .env(ROLE, "serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pids: Vec<u32> = line
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert_eq!(pids.len(), 3, "{line:?}");
    assert!(
        pids.iter().all(|pid| is_alive(*pid)),
        "servers that were just started have ended"
    );

    kill_process(Pid::from_child(&run), signal).unwrap();
    run.wait().unwrap();
    wait::until("every server to end", PATIENCE, || async {
        match pids.iter().find(|pid| is_alive(**pid)) {
            None => Ok(()),
            Some(pid) => Err(format!("process {pid} is still alive")),
        }
    })
    .await;
}

/// The role of a test run that is about to be killed: starts servers, prints their process ids, waits.
pub(crate) fn serve() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lab = Lab::new();
    let plane = runtime.block_on(lab.start("doomed"));
    let pids: Vec<String> = plane.pids().iter().map(u32::to_string).collect();
    println!("{}", pids.join(" "));
    // Ends when the case that started us closes our standard input, should it forget to kill us.
    std::io::stdin().lines().for_each(drop);
    ExitCode::SUCCESS
}

/// A zombie has ended: it waits only for its new parent to notice.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).is_ok_and(
        |stat| {
            !stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .trim_start()
                .starts_with('Z')
        },
    )
}

async fn whoami(client: Client) -> (String, Vec<String>) {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    let user = review.status.and_then(|status| status.user_info).unwrap();
    (
        user.username.unwrap_or_default(),
        user.groups.unwrap_or_default(),
    )
}

async fn namespace(lab: &Lab, client: &Client) -> String {
    let name = lab.unique_name("servers");
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    name
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<_, _> = data
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}
