//! `gitspoke install`: prints what a cluster needs. It reads no cluster and writes to none.

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

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
        What::Crds(crds) => print_crds(&crds),
    }
}

fn print_crds(wanted: &Crds) -> Result<(), Failure> {
    let mut chosen = crds::all();
    chosen.retain(|crd| wanted.names.is_empty() || wanted.names.contains(&crd.spec.names.plural));
    tracing::debug!(count = chosen.len(), "printing custom resource definitions");
    let text = match wanted.output {
        Format::Yaml => yaml::write_all(&chosen).map_err(Failure::new)?,
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": chosen});
            format!("{list:#}\n")
        }
        Format::Name => chosen.iter().map(name_line).collect(),
    };
    output::write(text.as_bytes())
}

/// A line as `kubectl get -o name` would print it.
fn name_line(crd: &CustomResourceDefinition) -> String {
    format!(
        "customresourcedefinition.apiextensions.k8s.io/{}.{}\n",
        crd.spec.names.plural, crd.spec.group
    )
}
