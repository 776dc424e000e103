//! Conditions that a work derives from a live object.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    cel::{self, Scope},
    feedback::identity,
};
use crate::api::work::config::{ConditionRule, ConditionRuleType};

/// Kubernetes refuses a condition with a longer message, and with it the whole status.
const LONGEST_MESSAGE: usize = 32_768;

const EVALUATED: &str = "ConditionRuleEvaluated";
const EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
const INTERNAL_ERROR: &str = "ConditionRuleInternalError";
const INVALID: &str = "ConditionRuleInvalid";

/// What a rule says about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleAnswer {
    /// Type of the condition.
    pub condition: String,
    /// Whether it holds.
    pub status: RuleStatus,
    /// Reason, for programs.
    pub reason: String,
    /// Message, for people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleStatus {
    /// It does.
    True,
    /// It does not, or its expressions failed.
    False,
    /// The rule could not be evaluated.
    Unknown,
}

/// Derives the conditions of rules. A well-known condition that its kind does not have gives no answer.
pub fn conditions(object: &Value, rules: &[ConditionRule]) -> Vec<RuleAnswer> {
    rules
        .iter()
        .filter_map(|rule| condition(object, rule))
        .collect()
}

/// Derives the condition of one rule.
pub(super) fn condition(object: &Value, rule: &ConditionRule) -> Option<RuleAnswer> {
    let rule = match &rule.type_ {
        ConditionRuleType::CEL => rule.clone(),
        ConditionRuleType::WellKnownConditions => well_known(object, rule)?,
        ConditionRuleType::Other(type_) => {
            let message = format!("unrecognized condition rule type {type_}");
            return Some(answer(rule, RuleStatus::Unknown, INVALID, message));
        }
    };
    Some(evaluate(object, &rule))
}

/// Whether evaluating a rule takes no longer than the object is large: no expression in it is the user's.
pub(super) fn is_bounded(rule: &ConditionRule) -> bool {
    match rule.type_ {
        ConditionRuleType::CEL => false,
        ConditionRuleType::WellKnownConditions => rule.message_expression.is_none(),
        ConditionRuleType::Other(_) => true,
    }
}

/// The answer for a rule that was stopped; cel-go's word for it, whose budget counts steps where ours is time and memory.
pub(super) fn over_budget(rule: &ConditionRule) -> RuleAnswer {
    let message = "CEL evaluation budget exceeded".to_owned();
    answer(rule, RuleStatus::False, EXPRESSION_ERROR, message)
}

/// The answer for a rule that could not be evaluated through no fault of its own.
pub(super) fn not_evaluated(rule: &ConditionRule, error: String) -> RuleAnswer {
    answer(rule, RuleStatus::Unknown, INTERNAL_ERROR, error)
}

fn answer(
    rule: &ConditionRule,
    status: RuleStatus,
    reason: &str,
    mut message: String,
) -> RuleAnswer {
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    RuleAnswer {
        condition: rule.condition.clone(),
        status,
        reason: reason.to_owned(),
        message,
    }
}

/// The built-in rule of a kind. Its message is an expression, so a rule's plain message has no say; that is how Open
/// Cluster Management has it.
fn well_known(object: &Value, rule: &ConditionRule) -> Option<ConditionRule> {
    let (expression, message) = match (identity(object), rule.condition.as_str()) {
        (("batch", "v1", "Job"), "Complete") => (
            "hasConditions(object.status) && object.status.conditions.exists(c, \
             (c.type == 'Complete' || c.type == 'Failed') && c.status == 'True')",
            "result ? 'Job is finished' : 'Job is not finished'",
        ),
        (("", "v1", "Pod"), "Complete") => (
            "object.status.phase in ['Succeeded', 'Failed']",
            "'Pod is in phase ' + object.status.phase",
        ),
        _ => return None,
    };
    let own = rule
        .message_expression
        .clone()
        .filter(|own| !own.is_empty());
    Some(ConditionRule {
        cel_expressions: Some(vec![expression.to_owned()]),
        message_expression: Some(own.unwrap_or_else(|| message.to_owned())),
        ..rule.clone()
    })
}

fn evaluate(object: &Value, rule: &ConditionRule) -> RuleAnswer {
    let scope = Scope::new(object);
    match holds(&scope, rule) {
        Err(error) => answer(rule, RuleStatus::False, EXPRESSION_ERROR, error),
        Ok(result) => {
            let status = if result {
                RuleStatus::True
            } else {
                RuleStatus::False
            };
            let message = message(scope, rule, result);
            answer(rule, status, EVALUATED, message)
        }
    }
}

/// Evaluates expressions up to the first that is false.
fn holds(scope: &Scope, rule: &ConditionRule) -> Result<bool, String> {
    for expression in rule.cel_expressions.iter().flatten() {
        match scope
            .evaluate(expression)
            .map_err(|error| error.to_string())?
        {
            kube_cel::cel::Value::Bool(true) => {}
            kube_cel::cel::Value::Bool(false) => return Ok(false),
            other => {
                return Err(format!(
                    "expected bool result, got {}",
                    cel::go_type(&other)
                ));
            }
        }
    }
    Ok(true)
}

fn message(scope: Scope, rule: &ConditionRule, result: bool) -> String {
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(expression) = set(&rule.message_expression) {
        match scope.with_result(result).evaluate(&expression) {
            Ok(kube_cel::cel::Value::String(text)) if text.is_empty() => {}
            Ok(kube_cel::cel::Value::String(text)) => return text.to_string(),
            Ok(other) => {
                return format!(
                    "expected message expression to have a string result, got {}",
                    cel::go_type(&other)
                );
            }
            Err(cel::Error::Compile(error)) => {
                return error.lines().next().unwrap_or_default().to_owned();
            }
            Err(cel::Error::Run(error)) => return error,
        }
    }
    set(&rule.message).unwrap_or_else(|| {
        let not = if result { "" } else { "not " };
        format!("Manifest is {not}{}", rule.condition)
    })
}

#[cfg(test)]
mod tests {
    use RuleStatus::{False, True, Unknown};
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "test", "labels": {}},
            "spec": {"replicas": 3, "cpu": "500m", "image": "example.com/app:1.2.3"},
            "status": {"readyReplicas": 1, "replicas": 2,
                "conditions": [{"type": "Available", "status": "True"}]},
        })
    }

    fn rule(expressions: &[&str], message: &str, message_expression: &str) -> ConditionRule {
        ConditionRule {
            condition: "Fine".to_owned(),
            type_: ConditionRuleType::CEL,
            cel_expressions: Some(expressions.iter().map(ToString::to_string).collect()),
            message: Some(message.to_owned()),
            message_expression: Some(message_expression.to_owned()),
        }
    }

    fn check(rule: ConditionRule, status: RuleStatus, reason: &str, message: &str) {
        let shown = format!("{rule:?}");
        let answers = conditions(&deployment(), &[rule]);
        let [answer] = answers.as_slice() else {
            panic!("{answers:?}")
        };
        assert_eq!(
            (
                answer.status,
                answer.reason.as_str(),
                answer.message.as_str()
            ),
            (status, reason, message),
            "{shown}"
        );
    }

    #[test]
    fn expressions_hold_together_or_not() {
        let holds = [
            "object.spec.replicas == 3",
            "object.status.replicas + 1 >= 3",
        ];
        check(rule(&[], "", ""), True, EVALUATED, "Manifest is Fine");
        check(rule(&holds, "", ""), True, EVALUATED, "Manifest is Fine");
        check(
            rule(&["false", "object.missing"], "", ""),
            False,
            EVALUATED,
            "Manifest is not Fine",
        );
        for expression in [
            "hasConditions(object.status) && !hasConditions({}) && !hasConditions('no') \
             && !hasConditions({'conditions': []}) && !hasConditions({'conditions': null})",
            "object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
            "has(object.status.replicas) && !has(object.status.none)",
            "object.status[?'none'].orValue('x') == 'x'",
            "object.?status.?none.orValue('x') == 'x' && object.?none.?deeper.orValue(1) == 1",
            "object.?status.replicas.orValue(0) == 2 && !object.?none.deeper.hasValue()",
            "object.status.conditions.all(c, c.?reason.orValue('') == '') && dyn(1) == 1",
            "quantity(object.spec.cpu).isLessThan(quantity('1'))",
            "object.spec.image.find('[0-9.]+$') == '1.2.3'",
            "semver('1.2.3').isLessThan(semver('2.0.0'))",
            "url('https://example.com:80/').getPort() == '80'",
            "isIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP('10.0.0.1')",
            "[1, 2, 3].sum() == 6 && 'a,b'.split(',')[1] == 'b'",
            "'%s is %d'.format(['x', 1]) == 'x is 1'",
            "!format.dns1123Label().validate('web').hasValue()",
        ] {
            check(
                rule(&[expression], "", ""),
                True,
                EVALUATED,
                "Manifest is Fine",
            );
        }
    }

    #[test]
    fn failing_expressions_are_false_with_the_error() {
        for (expression, message) in [
            ("object.missing", "no such key: missing"),
            ("object.metadata.name", "expected bool result, got string"),
            ("object.spec.replicas", "expected bool result, got int64"),
            (
                "nope == 1",
                "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope == 1\n | ^",
            ),
            ("1 / 0 == 1", "division by zero"),
            ("object.metadata.name + 1 == 2", "no such overload"),
        ] {
            check(
                rule(&[expression], "own", ""),
                False,
                EXPRESSION_ERROR,
                message,
            );
        }
        let bad = conditions(&deployment(), &[rule(&["object.("], "", "")]);
        assert_eq!(bad[0].reason, EXPRESSION_ERROR);
        assert!(bad[0].message.starts_with("ERROR: <input>:1:"), "{bad:?}");
    }

    #[test]
    fn messages_come_from_the_expression_then_the_text_then_the_name() {
        for (result, text, expression, message) in [
            ("true", "own", "", "own"),
            ("true", "own", "result ? 'up' : 'down'", "up"),
            ("false", "own", "result ? 'up' : 'down'", "down"),
            ("true", "own", "''", "own"),
            ("true", "", "''", "Manifest is Fine"),
            ("true", "own", "'name ' + object.metadata.name", "name test"),
            ("true", "own", "object.missing", "no such key: missing"),
            (
                "true",
                "own",
                "1",
                "expected message expression to have a string result, got int64",
            ),
            (
                "true",
                "own",
                "badcel",
                "ERROR: <input>:1:1: undeclared reference to 'badcel' (in container '')",
            ),
        ] {
            let status = if result == "true" { True } else { False };
            check(
                rule(&[result], text, expression),
                status,
                EVALUATED,
                message,
            );
        }
    }

    #[test]
    fn a_message_is_no_longer_than_a_condition_takes() {
        let mut object = deployment();
        object["text"] = json!("é".repeat(20_000));
        let answers = conditions(&object, &[rule(&[], "", "object.text")]);
        assert_eq!(answers[0].message.len(), 32_768);
    }

    #[test]
    fn an_unknown_type_is_said_so() {
        let unknown = ConditionRule {
            type_: ConditionRuleType::Other("Magic".to_owned()),
            ..rule(&[], "", "")
        };
        let message = "unrecognized condition rule type Magic";
        check(unknown, Unknown, INVALID, message);
    }

    #[test]
    fn well_known_conditions_of_jobs_and_pods() {
        let job = |conditions: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}});
        let pod =
            |phase: &str| json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}});
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
        for (object, status, message) in [
            (
                job(json!([condition("Complete", "True")])),
                True,
                "Job is finished",
            ),
            (
                job(json!([condition("Failed", "True")])),
                True,
                "Job is finished",
            ),
            (
                job(json!([
                    condition("Complete", "False"),
                    condition("Other", "True")
                ])),
                False,
                "Job is not finished",
            ),
            (job(json!([])), False, "Job is not finished"),
            (pod("Succeeded"), True, "Pod is in phase Succeeded"),
            (pod("Failed"), True, "Pod is in phase Failed"),
            (pod("Running"), False, "Pod is in phase Running"),
        ] {
            let rule = ConditionRule {
                condition: "Complete".to_owned(),
                type_: ConditionRuleType::WellKnownConditions,
                ..rule(&[], "plain text has no say", "")
            };
            let answers = conditions(&object, &[rule]);
            assert_eq!(
                (answers[0].status, answers[0].message.as_str()),
                (status, message)
            );
        }
        let none = ConditionRule {
            type_: ConditionRuleType::WellKnownConditions,
            ..rule(&[], "", "")
        };
        assert_eq!(conditions(&deployment(), &[none]), []);
    }
}
