//! One watch per kind that a work holds, as works come and go.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt, stream::SelectAll};
use kube::{
    Api, ResourceExt,
    api::DynamicObject,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher},
};
use tokio_util::sync::CancellationToken;

use super::{
    index::Awake,
    state::{Agent, Key},
};
use crate::{
    runtime::queue::Wake,
    spoke::{cluster::ObjectKey, kinds::Kind},
};

/// Values that rules report may change many times a second; the hub is told once.
const COALESCED: Duration = Duration::from_secs(1);

type Shown = (
    Kind,
    watcher::Result<watcher::Event<PartialObjectMeta<DynamicObject>>>,
);

/// Watches every kind that the index holds objects of, until told to stop.
pub async fn watch(
    agent: Arc<Agent>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let mut running: HashMap<Kind, CancellationToken> = HashMap::new();
    let mut shown = SelectAll::new();
    loop {
        let wanted = agent.index().kinds();
        running.retain(|kind, ended| {
            let is_wanted = wanted.contains(kind);
            if !is_wanted {
                ended.cancel();
            }
            is_wanted
        });
        for kind in wanted {
            if let Entry::Vacant(vacant) = running.entry(kind) {
                let ended = CancellationToken::new();
                shown.push(start(&agent, vacant.key(), ended.clone()).boxed());
                vacant.insert(ended);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = agent.kinds_changed().notified() => {}
            Some((kind, event)) = shown.next(), if !shown.is_empty() => {
                let awake = take_in(&agent, &kind, event);
                let wake = if awake.is_urgent { Wake::Now } else { Wake::After(COALESCED) };
                for work in awake.works {
                    agent.queue().add((), Key::Work(work), wake).await;
                }
            }
        }
    }
}

fn start(
    agent: &Agent,
    kind: &Kind,
    ended: CancellationToken,
) -> impl Stream<Item = Shown> + use<> {
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(agent.spoke().client().clone(), &kind.resource);
    let kind = kind.clone();
    watcher(
        api,
        watcher::Config::default().any_semantic().page_size(500),
    )
    .default_backoff()
    .map(move |event| (kind.clone(), event))
    .take_until(ended.cancelled_owned())
}

/// Tells the index what a watch shows, and returns the works that have something to do.
fn take_in(
    agent: &Agent,
    kind: &Kind,
    event: watcher::Result<watcher::Event<PartialObjectMeta<DynamicObject>>>,
) -> Awake {
    let key = |object: &PartialObjectMeta<DynamicObject>| ObjectKey {
        group: kind.resource.group.clone(),
        resource: kind.resource.plural.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    };
    let mut index = agent.index();
    match event {
        Ok(watcher::Event::Init) => {
            index.listing(kind);
            Awake::default()
        }
        Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
            index.appeared(kind, &key(&object), &object.metadata)
        }
        Ok(watcher::Event::Delete(object)) => {
            let works = index.vanished(&key(&object), &object.metadata);
            Awake {
                works,
                is_urgent: true,
            }
        }
        Ok(watcher::Event::InitDone) => Awake {
            works: index.listed(kind).into_iter().collect(),
            is_urgent: true,
        },
        Err(error) => {
            tracing::warn!(kind = kind.resource.kind, %error, "a watch on the spoke broke; it will be tried again");
            Awake::default()
        }
    }
}
