//! Every row of the condition tables: type, status, reason and message, and which generation a condition is about.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::Pair,
    agent_report::{ALL_IS_WELL, HEALTHY, Of, conditions, lines, manifests, next_second, turned},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        a_work_and_its_manifests_say_how_they_are,
        rule_conditions_are_gathered_on_the_work,
        feedback_says_what_went_wrong,
        a_status_is_carried_across_edits,
        a_kind_that_may_not_be_seen_costs_only_itself,
);

fn unknown(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": name}})
}

fn config(pair: &Pair, name: &str, more: &Value) -> Value {
    let mut config = json!({
        "resourceIdentifier": {"resource": "configmaps", "name": name, "namespace": pair.cluster},
    });
    let fields = config.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    config
}

async fn a_work_and_its_manifests_say_how_they_are(lab: Arc<Lab>) {
    const FAILED: [&str; 3] = [
        "Applied=False AppliedManifestFailed @now: Failed to apply manifest: the server doesn't have a resource type \"Nothing\"",
        "Available=Unknown IncompleteResourceMeta: Resource meta is incomplete",
        "StatusFeedbackSynced=True NoStatusFeedbackSynced: ",
    ];
    let pair = Pair::start(&lab).await;
    let read = json!({"updateStrategy": {"type": "ReadOnly"}});
    pair.put_manifests("fine", &[pair.map("fine", "1")]).await;
    pair.put_manifests("unknown", &[unknown("a"), pair.map("beside", "1")])
        .await;
    pair.put("missing", json!({
        "workload": {"manifests": [pair.map("absent", "1"), unknown("b"), pair.map("with", "1")]},
        "manifestConfigs": [config(&pair, "absent", &read)],
    }))
    .await;
    pair.put_manifests("empty", &[]).await;

    pair.until_says("fine", Of::Work, &ALL_IS_WELL).await;
    pair.until_says("fine", Of::Manifest(0), &HEALTHY).await;

    let failed = "Applied=False AppliedManifestWorkFailed @now: Failed to apply manifest work";
    let unknown =
        "Available=Unknown ResourcesStatusUnknown @now: 1 of 2 resources have unknown status";
    let work = pair
        .until_says("unknown", Of::Work, &[failed, unknown])
        .await;
    assert_eq!(lines(&work, Of::Manifest(0)), FAILED);
    assert_eq!(lines(&work, Of::Manifest(1)), HEALTHY);
    let meta = serde_json::to_value(&manifests(&work)[0].resource_meta).unwrap();
    let expected = json!({
        "ordinal": 0, "group": "example.com", "version": "v1", "kind": "Nothing", "resource": "", "name": "a", "namespace": "",
    });
    assert_eq!(meta, expected, "what is not known is an empty text");

    // One that is missing beats one that is unknown.
    let missing = "Available=False ResourcesNotAvailable @now: 1 of 3 resources are not available";
    let work = pair
        .until_says("missing", Of::Work, &[failed, missing])
        .await;
    let absent = [
        HEALTHY[0],
        "Available=False ResourceNotAvailable: Resource is not available",
        HEALTHY[2],
    ];
    assert_eq!(lines(&work, Of::Manifest(0)), absent);
    assert_eq!(lines(&work, Of::Manifest(1)), FAILED);
    assert_eq!(lines(&work, Of::Manifest(2)), HEALTHY);

    // A work without manifests has nothing to say, until it had some.
    let name = pair.named("empty");
    let empty = pair.works().get(&name).await.unwrap();
    assert_eq!(lines(&empty, Of::Work), Vec::<String>::new());
    pair.put_manifests("fine", &[]).await;
    let nothing = [
        "Applied=True AppliedManifestWorkComplete @old: Apply manifest work complete",
        "Available=Unknown ResourcesStatusUnknown @now: cannot get any available resource ",
    ];
    let work = pair.until_says("fine", Of::Work, &nothing).await;
    assert!(manifests(&work).is_empty());
    let maps = pair.objects("v1", "ConfigMap", true);
    pair.until_object("what it had to go", &maps, "fine", Value::is_null)
        .await;
}

async fn rule_conditions_are_gathered_on_the_work(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let rule = |condition: &str| {
        json!({
            "condition": condition, "type": "CEL", "celExpressions": ["object.data.key == '1'"],
            "message": format!("{condition} it is"),
        })
    };
    let rules = json!({"conditionRules": [rule("Fine"), rule("Progressing")]});
    let spec = |values: [&str; 2], configs: &[Value]| {
        let manifests = ["a", "b"].map(|name| pair.map(name, values[usize::from(name == "b")]));
        json!({"workload": {"manifests": manifests}, "manifestConfigs": configs})
    };
    let gathered = |fine: &str, progressing: &str| {
        let from = "ConditionRulesAggregated @now: Aggregated from 2 manifest conditions";
        [fine, progressing].map(|line| format!("{line} {from}"))
    };
    let says = async |expected: [String; 2]| {
        let mut all = ALL_IS_WELL.to_vec();
        all.extend(expected.iter().map(String::as_str));
        pair.until_says("web", Of::Work, &all).await
    };
    let both = [config(&pair, "*", &rules)];
    pair.put("web", spec(["1", "1"], &both)).await;
    says(gathered("Fine=True", "Progressing=True")).await;
    pair.put("web", spec(["1", "2"], &both)).await;
    // One that is not fine counts for all; so does one that is still under way.
    says(gathered("Fine=False", "Progressing=True")).await;
    pair.put("web", spec(["2", "2"], &both)).await;
    says(gathered("Fine=False", "Progressing=False")).await;

    // A single one speaks for itself, and only manifests with the rule count.
    pair.put("web", spec(["1", "2"], &[config(&pair, "a", &rules)]))
        .await;
    let alone = ["Fine", "Progressing"]
        .map(|type_| format!("{type_}=True ConditionRulesAggregated @now: {type_} it is"));
    let work = says(alone).await;
    let by_rule = ["Fine", "Progressing"]
        .map(|type_| format!("{type_}=True ConditionRuleEvaluated @now: {type_} it is"));
    let of_a = lines(&work, Of::Manifest(0));
    for line in &by_rule {
        assert!(of_a.contains(line), "{of_a:#?}");
    }
    assert_eq!(conditions(&work, Of::Manifest(0)).len(), 5);
    assert_eq!(conditions(&work, Of::Manifest(1)).len(), 3);

    // What a rule said goes with the rule.
    pair.put("web", spec(["1", "2"], &[])).await;
    let work = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    assert_eq!(conditions(&work, Of::Manifest(0)).len(), 3);

    // A rule about what nobody can see has said something once, and now nobody knows.
    let mut read = rules.clone();
    read["updateStrategy"] = json!({"type": "ReadOnly"});
    read["feedbackRules"] =
        json!([{"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}]);
    let theirs: k8s_openapi::api::core::v1::ConfigMap =
        serde_json::from_value(pair.map("theirs", "1")).unwrap();
    let create = PostParams::default();
    pair.maps().create(&create, &theirs).await.unwrap();
    let spec = |more: &str| {
        json!({
            "workload": {"manifests": [pair.map("theirs", more)]},
            "manifestConfigs": [config(&pair, "theirs", &read)],
        })
    };
    pair.put("read", spec("1")).await;
    pair.until("read", "Fine", "True").await;
    let delete = DeleteParams::default();
    pair.maps().delete("theirs", &delete).await.unwrap();
    pair.until("read", "Available", "False").await;
    pair.put("read", spec("2")).await;
    let work = pair.until("read", "Fine", "Unknown").await;
    let old = "Fine=True ConditionRuleEvaluated @old: Fine it is".to_owned();
    let said = lines(&work, Of::Manifest(0));
    assert!(said.contains(&old), "{said:#?}");
    // So it is with values.
    let synced = "StatusFeedbackSynced=True StatusFeedbackSynced: ".to_owned();
    assert!(said.contains(&synced), "{said:#?}");
    let value = serde_json::to_value(&manifests(&work)[0].status_feedback).unwrap();
    assert_eq!(value["values"][0]["fieldValue"]["string"], "1");
}

async fn feedback_says_what_went_wrong(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let rules = |rules: Value| json!({"feedbackRules": rules});
    let paths = |paths: Value| json!({"type": "JSONPaths", "jsonPaths": paths});
    let name = json!({"name": "name", "path": ".metadata.name"});
    let table = [
        (
            "good",
            json!([paths(
                json!([name, {"name": "versioned", "path": ".metadata.name", "version": "v1"}])
            )]),
            vec!["name", "versioned"],
            "StatusFeedbackSynced=True StatusFeedbackSynced: ",
        ),
        (
            "well-known",
            json!([{"type": "WellKnownStatus"}, paths(json!([name]))]),
            vec!["name"],
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed: Sync status feedback failed with error \
             cannot find the wellknown statuses for resource with gvk /v1, Kind=ConfigMap",
        ),
        (
            "version",
            json!([paths(
                json!([name, {"name": "other", "path": ".metadata.name", "version": "v2"}])
            )]),
            vec!["name"],
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed: Sync status feedback failed with error \
             version set in the path other is not matched for the related resource",
        ),
        (
            "syntax",
            json!([paths(json!([{"name": "bad", "path": ".metadata["}, name]))]),
            vec!["name"],
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed: Sync status feedback failed with error \
             failed to parse json path .metadata[ of bad with error: unterminated array",
        ),
        (
            "typing",
            json!([paths(json!([{"name": "map", "path": ".data"}, name]))]),
            vec!["name"],
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed: Sync status feedback failed with error \
             the type map[string]interface {} of the value for map is not found",
        ),
        (
            "several",
            json!([
                {"type": "WellKnownStatus"},
                paths(json!([{"name": "other", "path": ".metadata.name", "version": "v2"}])),
            ]),
            vec![],
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed: Sync status feedback failed with error \
             [cannot find the wellknown statuses for resource with gvk /v1, Kind=ConfigMap, \
             version set in the path other is not matched for the related resource]",
        ),
    ];
    let names = table.iter().map(|(name, ..)| *name);
    pair.put("web", json!({
        "workload": {"manifests": names.map(|name| pair.map(name, "1")).collect::<Vec<_>>()},
        "manifestConfigs": table.iter().map(|(name, feedback, ..)| config(&pair, name, &rules(feedback.clone()))).collect::<Vec<_>>(),
    }))
    .await;
    for (ordinal, (_, _, values, line)) in table.iter().enumerate() {
        let expected = [HEALTHY[0], HEALTHY[1], line];
        let work = pair
            .until_says("web", Of::Manifest(ordinal), &expected)
            .await;
        let manifest = serde_json::to_value(&manifests(&work)[ordinal]).unwrap();
        let found = manifest["statusFeedback"]["values"].as_array().cloned();
        let found: Vec<_> = found.unwrap_or_default();
        let found: Vec<_> = found.iter().map(|value| &value["name"]).collect();
        assert_eq!(found, *values, "what did resolve is still reported");
    }
}

async fn a_status_is_carried_across_edits(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let feedback = json!({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}]});
    let spec = |names: [&str; 2], value: &str| {
        json!({
            "workload": {"manifests": names.map(|name| pair.map(name, value))},
            "manifestConfigs": [config(&pair, "moved", &feedback)],
        })
    };
    pair.put("web", spec(["replaced", "moved"], "1")).await;
    let before = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let edited = next_second().await;
    pair.put("web", spec(["moved", "new"], "1")).await;
    let after = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;

    // It moved and is the same: what holds whatever is asked for comes first, and has not turned.
    let synced = "StatusFeedbackSynced=True StatusFeedbackSynced: ";
    assert_eq!(
        lines(&after, Of::Manifest(0)),
        [HEALTHY[1], synced, HEALTHY[0]]
    );
    let first = &conditions(&after, Of::Manifest(0))[0];
    assert!(first.last_transition_time.0 < edited.0, "{first:?}");
    assert!(turned(&after, Of::Manifest(0), "Applied").0 >= floor(&edited));
    let value = serde_json::to_value(&manifests(&after)[0]).unwrap();
    assert_eq!(
        value["statusFeedback"]["values"][0]["fieldValue"]["string"],
        "1"
    );
    // This one is new, and all it says too. Nothing is left of the one that it replaced.
    assert_eq!(lines(&after, Of::Manifest(1)), HEALTHY);
    let first = &conditions(&after, Of::Manifest(1))[0];
    assert!(first.last_transition_time.0 >= floor(&edited), "{first:?}");
    assert_eq!(manifests(&after).len(), 2);
    // The work as a whole is as well as before, in a new generation.
    for type_ in ["Applied", "Available"] {
        let (then, now) = (
            turned(&before, Of::Work, type_),
            turned(&after, Of::Work, type_),
        );
        assert_eq!(then, now, "{type_}");
    }

    // New values are a transition, from good to good.
    let edited = next_second().await;
    pair.put("web", spec(["moved", "new"], "2")).await;
    let work = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let turned = |type_| turned(&work, Of::Manifest(0), type_);
    assert!(turned("StatusFeedbackSynced").0 >= floor(&edited));
    assert!(turned("Available").0 < edited.0);
}

fn floor(
    time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
) -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::from_second(time.0.as_second()).unwrap()
}

/// Secrets can be written and not be seen; Services can be read one by one.
async fn a_kind_that_may_not_be_seen_costs_only_itself(lab: Arc<Lab>) {
    let plane = lab.spoke().await;
    let admin = plane.client().await;
    let home = lab.unique_name("home");
    create::<Namespace>(
        &Api::all(admin.clone()),
        &json!({"metadata": {"name": home}}),
    )
    .await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &home);
    create(&accounts, &json!({"metadata": {"name": "agent"}})).await;
    let role = json!({
        "metadata": {"name": home},
        "rules": [
            {"apiGroups": ["work.open-cluster-management.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["services"], "verbs": ["create", "patch", "delete", "get"]},
        ],
    });
    create::<ClusterRole>(&Api::all(admin.clone()), &role).await;
    let binding = json!({
        "metadata": {"name": home},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": home},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": home}],
    });
    create::<ClusterRoleBinding>(&Api::all(admin.clone()), &binding).await;
    let kubeconfig = plane.kubeconfig_for_service_account(&home, "agent").await;
    let pair = Pair::start_on(&lab, plane, &kubeconfig, &[]).await;

    let secret = |name: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": pair.cluster},
            "data": {"key": value},
        })
    };
    let blind = |value: &str| {
        json!({
            "workload": {"manifests": [secret("read", value), secret("written", value), pair.map("beside", value)]},
            "manifestConfigs": [{
                "resourceIdentifier": {"resource": "secrets", "name": "read", "namespace": pair.cluster},
                "updateStrategy": {"type": "ReadOnly"},
            }],
        })
    };
    let service = |port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "unwatched", "namespace": pair.cluster},
            "spec": {"clusterIP": "None", "ports": [{"port": port}]},
        })
    };
    pair.put("blind", blind("MQ==")).await;
    pair.put_manifests("unwatched", &[service(80)]).await;
    pair.put_manifests("seen", &[pair.map("seen", "1")]).await;

    let refused = format!(
        "Available=Unknown FetchingResourceFailed: Failed to fetch resource: secrets \"read\" is forbidden: \
         User \"system:serviceaccount:{home}:agent\" cannot get resource \"secrets\" in API group \"\" in the namespace \"{}\"",
        pair.cluster
    );
    let unseen = [HEALTHY[0], &refused, HEALTHY[2]];
    let work = pair.until_says("blind", Of::Manifest(0), &unseen).await;
    let unknown =
        "Available=Unknown ResourcesStatusUnknown @now: 1 of 3 resources have unknown status";
    assert_eq!(lines(&work, Of::Work), [ALL_IS_WELL[0], unknown]);
    // The answer to a write shows what was written.
    assert_eq!(lines(&work, Of::Manifest(1)), HEALTHY);
    assert_eq!(lines(&work, Of::Manifest(2)), HEALTHY);
    pair.until_says("unwatched", Of::Work, &ALL_IS_WELL).await;
    pair.until_says("seen", Of::Work, &ALL_IS_WELL).await;

    // What is asked for is written all the same.
    pair.put("blind", blind("Mg==")).await;
    pair.put_manifests("unwatched", &[service(81)]).await;
    let (secrets, services) = (
        pair.objects("v1", "Secret", true),
        pair.objects("v1", "Service", true),
    );
    pair.until_object("the Secret to follow", &secrets, "written", |found| {
        found["data"]["key"] == "Mg=="
    })
    .await;
    pair.until_object("the Service to follow", &services, "unwatched", |found| {
        found["spec"]["ports"][0]["port"] == 81
    })
    .await;
    // And the others are looked after as ever.
    let maps = pair.objects("v1", "ConfigMap", true);
    let wrong = json!({"data": {"key": "wrong"}});
    pair.edit(&maps, "seen", &wrong).await;
    pair.until_object("drift to be repaired", &maps, "seen", |found| {
        found["data"]["key"] == "1"
    })
    .await;
    pair.delete("unwatched").await;
    assert!(services.get_opt("unwatched").await.unwrap().is_none());
    pair.delete("seen").await;
}

async fn create<K>(api: &Api<K>, object: &Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object.clone()).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}
