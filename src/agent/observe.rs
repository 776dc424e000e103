//! Reads live objects for the rules about them: feedback values and conditions.

use serde_json::Value;

use super::{
    desired::Desired,
    index::{Observation, Observed},
    state::Agent,
};
use crate::{
    expression::{
        feedback::FeedbackAnswer,
        rules::{RuleAnswer, RuleStatus},
    },
    status::{Feedback, Finding, RuleOutcome, Rules, Truth},
};

impl Agent {
    /// Adds to a finding what the work's rules say about the live object. They are asked again only when the object or
    /// the rules have changed, and the object is read only when no watch has shown it.
    pub(super) async fn observe(&self, work: &str, desired: &Desired<'_>, finding: &mut Finding) {
        if !desired.is_observed() {
            return;
        }
        let asked = desired.rules();
        let observation = self.index().observation(work, &desired.key, &asked);
        let (feedback, rules) = match observation {
            Observation::Known(feedback, rules) => (feedback, rules),
            Observation::Ask(version, object) => {
                self.ask(work, desired, asked, version, &object).await
            }
            Observation::Read => match self.spoke.read(&desired.kind, &desired.key).await {
                Ok(Some(object)) => {
                    let version = object["metadata"]["resourceVersion"].as_str();
                    let version = version.and_then(|version| version.parse().ok());
                    self.ask(work, desired, asked, version.unwrap_or(0), &object)
                        .await
                }
                Ok(None) | Err(_) => (Feedback::Untouched, Rules::Untouched),
            },
            Observation::Gone => (Feedback::Untouched, Rules::Untouched),
        };
        // What is not readable keeps what was known: a rule that could not be asked has not changed its mind. Without
        // rules there is nothing to keep.
        if !desired.feedback_rules.is_empty() {
            finding.feedback = feedback;
        }
        if !desired.condition_rules.is_empty() {
            finding.rules = rules;
        }
    }

    async fn ask(
        &self,
        work: &str,
        desired: &Desired<'_>,
        asked: String,
        resource_version: u64,
        object: &Value,
    ) -> (Feedback, Rules) {
        let values =
            self.evaluator
                .feedback(object, desired.feedback_rules, self.identity.feedback);
        let feedback = feedback(values.await);
        let answers = self
            .evaluator
            .conditions(object, desired.condition_rules)
            .await;
        let rules = Rules::Evaluated(answers.into_iter().map(outcome).collect());
        let observed = Observed {
            resource_version,
            asked,
            feedback: feedback.clone(),
            rules: rules.clone(),
        };
        self.index().observed(work, &desired.key, observed);
        (feedback, rules)
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
