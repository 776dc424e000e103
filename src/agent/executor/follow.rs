//! Watches the kinds that decide about rights, for as long as a work has an executor.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher},
};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{
    Executors,
    changes::{Changes, Rounds},
    overview::{Overview, Sight},
    question::GRANTING,
};
use crate::{
    agent::state::{Agent, Key},
    api::work::spec::ManifestWork,
    runtime::queue::Wake,
};

/// How often old answers are dropped, and how soon the watches end after the last work with an executor.
const SWEPT: Duration = Duration::from_mins(1);

/// How long the first question waits for the watches to begin. What is asked earlier has to be asked again.
const BEGUN: Duration = Duration::from_secs(2);

type Event = watcher::Result<watcher::Event<PartialObjectMeta<DynamicObject>>>;

/// Watches whenever there is something to watch for, until told to stop.
pub async fn follow(agent: Arc<Agent>, stop: CancellationToken) -> Result<(), Infallible> {
    let until_stopped = async {
        loop {
            agent.executors.wanted.notified().await;
            while_wanted(&agent).await;
        }
    };
    stop.run_until_cancelled(until_stopped)
        .await
        .map_or(Ok(()), |never: Infallible| match never {})
}

/// Returns once no work has an executor any more.
async fn while_wanted(agent: &Agent) {
    let executors = &agent.executors;
    let mut watches = watches(agent.spoke().client());
    let mut overview = Overview::default();
    let mut rounds = Rounds::default();
    let begun = Instant::now() + BEGUN;
    let mut swept = tokio::time::interval_at(Instant::now() + SWEPT, SWEPT);
    swept.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let due = rounds.due();
        tokio::select! {
            Some((kind, event)) = watches.next() => {
                if let Some(changes) = take_in(&mut overview, kind, event) {
                    rounds.add(changes, Instant::now());
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or(begun)), if due.is_some() => {
                let changes = rounds.take(Instant::now());
                executors.answers().forget(&changes);
                wake(agent, &changes).await;
            }
            () = tokio::time::sleep_until(begun), if executors.sight() == Sight::Starting => {}
            // Whoever has a question rings; we are here already.
            () = executors.wanted.notified() => {}
            _ = swept.tick() => {
                executors.answers().sweep(Instant::now(), executors.sight() == Sight::Complete);
                if !has_executors(agent) {
                    executors.answers().forget(&Changes::everywhere());
                    executors.see(Sight::Starting);
                    return;
                }
            }
        }
        look(executors, &overview, begun, &mut rounds);
    }
}

/// Tells those who have questions what the watches are good for.
fn look(executors: &Executors, overview: &Overview, begun: Instant, rounds: &mut Rounds) {
    let now = Instant::now();
    let sight = match overview.sight(now) {
        Sight::Starting if now >= begun => Sight::Partial,
        sight => sight,
    };
    let is_news = executors.see(sight);
    // What was asked while changes could pass unseen is asked again.
    if is_news && sight == Sight::Complete && !executors.answers().is_empty() {
        rounds.add(Changes::everywhere(), now);
    }
}

fn watches(client: &Client) -> impl Stream<Item = (usize, Event)> + Unpin + use<> {
    let kinds: [ApiResource; GRANTING.len()] = [
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<ClusterRole>(&()),
        ApiResource::erase::<ClusterRoleBinding>(&()),
    ];
    stream::select_all(kinds.into_iter().enumerate().map(|(number, kind)| {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client.clone(), &kind);
        let config = watcher::Config::default().any_semantic().page_size(500);
        watcher(api, config)
            .default_backoff()
            .map(move |event| (number, event))
            .boxed()
    }))
}

/// What a watch shows, as a change of rights.
fn take_in(overview: &mut Overview, kind: usize, event: Event) -> Option<Changes> {
    match event {
        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
        Ok(watcher::Event::InitDone) => overview.listed(kind).then(Changes::everywhere),
        Ok(watcher::Event::Apply(object) | watcher::Event::Delete(object)) => {
            overview.shown(kind);
            Some(match object.namespace() {
                Some(namespace) => Changes::of_namespace(&namespace),
                None => Changes::everywhere(),
            })
        }
        Err(error) => {
            if overview.broke(kind, Instant::now()) {
                tracing::warn!(
                    kind = GRANTING[kind],
                    %error,
                    "changes of rights are not seen; answers about executors are believed for a minute only"
                );
            }
            None
        }
    }
}

/// Has the works looked at whose executors' rights may have changed.
async fn wake(agent: &Agent, changes: &Changes) {
    for work in works(agent) {
        if is_concerned(&work, changes) {
            let key = Key::Work(work.name_any());
            // Past failures say nothing about new rights.
            agent.queue().add((), key, Wake::Fresh).await;
        }
    }
}

fn is_concerned(work: &ManifestWork, changes: &Changes) -> bool {
    let mut ids = work
        .spec
        .manifests()
        .iter()
        .filter_map(|manifest| manifest.id().ok());
    work.spec.executor.is_some()
        && (changes.concern("") || ids.any(|id| changes.concern(&id.namespace)))
}

fn has_executors(agent: &Agent) -> bool {
    works(agent)
        .iter()
        .any(|work| work.spec.executor.is_some() && work.metadata.deletion_timestamp.is_none())
}

fn works(agent: &Agent) -> Vec<Arc<ManifestWork>> {
    let works = agent.works();
    let names = works.names();
    names.iter().filter_map(|name| works.get(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_works_with_an_executor_in_the_right_place_are_woken() {
        let executor = json!({"subject": {"type": "ServiceAccount"}});
        let map = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}});
        let shop = Changes::of_namespace("shop");
        let table = [
            (json!(executor), map("shop"), &shop, true),
            (json!(executor), map("bank"), &shop, false),
            (json!(executor), map("bank"), &Changes::everywhere(), true),
            (json!(null), map("shop"), &shop, false),
            (json!(null), map("shop"), &Changes::everywhere(), false),
        ];
        for (executor, manifest, changes, expected) in table {
            let work = ManifestWork::new(
                "web",
                serde_json::from_value(
                    json!({"executor": executor, "workload": {"manifests": [manifest]}}),
                )
                .unwrap(),
            );
            assert_eq!(
                is_concerned(&work, changes),
                expected,
                "{changes:?} {work:?}"
            );
        }
    }
}
