//! Every metric that is counted as things happen; docs/metrics.md says what each is good for.
//!
//! What is a state rather than an event, such as the depth of the queue, is read when somebody asks: `web/gauges.rs`.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use super::{
    label::{EventFate, Outcome, Side, StopCause},
    machine::Machine,
    requests::Requests,
};

/// The metrics of an agent, a part for each who counts. Clones count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Requests to the hub.
    pub hub: Requests,
    /// Requests to the spoke.
    pub spoke: Requests,
    /// What passes do.
    pub agent: AgentMetrics,
}

/// What the agent counts.
#[derive(Debug, Clone)]
pub struct AgentMetrics {
    passes: Family<PassLabels, Counter>,
    durations: Histogram,
    /// Objects that somebody had changed or deleted and that are again as asked for.
    pub repaired: Counter,
    /// Watches, by side.
    pub watches: WatchMetrics,
    /// Events on works.
    pub events: EventMetrics,
    /// Expressions in works.
    pub expressions: ExpressionMetrics,
}

/// What is counted of watches.
#[derive(Debug, Clone, Default)]
pub struct WatchMetrics {
    breaks: Family<SideLabels, Counter>,
    lists: Family<SideLabels, Counter>,
}

/// What is counted of Events.
#[derive(Debug, Clone, Default)]
pub struct EventMetrics(Family<EventLabels, Counter>);

/// What is counted of expressions.
#[derive(Debug, Clone, Default)]
pub struct ExpressionMetrics(Family<StopLabels, Counter>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SideLabels {
    side: Side,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    fate: EventFate,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StopLabels {
    cause: StopCause,
}

impl Metrics {
    /// Returns metrics at zero, and the registry that exposes them.
    pub fn new() -> (Registry, Self) {
        let mut registry = Registry::default();
        // Any Prometheus client calls these so, and dashboards know them.
        registry.register_collector(Box::new(Machine::new()));
        let ours = registry.sub_registry_with_prefix("gitspoke");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "The running version", build);
        let (hub, spoke) = Requests::pair(ours);
        let agent = AgentMetrics::new(ours);
        (registry, Self { hub, spoke, agent })
    }
}

impl AgentMetrics {
    fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            passes: Family::default(),
            // From a pass that finds nothing to do to one that waits for a slow API server.
            durations: Histogram::new([0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0]),
            repaired: Counter::default(),
            watches: WatchMetrics::default(),
            events: EventMetrics::default(),
            expressions: ExpressionMetrics::default(),
        };
        registry.register("passes", "Passes that ended", metrics.passes.clone());
        registry.register_with_unit(
            "pass_duration",
            "How long passes take",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register(
            "drift_repaired",
            "Objects brought back to what a work asks for after somebody changed or deleted them",
            metrics.repaired.clone(),
        );
        let watches = &metrics.watches;
        registry.register(
            "watch_breaks",
            "Watches that broke and were tried again",
            watches.breaks.clone(),
        );
        registry.register(
            "watch_lists",
            "Lists that a watch began with",
            watches.lists.clone(),
        );
        registry.register("events", "Events on works", metrics.events.0.clone());
        registry.register(
            "expressions_stopped",
            "Expressions in works that were stopped before they ended",
            metrics.expressions.0.clone(),
        );
        metrics.begin_at_zero();
        metrics
    }

    /// A counter that appears with its first event has no rate for that event.
    fn begin_at_zero(&self) {
        for &outcome in Outcome::ALL {
            drop(self.passes.get_or_create(&PassLabels { outcome }));
        }
        for &side in Side::ALL {
            drop(self.watches.breaks.get_or_create(&SideLabels { side }));
            drop(self.watches.lists.get_or_create(&SideLabels { side }));
        }
        for &fate in EventFate::ALL {
            drop(self.events.0.get_or_create(&EventLabels { fate }));
        }
        for &cause in StopCause::ALL {
            drop(self.expressions.0.get_or_create(&StopLabels { cause }));
        }
    }

    /// A pass has ended.
    pub fn passed(&self, outcome: Outcome, took: Duration) {
        self.passes.get_or_create(&PassLabels { outcome }).inc();
        self.durations.observe(took.as_secs_f64());
    }
}

impl WatchMetrics {
    /// A watch broke.
    pub fn broke(&self, side: Side) {
        self.breaks.get_or_create(&SideLabels { side }).inc();
    }

    /// A watch begins, or begins again, with a list.
    pub fn listing(&self, side: Side) {
        self.lists.get_or_create(&SideLabels { side }).inc();
    }
}

impl EventMetrics {
    /// Something became of an Event.
    pub fn count(&self, fate: EventFate) {
        self.0.get_or_create(&EventLabels { fate }).inc();
    }
}

impl ExpressionMetrics {
    /// An expression was stopped.
    pub fn stopped(&self, cause: StopCause) {
        self.0.get_or_create(&StopLabels { cause }).inc();
    }
}
