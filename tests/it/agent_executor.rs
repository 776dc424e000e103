//! Works with an executor: what its service account may not write, the agent does not write for it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    authorization::v1::SubjectAccessReview,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        without_rights_nothing_is_written_until_they_are_granted,
        a_revocation_stops_what_it_concerns_and_removes_nothing,
        every_verb_counts_also_for_what_is_only_read,
        nobody_gives_away_rights_he_does_not_have,
        an_executor_without_an_account_is_an_error,
        a_settled_work_asks_nothing,
        an_agent_that_may_not_watch_or_act_for_others_still_refuses,
);

/// A denied work is looked at again after a minute. What happens earlier was an event.
const BY_EVENT: Duration = Duration::from_secs(20);

/// The account that every case uses; it need not exist.
const ACCOUNT: &str = "deployer";

const WRITE: [&str; 5] = ["create", "update", "patch", "get", "delete"];

impl Pair {
    fn executor(&self) -> Value {
        let account = json!({"namespace": self.cluster, "name": ACCOUNT});
        json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})
    }

    fn executed(&self, manifests: &[Value]) -> Value {
        json!({"workload": {"manifests": manifests}, "executor": self.executor()})
    }

    fn user(&self) -> Value {
        let name = format!("system:serviceaccount:{}:{ACCOUNT}", self.cluster);
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
    }

    /// Gives a subject the rights of a rule, and waits until the API server itself knows.
    async fn grant_to(&self, subject: &Value, role: &str, rule: Value) {
        let roles: Api<Role> = Api::namespaced(self.spoke.clone(), &self.cluster);
        let bindings: Api<RoleBinding> = Api::namespaced(self.spoke.clone(), &self.cluster);
        create(
            &roles,
            json!({"metadata": {"name": role}, "rules": [&rule]}),
        )
        .await;
        let binding = json!({
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [subject],
        });
        create(&bindings, binding).await;
        self.until_granted(subject, &rule).await;
    }

    async fn until_granted(&self, subject: &Value, rule: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (user, groups) = match subject["kind"].as_str().unwrap() {
            "User" => (text(&subject["name"]), vec![]),
            "Group" => ("somebody".to_owned(), vec![text(&subject["name"])]),
            _ => {
                let (namespace, name) = (text(&subject["namespace"]), text(&subject["name"]));
                (format!("system:serviceaccount:{namespace}:{name}"), vec![])
            }
        };
        let review = json!({"spec": {"user": user, "groups": groups, "resourceAttributes": {
            "group": rule["apiGroups"][0],
            "resource": rule["resources"][0],
            "name": rule["resourceNames"][0],
            "verb": rule["verbs"][0],
            "namespace": self.cluster,
        }}});
        let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
        let reviews: Api<SubjectAccessReview> = Api::all(self.spoke.clone());
        wait::until("rights to be known", PATIENCE, || async {
            let answer = reviews.create(&PostParams::default(), &review).await;
            match answer.unwrap().status.unwrap() {
                status if status.allowed => Ok(()),
                status => Err(format!("{status:?}")),
            }
        })
        .await;
    }

    async fn grant(&self, role: &str, rule: Value) {
        self.grant_to(&self.user(), role, rule).await;
    }

    async fn revoke(&self, role: &str) {
        let bindings: Api<RoleBinding> = Api::namespaced(self.spoke.clone(), &self.cluster);
        bindings
            .delete(role, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Waits until the manifests of a work say this about their writes.
    async fn until_applied_says(&self, work: &str, expected: &[String]) {
        let (works, name) = (self.works(), self.named(work));
        wait::until(&format!("{work} to say {expected:?}"), BY_EVENT, || async {
            let work = works.get(&name).await.map_err(|error| error.to_string())?;
            let generation = work.metadata.generation;
            let manifests = work
                .status
                .and_then(|status| status.resource_status)
                .and_then(|status| status.manifests)
                .unwrap_or_default();
            let conditions = manifests.iter().flat_map(|manifest| &manifest.conditions.0);
            let said: Vec<String> = conditions
                .filter(|c| c.type_ == "Applied" && c.observed_generation == generation)
                .map(|c| c.message.clone())
                .collect();
            if said == expected {
                Ok(())
            } else {
                Err(format!("{said:?}"))
            }
        })
        .await;
    }

    fn denied(&self, group: &str, resource: &str, name: &str) -> String {
        let namespace = &self.cluster;
        format!(
            "Failed to apply manifest: not allowed to apply the resource {group} {resource}, {namespace} {name}, will try again in 1m0s"
        )
    }
}

fn complete() -> String {
    "Apply manifest complete".to_owned()
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn maps_rule(verbs: &[&str], names: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs, "resourceNames": names})
}

fn all_maps() -> Value {
    json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": WRITE})
}

async fn without_rights_nothing_is_written_until_they_are_granted(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let spec = pair.executed(&[pair.map("one", "1")]);
    pair.put("web", spec).await;
    pair.until_applied_says("web", &[pair.denied("", "configmaps", "one")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    assert_eq!(pair.value_of("one").await, None);
    let status = work.status.unwrap().resource_status.unwrap();
    let applied = &status.manifests.unwrap()[0].conditions.0[0];
    assert_eq!(applied.reason, "AppliedManifestFailed");

    let granted = Instant::now();
    pair.grant("maps", all_maps()).await;
    pair.until("web", "Available", "True").await;
    assert!(granted.elapsed() < BY_EVENT, "{:?}", granted.elapsed());
    assert_eq!(pair.value_of("one").await.as_deref(), Some("1"));
}

async fn a_revocation_stops_what_it_concerns_and_removes_nothing(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let manifests = |value| [pair.map("revoked", value), pair.map("kept", value)];
    pair.grant("revoked", maps_rule(&WRITE, &["revoked"])).await;
    pair.grant("kept", maps_rule(&WRITE, &["kept"])).await;
    pair.put("web", pair.executed(&manifests("1"))).await;
    pair.until_applied_says("web", &[complete(), complete()])
        .await;

    pair.revoke("revoked").await;
    let denied = pair.denied("", "configmaps", "revoked");
    pair.until_applied_says("web", &[denied.clone(), complete()])
        .await;
    pair.put("web", pair.executed(&manifests("2"))).await;
    pair.until_applied_says("web", &[denied, complete()]).await;
    assert_eq!(pair.value_of("revoked").await.as_deref(), Some("1"));
    assert_eq!(pair.value_of("kept").await.as_deref(), Some("2"));

    pair.delete("web").await;
    let left = (pair.value_of("revoked").await, pair.value_of("kept").await);
    assert_eq!(
        left,
        (None, None),
        "a deletion asks for nobody's permission"
    );
}

async fn every_verb_counts_also_for_what_is_only_read(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let map = pair.map("read", "1");
    let mut without_strategy = pair.map("written", "1");
    without_strategy["metadata"]["labels"] = json!({"a": "b"});
    create(&pair.maps(), map.clone()).await;
    pair.grant(
        "most",
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": &WRITE[..4]}),
    )
    .await;
    let mut spec = pair.executed(&[map, without_strategy]);
    spec["manifestConfigs"] = json!([{
        "resourceIdentifier": {"resource": "configmaps", "name": "read", "namespace": pair.cluster},
        "updateStrategy": {"type": "ReadOnly"},
    }]);
    pair.put("web", spec.clone()).await;
    let denied = |name| pair.denied("", "configmaps", name);
    pair.until_applied_says("web", &[denied("read"), denied("written")])
        .await;

    // What stays when its work goes needs no right to be deleted.
    spec["deleteOption"] = json!({"propagationPolicy": "Orphan"});
    pair.put("web", spec).await;
    pair.until_applied_says("web", &[complete(), complete()])
        .await;
}

async fn nobody_gives_away_rights_he_does_not_have(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.grant(
        "roles",
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": WRITE}),
    )
    .await;
    let role = |name: &str, resource: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name, "namespace": pair.cluster},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}],
        })
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "boss", "namespace": pair.cluster},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [pair.user()],
    });
    let escalation = |resource, name| {
        let plain = pair.denied("rbac.authorization.k8s.io", resource, name);
        plain.replace(", will", ", error: permission escalation, will")
    };
    pair.put(
        "web",
        pair.executed(&[role("reader", "secrets"), binding.clone()]),
    )
    .await;
    pair.until_applied_says(
        "web",
        &[
            escalation("roles", "reader"),
            escalation("rolebindings", "boss"),
        ],
    )
    .await;
    let roles: Api<Role> = Api::namespaced(pair.spoke.clone(), &pair.cluster);
    assert!(roles.get_opt("reader").await.unwrap().is_none());

    // Rights of the account's groups are its own, too.
    let group = json!({
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Group",
        "name": format!("system:serviceaccounts:{}", pair.cluster),
    });
    let secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
    pair.grant_to(&group, "secrets", secrets).await;
    pair.until_applied_says("web", &[complete(), escalation("rolebindings", "boss")])
        .await;

    // An answer is about one body: more rights in the same role are another question.
    pair.put("web", pair.executed(&[role("reader", "pods"), binding]))
        .await;
    pair.until_applied_says(
        "web",
        &[
            escalation("roles", "reader"),
            escalation("rolebindings", "boss"),
        ],
    )
    .await;
    let reader = roles.get("reader").await.unwrap();
    let resources = reader.rules.unwrap()[0].resources.clone();
    assert_eq!(resources, Some(vec!["secrets".to_owned()]));
}

async fn an_executor_without_an_account_is_an_error(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let mut spec = pair.executed(&[pair.map("one", "1")]);
    for (work, executor, expected) in [
        (
            "no-account",
            json!({"subject": {"type": "ServiceAccount"}}),
            "the executor service account is nil: name one in spec.executor.subject.serviceAccount",
        ),
        (
            "no-subject",
            json!({}),
            "the executor subject is nil: name a service account in spec.executor.subject, or leave out spec.executor",
        ),
    ] {
        spec["executor"] = executor;
        pair.put(work, spec.clone()).await;
        pair.until_applied_says(work, &[format!("Failed to apply manifest: {expected}")])
            .await;
    }
    assert_eq!(pair.value_of("one").await, None);
}

/// On a spoke of its own, whose API server counts what this agent asks.
async fn a_settled_work_asks_nothing(lab: Arc<Lab>) {
    let plane = lab.start("asked").await;
    let pair = Pair::start_on(&lab, &plane, &plane.admin_kubeconfig(), &[]).await;
    pair.grant("maps", all_maps()).await;
    let before = asked(&pair.spoke).await;
    pair.put("web", pair.executed(&[pair.map("one", "1")]))
        .await;
    pair.until("web", "Available", "True").await;
    let for_one_pass = asked(&pair.spoke).await - before;
    assert!(for_one_pass >= 5, "nobody counts: {for_one_pass}");

    // The grant is asked about twice, in case the first answer came too early. After that each pass asks nothing.
    wait::until("passes that ask nothing", PATIENCE, || async {
        let before = asked(&pair.spoke).await;
        for _ in 0..3 {
            repair(&pair, "one", "1").await;
        }
        match asked(&pair.spoke).await - before {
            0 => Ok(()),
            more => Err(format!("{more} reviews for 3 passes")),
        }
    })
    .await;
}

/// Changes an object, and waits until it is as it was: a pass has begun and ended meanwhile.
async fn repair(pair: &Pair, name: &str, value: &str) {
    let edit = Patch::Merge(json!({"data": {"key": "wrong"}}));
    pair.maps()
        .patch(name, &PatchParams::default(), &edit)
        .await
        .unwrap();
    wait::until("drift to be repaired", PATIENCE, || async {
        let found = pair.value_of(name).await;
        if found.as_deref() == Some(value) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
}

/// How many reviews a spoke has been asked for.
async fn asked(spoke: &Client) -> u64 {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = spoke.request_text(request).await.unwrap();
    metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_request_total{"))
        .filter(|line| line.contains("resource=\"subjectaccessreviews\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

async fn an_agent_that_may_not_watch_or_act_for_others_still_refuses(lab: Arc<Lab>) {
    let plane = lab.spoke().await;
    let admin = plane.client().await;
    let home = lab.unique_name("home");
    let namespace = json!({"metadata": {"name": home}});
    create(&Api::<Namespace>::all(admin.clone()), namespace).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &home);
    create(&accounts, json!({"metadata": {"name": "agent"}})).await;
    let everything_but_rights = json!({
        "metadata": {"name": home},
        "rules": [
            {"apiGroups": ["", "work.open-cluster-management.io", "authorization.k8s.io"], "resources": ["*"], "verbs": WRITE},
            {"apiGroups": ["", "work.open-cluster-management.io"], "resources": ["*"], "verbs": ["list", "watch"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": WRITE},
        ],
    });
    create(
        &Api::<ClusterRole>::all(admin.clone()),
        everything_but_rights,
    )
    .await;
    let binding = json!({
        "metadata": {"name": home},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": home},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": home}],
    });
    create(&Api::<ClusterRoleBinding>::all(admin.clone()), binding).await;
    let kubeconfig = plane.kubeconfig_for_service_account(&home, "agent").await;
    let pair = Pair::start_on(&lab, plane, &kubeconfig, &[]).await;

    pair.grant("maps", maps_rule(&WRITE, &["allowed"])).await;
    pair.grant(
        "roles",
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": WRITE}),
    )
    .await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "empty", "namespace": pair.cluster},
    });
    let manifests = [pair.map("allowed", "1"), pair.map("not-allowed", "1"), role];
    pair.put("web", pair.executed(&manifests)).await;
    let maps: Api<ConfigMap> = pair.maps();
    wait::until("what is allowed to be written", BY_EVENT, || async {
        maps.get("allowed")
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    let work = pair.until("web", "Applied", "False").await;
    let manifests = work.status.unwrap().resource_status.unwrap().manifests;
    let said: Vec<String> = manifests
        .unwrap()
        .into_iter()
        .map(|manifest| manifest.conditions.0[0].message.clone())
        .collect();
    assert_eq!(
        said[..2],
        [complete(), pair.denied("", "configmaps", "not-allowed")]
    );
    let start = "Failed to apply manifest: could not check the rights of the executor: ";
    assert!(
        said[2].starts_with(start) && said[2].contains("cannot impersonate"),
        "{}",
        said[2]
    );

    // To act as service accounts is all it takes: no groups, and nothing about the kinds they write.
    let impersonate =
        json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]});
    let agent = json!({"kind": "ServiceAccount", "name": "agent", "namespace": home});
    pair.grant_to(&agent, "impersonate", impersonate).await;
    let denied = pair.denied("", "configmaps", "not-allowed");
    pair.until_applied_says("web", &[complete(), denied, complete()])
        .await;
}
