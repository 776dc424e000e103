//! Replicas of an agent: one leads, the others wait.

use std::{path::PathBuf, sync::Arc};

use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Namespace},
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::{Lab, control_plane::ControlPlane, install, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_leader_that_is_told_to_end_hands_over_at_once,
        an_agent_whose_spoke_hangs_stops_leading_comes_back_and_ends,
        the_lock_of_another_agent_is_honoured,
        a_lock_that_ran_out_is_taken,
        a_leader_that_is_deposed_stops_writing,
        a_lock_that_cannot_be_had_is_explained,
);

/// Longer than any case lasts: what has to wait for such a lease to run out never happens.
const ENDLESS: [&str; 2] = [
    "--leader-election-lease-duration=2h",
    "--leader-election-renew-deadline=1h",
];

async fn a_leader_that_is_told_to_end_hands_over_at_once(lab: Arc<Lab>) {
    let lock = Lock::new(&lab).await;
    let mut pair = lock.start(&lab, &ENDLESS).await;
    let leader = lock.held().await;
    let mut second = pair.another();
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;

    assert_eq!(pair.terminate().await.code(), Some(0));
    let released = lock.lease().await;
    assert_ne!(holder(&released), leader, "the lock was not released");
    pair.put_manifests("web", &[pair.map("one", "2")]).await;
    pair.until("web", "Available", "True").await;
    assert_eq!(pair.value_of("one").await.as_deref(), Some("2"));
    let taken = lock.lease().await;
    assert_eq!(taken.spec.unwrap().lease_transitions, Some(1));

    assert_eq!(second.terminate().await.code(), Some(0));
    assert_eq!(holder(&lock.lease().await), "");
}

async fn an_agent_whose_spoke_hangs_stops_leading_comes_back_and_ends(lab: Arc<Lab>) {
    let frozen = lab.start("frozen").await;
    install::crds(&frozen.client().await).await;
    let kubeconfig = format!("--spoke-kubeconfig={}", frozen.admin_kubeconfig().display());
    let flags = [
        &kubeconfig,
        "--disable-leader-election=false",
        "--namespace=default",
        "--leader-election-lease-duration=3s",
        "--leader-election-renew-deadline=2s",
        "--leader-election-retry-period=1s",
    ];
    let mut first = Pair::start_with(&lab, &flags).await;
    first.kill();
    let log = tempfile::NamedTempFile::new().unwrap();
    let (arguments, stderr) = (first.arguments().to_vec(), log.reopen().unwrap());
    let mut pair = Pair::run(&lab, &first.cluster, arguments, stderr.into()).await;
    let put = async |value: &str| {
        let mut map = pair.map("one", value);
        map["metadata"]["namespace"] = json!("default");
        pair.put_manifests("web", &[map]).await;
    };
    put("1").await;
    pair.until("web", "Available", "True").await;

    signal(&frozen, Signal::STOP);
    put("2").await;
    wait::until("the leader to give up", PATIENCE, || async {
        let said = std::fs::read_to_string(log.path()).unwrap();
        if said.contains("no longer the leader") {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    signal(&frozen, Signal::CONT);
    pair.until("web", "Available", "True").await;

    // A pass that is not answered is cut off; left to itself it would be aborted as a task that does not obey, exit
    // code 3.
    signal(&frozen, Signal::STOP);
    put("3").await;
    others_get_work_done(&lab).await;
    assert_eq!(pair.terminate().await.code(), Some(0));
}

fn signal(plane: &ControlPlane, signal: Signal) {
    for pid in plane.pids() {
        let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

async fn the_lock_of_another_agent_is_honoured(lab: Arc<Lab>) {
    let lock = Lock::new(&lab).await;
    lock.put(held_by("ocm-agent_1b9d", 137)).await;
    let pair = lock.start(&lab, &[]).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    others_get_work_done(&lab).await;
    let work = pair.works().get(&pair.named("web")).await.unwrap();
    assert_eq!((work.finalizers(), work.status.is_none()), (&[][..], true));

    // This is how client-go releases.
    lock.put(held_by("", 1)).await;
    pair.until("web", "Available", "True").await;
    let lease = lock.lease().await;
    let manager = &lease.managed_fields().last().unwrap().manager;
    assert_eq!(
        manager.as_deref(),
        Some(format!("work-agent-{}", holder(&lease)).as_str())
    );
    let spec = lease.spec.unwrap();
    assert_eq!(
        (spec.lease_transitions, spec.lease_duration_seconds),
        (Some(8), Some(15))
    );
}

async fn a_lock_that_ran_out_is_taken(lab: Arc<Lab>) {
    let lock = Lock::new(&lab).await;
    lock.put(held_by("ocm-agent_1b9d", 1)).await;
    let pair = lock.start(&lab, &[]).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
}

async fn a_leader_that_is_deposed_stops_writing(lab: Arc<Lab>) {
    let lock = Lock::new(&lab).await;
    let pair = lock.start(&lab, &ENDLESS).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;

    lock.put(held_by("usurper", 600)).await;
    others_get_work_done(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "2")]).await;
    others_get_work_done(&lab).await;
    assert_eq!(pair.value_of("one").await.as_deref(), Some("1"));
    assert_eq!(holder(&lock.lease().await), "usurper");

    // It stands for election again, and goes on where it was.
    lock.put(held_by("", 1)).await;
    pair.until("web", "Available", "True").await;
    assert_eq!(pair.value_of("one").await.as_deref(), Some("2"));
}

async fn a_lock_that_cannot_be_had_is_explained(lab: Arc<Lab>) {
    let (hub, spoke) = (lab.hub().await, lab.spoke().await);
    let said = async |spoke: PathBuf, namespace: &str| {
        let mut agent = tokio::process::Command::new(env!("CARGO_BIN_EXE_gitspoke"));
        agent
            .args(["agent", "--spoke-cluster-name=edge-0", "--log=off"])
            .arg("--listen=127.0.0.1:0")
            .arg(format!(
                "--hub-kubeconfig={}",
                hub.admin_kubeconfig().display()
            ))
            .arg(format!("--spoke-kubeconfig={}", spoke.display()))
            .arg(format!("--namespace={namespace}"))
            .kill_on_drop(true);
        let output = timeout(PATIENCE, agent.output()).await.unwrap().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        said
    };
    let nowhere = said(spoke.admin_kubeconfig(), "nowhere").await;
    assert!(
        nowhere.contains("because there is no namespace nowhere for the lease work-agent-lock"),
        "{nowhere}"
    );
    assert!(
        nowhere.contains("hint: create the namespace, "),
        "{nowhere}"
    );
    let nobody = said(spoke.kubeconfig_for_user("nobody", &[]), "default").await;
    assert!(
        nobody.contains("because may not use the lease work-agent-lock in namespace default")
            && nobody.contains("hint: apply what `gitspoke install agent` prints"),
        "{nobody}"
    );
}

/// Another agent, of another cluster, does all that an agent has to do: whoever has done nothing meanwhile did not want
/// to.
async fn others_get_work_done(lab: &Lab) {
    let other = Pair::start(lab).await;
    other
        .put_manifests("other", &[other.map("other", "1")])
        .await;
    other.until("other", "Available", "True").await;
}

/// The lock, in a namespace of the case's own.
struct Lock {
    namespace: String,
    leases: Api<Lease>,
}

impl Lock {
    async fn new(lab: &Lab) -> Self {
        let spoke = lab.spoke().await.client().await;
        let namespace = lab.unique_name("agents");
        let object: Namespace =
            serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::all(spoke.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let leases = Api::namespaced(spoke, &namespace);
        Self { namespace, leases }
    }

    async fn start(&self, lab: &Lab, flags: &[&str]) -> Pair {
        let namespace = format!("--namespace={}", self.namespace);
        let election = ["--disable-leader-election=false", &namespace];
        Pair::start_with(lab, &[&election, flags].concat()).await
    }

    async fn lease(&self) -> Lease {
        self.leases.get("work-agent-lock").await.unwrap()
    }

    /// Waits until somebody holds it, and returns who.
    async fn held(&self) -> String {
        wait::until("somebody to hold the lock", PATIENCE, || async {
            let lease = self.leases.get_opt("work-agent-lock").await;
            let lease = lease.map_err(|error| error.to_string())?;
            let holder = lease.as_ref().map(holder).unwrap_or_default();
            if holder.is_empty() {
                return Err(format!("{lease:?}"));
            }
            Ok(holder.to_owned())
        })
        .await
    }

    async fn put(&self, spec: Value) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "work-agent-lock"},
            "spec": spec,
        });
        let params = PatchParams::apply("work-agent").force();
        self.leases
            .patch("work-agent-lock", &params, &Patch::Apply(lease))
            .await
            .unwrap();
    }
}

/// What client-go writes into a lease.
fn held_by(holder: &str, seconds: i32) -> Value {
    let now = format!("{:.6}", Timestamp::now());
    json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 7,
    })
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}
