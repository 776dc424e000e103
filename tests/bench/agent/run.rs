//! One size, from empty servers to empty servers.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{StreamExt, stream};
use gitspoke::api::work::spec::ManifestWork;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    content::{self, Size, work_name},
    latency::{self, quantile},
    observe,
    raw::{Phases, Raw, Sample},
    requests::{Counts, RECORDS, WORKS, delete, get, merge, post},
    servers::{Lab, control_plane::ControlPlane, install},
    subject::Subject,
    table::Table,
};

/// The cluster that the agent serves, and the namespace that the ceiling is measured in.
const CLUSTER: &str = "edge";

/// Works that the load generator writes at once, to a hub that an agent watches.
const WRITERS: usize = 16;

/// What the servers are warmed with.
const WARM: Size = Size {
    works: 100,
    maps: 3,
};

/// How long nothing is asked for, to see that nothing is sent.
const IDLE: Duration = Duration::from_secs(30);

struct Bench {
    hub_plane: ControlPlane,
    spoke_plane: ControlPlane,
    hub: Client,
    spoke: Client,
    size: Size,
}

/// Measures every row for one size.
pub(crate) async fn run(lab: &Lab, size: Size, table: &mut Table) {
    eprintln!(
        "{} works × {} maps: starting servers",
        size.works, size.maps
    );
    let bench = Bench::start(lab, size).await;
    let sample = bench.sample().await;
    let ceiling = bench.ceiling(&sample).await;
    let agent = bench.agent();
    bench.create(&agent, &ceiling, table).await;
    bench.idle(table).await;
    let peak = agent.peak_memory();
    let agent = bench.restart(agent, table).await;
    bench.update(&ceiling, table).await;
    bench.single(table).await;
    bench.delete(&ceiling, table).await;
    println!(
        "since the restart: processor time {:.2?}, memory {:.1} MiB, peak {:.1} MiB",
        agent.processor_time(),
        agent.resident_memory(),
        agent.peak_memory()
    );
    let what = format!("memory, {}", size.text());
    let peak = peak.max(agent.peak_memory());
    table.at_most(what, peak, " MiB", 40.0, "130 MiB, 1,000 × 5");
}

impl Bench {
    async fn start(lab: &Lab, size: Size) -> Self {
        let (hub_plane, spoke_plane) = (lab.start("hub").await, lab.start("spoke").await);
        let (hub, spoke) = (hub_plane.client().await, spoke_plane.client().await);
        for client in [&hub, &spoke] {
            install::crds(client).await;
            make_namespace(client, CLUSTER).await;
        }
        Self {
            hub_plane,
            spoke_plane,
            hub,
            spoke,
            size,
        }
    }

    fn agent(&self) -> Subject {
        let (hub, spoke) = (
            self.hub_plane.admin_kubeconfig(),
            self.spoke_plane.admin_kubeconfig(),
        );
        Subject::start(CLUSTER, &hub, &spoke)
    }

    fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.clone(), CLUSTER)
    }

    /// One work led through its life by a real agent, for its bodies. It also warms the servers.
    async fn sample(&self) -> Sample {
        let agent = self.agent();
        let name = "sample-work";
        let one = Size {
            works: 1,
            ..self.size
        };
        let body = content::work(CLUSTER, name, one.maps, "1");
        post(&self.hub, &works_path(CLUSTER), &body).await;
        observe::until_recorded(&self.spoke, one).await;
        let path = format!("{}/{name}", works_path(CLUSTER));
        let work = get(&self.hub, &path).await;
        let records = get(&self.spoke, RECORDS).await;
        let record = records["items"][0].clone();
        delete(&self.hub, &path).await;
        let gone = async {
            while !is_empty(&get(&self.spoke, RECORDS).await)
                || !is_empty(&get(&self.hub, &works_path(CLUSTER)).await)
            {
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), gone)
            .await
            .unwrap();
        drop(agent);
        Sample {
            name: name.to_owned(),
            namespace: CLUSTER.to_owned(),
            work,
            record,
        }
    }

    /// The best of several degrees of concurrency, phase by phase.
    async fn ceiling(&self, sample: &Sample) -> Phases {
        let mut best: Option<Phases> = None;
        // The first requests of new servers pay for their caches: the first round is not counted.
        for (round, in_flight) in [32, 16, 32, 64].into_iter().enumerate() {
            let namespace = format!("raw-{round}");
            for client in [&self.hub, &self.spoke] {
                make_namespace(client, &namespace).await;
            }
            let raw = Raw {
                hub: self.hub.clone(),
                spoke: self.spoke.clone(),
                namespace,
                size: if round == 0 { WARM } else { self.size },
                sample: sample.clone(),
                owners: (0..self.size.works)
                    .map(|_| OnceLock::new())
                    .collect::<Arc<[_]>>(),
            };
            let took = raw.run(in_flight).await;
            if round == 0 {
                continue;
            }
            println!("ceiling, {in_flight} in flight: {took:.2?}");
            let least = best.unwrap_or(took);
            best = Some(Phases {
                create: least.create.min(took.create),
                update: least.update.min(took.update),
                delete: least.delete.min(took.delete),
            });
        }
        best.unwrap()
    }

    async fn create(&self, agent: &Subject, ceiling: &Phases, table: &mut Table) {
        let before = (Counts::of(&self.hub).await, Counts::of(&self.spoke).await);
        let all = observe::until_all(self.works(), self.size, Some(1));
        let begin = Instant::now();
        self.for_all(|name| {
            let body = content::work(CLUSTER, &name, self.size.maps, "1");
            async move { drop(post(&self.hub, &works_path(CLUSTER), &body).await) }
        })
        .await;
        println!("works written after {:.2?}", begin.elapsed());
        let took = all.await.unwrap() - begin;
        observe::until_recorded(&self.spoke, self.size).await;
        println!(
            "created: available after {took:.2?}, recorded after {:.2?}, processor time {:.2?}, peak {:.1} MiB",
            begin.elapsed(),
            agent.processor_time(),
            agent.peak_memory(),
        );
        let reference = "small: 27 s, lifted 4.6 s";
        let what = format!("create → all Available, {}", self.size.text());
        table.phase(
            what,
            took.as_secs_f64(),
            ceiling.create.as_secs_f64(),
            reference,
        );

        let hub = Counts::of(&self.hub).await.since(&before.0);
        let spoke = Counts::of(&self.spoke).await.since(&before.1);
        println!("hub {:?}\nspoke {:?}", hub.ours(), spoke.ours());
        let (works, manifests) = (self.size.works as f64, self.size.manifests() as f64);
        let per = |what: &str| format!("{what}, {}", self.size.text());
        let writes = spoke.writes("configmaps") / manifests;
        table.at_most(
            per("spoke writes per created manifest"),
            writes,
            "",
            1.0,
            "4.4, lifted 4.0 with reads",
        );
        let reads = spoke.sum(&["GET"], "configmaps") / manifests;
        table.at_most(
            per("spoke reads per created manifest"),
            reads,
            "",
            0.0,
            "in the above",
        );
        let records =
            spoke.writes("appliedmanifestworks") + spoke.writes("appliedmanifestworks/status");
        table.at_most(
            per("record writes per created work"),
            records / works,
            "",
            3.0,
            "",
        );
        let told = hub.sum(&["PATCH", "PUT", "APPLY"], "manifestworks")
            + hub.writes("manifestworks/status");
        table.at_most(
            per("hub writes per created work"),
            told / works,
            "",
            2.0,
            "3",
        );
    }

    async fn idle(&self, table: &mut Table) {
        let before = (Counts::of(&self.hub).await, Counts::of(&self.spoke).await);
        sleep(IDLE).await;
        let hub = Counts::of(&self.hub).await.since(&before.0).ours();
        let spoke = Counts::of(&self.spoke).await.since(&before.1).ours();
        println!("idle: hub {hub:?}, spoke {spoke:?}");
        let sum = hub.values().chain(spoke.values()).sum();
        let what = format!("requests while idle for 30 s, {}", self.size.text());
        table.at_most(what, sum, "", 0.0, "1,353 on the spoke, 600 manifests");
    }

    /// Kills the agent and starts it again, with nothing changed.
    async fn restart(&self, agent: Subject, table: &mut Table) -> Subject {
        drop(agent);
        let before = (Counts::of(&self.hub).await, Counts::of(&self.spoke).await);
        let agent = self.agent();
        let (hub, spoke) = self.until_quiet(&before).await;
        println!(
            "restart: hub {:?}, spoke {:?}, processor time {:.2?}, peak {:.1} MiB",
            hub.ours(),
            spoke.ours(),
            agent.processor_time(),
            agent.peak_memory()
        );
        let per = |what: &str| format!("{what}, {}", self.size.text());
        let writes: f64 = ["manifestworks", "manifestworks/status"]
            .iter()
            .map(|resource| hub.writes(resource))
            .chain(
                [
                    "configmaps",
                    "appliedmanifestworks",
                    "appliedmanifestworks/status",
                ]
                .iter()
                .map(|resource| spoke.writes(resource)),
            )
            .sum();
        table.at_most(per("writes after a restart"), writes, "", 0.0, "");
        let gets = spoke.sum(&["GET"], "configmaps") + hub.sum(&["GET"], "manifestworks");
        table.at_most(per("single reads after a restart"), gets, "", 0.0, "");
        let pages = spoke.sum(&["LIST"], "configmaps");
        let budget = (self.size.manifests() as f64 / 500.0).ceil();
        // The list is of every map on the spoke, and each namespace brings one of its own.
        table.at_most(
            per("pages of maps listed after a restart"),
            pages,
            "",
            budget + 1.0,
            "",
        );
        agent
    }

    /// Returns what has been asked since, once nothing new has been for two seconds.
    async fn until_quiet(&self, before: &(Counts, Counts)) -> (Counts, Counts) {
        let mut last = 0.0;
        let mut quiet = 0;
        loop {
            sleep(Duration::from_secs(1)).await;
            let hub = Counts::of(&self.hub).await.since(&before.0);
            let spoke = Counts::of(&self.spoke).await.since(&before.1);
            let sum: f64 = hub.ours().values().chain(spoke.ours().values()).sum();
            quiet = if sum > 0.0 && (sum - last).abs() < 0.5 {
                quiet + 1
            } else {
                0
            };
            last = sum;
            if quiet >= 3 {
                return (hub, spoke);
            }
        }
    }

    async fn update(&self, ceiling: &Phases, table: &mut Table) {
        let before = Counts::of(&self.spoke).await;
        let all = observe::until_all(self.works(), self.size, Some(2));
        let begin = Instant::now();
        self.for_all(|name| {
            let spec = json!({"spec": content::spec(CLUSTER, &name, self.size.maps, "2")});
            let path = format!("{}/{name}", works_path(CLUSTER));
            async move { drop(merge(&self.hub, &path, &spec).await) }
        })
        .await;
        let took = all.await.unwrap() - begin;
        let what = format!("update → all Available, {}", self.size.text());
        let reference = "small: 23 s, lifted 4.9 s";
        table.phase(
            what,
            took.as_secs_f64(),
            ceiling.update.as_secs_f64(),
            reference,
        );
        let (_, spoke) = self
            .until_quiet(&(Counts::of(&self.hub).await, before))
            .await;
        println!("updated: after {took:.2?}, spoke {:?}", spoke.ours());
    }

    /// What becomes of single edits, on the spoke and on the hub.
    async fn single(&self, table: &mut Table) {
        let repairs = latency::repairs(&self.spoke, CLUSTER, self.size, "2").await;
        println!(
            "repairs: p50 {:.1?}, p95 {:.1?}",
            quantile(&repairs, 0.5),
            quantile(&repairs, 0.95)
        );
        let per = |what: &str| format!("{what}, {}", self.size.text());
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        table.at_most(
            per("drift repaired, p95"),
            milliseconds(quantile(&repairs, 0.95)),
            " ms",
            1e3,
            "minutes",
        );
        let changes = latency::changes(&self.hub, &self.spoke, CLUSTER, self.size).await;
        let applied = milliseconds(quantile(&changes.applied, 0.5));
        table.at_most(
            per("one change applied, p50"),
            applied,
            " ms",
            10.0,
            "29 ms, lifted 20 ms",
        );
        let reported = milliseconds(quantile(&changes.reported, 0.5));
        table.at_most(
            per("one change reported, p50"),
            reported,
            " ms",
            25.0,
            "116 ms, lifted 81 ms",
        );
    }

    async fn delete(&self, ceiling: &Phases, table: &mut Table) {
        let before = Counts::of(&self.spoke).await;
        let all = observe::until_all(self.works(), self.size, None);
        // Its watch begins with what is there.
        sleep(Duration::from_millis(500)).await;
        let begin = Instant::now();
        self.for_all(|name| async move {
            delete(&self.hub, &format!("{}/{name}", works_path(CLUSTER))).await;
        })
        .await;
        let took = all.await.unwrap() - begin;
        let what = format!("delete → all gone, {}", self.size.text());
        let reference = "small: 74 s, lifted 9.5 s";
        table.phase(
            what,
            took.as_secs_f64(),
            ceiling.delete.as_secs_f64(),
            reference,
        );
        let spoke = Counts::of(&self.spoke).await.since(&before);
        println!("deleted: after {took:.2?}, spoke {:?}", spoke.ours());
    }

    async fn for_all<F: Future<Output = ()>>(&self, write: impl Fn(String) -> F) {
        stream::iter((0..self.size.works).map(work_name))
            .for_each_concurrent(WRITERS, write)
            .await;
    }
}

async fn make_namespace(client: &Client, name: &str) {
    let namespace = json!({"metadata": {"name": name}});
    post(client, "/api/v1/namespaces", &namespace).await;
}

fn works_path(namespace: &str) -> String {
    format!("{WORKS}/{namespace}/manifestworks")
}

fn is_empty(list: &Value) -> bool {
    list["items"].as_array().is_none_or(Vec::is_empty)
}
