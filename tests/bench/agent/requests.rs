//! Requests as the API servers themselves count them, and single requests of our own.

use std::collections::BTreeMap;

use http::{Request, request::Builder};
use kube::Client;
use serde_json::Value;

pub(crate) const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces";
pub(crate) const RECORDS: &str = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks";

/// How many requests a server has answered, by verb and resource with its subresource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(BTreeMap<(String, String), f64>);

/// Every verb but the long-running watch.
const WRITES: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
const READS: [&str; 2] = ["GET", "LIST"];

impl Counts {
    pub(crate) async fn of(client: &Client) -> Self {
        let page = client
            .request_text(Request::get("/metrics").body(Vec::new()).unwrap())
            .await
            .unwrap();
        let mut counts = Self::default();
        for line in page.lines() {
            let Some(rest) = line.strip_prefix("apiserver_request_total{") else {
                continue;
            };
            let (labels, value) = rest.rsplit_once("} ").unwrap();
            let label = |name: &str| {
                let begin = format!("{name}=\"");
                let text = labels.split(&begin).nth(1).unwrap_or_default();
                text.split('"').next().unwrap_or_default().to_owned()
            };
            let mut resource = label(",resource");
            if !label("subresource").is_empty() {
                resource = format!("{resource}/{}", label("subresource"));
            }
            let value: f64 = value.parse().unwrap();
            *counts.0.entry((label("verb"), resource)).or_default() += value;
        }
        counts
    }

    /// What has come since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(key, now)| {
            let grown = now - before.0.get(key).copied().unwrap_or(0.0);
            (grown > 0.0).then(|| (key.clone(), grown))
        });
        Self(grown.collect())
    }

    pub(crate) fn writes(&self, resource: &str) -> f64 {
        self.sum(&WRITES, resource)
    }

    pub(crate) fn reads(&self, resource: &str) -> f64 {
        self.sum(&READS, resource)
    }

    pub(crate) fn sum(&self, verbs: &[&str], resource: &str) -> f64 {
        verbs
            .iter()
            .filter_map(|verb| self.0.get(&((*verb).to_owned(), resource.to_owned())))
            .sum()
    }

    /// Everything about the resources that the agent deals with, watches left out. So are single reads of records: the
    /// spoke's garbage collector looks owners up in that way, the agent never does.
    pub(crate) fn ours(&self) -> BTreeMap<(String, String), f64> {
        let is_ours = |resource: &str| {
            let whole = resource.split('/').next().unwrap_or_default();
            ["configmaps", "manifestworks", "appliedmanifestworks"].contains(&whole)
        };
        let ours = self
            .0
            .iter()
            .filter(|((verb, resource), _)| verb != "WATCH" && is_ours(resource))
            .filter(|((verb, resource), _)| verb != "GET" || resource != "appliedmanifestworks");
        ours.map(|(key, count)| (key.clone(), *count)).collect()
    }
}

pub(crate) async fn post(client: &Client, path: &str, body: &Value) -> Value {
    send(client, Request::post(path), "application/json", body).await
}

pub(crate) async fn merge(client: &Client, path: &str, body: &Value) -> Value {
    let path = format!("{path}?fieldManager=work-agent");
    let request = Request::patch(path);
    send(client, request, "application/merge-patch+json", body).await
}

/// As the agent applies: only metadata comes back.
pub(crate) async fn apply(client: &Client, path: &str, body: &Value) -> Value {
    let path = format!("{path}?force=true&fieldManager=work-agent");
    let request = Request::patch(path).header(
        "accept",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    );
    send(client, request, "application/apply-patch+yaml", body).await
}

pub(crate) async fn delete(client: &Client, path: &str) {
    let body = serde_json::json!({"propagationPolicy": "Background"});
    send(client, Request::delete(path), "application/json", &body).await;
}

pub(crate) async fn get(client: &Client, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

/// A refusal ends the run: a ceiling made of refusals is no ceiling.
async fn send(client: &Client, request: Builder, content: &str, body: &Value) -> Value {
    let request = request
        .header("content-type", content)
        .body(body.to_string().into_bytes())
        .unwrap();
    let path = request.uri().to_string();
    match client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(error) => panic!("{path} was refused: {error}"),
    }
}
