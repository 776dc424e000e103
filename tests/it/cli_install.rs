//! `gitspoke install crds`: what it prints is what is in the repository and what a real server takes.

use std::{io::Read, process::Stdio, sync::Arc};

use snapbox::{assert_data_eq, file, str};

use crate::{cli_help::gitspoke, harness::cases, servers::Lab};

cases!(
    plain:
        the_definitions_in_deploy_are_those_it_prints,
        all_of_them_are_printed_as_one_stream,
        names_and_json_are_for_scripts,
        a_reader_that_has_seen_enough_is_no_error,
        logs_are_json_when_asked_for;
    kubernetes:
        kubectl_applies_what_it_prints
);

fn the_definitions_in_deploy_are_those_it_prints() {
    assert_data_eq!(
        printed(&["manifestworks"]),
        file!["../../deploy/crds/manifestworks.yaml"].raw()
    );
    assert_data_eq!(
        printed(&["appliedmanifestworks"]),
        file!["../../deploy/crds/appliedmanifestworks.yaml"].raw()
    );
    assert_data_eq!(
        printed(&["gitsources"]),
        file!["../../deploy/crds/gitsources.yaml"].raw()
    );
}

fn all_of_them_are_printed_as_one_stream() {
    let documents = gitspoke::yaml::read("stdout", printed(&[]).as_bytes()).unwrap();
    let names: Vec<_> = documents
        .iter()
        .map(|crd| crd.pointer("/metadata/name").unwrap().as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "manifestworks.work.open-cluster-management.io",
            "appliedmanifestworks.work.open-cluster-management.io",
            "gitsources.gitspoke.dev",
        ]
    );
}

fn names_and_json_are_for_scripts() {
    gitspoke()
        .args(["install", "crds", "-o", "name"])
        .assert()
        .success()
        .stderr_eq("")
        .stdout_eq(str![[r#"
customresourcedefinition.apiextensions.k8s.io/manifestworks.work.open-cluster-management.io
customresourcedefinition.apiextensions.k8s.io/appliedmanifestworks.work.open-cluster-management.io
customresourcedefinition.apiextensions.k8s.io/gitsources.gitspoke.dev

"#]]);
    let output = gitspoke()
        .args(["install", "crds", "-o", "json"])
        .output()
        .unwrap();
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
}

fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .args(["install", "crds"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success() && said.is_empty(), "{said}");
}

fn logs_are_json_when_asked_for() {
    let arguments = [
        "install",
        "crds",
        "gitsources",
        "-o",
        "name",
        "--log",
        "debug",
        "--log-format",
        "json",
    ];
    let output = gitspoke().args(arguments).output().unwrap();
    let line: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(line["level"], "DEBUG");
    assert_eq!(line["count"], 1);
}

async fn kubectl_applies_what_it_prints(lab: Arc<Lab>) {
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let output = lab
        .hub()
        .await
        .kubectl(&apply, printed(&[]).as_bytes())
        .await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.lines().count(), 3, "{said}");
}

fn printed(names: &[&str]) -> String {
    let output = gitspoke()
        .args(["install", "crds"])
        .args(names)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
