//! Metrics that are states: read off the agent when somebody asks.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::subject::Subject;
use crate::agent::census::Census;

/// Reads a process when asked.
pub(super) struct Gauges(pub(super) Subject);

impl fmt::Debug for Gauges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Gauges")
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let leader = ConstGauge::new(i64::from(self.0.is_leading()));
        leader.encode(encoder.encode_descriptor(
            "leader",
            "Whether this replica writes",
            None,
            leader.metric_type(),
        )?)?;
        match self.0.agent() {
            Some(agent) => census(&mut encoder, &agent.census()),
            None => Ok(()),
        }
    }
}

fn census(encoder: &mut DescriptorEncoder<'_>, census: &Census) -> fmt::Result {
    let works = census.works.iter();
    let works = works.map(|(state, count)| ([("state", state.as_str())], *count));
    family(encoder, "works", "Works by state", works)?;

    let kinds = &census.kinds;
    let labels = |at: usize| {
        let resource = &kinds[at].0.resource;
        [("group", &*resource.group), ("kind", &*resource.kind)]
    };
    let objects = (0..kinds.len()).map(|at| (labels(at), kinds[at].1));
    family(encoder, "objects", "Objects that works hold", objects)?;
    let synced = (0..kinds.len()).map(|at| (labels(at), usize::from(kinds[at].2)));
    let help = "Whether the watch on a kind is up to date";
    family(encoder, "kind_synced", help, synced)?;

    let queue = &census.queue;
    let keys = [
        ("ready", queue.ready),
        ("delayed", queue.delayed),
        ("running", queue.running),
    ];
    let keys = keys
        .into_iter()
        .map(|(state, count)| ([("state", state)], count));
    family(encoder, "queue_keys", "Keys in the work queue", keys)?;
    let counters = [
        (
            "queue_added",
            "Wake-ups that brought a new key in",
            queue.added,
        ),
        (
            "queue_coalesced",
            "Wake-ups that melted into a key already inside",
            queue.coalesced,
        ),
        (
            "queue_full",
            "Wake-ups that found the queue full",
            queue.full,
        ),
        ("queue_turns", "Turns that were begun", queue.served),
        (
            "queue_retries",
            "Turns that ended in a retry",
            queue.retried,
        ),
    ];
    for (name, help, count) in counters {
        let counter = ConstCounter::new(count);
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
    }
    Ok(())
}

/// A gauge for each set of labels.
fn family<'a, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = ([(&'static str, &'a str); N], usize)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}
