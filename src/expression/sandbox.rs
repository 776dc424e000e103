//! Evaluation that always ends: user expressions run in child processes, which are killed when they overdo it.
//!
//! What provably takes no longer than the object is large is evaluated at once, in this process: JSONPaths without `..`
//! and unions, JSON pointers, well-known conditions. Nearly all feedback is of that sort. CEL, jq and the other
//! JSONPaths go to a child. All questions about one object travel in one request and are answered one by one; the one
//! that is not answered in time is reported as stopped, and the rest is asked again of a fresh child.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    sync::{Mutex, Semaphore},
    time::timeout,
};

use super::{
    child,
    feedback::{self, FeedbackAnswer, FeedbackOptions},
    ignore,
    protocol::{self, Answer, Question, Request},
    rules::{self, RuleAnswer},
    worker::{Stop, Worker},
};
use crate::{
    api::work::config::{ConditionRule, FeedbackRule, IgnoreField},
    telemetry::{label::StopCause, metrics::ExpressionMetrics},
};

/// How many expressions about one object may be stopped before the others are not asked any more: the ratio between
/// Open Cluster Management's budgets for a manifest and for an expression.
const MOST_STOPS: usize = 10;

/// How expressions are evaluated.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program to start as a child: this one, in another process.
    pub executable: PathBuf,
    /// How long one expression may take.
    pub deadline: Duration,
    /// How many children there may be.
    pub children: usize,
    /// Where what is stopped is counted.
    pub metrics: ExpressionMetrics,
}

impl Default for Settings {
    /// This program, by the kernel's link to it: an upgrade that replaces the file does not change it.
    fn default() -> Self {
        Self {
            executable: PathBuf::from("/proc/self/exe"),
            deadline: Duration::from_secs(1),
            children: 2,
            metrics: ExpressionMetrics::default(),
        }
    }
}

/// Evaluates user expressions within bounds. Clones share the children, which start on demand, stay for the next
/// request, and end with the last clone.
#[derive(Debug, Clone)]
pub struct Evaluator(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    /// Invariant: a child exists only under a permit or in `idle`, and there are never more than permits.
    permits: Semaphore,
    idle: Mutex<Vec<Worker>>,
}

impl Evaluator {
    /// Returns an evaluator without children yet. It must be used on a tokio runtime.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared {
            permits: Semaphore::new(settings.children),
            idle: Mutex::default(),
            settings,
        }))
    }

    /// As [`feedback::feedback`], within bounds.
    pub async fn feedback(
        &self,
        object: &Value,
        rules: &[FeedbackRule],
        options: FeedbackOptions,
    ) -> FeedbackAnswer {
        let wanted = feedback::wanted(object, rules);
        let is_unbounded = |wanted: &&feedback::Wanted| !feedback::is_bounded(wanted);
        let unbounded = wanted.iter().flatten().filter(is_unbounded);
        let questions = unbounded.map(|wanted| Question::Value(wanted.clone(), options));
        let mut outcomes = self.ask_each(object, questions.collect()).await.into_iter();
        let mut answer = FeedbackAnswer::default();
        for wanted in wanted {
            answer.add(wanted.and_then(|wanted| {
                if feedback::is_bounded(&wanted) {
                    return feedback::value(object, &wanted, options);
                }
                match outcomes.next() {
                    Some(Ok(Answer::Value(value))) => value,
                    outcome => Err(feedback::not_found(&wanted.name, &self.excuse(outcome))),
                }
            }));
        }
        answer
    }

    /// As [`rules::conditions`], within bounds.
    pub async fn conditions(&self, object: &Value, rules: &[ConditionRule]) -> Vec<RuleAnswer> {
        let unbounded = rules.iter().filter(|rule| !rules::is_bounded(rule));
        let questions = unbounded.map(|rule| Question::Condition(rule.clone()));
        let mut outcomes = self.ask_each(object, questions.collect()).await.into_iter();
        let answers = rules.iter().filter_map(|rule| {
            if rules::is_bounded(rule) {
                return rules::condition(object, rule);
            }
            match outcomes.next() {
                Some(Ok(Answer::Condition(answer))) => answer,
                Some(Err(Failure::Stopped(Stop::Time | Stop::Memory))) => {
                    Some(rules::over_budget(rule))
                }
                outcome => Some(rules::not_evaluated(rule, self.excuse(outcome))),
            }
        });
        answers.collect()
    }

    /// As [`ignore::strip`], within bounds.
    pub async fn strip<'a>(
        &self,
        object: Value,
        fields: impl IntoIterator<Item = &'a IgnoreField>,
    ) -> Result<Value, String> {
        let selectors = ignore::selectors(fields);
        if selectors.iter().all(ignore::is_bounded) {
            return selectors.iter().try_fold(object, ignore::remove);
        }
        let questions = selectors.iter().cloned().map(Question::Remove);
        let questions: Vec<_> = questions.chain([Question::Object]).collect();
        let mut outcomes = Vec::new();
        let _permit = self.0.permits.acquire().await;
        self.ask(&object, &questions, &mut outcomes).await;
        let mut outcomes = outcomes.into_iter();
        for selector in &selectors {
            match outcomes.next() {
                Some(Ok(Answer::Removed(removed))) => removed?,
                outcome => return Err(ignore::failed(selector, &self.excuse(outcome))),
            }
        }
        match outcomes.next() {
            Some(Ok(Answer::Object(object))) => Ok(object),
            outcome => Err(self.excuse(outcome)),
        }
    }

    /// Asks questions that do not depend on each other: each gets an outcome, whatever becomes of the others.
    async fn ask_each(&self, object: &Value, questions: Vec<Question>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(questions.len());
        if questions.is_empty() {
            return outcomes;
        }
        let _permit = self.0.permits.acquire().await;
        for _ in 0..MOST_STOPS {
            self.ask(object, &questions[outcomes.len()..], &mut outcomes)
                .await;
            if let Some(Err(Failure::NotAsked(error))) = outcomes.last() {
                let error = error.clone();
                outcomes.resize_with(questions.len(), || Err(Failure::NotAsked(error.clone())));
            }
            if outcomes.len() == questions.len() {
                return outcomes;
            }
        }
        outcomes.resize_with(questions.len(), || Err(Failure::Stopped(Stop::Time)));
        outcomes
    }

    /// Asks questions in order up to the first that is not answered, whose outcome is an error.
    async fn ask(&self, object: &Value, questions: &[Question], outcomes: &mut Vec<Outcome>) {
        match self.send(object, questions).await {
            Ok(worker) => self.collect(worker, questions.len(), outcomes).await,
            Err(error) => outcomes.push(Err(Failure::NotAsked(error.to_string()))),
        }
    }

    /// Sends questions to an idle child, or to a new one. An idle child may have been killed by the kernel meanwhile.
    async fn send(&self, object: &Value, questions: &[Question]) -> io::Result<Worker> {
        let frame = protocol::encode(&Request { object, questions })?;
        let deadline = self.0.settings.deadline;
        while let Some(mut worker) = { self.0.idle.lock().await.pop() } {
            if let Ok(Ok(())) = timeout(deadline, worker.send(&frame)).await {
                return Ok(worker);
            }
        }
        let mut worker = Worker::start(&self.0.settings.executable).await?;
        timeout(deadline, worker.send(&frame)).await??;
        Ok(worker)
    }

    async fn collect(&self, mut worker: Worker, count: usize, outcomes: &mut Vec<Outcome>) {
        for _ in 0..count {
            let stop = match timeout(self.0.settings.deadline, worker.answer()).await {
                Ok(Ok(answer)) => {
                    outcomes.push(Ok(answer));
                    continue;
                }
                Ok(Err(_)) => worker.post_mortem().await,
                Err(_) => worker.kill().await,
            };
            tracing::warn!(?stop, "stopped a user expression");
            self.0.settings.metrics.stopped(cause(stop));
            outcomes.push(Err(Failure::Stopped(stop)));
            return;
        }
        if worker.is_worth_keeping() {
            self.0.idle.lock().await.push(worker);
        }
    }

    /// Says why there is no answer.
    fn excuse(&self, outcome: Option<Outcome>) -> String {
        match outcome {
            Some(Err(Failure::Stopped(Stop::Time))) => {
                format!("stopped after {:?}", self.0.settings.deadline)
            }
            Some(Err(Failure::Stopped(Stop::Memory))) => {
                format!("stopped at {} MiB of memory", child::MEMORY >> 20)
            }
            Some(Err(Failure::Stopped(Stop::Fault))) => "the evaluator failed on it".to_owned(),
            Some(Err(Failure::NotAsked(error))) => format!("could not be evaluated: {error}"),
            Some(Ok(_)) | None => "the evaluator did not answer it".to_owned(),
        }
    }
}

fn cause(stop: Stop) -> StopCause {
    match stop {
        Stop::Time => StopCause::Time,
        Stop::Memory => StopCause::Memory,
        Stop::Fault => StopCause::Fault,
    }
}

type Outcome = Result<Answer, Failure>;

#[derive(Debug)]
enum Failure {
    Stopped(Stop),
    NotAsked(String),
}
