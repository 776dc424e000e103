//! Reads live objects for the rules about them: feedback values and conditions.

use super::{desired::Desired, state::Agent};
use crate::{
    expression::{
        feedback::FeedbackAnswer,
        rules::{RuleAnswer, RuleStatus},
    },
    status::{Feedback, Finding, RuleOutcome, Rules, Truth},
};

impl Agent {
    /// Adds to a finding what the work's rules say about the live object. Without rules nothing is read.
    pub(super) async fn observe(&self, desired: &Desired<'_>, finding: &mut Finding) {
        if !desired.is_observed() {
            return;
        }
        // What is not readable keeps what was known: a rule that could not be asked has not changed its mind.
        let object = self
            .spoke
            .read(&desired.kind, &desired.key)
            .await
            .ok()
            .flatten();
        if !desired.feedback_rules.is_empty() {
            finding.feedback = match &object {
                None => Feedback::Untouched,
                Some(object) => feedback(
                    self.evaluator
                        .feedback(object, desired.feedback_rules, self.identity.feedback)
                        .await,
                ),
            };
        }
        if !desired.condition_rules.is_empty() {
            finding.rules = match &object {
                None => Rules::Untouched,
                Some(object) => {
                    let answers = self
                        .evaluator
                        .conditions(object, desired.condition_rules)
                        .await;
                    Rules::Evaluated(answers.into_iter().map(outcome).collect())
                }
            };
        }
    }
}

/// Several errors are written as Go writes them.
fn feedback(answer: FeedbackAnswer) -> Feedback {
    match answer.errors.as_slice() {
        [] => Feedback::Synced(answer.values),
        [error] => Feedback::Failed {
            values: answer.values,
            errors: error.clone(),
        },
        errors => Feedback::Failed {
            values: answer.values,
            errors: format!("[{}]", errors.join(", ")),
        },
    }
}

fn outcome(answer: RuleAnswer) -> RuleOutcome {
    let status = match answer.status {
        RuleStatus::True => Truth::True,
        RuleStatus::False => Truth::False,
        RuleStatus::Unknown => Truth::Unknown,
    };
    RuleOutcome {
        condition: answer.condition,
        status,
        reason: answer.reason,
        message: answer.message,
    }
}
