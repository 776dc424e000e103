//! Flags of Open Cluster Management's work agent that are accepted so that its command lines keep working, and that
//! have nothing to switch here.

use clap::Args;

/// What was typed. Any value will do: none is used.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Accepted from Open Cluster Management, without effect")]
pub(super) struct Ignored {
    /// Statuses are not polled: they follow the objects by watches.
    #[arg(long, hide_short_help = true, value_name = "DURATION")]
    status_sync_interval: Option<String>,

    /// There is one watch per kind, whatever the number of objects.
    #[arg(long, hide_short_help = true, value_name = "N")]
    max_feedback_watch: Option<String>,

    /// Requests are few, and slowed down by the server alone.
    #[arg(long, hide_short_help = true, value_name = "N")]
    kube_api_qps: Option<String>,

    /// Requests are few, and slowed down by the server alone.
    #[arg(long, hide_short_help = true, value_name = "N")]
    kube_api_burst: Option<String>,

    /// Requests are few, and slowed down by the server alone.
    #[arg(long, hide_short_help = true, value_name = "N")]
    hub_kube_api_qps: Option<String>,

    /// Requests are few, and slowed down by the server alone.
    #[arg(long, hide_short_help = true, value_name = "N")]
    hub_kube_api_burst: Option<String>,

    /// Works come from the hub's API, not from a message bus.
    #[arg(long, hide_short_help = true, value_name = "ID")]
    cloudevents_client_id: Option<String>,

    /// Works come from the hub's API, not from a message bus.
    #[arg(long, hide_short_help = true, value_name = "CODECS")]
    cloudevents_client_codecs: Option<String>,

    /// The health endpoint does not speak TLS.
    #[arg(long, hide_short_help = true, value_name = "VERSION")]
    tls_min_version: Option<String>,

    /// The health endpoint does not speak TLS.
    #[arg(long, hide_short_help = true, value_name = "NAMES")]
    tls_cipher_suites: Option<String>,

    /// Every setting is a flag.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    config: Option<String>,
}

impl Ignored {
    /// The flags that were given, each with why it does nothing.
    pub(super) fn given(&self) -> Vec<(&'static str, &'static str)> {
        let watches = "statuses follow the objects by watches, nothing is polled";
        let one_watch = "there is one watch per kind, whatever the number of objects";
        let rate = "requests are few, and slowed down by the server alone";
        let bus = "works come from the hub's API, not from a message bus";
        let tls = "the health endpoint does not speak TLS";
        let all = [
            (
                "--status-sync-interval",
                &self.status_sync_interval,
                watches,
            ),
            ("--max-feedback-watch", &self.max_feedback_watch, one_watch),
            ("--kube-api-qps", &self.kube_api_qps, rate),
            ("--kube-api-burst", &self.kube_api_burst, rate),
            ("--hub-kube-api-qps", &self.hub_kube_api_qps, rate),
            ("--hub-kube-api-burst", &self.hub_kube_api_burst, rate),
            ("--cloudevents-client-id", &self.cloudevents_client_id, bus),
            (
                "--cloudevents-client-codecs",
                &self.cloudevents_client_codecs,
                bus,
            ),
            ("--tls-min-version", &self.tls_min_version, tls),
            ("--tls-cipher-suites", &self.tls_cipher_suites, tls),
            ("--config", &self.config, "every setting is a flag"),
        ];
        let given = all.into_iter().filter(|(_, value, _)| value.is_some());
        given.map(|(flag, _, why)| (flag, why)).collect()
    }
}
