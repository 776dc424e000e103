//! Writes Events to the hub, beside the passes: neither a slow hub nor one that forbids it holds a work up.

use std::{collections::HashMap, convert::Infallible, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Announcement;
use crate::{
    api::work::spec::ManifestWork,
    telemetry::{label::EventFate, metrics::EventMetrics},
};

/// Events that may wait. Ten workers tell of up to twenty things each; what is beyond is dropped and counted.
const WAITING: usize = 256;

/// How long one Event may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long Events that wait may take when the agent ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the same Event is counted up instead of being written again; kube's recorder forgets as fast.
const REMEMBERED: Duration = Duration::from_mins(6);

/// How many texts are remembered: at a kilobyte each, a megabyte.
const MOST_REMEMBERED: usize = 1024;

/// Where passes leave what is to be told.
#[derive(Debug, Clone)]
pub struct Announcer {
    waiting: Sender<(ObjectReference, Announcement)>,
    metrics: EventMetrics,
}

/// What is to be told, on its way to the hub.
pub struct Announced(Receiver<(ObjectReference, Announcement)>);

/// Returns both ends.
pub fn pair(metrics: EventMetrics) -> (Announcer, Announced) {
    let (waiting, announced) = channel(WAITING);
    (Announcer { waiting, metrics }, Announced(announced))
}

impl Announcer {
    /// Leaves what is to be told about a work. Never waits.
    pub fn tell(&self, work: &ManifestWork, told: Vec<Announcement>) {
        for announcement in told {
            let about = work.object_ref(&());
            if self.waiting.try_send((about, announcement)).is_err() {
                self.metrics.count(EventFate::Dropped);
            }
        }
    }
}

/// Writes what is told, until told to stop.
pub async fn publish(
    mut announced: Announced,
    client: Client,
    metrics: EventMetrics,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let mut recorders = Recorders::new(client);
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => break,
            told = announced.0.recv() => told,
        };
        let Some((about, told)) = told else { break };
        recorders.write(&about, &told, &metrics).await;
    }
    let rest = async {
        while let Ok((about, told)) = announced.0.try_recv() {
            recorders.write(&about, &told, &metrics).await;
        }
    };
    if timeout(LAST_WORDS, rest).await.is_err() {
        tracing::info!("some Events were not written before the end");
    }
    Ok(())
}

/// A recorder counts an Event up that differs from an earlier one in its text only, and the earlier text stays. What a
/// failure says is what matters here, so each text has a recorder of its own.
struct Recorders {
    client: Client,
    reporter: Reporter,
    by_note: HashMap<String, (Recorder, Instant)>,
    /// Whether the log has said that Events cannot be written; what fails once usually fails on.
    is_logged: bool,
}

impl Recorders {
    fn new(client: Client) -> Self {
        Self {
            client,
            reporter: Reporter::from("gitspoke-agent"),
            by_note: HashMap::new(),
            is_logged: false,
        }
    }

    async fn write(
        &mut self,
        about: &ObjectReference,
        told: &Announcement,
        metrics: &EventMetrics,
    ) {
        let event = Event {
            type_: if told.is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: told.reason.clone(),
            note: Some(told.note.clone()),
            action: "Apply".to_owned(),
            secondary: None,
        };
        let recorder = self.recorder(&told.note);
        let error = match timeout(PATIENCE, recorder.publish(&event, about)).await {
            Ok(Ok(())) => {
                self.is_logged = false;
                return metrics.count(EventFate::Written);
            }
            Ok(Err(kube::Error::Api(status))) => status.message,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer after {PATIENCE:?}"),
        };
        metrics.count(EventFate::Failed);
        // The next try of the same text must not count up an Event that may not be there.
        self.by_note.remove(&told.note);
        if !std::mem::replace(&mut self.is_logged, true) {
            let work = about.name.as_deref();
            tracing::warn!(
                work,
                error,
                "could not write an Event; statuses say the same, and the next failures are only counted"
            );
        }
    }

    fn recorder(&mut self, note: &str) -> Recorder {
        let now = Instant::now();
        if self.by_note.len() >= MOST_REMEMBERED {
            self.by_note
                .retain(|_, (_, since)| now.duration_since(*since) < REMEMBERED);
        }
        if self.by_note.len() >= MOST_REMEMBERED {
            self.by_note.clear();
        }
        let fresh = || {
            (
                Recorder::new(self.client.clone(), self.reporter.clone()),
                now,
            )
        };
        let (recorder, since) = self.by_note.entry(note.to_owned()).or_insert_with(fresh);
        *since = now;
        recorder.clone()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::{api::work::spec::ManifestWorkSpec, telemetry::metrics::Metrics};

    #[test]
    fn a_hub_that_takes_no_events_holds_nobody_up() {
        let (registry, metrics) = Metrics::new();
        let (announcer, _nobody_listens) = pair(metrics.agent.events);
        let work = ManifestWork::new("web", ManifestWorkSpec::default());
        let told = Announcement {
            is_warning: true,
            reason: "R".to_owned(),
            note: "n".to_owned(),
        };
        announcer.tell(&work, vec![told; WAITING + 3]);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let expected = r#"gitspoke_events_total{fate="dropped"} 3"#;
        assert!(text.lines().any(|line| line == expected), "{text}");
    }
}
