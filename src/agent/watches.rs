//! One watch per kind that a work holds or waits for, as works come and go.
//!
//! A kind that rules are about is watched whole; of the others, metadata is enough. A kind that cannot be watched, because
//! the agent may not or because it is gone, is looked at now and then instead: its own objects suffer, and nothing else.

use std::{
    collections::{BTreeSet, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    api::DynamicObject,
    core::{PartialObjectMeta, TypeMeta},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    coalesce::Coalesce,
    index::{Awake, Wanted},
    state::{Agent, Key},
};
use crate::{
    runtime::queue::Wake,
    spoke::{cluster::ObjectKey, kinds::Kind},
    telemetry::label::Side,
};

/// How often a kind that cannot be watched is tried again, and its objects are looked at.
const POLL: Duration = Duration::from_mins(1);

type Shown = (Kind, Event);

/// What a watch shows.
enum Event {
    /// A list begins.
    Listing,
    /// An object, in a list or after it.
    There {
        meta: Box<ObjectMeta>,
        body: Option<Value>,
        is_listed: bool,
    },
    /// An object is gone.
    Gone(Box<ObjectMeta>),
    /// The list is done.
    Listed,
    /// The watch broke, and will go on by itself.
    Broken(watcher::Error),
    /// There can be no watch.
    Impossible(Impossible),
}

/// Why there can be no watch.
struct Impossible {
    reason: String,
    /// Whether the kind is gone; it may come back. Otherwise the agent may not watch it.
    is_gone: bool,
}

/// What follows from an event.
#[derive(Default)]
struct Consequence {
    awake: Awake,
    /// Works that waited for this.
    unblocked: Vec<String>,
}

/// Watches every kind that the index wants, until told to stop.
pub async fn watch(
    agent: Arc<Agent>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let mut running: HashMap<Wanted, CancellationToken> = HashMap::new();
    let mut gone: HashSet<Kind> = HashSet::new();
    let mut shown = SelectAll::new();
    let mut coalesce = Coalesce::default();
    follow(&agent, &mut running, &mut shown);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = agent.kinds_changed().notified() => {
                follow(&agent, &mut running, &mut shown);
                for kind in agent.index().back(&mut gone) {
                    start_again(&agent, &kind, Duration::ZERO, &mut running, &mut shown);
                }
            }
            Some((kind, event)) = shown.next(), if !shown.is_empty() => {
                if let Event::Impossible(Impossible { is_gone, .. }) = event {
                    start_again(&agent, &kind, POLL, &mut running, &mut shown);
                    if is_gone {
                        gone.insert(kind.clone());
                    }
                }
                wake(&agent, take_in(&agent, &kind, event), &mut coalesce).await;
            }
        }
    }
}

/// Ends watches that nobody wants any more, and starts those that somebody does.
fn follow(
    agent: &Agent,
    running: &mut HashMap<Wanted, CancellationToken>,
    shown: &mut SelectAll<BoxStream<'static, Shown>>,
) {
    let wanted = agent.index().wanted();
    running.retain(|kind, ended| {
        let is_wanted = wanted.contains(kind);
        if !is_wanted {
            ended.cancel();
        }
        is_wanted
    });
    for wanted in wanted {
        if let Entry::Vacant(vacant) = running.entry(wanted) {
            let ended = CancellationToken::new();
            shown.push(start(agent, vacant.key(), Duration::ZERO, ended.clone()));
            vacant.insert(ended);
        }
    }
}

/// Replaces the watch of a kind that could not be watched by one that will try after a delay.
fn start_again(
    agent: &Agent,
    kind: &Kind,
    delay: Duration,
    running: &mut HashMap<Wanted, CancellationToken>,
    shown: &mut SelectAll<BoxStream<'static, Shown>>,
) {
    for (wanted, ended) in running
        .iter_mut()
        .filter(|(wanted, _)| wanted.kind == *kind)
    {
        ended.cancel();
        *ended = CancellationToken::new();
        shown.push(start(agent, wanted, delay, ended.clone()));
    }
}

fn start(
    agent: &Agent,
    wanted: &Wanted,
    delay: Duration,
    ended: CancellationToken,
) -> BoxStream<'static, Shown> {
    let client = agent.spoke().client().clone();
    let resource = &wanted.kind.resource;
    let events = if !wanted.kind.is_watchable {
        let never = Impossible {
            reason: "its API does not offer it".to_owned(),
            is_gone: false,
        };
        stream::once(async { Event::Impossible(never) }).boxed()
    } else if wanted.is_whole {
        let api: Api<DynamicObject> = Api::all_with(client, resource);
        // Items of a list do not say of which kind they are; rules may ask.
        let types = TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        };
        events(api, move |mut object| {
            object.types = Some(types.clone());
            let body = serde_json::to_value(&object).ok();
            (object.metadata, body)
        })
        .boxed()
    } else {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, resource);
        events(api, |object| (object.metadata, None)).boxed()
    };
    let kind = wanted.kind.clone();
    stream::once(tokio::time::sleep(delay))
        .flat_map(move |()| stream::empty::<Event>())
        .chain(events)
        .map(move |event| (kind.clone(), event))
        .take_until(ended.cancelled_owned())
        .boxed()
}

fn events<K>(
    api: Api<K>,
    reduce: impl Fn(K) -> (ObjectMeta, Option<Value>) + Send + 'static,
) -> impl Stream<Item = Event> + Send
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let there = move |object: K, is_listed: bool| {
        let (meta, body) = reduce(object);
        Event::There {
            meta: Box::new(meta),
            body,
            is_listed,
        }
    };
    let config = watcher::Config::default().any_semantic().page_size(500);
    watcher(api, config)
        .default_backoff()
        .map(move |event| match event {
            Ok(watcher::Event::Init) => Event::Listing,
            Ok(watcher::Event::InitApply(object)) => there(object, true),
            Ok(watcher::Event::InitDone) => Event::Listed,
            Ok(watcher::Event::Apply(object)) => there(object, false),
            Ok(watcher::Event::Delete(object)) => Event::Gone(Box::new(object.meta().clone())),
            Err(error) => match impossible(&error) {
                Some(reason) => Event::Impossible(reason),
                None => Event::Broken(error),
            },
        })
}

/// Why a watch will not come back by itself: the agent may not, or the kind is gone.
fn impossible(error: &watcher::Error) -> Option<Impossible> {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))
    | watcher::Error::WatchError(status)) = error
    else {
        return None;
    };
    matches!(status.code, 403..=405).then(|| Impossible {
        reason: status.message.clone(),
        is_gone: status.code == 404,
    })
}

/// Tells the index what a watch shows, and returns who has something to do.
fn take_in(agent: &Agent, kind: &Kind, event: Event) -> Consequence {
    let key = |meta: &ObjectMeta| ObjectKey {
        group: kind.resource.group.clone(),
        resource: kind.resource.plural.clone(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
    };
    let urgent = |works: BTreeSet<String>| Awake {
        works: works.into_iter().collect(),
        is_urgent: true,
    };
    let mut index = agent.index();
    let mut consequence = Consequence::default();
    match event {
        Event::Listing => {
            agent.metrics.watches.listing(Side::Spoke);
            index.listing(kind);
        }
        Event::There {
            meta,
            body,
            is_listed,
        } => {
            let key = key(&meta);
            consequence.awake = index.appeared(kind, &key, &meta, body);
            // Rights are not about one object: what is listed says only together what is allowed.
            if !(is_listed && is_about_rights(kind)) {
                consequence.unblocked = index.unblocked(&key);
            }
        }
        Event::Gone(meta) => {
            let key = key(&meta);
            consequence.awake = urgent(index.vanished(&key, &meta).into_iter().collect());
            consequence.unblocked = index.unblocked(&key);
        }
        Event::Listed => {
            consequence.awake = urgent(index.listed(kind));
            if is_about_rights(kind) {
                consequence.unblocked = index.unblocked(&key(&ObjectMeta::default()));
            }
        }
        Event::Broken(error) => {
            agent.metrics.watches.broke(Side::Spoke);
            tracing::warn!(kind = kind.resource.kind, %error, "a watch on the spoke broke; it will be tried again");
        }
        Event::Impossible(Impossible { reason, is_gone }) => {
            agent.metrics.watches.broke(Side::Spoke);
            tracing::warn!(
                kind = kind.resource.kind,
                reason,
                "cannot watch a kind on the spoke; looking at its objects every minute instead"
            );
            consequence.awake = urgent(index.unwatchable(kind, is_gone));
        }
    }
    consequence
}

fn is_about_rights(kind: &Kind) -> bool {
    kind.resource.group == "rbac.authorization.k8s.io"
}

async fn wake(agent: &Agent, consequence: Consequence, coalesce: &mut Coalesce) {
    let Consequence { awake, unblocked } = consequence;
    for work in awake.works {
        let when = if awake.is_urgent {
            Wake::Now
        } else {
            Wake::After(coalesce.delay(&work, Instant::now()))
        };
        agent.queue().add((), Key::Work(work), when).await;
    }
    for work in unblocked {
        agent.queue().add((), Key::Work(work), Wake::Fresh).await;
    }
}
