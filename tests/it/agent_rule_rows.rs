//! Every outcome of a condition rule, which rules are an object's, and what completion means for one manifest.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    agent_pair::Pair,
    agent_report::{ALL_IS_WELL, HEALTHY, Of, lines},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        every_outcome_of_a_rule_has_its_words,
        the_hub_takes_no_rule_of_another_type,
        a_rule_may_decide_what_available_means,
        jobs_and_pods_complete,
        each_attribute_comes_from_the_first_option_that_has_it,
        one_manifest_is_frozen_and_the_other_is_not,
);

async fn every_outcome_of_a_rule_has_its_words(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let cel = |expressions: &[&str]| json!({"celExpressions": expressions});
    let saying = |field: &str, text: &str| json!({"celExpressions": ["true"], "message": "own", field: text});
    let holds = "object.data.key == '1'";
    // A rule, and what follows its condition's name.
    let table = [
        (cel(&[]), "=True ConditionRuleEvaluated @now: Manifest is R"),
        (
            cel(&[holds, "object.kind == 'ConfigMap'"]),
            "=True ConditionRuleEvaluated @now: Manifest is R",
        ),
        // The first that is false is the last that is asked.
        (
            cel(&[holds, "false", "object.missing"]),
            "=False ConditionRuleEvaluated @now: Manifest is not R",
        ),
        (
            cel(&["object.missing"]),
            "=False ConditionRuleExpressionError @now: no such key: missing",
        ),
        (
            cel(&["object.metadata.name"]),
            "=False ConditionRuleExpressionError @now: expected bool result, got string",
        ),
        (
            cel(&["nope == 1"]),
            "=False ConditionRuleExpressionError @now: \
             ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope == 1\n | ^",
        ),
        (
            saying("message", "own"),
            "=True ConditionRuleEvaluated @now: own",
        ),
        (
            saying(
                "messageExpression",
                "result ? 'yes ' + object.data.key : 'no'",
            ),
            "=True ConditionRuleEvaluated @now: yes 1",
        ),
        (
            saying("messageExpression", "''"),
            "=True ConditionRuleEvaluated @now: own",
        ),
        // A message that cannot be had changes nothing about the result.
        (
            saying("messageExpression", "object.missing"),
            "=True ConditionRuleEvaluated @now: no such key: missing",
        ),
        (
            saying("messageExpression", "1"),
            "=True ConditionRuleEvaluated @now: expected message expression to have a string result, got int64",
        ),
        (
            saying("messageExpression", "nope"),
            "=True ConditionRuleEvaluated @now: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')",
        ),
        // What it would look at is in the libraries of Kubernetes' CEL.
        (
            cel(&["!hasConditions(object.data) && quantity('1').isGreaterThan(quantity('500m'))"]),
            "=True ConditionRuleEvaluated @now: Manifest is R",
        ),
    ];
    let mut rules: Vec<Value> = Vec::new();
    let mut expected: Vec<String> = HEALTHY.iter().map(ToString::to_string).collect();
    for (number, (rule, line)) in table.iter().enumerate() {
        let name = format!("R{number}");
        let mut rule = rule.clone();
        rule["condition"] = name.clone().into();
        rule["type"] = "CEL".into();
        rules.push(rule);
        expected.push(format!("{name}{}", line.replace(" R", &format!(" {name}"))));
    }
    // A pair that is not well known gives no condition, and no error.
    rules.push(json!({"condition": "Complete", "type": "WellKnownConditions"}));
    pair.put("web", pair.with_rules("one", &json!(rules))).await;
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let work = pair.until_says("web", Of::Manifest(0), &expected).await;
    let work = lines(&work, Of::Work);
    assert_eq!(work[..2], ALL_IS_WELL, "no rule fails an apply");
}

async fn the_hub_takes_no_rule_of_another_type(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let refused = async |rule: Value| {
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": pair.named("web")},
            "spec": pair.with_rules("one", &json!([rule])),
        });
        let params = PatchParams::apply("somebody");
        let answer = pair
            .works()
            .patch(&pair.named("web"), &params, &Patch::Apply(work))
            .await;
        answer.unwrap_err().to_string()
    };
    let error = refused(json!({"condition": "A", "type": "Magic"})).await;
    assert!(error.contains("Unsupported value: \"Magic\""), "{error}");
    let error = refused(json!({"condition": "", "type": "CEL"})).await;
    assert!(error.contains("conditionRules"), "{error}");
}

async fn a_rule_may_decide_what_available_means(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let rule = json!([{"condition": "Available", "type": "CEL", "celExpressions": ["object.data.key == '2'"]}]);
    pair.put("web", pair.with_rules("one", &rule)).await;
    let expected = [
        HEALTHY[0],
        HEALTHY[2],
        "Available=False ConditionRuleEvaluated @now: Manifest is not Available",
    ];
    let work = pair.until_says("web", Of::Manifest(0), &expected).await;
    let missing = "Available=False ResourcesNotAvailable @now: 1 of 1 resources are not available";
    assert_eq!(lines(&work, Of::Work), [ALL_IS_WELL[0], missing]);
}

async fn jobs_and_pods_complete(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let pod_spec = json!({
        "restartPolicy": "Never", "automountServiceAccountToken": false,
        "containers": [{"name": "a", "image": "a:1"}],
    });
    let job = |name: &str, spec: Value| {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": pair.cluster},
            "spec": {"template": {"spec": pod_spec}},
        });
        let fields = job["spec"].as_object_mut().unwrap();
        fields.extend(spec.as_object().unwrap().clone());
        job
    };
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": pair.cluster}, "spec": pod_spec,
        })
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": pair.cluster}});
    let rule = |group: &str, resource: &str, name: &str, more: Value| {
        let mut rule = json!({"condition": "Complete", "type": "WellKnownConditions", "message": "has no say"});
        let fields = rule.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        json!({
            "resourceIdentifier": {"group": group, "resource": resource, "name": name, "namespace": pair.cluster},
            "conditionRules": [rule],
        })
    };
    pair.put("web", json!({
        "workload": {"manifests": [
            job("done", json!({"completions": 0})),
            job("failed", json!({"parallelism": 0, "activeDeadlineSeconds": 1})),
            job("waiting", json!({"suspend": true})),
            pod("new"),
            pod("over"),
            account,
        ]},
        "manifestConfigs": [
            rule("batch", "jobs", "*", json!({})),
            rule("", "pods", "new", json!({})),
            rule("", "pods", "over", json!({"messageExpression": "object.metadata.name + (result ? ' is over' : ' goes on')"})),
        ],
    }))
    .await;
    let says = async |ordinal: usize, line: &str| {
        let expected = [HEALTHY[0], HEALTHY[1], HEALTHY[2], line];
        pair.until_says("web", Of::Manifest(ordinal), &expected)
            .await
    };
    let waiting = "Complete=False ConditionRuleEvaluated @now: Job is not finished";
    says(2, waiting).await;
    says(
        3,
        "Complete=False ConditionRuleEvaluated @now: Pod is in phase Pending",
    )
    .await;
    says(
        4,
        "Complete=False ConditionRuleEvaluated @now: over goes on",
    )
    .await;
    let finished = "Complete=True ConditionRuleEvaluated @now: Job is finished";
    says(0, finished).await;
    says(1, finished).await;

    let pods = pair.objects("v1", "Pod", true);
    for (name, phase) in [("new", "Failed"), ("over", "Succeeded")] {
        let phase = Patch::Merge(json!({"status": {"phase": phase}}));
        pods.patch_status(name, &PatchParams::default(), &phase)
            .await
            .unwrap();
    }
    says(
        3,
        "Complete=True ConditionRuleEvaluated @now: Pod is in phase Failed",
    )
    .await;
    let work = says(4, "Complete=True ConditionRuleEvaluated @now: over is over").await;
    // One of five is not complete, so the work is not.
    let all = "Complete=False ConditionRulesAggregated @now: Aggregated from 5 manifest conditions";
    let work = lines(&work, Of::Work);
    assert!(work.contains(&all.to_owned()), "{work:#?}");
}

async fn each_attribute_comes_from_the_first_option_that_has_it(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let option = |resource: &str, namespace: &str, name: &str, more: Value| {
        let mut option = json!({
            "resourceIdentifier": {"group": "", "resource": resource, "name": name, "namespace": namespace},
        });
        let fields = option.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        option
    };
    let condition = |name: &str| json!({"conditionRules": [{"condition": name, "type": "CEL"}]});
    let value = |name: &str| json!({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": name, "path": ".metadata.name"}]}]});
    let mut second = condition("Second");
    second["feedbackRules"] = value("second")["feedbackRules"].clone();
    let mut third = value("third");
    third["updateStrategy"] = json!({"type": "ReadOnly"});
    let names = ["web-1", "web-2", "api-1", "webx", "w.b"];
    pair.put(
        "web",
        json!({
            "workload": {"manifests": names.map(|name| pair.map(name, "1"))},
            "manifestConfigs": [
                option("configmaps", "*", "nothing*", condition("Nothing")),
                option("secrets", "*", "*", condition("Nothing")),
                option("configmaps", "elsewhere", "*", condition("Nothing")),
                option("configmaps", "*", "web-*", condition("First")),
                option("configmaps", &pair.cluster, "*1", second),
                option("configmaps", "edge*", "w?bx", condition("Nothing")),
                option("configmaps", "edge*", "w.b", third),
                option("configmaps", "edge*", "w*", value("third")),
            ],
        }),
    )
    .await;
    let (first, second) = (
        "First=True ConditionRuleEvaluated @now: Manifest is First",
        "Second=True ConditionRuleEvaluated @now: Manifest is Second",
    );
    let (synced, absent) = (
        "StatusFeedbackSynced=True StatusFeedbackSynced: ",
        "Available=False ResourceNotAvailable: Resource is not available",
    );
    let expected: [(&[&str], &str); 4] = [
        (&[HEALTHY[0], HEALTHY[1], synced, first], "second"),
        (&[HEALTHY[0], HEALTHY[1], synced, first], "third"),
        (&[HEALTHY[0], HEALTHY[1], synced, second], "second"),
        (&[HEALTHY[0], HEALTHY[1], synced], "third"),
    ];
    for (ordinal, (conditions, value)) in expected.into_iter().enumerate() {
        let work = pair
            .until_says("web", Of::Manifest(ordinal), conditions)
            .await;
        let status = serde_json::to_value(&work.status).unwrap();
        let feedback = &status["resourceStatus"]["manifests"][ordinal]["statusFeedback"];
        let found: Vec<_> = feedback["values"].as_array().unwrap().iter().collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["name"], value, "{ordinal}");
    }
    // A dot is a dot: only one name is read and not written.
    let name = pair.named("web");
    let work = pair.works().get(&name).await.unwrap();
    assert_eq!(lines(&work, Of::Manifest(4))[..2], [HEALTHY[0], absent]);
}

async fn one_manifest_is_frozen_and_the_other_is_not(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let spec = |more: &str| {
        let manifests = [("done", "1"), ("open", "2")].map(|(name, key)| {
            let mut map = pair.map(name, key);
            map["data"]["more"] = more.into();
            map
        });
        json!({
            "workload": {"manifests": manifests},
            "manifestConfigs": [{
                "resourceIdentifier": {"resource": "configmaps", "name": "*", "namespace": "*"},
                "conditionRules": [{"condition": "Complete", "type": "CEL", "celExpressions": ["object.data.key == '1'"]}],
            }],
        })
    };
    pair.put("web", spec("1")).await;
    pair.until("web", "Complete", "False").await;
    pair.put("web", spec("2")).await;
    pair.until("web", "Complete", "False").await;
    let work = pair.until("web", "Applied", "True").await;
    let complete = "Complete=True ConditionRuleEvaluated @now: Manifest is Complete".to_owned();
    assert!(
        lines(&work, Of::Manifest(0)).contains(&complete),
        "{work:#?}"
    );
    let maps = pair.objects("v1", "ConfigMap", true);
    let more = async |name: &str| maps.get(name).await.unwrap().data["data"]["more"].clone();
    assert_eq!(
        (more("done").await, more("open").await),
        (json!("1"), json!("2"))
    );

    // Nor is it repaired. The other one is, and it was changed later.
    let wrong = json!({"data": {"more": "wrong"}});
    pair.edit(&maps, "done", &wrong).await;
    pair.edit(&maps, "open", &wrong).await;
    pair.until_object("the open one to be repaired", &maps, "open", |found| {
        found["data"]["more"] == "2"
    })
    .await;
    assert_eq!(more("done").await, "wrong");
}
