//! What is counted of requests that wait before they are sent.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{
    label::{Hold, Side},
    requests::SideLabels,
};

/// Of the requests to one side. Clones count together.
#[derive(Debug, Clone)]
pub struct PaceMetrics {
    side: Side,
    limit: Family<SideLabels, Gauge>,
    held: Family<HoldLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HoldLabels {
    side: Side,
    hold: Hold,
}

impl PaceMetrics {
    /// For any side, by [`Self::on`].
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            side: Side::Hub,
            limit: Family::default(),
            held: Family::default(),
        };
        registry.register(
            "requests_limit",
            "Requests that may be in flight",
            metrics.limit.clone(),
        );
        registry.register(
            "requests_held",
            "Requests that had to wait before they were sent",
            metrics.held.clone(),
        );
        for &side in Side::ALL {
            drop(metrics.limit.get_or_create(&SideLabels { side }));
            for &hold in Hold::ALL {
                drop(metrics.held.get_or_create(&HoldLabels { side, hold }));
            }
        }
        metrics
    }

    /// For one side.
    pub(super) fn on(&self, side: Side) -> Self {
        Self {
            side,
            ..self.clone()
        }
    }

    /// So many requests may be in flight.
    pub fn set_limit(&self, limit: usize) {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let labels = SideLabels { side: self.side };
        self.limit.get_or_create(&labels).set(limit);
    }

    /// A request has to wait.
    pub fn held(&self, hold: Hold) {
        let side = self.side;
        self.held.get_or_create(&HoldLabels { side, hold }).inc();
    }

    /// Which side's requests these are.
    pub fn side(&self) -> Side {
        self.side
    }

    #[cfg(test)]
    pub(crate) fn holds(&self, hold: Hold) -> u64 {
        let side = self.side;
        self.held.get_or_create(&HoldLabels { side, hold }).get()
    }
}
