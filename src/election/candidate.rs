//! Carries out what `decide.rs` decides: watches the lease, writes it, tells how this replica stands.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Error, Settings, Standing,
    decide::{Known, Step},
};

/// A leader that is told to end has this long to hand over.
const HAND_OVER: Duration = Duration::from_secs(1);

pub(super) struct Candidate {
    api: Api<Lease>,
    settings: Settings,
    /// Where this process' time begins.
    start: Instant,
    known: Known,
    standing: watch::Sender<Standing>,
}

impl Candidate {
    pub(super) fn new(
        client: Client,
        settings: Settings,
        standing: watch::Sender<Standing>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &settings.namespace),
            settings,
            start: Instant::now(),
            known: Known::default(),
            standing,
        }
    }

    /// Stands for election until told to stop, and then leaves the lease to others.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let refused = tokio::select! {
            () = stop.cancelled() => None,
            refused = self.stand() => refused.err(),
        };
        if let Some(error) = refused {
            return Err(error);
        }
        // After a loss, those who acted as the leader end first: only then may a successor start.
        stop.cancelled().await;
        match timeout(HAND_OVER, self.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not release the lease; it runs out"),
            Err(_) => tracing::warn!("the lease was not released in time; it runs out"),
        }
        Ok(())
    }

    /// Returns when leadership is lost.
    async fn stand(&mut self) -> Result<(), Error> {
        let (api, name) = (self.api.clone(), self.settings.name.clone());
        let mut changes = pin!(watcher::watch_object(api, &name).default_backoff());
        self.look().await?;
        loop {
            match self.next_step() {
                Step::Wait(rest) => tokio::select! {
                    Some(change) = changes.next() => match change {
                        Ok(lease) => self.see(lease),
                        Err(error) => tracing::warn!(%error, lease = name, "the watch on the lease broke; it will be tried again"),
                    },
                    () = sleep(rest) => {}
                },
                Step::Write => self.write().await?,
            }
            if self.tell() == Standing::Lost {
                tracing::warn!(
                    rival = self.known.rival(&self.settings.identity),
                    "no longer the leader"
                );
                return Ok(());
            }
        }
    }

    /// Tells everybody how this replica stands.
    fn tell(&self) -> Standing {
        let is_leading = self
            .known
            .is_leading(&self.settings.rhythm, self.start.elapsed());
        let before = *self.standing.borrow();
        let now = match (before, is_leading) {
            (Standing::Lost, _) | (Standing::Leading, false) => Standing::Lost,
            (_, true) => Standing::Leading,
            (Standing::Waiting, false) => Standing::Waiting,
        };
        if now != before {
            self.standing.send_replace(now);
            if now == Standing::Leading {
                tracing::info!(
                    identity = self.settings.identity,
                    lease = self.settings.name,
                    "leading"
                );
            }
        }
        now
    }

    fn next_step(&self) -> Step {
        let now = self.start.elapsed();
        self.known
            .step(&self.settings.rhythm, &self.settings.identity, now)
    }

    fn see(&mut self, lease: Option<Lease>) {
        let before = self.known.rival(&self.settings.identity).map(str::to_owned);
        let now = self.start.elapsed();
        self.known.see(lease, &self.settings.identity, now);
        let rival = self.known.rival(&self.settings.identity);
        if rival.is_some() && rival != before.as_deref() {
            tracing::info!(
                leader = rival,
                lease = self.settings.name,
                "another replica leads"
            );
        }
    }

    /// Writes the lease in our name. What fails is tried again; what can never succeed is an error.
    async fn write(&mut self) -> Result<(), Error> {
        let began = self.start.elapsed();
        let rhythm = self.settings.rhythm;
        // A leader must not learn from a request that hangs that its time was over long ago.
        let patience = self
            .known
            .left(&rhythm, began)
            .unwrap_or(rhythm.renew_deadline);
        let lease = self
            .known
            .taken(&rhythm, &self.settings.identity, Timestamp::now());
        let answer = timeout(patience, self.put(lease)).await;
        match answer {
            Ok(Ok(lease)) => self.known.written(lease, began),
            Ok(Err(error)) if self.is_outdated(&error) => return self.look().await,
            Ok(Err(error)) => {
                self.refused(&error)?;
                tracing::warn!(%error, lease = self.settings.name, "could not write the lease; will try again");
                self.pause().await;
            }
            Err(_) => {
                tracing::warn!(
                    lease = self.settings.name,
                    ?patience,
                    "no answer to a write of the lease"
                );
            }
        }
        Ok(())
    }

    /// Reads the lease, as often as it takes.
    async fn look(&mut self) -> Result<(), Error> {
        let rhythm = self.settings.rhythm;
        loop {
            let left = self.known.left(&rhythm, self.start.elapsed());
            let patience = left.unwrap_or(rhythm.renew_deadline);
            match timeout(patience, self.api.get_opt(&self.settings.name)).await {
                Ok(Ok(lease)) => {
                    self.see(lease);
                    return Ok(());
                }
                Ok(Err(error)) => {
                    self.refused(&error)?;
                    tracing::warn!(%error, lease = self.settings.name, "could not read the lease; will try again");
                }
                Err(_) => {
                    tracing::warn!(lease = self.settings.name, "no answer about the lease");
                }
            }
            if self.tell() == Standing::Lost {
                return Ok(());
            }
            self.pause().await;
        }
    }

    async fn put(&self, mut lease: Lease) -> Result<Lease, kube::Error> {
        let params = PostParams {
            field_manager: Some(self.settings.field_manager.clone()),
            ..PostParams::default()
        };
        if self.known.exists() {
            // The resource version in it makes sure that nobody has written since we looked.
            self.api.replace(&self.settings.name, &params, &lease).await
        } else {
            lease.metadata.name = Some(self.settings.name.clone());
            self.api.create(&params, &lease).await
        }
    }

    async fn release(&mut self) -> Result<(), kube::Error> {
        // Told to stop in the middle of a renewal, we may know an older version than the server.
        for is_last in [false, true] {
            let identity = self.settings.identity.clone();
            let Some(lease) = self.known.released(&identity, Timestamp::now()) else {
                return Ok(());
            };
            match self.put(lease).await {
                Err(error) if self.is_outdated(&error) && !is_last => {
                    let lease = self.api.get_opt(&self.settings.name).await?;
                    self.see(lease);
                }
                answer => {
                    answer?;
                    tracing::info!(lease = self.settings.name, "released the lease");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Waits before another attempt, but not beyond the end of our leadership.
    async fn pause(&self) {
        let rhythm = &self.settings.rhythm;
        let left = self.known.left(rhythm, self.start.elapsed());
        sleep(left.unwrap_or(rhythm.retry).min(rhythm.retry)).await;
    }

    /// Whether a write failed because somebody has written or deleted the lease since we looked.
    fn is_outdated(&self, error: &kube::Error) -> bool {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => return false,
        };
        code == 409 || (code == 404 && self.known.exists())
    }

    /// Whether there is no point in trying again. A leader may be refused for a moment, while rights are changed; a
    /// newcomer is told at once.
    fn refused(&self, error: &kube::Error) -> Result<(), Error> {
        if *self.standing.borrow() != Standing::Waiting {
            return Ok(());
        }
        let (namespace, name) = (self.settings.namespace.clone(), self.settings.name.clone());
        match error {
            // A lease that does not exist is no error here, so this is about its namespace.
            kube::Error::Api(status) if status.code == 404 => {
                Err(Error::NoNamespace { namespace, name })
            }
            kube::Error::Api(status) if status.code == 403 => Err(Error::Forbidden {
                namespace,
                name,
                source: Box::new(kube::Error::Api(status.clone())),
            }),
            _ => Ok(()),
        }
    }
}
