//! Puts a question to the spoke.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams, Request},
};
use serde_json::Value;

use super::{
    account::Account,
    answers::Answer,
    question::{Question, Target, is_escalation},
};
use crate::{
    api::wellknown::AGENT_FIELD_MANAGER,
    spoke::{error::Error, kinds::Kind},
};

/// The API server answers from memory; one that needs this long is in trouble.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks one question. The body is what a trial creation sends.
pub(super) async fn ask(
    client: &Client,
    question: &Question,
    kind: &Kind,
    body: &Value,
) -> Result<Answer, Error> {
    match question {
        Question::Write {
            account,
            target,
            with_delete,
        } => ask_all(client, account, target, *with_delete).await,
        Question::Grant {
            account, target, ..
        } => try_to_create(client, account, target, kind, body).await,
    }
}

/// Asks for one right after the other; the first that is denied ends it.
async fn ask_all(
    client: &Client,
    account: &Account,
    target: &Target,
    with_delete: bool,
) -> Result<Answer, Error> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    for review in target.reviews(account, with_delete) {
        let answer = in_time(api.create(&PostParams::default(), &review)).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            let verb = review
                .spec
                .resource_attributes
                .and_then(|asked| asked.verb)
                .unwrap_or_default();
            tracing::info!(%account, verb, ?target, "the executor of a work lacks a right");
            return Ok(Answer::Denied);
        }
    }
    Ok(Answer::Allowed)
}

/// Has the account create the object without anything being stored. Only the API server can say whether that would give
/// away rights which the account does not have; it looks before it finds that the object exists already.
async fn try_to_create(
    client: &Client,
    account: &Account,
    target: &Target,
    kind: &Kind,
    body: &Value,
) -> Result<Answer, Error> {
    let api: Api<DynamicObject> = if kind.is_namespaced {
        Api::namespaced_with(client.clone(), &target.namespace, &kind.resource)
    } else {
        Api::all_with(client.clone(), &kind.resource)
    };
    let params = PostParams {
        dry_run: true,
        field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
    };
    let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
    let mut request = Request::new(api.resource_url())
        .create(&params, body)
        .map_err(kube::Error::BuildRequest)?;
    // Without named groups the API server puts a service account into its own, so that we need the right to act as
    // service accounts only, and none to act as groups.
    let user = account
        .to_string()
        .parse()
        .map_err(|error| kube::Error::Service(Box::new(error)))?;
    request.headers_mut().insert("impersonate-user", user);
    match in_time(client.request_text(request)).await {
        Ok(_) => Ok(Answer::Allowed),
        Err(Error::Refused(answer)) if is_escalation(&answer) => {
            tracing::info!(%account, ?target, answer = answer.message, "the executor of a work would give away rights it lacks");
            Ok(Answer::Denied)
        }
        Err(Error::Refused(answer)) if answer.reason == "AlreadyExists" => Ok(Answer::Allowed),
        Err(error) => Err(error),
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    let answer = tokio::time::timeout(PATIENCE, request).await;
    Ok(answer.map_err(|late| kube::Error::Service(Box::new(late)))??)
}
