//! Servers that are away, refuse, or drop what was open: the agent waits, comes back, and believes nothing it did not see.

use std::sync::Arc;

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    agent_pair::PATIENCE,
    agent_wired::Wired,
    harness::cases,
    servers::{
        Lab, wait,
        wire::{Outage, Sent, Side},
    },
};

cases!(
    plain: ;
    kubernetes:
        a_hub_that_is_away_does_not_stop_repairs,
        a_spoke_that_refuses_is_asked_again,
        a_spoke_that_wants_quiet_gets_it_and_no_manifest_fails,
        a_spoke_that_copes_with_little_is_asked_for_little,
        a_cut_watch_is_taken_up_without_a_write,
        what_went_while_nobody_could_see_it_comes_back,
        a_restart_reads_no_object_by_itself,
        a_kind_that_can_be_neither_patched_nor_watched_is_served_all_the_same,
);

async fn a_hub_that_is_away_does_not_stop_repairs(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    wired.settled("web").await;
    let before = pair.works().get(&pair.named("web")).await.unwrap();

    wired.wire.set_outage(Side::Hub, Some(Outage::Silent));
    let edit = Patch::Merge(json!({"data": {"key": "wrong"}}));
    pair.maps()
        .patch("one", &PatchParams::default(), &edit)
        .await
        .unwrap();
    wired.until_value("one", "1").await;
    pair.put_manifests("late", &[pair.map("two", "1")]).await;

    wired.wire.set_outage(Side::Hub, None);
    pair.until("late", "Available", "True").await;
    let after = pair.works().get(&pair.named("web")).await.unwrap();
    assert_eq!(
        after.resource_version(),
        before.resource_version(),
        "nothing had changed for the hub"
    );
}

async fn a_spoke_that_refuses_is_asked_again(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    // An agent that has not listed anything yet writes nothing at all.
    pair.put_manifests("first", &[pair.map("first", "1")]).await;
    wired.settled("first").await;
    for code in [429, 500, 503] {
        let work = format!("work-{code}");
        let begin = wired.wire.position();
        wired
            .wire
            .set_outage(Side::Spoke, Some(Outage::Answers(code, 1)));
        pair.put_manifests(&work, &[pair.map(&work, "1")]).await;
        wired
            .until_sent("writes to be refused", begin, 2, |sent| {
                sent.is_write() && sent.code == Some(code)
            })
            .await;
        wired.wire.set_outage(Side::Spoke, None);
        pair.until(&work, "Available", "True").await;
        assert_eq!(pair.value_of(&work).await.as_deref(), Some("1"));
    }
}

/// Works of four manifests each, all new.
async fn put_many(wired: &Wired, prefix: &str, count: usize) -> Vec<String> {
    let pair = &wired.pair;
    let names: Vec<String> = (0..count)
        .map(|number| format!("{prefix}{number}"))
        .collect();
    for name in &names {
        let maps = [0, 1, 2, 3].map(|at| pair.map(&format!("{name}-{at}"), "1"));
        pair.put_manifests(name, &maps).await;
    }
    names
}

/// What went wrong with passes, ever.
async fn failed_passes(wired: &Wired) -> u64 {
    let mut failed = 0;
    for outcome in ["manifests_failed", "spoke_failed", "hub_failed"] {
        let label = format!("outcome=\"{outcome}\"");
        failed += wired.pair.metric("gitspoke_passes_total", &[&label]).await;
    }
    failed
}

async fn limit(wired: &Wired) -> u64 {
    let spoke = [r#"side="spoke""#];
    wired.pair.metric("gitspoke_requests_limit", &spoke).await
}

fn is_turned_away(sent: &Sent) -> bool {
    sent.side == Side::Spoke && sent.code == Some(429)
}

async fn a_spoke_that_wants_quiet_gets_it_and_no_manifest_fails(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    pair.put_manifests("first", &[pair.map("first", "1")]).await;
    wired.settled("first").await;
    let before = limit(&wired).await;

    let begin = wired.wire.position();
    let outage = Outage::TurnsAway("/configmaps/");
    wired.wire.set_outage(Side::Spoke, Some(outage));
    let start = Instant::now();
    let names = put_many(&wired, "web", 20).await;
    // Halved at most once a second.
    wait::until("fewer requests to be allowed", PATIENCE, || async {
        match limit(&wired).await {
            now if now * 8 <= before => Ok(()),
            now => Err(format!("{now} of {before}")),
        }
    })
    .await;
    let seconds = start.elapsed().as_secs() + 1;
    let log = wired.wire.since(begin);
    wired.wire.set_outage(Side::Spoke, None);
    let told: Vec<&Sent> = log
        .iter()
        .filter(|sent| sent.side == Side::Hub && sent.path.contains("/status"))
        .collect();
    assert!(told.is_empty(), "nothing is known to have failed: {told:?}");
    let asked = log.iter().filter(|sent| is_turned_away(sent)).count();
    // Ten workers with four manifests each; after that a few a second find out how it is, and the others wait.
    assert!(asked as u64 <= 40 + 10 * seconds, "{asked} in {seconds} s");
    for name in &names {
        pair.until(name, "Available", "True").await;
    }
    assert_eq!(failed_passes(&wired).await, 0);
}

async fn a_spoke_that_copes_with_little_is_asked_for_little(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    pair.put_manifests("first", &[pair.map("first", "1")]).await;
    wired.settled("first").await;

    let begin = wired.wire.position();
    wired.wire.set_outage(Side::Spoke, Some(Outage::Busy(2)));
    let names = put_many(&wired, "web", 60).await;
    for name in &names {
        pair.until(name, "Available", "True").await;
        for at in 0..4 {
            let value = pair.value_of(&format!("{name}-{at}")).await;
            assert_eq!(value.as_deref(), Some("1"), "{name}-{at}");
        }
    }
    assert_eq!(failed_passes(&wired).await, 0);
    let log = wired.wire.since(begin);
    let turned_away = log.iter().filter(|sent| is_turned_away(sent)).count();
    let writes = log
        .iter()
        .filter(|sent| sent.side == Side::Spoke && sent.is_write());
    let writes = writes.count();
    assert!(turned_away > 0, "it was never too much: {writes} writes");
    assert!(
        turned_away * 2 < writes,
        "{turned_away} of {writes} in vain"
    );
    assert!(limit(&wired).await <= 64);
}

async fn a_cut_watch_is_taken_up_without_a_write(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    let maps = [pair.map("one", "1"), pair.map("two", "1")];
    pair.put_manifests("web", &maps).await;
    wired.settled("web").await;

    let begin = wired.wire.position();
    wired.wire.cut();
    for path in ["/configmaps?", "/manifestworks?", "/appliedmanifestworks?"] {
        wired
            .until_sent(&format!("a new watch of {path}"), begin, 1, |sent| {
                sent.path.contains(path) && sent.path.contains("watch=true")
            })
            .await;
    }
    // A second work goes the whole way, and then the first has been looked at, too.
    pair.put_manifests("other", &[pair.map("three", "1")]).await;
    wired.settled("other").await;
    let (own, other) = (pair.named("web"), pair.named("other"));
    let written: Vec<Sent> = wired
        .wire
        .since(begin)
        .into_iter()
        .filter(|sent| sent.is_write() && !sent.path.contains(&other))
        .filter(|sent| !sent.path.contains("three") && !sent.path.ends_with(RECORDS))
        .collect();
    assert!(
        written.is_empty(),
        "written for {own}, although nothing had changed: {written:?}"
    );
}

/// Where a new record is posted to: the other work's.
const RECORDS: &str = "/appliedmanifestworks?&fieldManager=work-agent";

async fn what_went_while_nobody_could_see_it_comes_back(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    let maps = [pair.map("gone", "1"), pair.map("stays", "1")];
    pair.put_manifests("web", &maps).await;
    wired.settled("web").await;
    let before = pair.maps().get("stays").await.unwrap();

    wired.wire.set_outage(Side::Spoke, Some(Outage::Silent));
    pair.maps()
        .delete("gone", &DeleteParams::default())
        .await
        .unwrap();
    wired.wire.set_outage(Side::Spoke, None);
    wired.until_value("gone", "1").await;
    let after = pair.maps().get("stays").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
}

/// What the list of a new watch shows need not be read again, object by object.
async fn a_restart_reads_no_object_by_itself(lab: Arc<Lab>) {
    let mut wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    let names: Vec<String> = (0..40).map(|number| format!("web{number}")).collect();
    for name in &names {
        let maps = [pair.map(name, "1"), pair.map(&format!("{name}-too"), "1")];
        pair.put_manifests(name, &maps).await;
    }
    for name in &names {
        wired.settled(name).await;
    }

    let begin = wired.wire.position();
    wired.restart();
    let pair = &wired.pair;
    pair.put_manifests("other", &[pair.map("other", "1")]).await;
    wired.settled("other").await;
    let asked: Vec<Sent> = wired
        .wire
        .since(begin)
        .into_iter()
        .filter(|sent| !sent.is_write() && sent.path.contains("/configmaps/web"))
        .collect();
    // The other's own map may be read: it can be newer than the list that a watch begins with.
    assert!(asked.is_empty(), "{} read: {asked:?}", asked.len());
}

/// As an aggregated API may be: it is written whole, and looked at now and then.
async fn a_kind_that_can_be_neither_patched_nor_watched_is_served_all_the_same(lab: Arc<Lab>) {
    let wired = Wired::start(&lab).await;
    let pair = &wired.pair;
    wired.wire.simplify("limitranges");
    let ranges = pair.objects("v1", "LimitRange", true);
    let range = |cpu: &str| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "one", "namespace": pair.cluster},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": cpu}}]},
        })
    };
    pair.put_manifests("web", &[range("1"), pair.map("beside", "1")])
        .await;
    pair.until("web", "Available", "True").await;
    let uid = ranges.get("one").await.unwrap().uid();
    pair.put_manifests("web", &[range("2"), pair.map("beside", "1")])
        .await;
    pair.until("web", "Available", "True").await;
    let live = ranges.get("one").await.unwrap();
    assert_eq!(live.data["spec"]["limits"][0]["max"]["cpu"], "2");
    assert_eq!(
        (live.uid(), live.owner_references().len()),
        (uid, 1),
        "it was replaced in its place"
    );
    pair.put_manifests("web", &[pair.map("beside", "1")]).await;
    pair.until("web", "Applied", "True").await;
    pair.until_object(
        "it to be pruned",
        &ranges,
        "one",
        serde_json::Value::is_null,
    )
    .await;
    pair.delete("web").await;
}
