//! The raw ceiling: the requests of the agent and of whoever writes the works, sent by a client without any logic.
//!
//! Bodies are those of a real agent: a sample work is led through its life first, and what the agent has written is
//! sent again under other names. Works are independent, so many are under way at once; the requests of one work keep
//! their order. The watches of an agent are open meanwhile: serving them is part of what is asked of the servers.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Request;
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    content::{Size, map, map_name, spec, work, work_name},
    requests::{RECORDS, WORKS, apply, delete, merge, post},
};

/// What an agent wrote for a sample work.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The work on the hub.
    pub(crate) work: Value,
    /// Its record on the spoke.
    pub(crate) record: Value,
}

/// How long each phase took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phases {
    pub(crate) create: Duration,
    pub(crate) update: Duration,
    pub(crate) delete: Duration,
}

/// A load generator for one namespace.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) hub: Client,
    pub(crate) spoke: Client,
    pub(crate) namespace: String,
    pub(crate) size: Size,
    pub(crate) sample: Sample,
    /// The uid of each work's record, as the spoke gave it.
    pub(crate) owners: Arc<[OnceLock<Value>]>,
}

#[derive(Clone, Copy)]
enum Phase {
    Create,
    Update,
    Delete,
}

impl Raw {
    /// Leads every work through its life with so many under way at once.
    pub(crate) async fn run(self, in_flight: usize) -> Phases {
        let mut watches = self.open_watches();
        let raw = Arc::new(self);
        let mut took = [Duration::ZERO; 3];
        for (number, phase) in [Phase::Create, Phase::Update, Phase::Delete]
            .into_iter()
            .enumerate()
        {
            took[number] = Arc::clone(&raw).phase(phase, in_flight).await;
        }
        watches.abort_all();
        let [create, update, delete] = took;
        Phases {
            create,
            update,
            delete,
        }
    }

    async fn phase(self: Arc<Self>, phase: Phase, in_flight: usize) -> Duration {
        let next = Arc::new(AtomicUsize::new(0));
        let begin = Instant::now();
        let mut senders = JoinSet::new();
        for _ in 0..in_flight {
            let (raw, next) = (Arc::clone(&self), Arc::clone(&next));
            senders.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= raw.size.works {
                        break;
                    }
                    match phase {
                        Phase::Create => raw.create(number).await,
                        Phase::Update => raw.update(number).await,
                        Phase::Delete => raw.delete(number).await,
                    }
                }
            });
        }
        senders.join_all().await;
        begin.elapsed()
    }

    async fn create(&self, number: usize) {
        let name = &work_name(number);
        let body = work(&self.namespace, name, self.size.maps, "1");
        let path = format!("{WORKS}/{}/manifestworks", self.namespace);
        let made = post(&self.hub, &path, &body).await;
        let mut metadata = guard(&made);
        metadata["finalizers"] = self.sample.work["metadata"]["finalizers"].clone();
        let made = merge(&self.hub, &self.work(name), &json!({"metadata": metadata})).await;
        let wanted = self.renamed(&self.sample.record, name);
        let intent = &wanted["metadata"]["annotations"]["gitspoke.dev/intent"];
        let record = json!({
            "apiVersion": wanted["apiVersion"], "kind": wanted["kind"],
            "metadata": {
                "name": wanted["metadata"]["name"],
                "finalizers": wanted["metadata"]["finalizers"],
                "annotations": {"gitspoke.dev/intent": intent},
            },
            "spec": wanted["spec"],
        });
        let record = post(&self.spoke, RECORDS, &record).await;
        let uid = self.owners[number].get_or_init(|| record["metadata"]["uid"].clone());
        self.apply_all(name, uid, "1").await;
        self.report(name, &made).await;
        let status = json!({"status": wanted["status"]});
        let path = self.record(name);
        merge(&self.spoke, &format!("{path}/status"), &status).await;
        self.mark(name).await;
    }

    async fn update(&self, number: usize) {
        let name = &work_name(number);
        let spec = json!({"spec": spec(&self.namespace, name, self.size.maps, "2")});
        let made = merge(&self.hub, &self.work(name), &spec).await;
        let uid = self.owners[number].get().unwrap();
        self.apply_all(name, uid, "2").await;
        self.report(name, &made).await;
        self.mark(name).await;
    }

    /// Without a single read: what is deleted is known.
    async fn delete(&self, number: usize) {
        let name = &work_name(number);
        let path = self.work(name);
        delete(&self.hub, &path).await;
        let status = self.renamed(&self.sample.work["status"], name);
        merge(
            &self.hub,
            &format!("{path}/status"),
            &json!({"status": status}),
        )
        .await;
        delete(&self.spoke, &self.record(name)).await;
        for map in 0..self.size.maps {
            delete(&self.spoke, &self.map(name, map)).await;
        }
        let release = json!({"metadata": {"finalizers": null}});
        merge(&self.spoke, &self.record(name), &release).await;
        merge(&self.hub, &path, &release).await;
    }

    async fn apply_all(&self, name: &str, owner: &Value, value: &str) {
        for number in 0..self.size.maps {
            let mut body = map(&self.namespace, name, number, value);
            body["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "AppliedManifestWork",
                "name": self.record_name(name),
                "uid": owner,
            }]);
            apply(&self.spoke, &self.map(name, number), &body).await;
        }
    }

    /// Another time in it, as in a status that is news.
    async fn report(&self, name: &str, made: &Value) {
        let mut status = self.renamed(&self.sample.work["status"], name);
        let generation = &made["metadata"]["generation"];
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["observedGeneration"] = generation.clone();
        }
        let body = json!({"metadata": guard(made), "status": status});
        merge(&self.hub, &format!("{}/status", self.work(name)), &body).await;
    }

    /// Another digest each time, as in a mark that is news.
    async fn mark(&self, name: &str) {
        let wanted = self.renamed(&self.sample.record, name);
        let mut annotations = wanted["metadata"]["annotations"].clone();
        let marks = annotations["gitspoke.dev/applied"].as_str().unwrap();
        let digit = fastrand::u32(0..10).to_string();
        annotations["gitspoke.dev/applied"] = json!(marks.replace(":\"", &format!(":\"{digit}")));
        let body = json!({"metadata": {"annotations": annotations}});
        merge(&self.spoke, &self.record(name), &body).await;
    }

    fn renamed(&self, value: &Value, name: &str) -> Value {
        let text = value.to_string();
        let text = text.replace(&self.sample.name, name);
        let text = text.replace(&self.sample.namespace, &self.namespace);
        serde_json::from_str(&text).unwrap()
    }

    fn work(&self, name: &str) -> String {
        format!("{WORKS}/{}/manifestworks/{name}", self.namespace)
    }

    fn map(&self, name: &str, number: usize) -> String {
        let name = map_name(name, number);
        format!("/api/v1/namespaces/{}/configmaps/{name}", self.namespace)
    }

    fn record_name(&self, name: &str) -> String {
        let sample = self.sample.record["metadata"]["name"].as_str().unwrap();
        sample.replace(&self.sample.name, name)
    }

    fn record(&self, name: &str) -> String {
        format!("{RECORDS}/{}", self.record_name(name))
    }

    /// Those of an agent, and that of the observer who waits for it.
    fn open_watches(&self) -> JoinSet<()> {
        let works = format!("{WORKS}/{}/manifestworks?watch=true", self.namespace);
        let records = format!("{RECORDS}?watch=true");
        let maps = "/api/v1/configmaps?watch=true".to_owned();
        let mut watches = JoinSet::new();
        for (client, path) in [
            (&self.hub, works.clone()),
            (&self.hub, works),
            (&self.spoke, records),
            (&self.spoke, maps),
        ] {
            let client = client.clone();
            watches.spawn(async move {
                let request = Request::get(path).body(Body::empty()).unwrap();
                let mut body = client.send(request).await.unwrap().into_body();
                while let Ok(Some(Ok(_))) = timeout(Duration::from_mins(10), body.frame()).await {}
            });
        }
        watches
    }
}

fn guard(made: &Value) -> Value {
    json!({
        "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"],
    })
}
