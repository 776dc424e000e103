//! A pair with a wire between the agent and its servers, for cases about what is sent and about what breaks.

use std::sync::Arc;

use kube::ResourceExt;
use tempfile::TempDir;

use crate::{
    agent_pair::{PATIENCE, Pair},
    servers::{
        Lab, wait,
        wire::{Sent, Side, Wire},
    },
};

/// A pair with a wire between the agent and its servers.
pub(crate) struct Wired {
    pub(crate) pair: Pair,
    pub(crate) wire: Arc<Wire>,
    _kubeconfigs: TempDir,
}

impl Wired {
    pub(crate) async fn start(lab: &Lab) -> Self {
        let wire = Wire::new();
        let directory = TempDir::new().unwrap();
        let hub = lab.hub().await.client().await;
        let spoke = lab.spoke().await.client().await;
        let hub = wire.open(Side::Hub, hub, directory.path()).await;
        let spoke = wire.open(Side::Spoke, spoke, directory.path()).await;
        let pair = Pair::start_between(lab, &hub, &spoke, &[]).await;
        wire.target(pair.agent_pid());
        Self {
            pair,
            wire,
            _kubeconfigs: directory,
        }
    }

    /// Starts the agent again, dead or alive.
    pub(crate) fn restart(&mut self) {
        self.pair.restart();
        self.wire.target(self.pair.agent_pid());
    }

    /// Waits until so many requests that satisfy this have been answered since.
    pub(crate) async fn until_sent(
        &self,
        what: &str,
        begin: usize,
        count: usize,
        is_it: impl Fn(&Sent) -> bool,
    ) {
        wait::until(what, PATIENCE, || async {
            let log = self.wire.since(begin);
            let found = log.iter().filter(|sent| is_it(sent)).count();
            if found >= count {
                Ok(())
            } else {
                Err(format!("{found} of {count}"))
            }
        })
        .await;
    }

    pub(crate) async fn until_value(&self, name: &str, value: &str) {
        let pair = &self.pair;
        wait::until(&format!("{name} to be {value}"), PATIENCE, || async {
            match pair.value_of(name).await {
                Some(found) if found == value => Ok(()),
                found => Err(format!("{found:?}")),
            }
        })
        .await;
    }

    /// Waits until a work and its record are as they stay.
    pub(crate) async fn settled(&self, work: &str) {
        self.pair.until(work, "Available", "True").await;
        wait::until("the marks", PATIENCE, || async {
            let record = self.pair.record_of(work).await;
            match record.annotations().get("gitspoke.dev/applied") {
                Some(_) => Ok(()),
                None => Err("not there".to_owned()),
            }
        })
        .await;
    }
}
