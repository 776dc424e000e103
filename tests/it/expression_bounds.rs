//! Expressions that would run for ever or take all memory, in real child processes.

use std::{fs, future::Future, path::PathBuf, time::Duration};

use gitspoke::{
    api::work::config::{
        ConditionRule, ConditionRuleType, FeedbackRule, FeedbackType, IgnoreField, JsonPath,
    },
    expression::{
        feedback::FeedbackOptions,
        rules::RuleStatus,
        sandbox::{Evaluator, Settings},
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{harness::cases, servers::wait::until};

cases!(
    plain:
        answers_are_those_of_the_plain_functions,
        an_endless_jq_expression_is_stopped,
        a_jq_expression_that_eats_memory_is_stopped,
        a_jq_expression_that_nests_for_ever_is_stopped,
        a_cel_rule_that_explodes_is_stopped_and_the_others_are_answered,
        a_cel_rule_that_eats_memory_is_stopped,
        a_json_path_that_explodes_is_stopped_and_the_others_are_answered,
        the_environment_is_not_readable,
        children_are_reused_bounded_and_end_with_the_evaluator,
        a_request_that_is_given_up_leaves_no_child,
        an_object_that_is_too_large_is_refused,
        a_program_that_does_not_exist_is_said_so;
    kubernetes:
);

/// The deadline of an expression, and time for a busy machine to start a child and to kill it.
const SOON: Duration = Duration::from_secs(6);

/// A deadline so long that only the limit on memory can strike before it, however busy the machine is.
const PATIENT: Duration = Duration::from_mins(1);

/// What this process may grow by while children explode. They may take 256 MiB each.
const GROWTH: u64 = 64 << 20;

const OPTIONS: FeedbackOptions = FeedbackOptions {
    raw_json: false,
    max_raw_length: 1024,
};

fn on_runtime<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(body)
}

fn evaluator() -> Evaluator {
    Evaluator::new(Settings {
        executable: PathBuf::from(env!("CARGO_BIN_EXE_gitspoke")),
        ..Settings::default()
    })
}

/// For expressions that are to be stopped by what they take, not by how long they take.
fn patient() -> Evaluator {
    Evaluator::new(Settings {
        executable: PathBuf::from(env!("CARGO_BIN_EXE_gitspoke")),
        deadline: PATIENT,
        ..Settings::default()
    })
}

fn object() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "list": [1, 2, 3]},
    })
}

fn rule(condition: &str, expression: &str) -> ConditionRule {
    ConditionRule {
        condition: condition.to_owned(),
        type_: ConditionRuleType::CEL,
        cel_expressions: Some(vec![expression.to_owned()]),
        message: None,
        message_expression: None,
    }
}

fn paths(paths: &[(&str, &str)]) -> [FeedbackRule; 1] {
    let paths = paths.iter().map(|(name, path)| JsonPath {
        name: (*name).to_owned(),
        version: None,
        path: (*path).to_owned(),
    });
    [FeedbackRule {
        type_: FeedbackType::JSONPaths,
        json_paths: Some(paths.collect()),
    }]
}

fn jq(expression: &str) -> [IgnoreField; 1] {
    [IgnoreField {
        condition: None,
        json_paths: None,
        json_pointers: None,
        jq_path_expressions: Some(vec![expression.to_owned()]),
    }]
}

/// Runs what is to be stopped, and checks that this process neither waited nor grew.
async fn bounded<T>(within: Duration, stopped: impl Future<Output = T>) -> T {
    let before = resident();
    let start = Instant::now();
    let outcome = stopped.await;
    let took = start.elapsed();
    assert!(took < within, "took {took:?}");
    let after = resident();
    assert!(after < before + GROWTH, "grew from {before} to {after}");
    outcome
}

async fn still_works(evaluator: &Evaluator) {
    let stripped = evaluator.strip(object(), &jq(".spec")).await.unwrap();
    assert_eq!(stripped.get("spec"), None);
    let answers = evaluator
        .conditions(&object(), &[rule("A", "object.spec.replicas == 3")])
        .await;
    assert_eq!(answers[0].status, RuleStatus::True);
}

fn answers_are_those_of_the_plain_functions() {
    on_runtime(async {
        use gitspoke::expression::{feedback::feedback, ignore::strip, rules::conditions};
        let (evaluator, object) = (evaluator(), object());
        let rules = [
            rule("A", "object.spec.replicas > 2"),
            rule("B", "object.none"),
            ConditionRule {
                type_: ConditionRuleType::WellKnownConditions,
                ..rule("Complete", "")
            },
            rule("C", "("),
        ];
        let answers = evaluator.conditions(&object, &rules).await;
        assert_eq!(answers, conditions(&object, &rules));

        let rules = paths(&[
            ("a", "..replicas"),
            ("b", ".spec.list"),
            ("c", ".kind"),
            ("d", "["),
        ]);
        let answer = evaluator.feedback(&object, &rules, OPTIONS).await;
        assert_eq!(answer, feedback(&object, &rules, OPTIONS));

        for expression in [".spec.list[0]", "nonsense"] {
            let fields = jq(expression);
            let stripped = evaluator.strip(object.clone(), &fields).await;
            assert_eq!(stripped, strip(object.clone(), &fields));
        }
    });
}

fn an_endless_jq_expression_is_stopped() {
    stops_jq(
        "def f: f; f",
        &["stopped after 1s", "stopped at 256 MiB of memory"],
    );
    stops_jq("select(last(range(1e12)) > 0)", &["stopped after 1s"]);
}

fn a_jq_expression_that_eats_memory_is_stopped() {
    stops_jq(
        "select([range(1e12)] | length > 0)",
        &["stopped at 256 MiB of memory", "stopped after 1s"],
    );
    stops_jq_within(
        &patient(),
        PATIENT / 2,
        "select(reduce range(60) as $i (\"x\"; . + .) | length > 0)",
        &["stopped at 256 MiB of memory"],
    );
}

fn a_jq_expression_that_nests_for_ever_is_stopped() {
    stops_jq(
        "select(def f: 1 + f; f)",
        &["stopped at 256 MiB of memory", "stopped after 1s"],
    );
}

fn stops_jq(expression: &str, texts: &[&str]) {
    stops_jq_within(&evaluator(), SOON, expression, texts);
}

fn stops_jq_within(evaluator: &Evaluator, within: Duration, expression: &str, texts: &[&str]) {
    on_runtime(async {
        let error = bounded(within, evaluator.strip(object(), &jq(expression)))
            .await
            .unwrap_err();
        let start = format!("JQ expression error in '{expression}': ");
        let text = error.strip_prefix(&start).unwrap_or(&error);
        assert!(texts.contains(&text), "{error}");
        still_works(evaluator).await;
    });
}

fn a_cel_rule_that_explodes_is_stopped_and_the_others_are_answered() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let all = (0..12).fold("true".to_owned(), |inner, depth| {
        format!("{list}.all(x{depth}, {inner})")
    });
    stops_cel(&evaluator(), SOON, &all);
}

fn a_cel_rule_that_eats_memory_is_stopped() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let map = (0..9).fold("'0123456789'".to_owned(), |inner, depth| {
        format!("{list}.map(x{depth}, {inner})")
    });
    stops_cel(&patient(), PATIENT / 2, &format!("size({map}) == 0"));
}

fn stops_cel(evaluator: &Evaluator, within: Duration, expression: &str) {
    on_runtime(async {
        let rules = [
            rule("A", "object.spec.replicas == 3"),
            rule("B", expression),
            rule("C", "object.metadata.name == 'web'"),
        ];
        let answers = bounded(within, evaluator.conditions(&object(), &rules)).await;
        let short: Vec<_> = answers
            .iter()
            .map(|answer| {
                (
                    answer.status,
                    answer.reason.as_str(),
                    answer.message.as_str(),
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                (RuleStatus::True, "ConditionRuleEvaluated", "Manifest is A"),
                (
                    RuleStatus::False,
                    "ConditionRuleExpressionError",
                    "CEL evaluation budget exceeded"
                ),
                (RuleStatus::True, "ConditionRuleEvaluated", "Manifest is C"),
            ]
        );
        still_works(evaluator).await;
    });
}

fn a_json_path_that_explodes_is_stopped_and_the_others_are_answered() {
    on_runtime(async {
        let evaluator = evaluator();
        let mut deep = json!({"kind": "Deep", "leaf": 1});
        for _ in 0..90 {
            deep = json!({"kind": "Deep", "a": deep});
        }
        let bomb = "..a".repeat(12);
        let rules = paths(&[("one", ".kind"), ("bomb", &bomb), ("leaf", "..leaf")]);
        let answer = bounded(SOON, evaluator.feedback(&deep, &rules, OPTIONS)).await;
        let names: Vec<_> = answer.values.iter().map(|value| &value.name).collect();
        assert_eq!(names, ["one", "leaf"]);
        let [error] = answer.errors.as_slice() else {
            panic!("{answer:?}")
        };
        let stopped = error.strip_prefix("failed to find value for bomb with error: stopped ");
        assert!(stopped.is_some(), "{error}");
        still_works(&evaluator).await;
    });
}

fn the_environment_is_not_readable() {
    on_runtime(async {
        let fields = jq(".spec | select(env | length > 0)");
        let stripped = evaluator().strip(object(), &fields).await.unwrap();
        assert_eq!(stripped, object());
    });
}

fn children_are_reused_bounded_and_end_with_the_evaluator() {
    on_runtime(async {
        let evaluator = evaluator();
        let mut seen = Vec::new();
        for _ in 0..20 {
            let (one, other) = (evaluator.clone(), evaluator.clone());
            tokio::join!(still_works(&one), still_works(&other), still_works(&one));
            seen.extend(children());
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(!seen.is_empty(), "no child was seen");
        drop(evaluator);
        gone(&seen).await;
    });
}

fn a_request_that_is_given_up_leaves_no_child() {
    on_runtime(async {
        let evaluator = evaluator();
        let fields = jq("select(last(range(1e12)) > 0)");
        let endless = evaluator.strip(object(), &fields);
        let given_up = tokio::time::timeout(Duration::from_millis(500), endless).await;
        assert!(given_up.is_err());
        still_works(&evaluator).await;
        let left = children();
        drop(evaluator);
        gone(&left).await;
    });
}

fn an_object_that_is_too_large_is_refused() {
    on_runtime(async {
        let mut large = object();
        large["text"] = json!("x".repeat(5 << 20));
        let answers = evaluator().conditions(&large, &[rule("A", "true")]).await;
        assert_eq!(answers[0].status, RuleStatus::Unknown);
        assert_eq!(answers[0].reason, "ConditionRuleInternalError");
        assert!(answers[0].message.contains("are too many"), "{answers:?}");
    });
}

fn a_program_that_does_not_exist_is_said_so() {
    on_runtime(async {
        let evaluator = Evaluator::new(Settings {
            executable: PathBuf::from("/no/such/program"),
            ..Settings::default()
        });
        let error = evaluator.strip(object(), &jq(".spec")).await.unwrap_err();
        assert!(error.contains("could not be evaluated: "), "{error}");
    });
}

/// Evaluating children of any test of this process.
fn children() -> Vec<u32> {
    let me = std::process::id();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1));
        parent == Some(me.to_string().as_str())
            && String::from_utf8_lossy(&line).contains("evaluate-expressions")
    })
    .collect()
}

/// Waits until none of these runs. One that was killed and not yet waited for does not run.
async fn gone(ids: &[u32]) {
    until("children end", Duration::from_secs(30), async || {
        let runs = |id: &&u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
        };
        let left: Vec<_> = ids.iter().filter(runs).collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?} run"))
        }
    })
    .await;
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}
