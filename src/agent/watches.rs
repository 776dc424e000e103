//! One watch per kind that a work holds, as works come and go.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use futures::{Stream, StreamExt, stream::SelectAll};
use kube::{
    Api, ResourceExt,
    api::DynamicObject,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher},
};
use tokio_util::sync::CancellationToken;

use super::state::{Agent, Key};
use crate::{
    runtime::queue::Wake,
    spoke::{cluster::ObjectKey, kinds::Kind},
};

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
                for work in take_in(&agent, &kind, event) {
                    agent.queue().add((), Key::Work(work), Wake::Now).await;
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
) -> Vec<String> {
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
            Vec::new()
        }
        Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
            index.appeared(kind, &key(&object), &object.metadata)
        }
        Ok(watcher::Event::Delete(object)) => index.vanished(&key(&object), &object.metadata),
        Ok(watcher::Event::InitDone) => index.listed(kind).into_iter().collect(),
        Err(error) => {
            tracing::warn!(kind = kind.resource.kind, %error, "a watch on the spoke broke; it will be tried again");
            Vec::new()
        }
    }
}
