//! The agent as it runs: two watches that feed the queue, one per kind on the spoke, and workers that empty it.

use std::{
    collections::HashSet, convert::Infallible, fmt::Debug, panic::AssertUnwindSafe, sync::Arc,
    time::Duration,
};

use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    announce::publish,
    executor,
    report::Hub,
    state::{Agent, Disposition, Error, Identity, Key, outcome},
    watches,
};
use crate::{
    api::{
        names::ClusterName,
        work::{applied::AppliedManifestWork, spec::ManifestWork},
    },
    election::Leadership,
    runtime::{
        queue::{Queue, Settings as QueueSettings, Turn, Wake},
        tasks::Tasks,
    },
    spoke::cluster::Cluster,
    telemetry::{label::Side, metrics::AgentMetrics},
};

/// What an agent serves, and how.
pub struct Settings {
    /// The cluster: the namespace on the hub.
    pub cluster: ClusterName,
    /// Who the agent is.
    pub identity: Identity,
    /// Works that are worked on at the same time.
    pub workers: usize,
    /// Where it counts what it does.
    pub metrics: AgentMetrics,
}

/// Works that are listed at a time. A page is in memory as text and as objects at once, and a work is up to 500 KiB: at
/// its usual 6 KiB a page takes 1 MiB.
const WORKS: u32 = 100;

/// Records that are listed at a time; they are a tenth of their works.
const RECORDS: u32 = 500;

/// How long a pass may go on once no more turns are taken. It usually takes a few milliseconds, and what is cut off is
/// begun again by whoever leads next.
const WIND_DOWN: Duration = Duration::from_millis(700);

/// Starts everything an agent is made of. What it knows is kept up to date from the start; turns are taken, and
/// anything is written, only while it leads.
pub fn start(
    tasks: &mut Tasks,
    settings: Settings,
    hub: Client,
    spoke: Client,
    mut leadership: Leadership,
) -> Arc<Agent> {
    // Tasks end in the opposite order of their start: first no more turns are taken, by all workers at the same moment;
    // what there is to tell about them is told last.
    let (announcer, announced) = publish::pair(settings.metrics.events.clone());
    let (events, counted) = (hub.clone(), settings.metrics.events.clone());
    tasks.spawn("events", |stop| {
        publish::publish(announced, events, counted, stop)
    });
    let works: Api<ManifestWork> = Api::namespaced(hub, settings.cluster.as_str());
    let records: Api<AppliedManifestWork> = Api::all(spoke.clone());
    let queue = Queue::new(&QueueSettings::default());
    let agent = Arc::new(Agent::new(
        settings.identity,
        Hub::new(works.clone()),
        Cluster::new(spoke),
        queue.clone(),
        settings.metrics,
        announcer,
    ));
    tasks.spawn("works-and-records", |stop| {
        follow(Arc::clone(&agent), works, records, stop)
    });
    tasks.spawn("spoke-watches", |stop| {
        watches::watch(Arc::clone(&agent), stop)
    });
    tasks.spawn("rights", |stop| {
        executor::follow::follow(Arc::clone(&agent), stop)
    });
    let enough = CancellationToken::new();
    for number in 0..settings.workers {
        let worker = work(Arc::clone(&agent), leadership.clone(), enough.clone());
        tasks.spawn(format!("worker-{number}"), |_| worker);
    }
    tasks.spawn("turns", async move |stop| {
        tokio::select! {
            () = stop.cancelled() => {}
            () = leadership.lost() => {}
        }
        enough.cancel();
        Ok::<_, Infallible>(())
    });
    agent
}

/// Follows works on the hub and records on the spoke. Works are looked at only once both have been listed: without the
/// records, everything would be applied again.
async fn follow(
    agent: Arc<Agent>,
    works: Api<ManifestWork>,
    records: Api<AppliedManifestWork>,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let mut works = changes(works, WORKS, Arc::clone(&agent), Side::Hub).boxed();
    let mut records = changes(records, RECORDS, Arc::clone(&agent), Side::Spoke).boxed();
    let (mut works_listed, mut records_listed) = (HashSet::new(), HashSet::new());
    let (mut works_known, mut records_known) = (false, false);
    let mut is_recalled = false;
    loop {
        let awake = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            Some(event) = works.next() => {
                works_known |= matches!(event, watcher::Event::InitDone);
                on_work(&agent, event, &mut works_listed)
            }
            Some(event) = records.next() => {
                records_known |= matches!(event, watcher::Event::InitDone);
                on_record(&agent, event, &mut records_listed)
            }
        };
        if works_known && records_known {
            if !is_recalled {
                agent.recall().await;
                is_recalled = true;
            }
            for (key, wake) in awake {
                agent.queue().add((), key, wake).await;
            }
        }
    }
}

/// Events of a kind; errors are logged and waited out.
fn changes<K>(
    api: Api<K>,
    page: u32,
    agent: Arc<Agent>,
    side: Side,
) -> impl Stream<Item = watcher::Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, watcher::Config::default().any_semantic().page_size(page))
        .default_backoff()
        .inspect(move |event| agent.note(side, event))
        .inspect_err(|error| tracing::warn!(kind = %K::kind(&()), %error, "a watch broke; it will be tried again"))
        .filter_map(async |event| event.ok())
}

fn on_work(
    agent: &Agent,
    event: watcher::Event<ManifestWork>,
    listed: &mut HashSet<String>,
) -> Vec<(Key, Wake)> {
    match event {
        watcher::Event::Init => {
            listed.clear();
            Vec::new()
        }
        watcher::Event::InitApply(work) => {
            listed.insert(work.name_any());
            agent.works().put(without_managed_fields(work));
            Vec::new()
        }
        watcher::Event::InitDone => {
            agent.works().keep_only(|name| listed.contains(name));
            agent.everything()
        }
        watcher::Event::Apply(work) => {
            let name = work.name_any();
            let asks = Asks::of(&work);
            let known = agent.works().put(without_managed_fields(work));
            let is_new = known.is_none();
            let is_news = known.is_none_or(|known| Asks::of(&known) != asks);
            let work = is_news.then(|| (Key::Work(name.clone()), Wake::Fresh));
            // A work that comes back calls off the eviction of its record.
            let record = agent
                .record_of(&name)
                .filter(|_| is_new)
                .map(|record| (Key::Record(record), Wake::Now));
            work.into_iter().chain(record).collect()
        }
        watcher::Event::Delete(work) => {
            agent.works().remove(&work.name_any());
            // Without our finalizer a work can vanish before its record does.
            agent
                .record_of(&work.name_any())
                .map(|record| (Key::Record(record), Wake::Now))
                .into_iter()
                .collect()
        }
    }
}

fn on_record(
    agent: &Agent,
    event: watcher::Event<AppliedManifestWork>,
    listed: &mut HashSet<String>,
) -> Vec<(Key, Wake)> {
    let hub = agent.identity().hub.to_string();
    let wake = |record: &AppliedManifestWork| {
        let is_ours = record.spec.hub_hash == hub;
        let work = is_ours.then(|| (Key::Work(record.spec.manifest_work_name.clone()), Wake::Now));
        work.into_iter()
            .chain([(Key::Record(record.name_any()), Wake::Now)])
            .collect::<Vec<_>>()
    };
    match event {
        watcher::Event::Init => {
            listed.clear();
            Vec::new()
        }
        watcher::Event::InitApply(record) => {
            listed.insert(record.name_any());
            if record.spec.hub_hash != hub {
                agent.foreign().put(&record);
            }
            agent.applied_works().put(without_managed_fields(record));
            Vec::new()
        }
        watcher::Event::InitDone => {
            let gone = agent
                .applied_works()
                .keep_only(|name| listed.contains(name));
            for name in gone {
                agent.foreign().remove(&name);
            }
            agent.everything()
        }
        watcher::Event::Apply(record) => {
            let is_news = record.metadata.deletion_timestamp.is_some()
                || agent.applied_works().get(&record.name_any()).is_none();
            let awake = if is_news { wake(&record) } else { Vec::new() };
            if record.spec.hub_hash != hub {
                agent.foreign().put(&record);
            }
            agent.applied_works().put(without_managed_fields(record));
            awake
        }
        watcher::Event::Delete(record) => {
            agent.applied_works().remove(&record.name_any());
            agent.foreign().remove(&record.name_any());
            wake(&record)
        }
    }
}

/// What a work asks for. Anything else about it, its status above all, is no reason to look at it again.
#[derive(PartialEq)]
struct Asks {
    generation: Option<i64>,
    labels: Option<std::collections::BTreeMap<String, String>>,
    finalizers: Vec<String>,
    is_deleting: bool,
    uid: Option<String>,
}

impl Asks {
    fn of(work: &ManifestWork) -> Self {
        Self {
            generation: work.metadata.generation,
            labels: work.metadata.labels.clone(),
            finalizers: work.finalizers().to_vec(),
            is_deleting: work.metadata.deletion_timestamp.is_some(),
            uid: work.uid(),
        }
    }
}

fn without_managed_fields<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

/// Takes turns on works from when this replica leads, until there have been enough.
async fn work(
    agent: Arc<Agent>,
    mut leadership: Leadership,
    enough: CancellationToken,
) -> Result<(), Infallible> {
    tokio::select! {
        () = enough.cancelled() => return Ok(()),
        () = leadership.won() => {}
    }
    loop {
        let turn = tokio::select! {
            biased;
            () = enough.cancelled() => return Ok(()),
            turn = agent.queue().next() => turn,
        };
        let Some(turn) = turn else { return Ok(()) };
        let overtime = async {
            enough.cancelled().await;
            tokio::time::sleep(WIND_DOWN).await;
        };
        tokio::select! {
            () = take(&agent, turn) => {}
            () = overtime => {
                tracing::warn!("cut a pass off, to hand over in time");
                return Ok(());
            }
        }
    }
}

/// Takes one turn. A pass that panics is that work's trouble, and no other's.
async fn take(agent: &Agent, turn: Turn<(), Key>) {
    let begun = Instant::now();
    agent.turns().begin(turn.key(), begun);
    let passed = AssertUnwindSafe(agent.pass(turn.key()))
        .catch_unwind()
        .await;
    agent.turns().end(turn.key());
    let ended = passed.unwrap_or(Err(Error::Panicked));
    agent.metrics.passed(outcome(&ended), begun.elapsed());
    let Err(error) = ended else {
        turn.done();
        return;
    };
    tracing::info!(
        key = ?turn.key(),
        error = &error as &dyn std::error::Error,
        "not finished"
    );
    match error.disposition() {
        Disposition::Retry => turn.retry(),
        Disposition::LookAgain(delay) => turn.after(delay),
        Disposition::Rest => turn.done(),
    }
}
