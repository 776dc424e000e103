//! `gitspoke install`: prints what a cluster needs. It reads no cluster and writes to none.

mod agent;
mod rights;
mod workload;

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use serde_json::{Value, json};

use super::{failure::Failure, output};
use crate::{api::crds, yaml};

/// What was typed.
#[derive(Debug, Args)]
pub struct Install {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the CustomResourceDefinitions.
    ///
    /// On a hub that runs Open Cluster Management, print and apply `gitsources` only: the others are already there,
    /// and belong to it.
    #[command(after_help = "Examples:\n  \
        gitspoke install crds | kubectl apply --server-side -f -\n  \
        gitspoke install crds gitsources | kubectl apply --server-side -f -")]
    Crds(Crds),
    /// Print the agent: namespace, rights and Deployment on the spoke, or its rights on the hub.
    ///
    /// The spoke needs the definition of AppliedManifestWork first, and a Secret `hub-kubeconfig-secret` with the hub's
    /// kubeconfig under `kubeconfig`.
    #[command(after_help = "Examples:\n  \
        gitspoke install crds appliedmanifestworks | kubectl apply --server-side -f -\n  \
        gitspoke install agent --spoke-cluster-name edge-1 --image example.com/gitspoke:v0.1.0 | kubectl apply --server-side -f -\n  \
        gitspoke install agent --spoke-cluster-name edge-1 --side hub | kubectl --context hub apply --server-side -f -")]
    Agent(agent::Agent),
}

#[derive(Debug, Args)]
struct Crds {
    /// Which definitions, by plural name; all when none is given.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(crds::PLURALS))]
    names: Vec<String>,

    /// How they are printed.
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Json,
    Name,
}

pub(super) fn run(install: Install) -> Result<(), Failure> {
    match install.what {
        What::Crds(crds) => print(&definitions(&crds)?, crds.output),
        What::Agent(agent) => print(&agent.objects()?, agent.output),
    }
}

fn definitions(wanted: &Crds) -> Result<Vec<Value>, Failure> {
    let mut chosen = crds::all();
    chosen.retain(|crd| wanted.names.is_empty() || wanted.names.contains(&crd.spec.names.plural));
    let values = chosen.iter().map(serde_json::to_value);
    values.collect::<Result<_, _>>().map_err(Failure::new)
}

fn print(objects: &[Value], format: Format) -> Result<(), Failure> {
    tracing::debug!(count = objects.len(), "printing objects");
    let text = match format {
        Format::Yaml => yaml::write_all(objects).map_err(Failure::new)?,
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            format!("{list:#}\n")
        }
        Format::Name => objects.iter().map(name_line).collect(),
    };
    output::write(text.as_bytes())
}

/// A line as `kubectl get -o name` would print it.
fn name_line(object: &Value) -> String {
    let text = |path| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = text("/apiVersion")
        .rsplit_once('/')
        .map(|(group, _)| format!(".{group}"));
    let kind = text("/kind").to_lowercase();
    format!(
        "{kind}{}/{}\n",
        group.unwrap_or_default(),
        text("/metadata/name")
    )
}
