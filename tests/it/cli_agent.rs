//! The agent's flags: ours and those of Open Cluster Management's work agent.

use snapbox::str;

use crate::{cli_help::gitspoke, harness::cases};

cases!(
    plain:
        a_command_line_of_open_cluster_management_is_understood,
        of_two_values_the_last_counts,
        flags_that_cannot_be_meant_are_wrong_usage;
    kubernetes:
);

/// Every flag its work agent has. The hub's kubeconfig does not exist, so this is as far as it gets.
fn a_command_line_of_open_cluster_management_is_understood() {
    let arguments = [
        "agent",
        "--log-format=json",
        "--cluster-name=edge-1",
        "--agent-id=a",
        "--workload-source-driver=kube",
        "--workload-source-config=/does/not/exist/kubeconfig",
        "--cloudevents-client-id=c",
        "--cloudevents-client-codecs=manifestbundle",
        "--status-sync-interval=1m30s",
        "--appliedmanifestwork-eviction-grace-period=1h",
        "--max-json-raw-length=512",
        "--max-feedback-watch=50",
        "--workload-agent-workers=4",
        "--kube-api-qps=50",
        "--kube-api-burst=100",
        "--hub-kube-api-qps=50",
        "--hub-kube-api-burst=100",
        "--spoke-kubeconfig=/does/not/exist/spoke",
        "--hub-kubeconfig-dir=/does/not/exist",
        "--listen=:8443",
        "--terminate-on-files=/one,/two",
        "--terminate-on-files=/three",
        "--namespace=somewhere",
        "--disable-leader-election=true",
        "--leader-election-lease-duration=137s",
        "--leader-election-renew-deadline=1m47s",
        "--leader-election-retry-period=26s",
        "--config=/etc/config.yaml",
        "--tls-min-version=VersionTLS12",
        "--tls-cipher-suites=TLS_AES_128_GCM_SHA256",
        "--feature-gates=RawFeedbackJsonString=true,ExecutorValidatingCaches=true",
        "--feature-gates=RawFeedbackJsonString=false",
    ];
    let output = gitspoke().args(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("error: could not read kubeconfig /does/not/exist/kubeconfig"),
        "{said}"
    );
    let warned: Vec<String> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["level"] == "WARN")
        .map(|line| line["message"].as_str().unwrap().to_owned())
        .collect();
    let without_effect: Vec<&str> = warned
        .iter()
        .filter_map(|line| Some(line.split_once(" has no effect: ")?.0))
        .collect();
    assert_eq!(
        without_effect,
        [
            "--status-sync-interval",
            "--max-feedback-watch",
            "--kube-api-qps",
            "--kube-api-burst",
            "--hub-kube-api-qps",
            "--hub-kube-api-burst",
            "--cloudevents-client-id",
            "--cloudevents-client-codecs",
            "--tls-min-version",
            "--tls-cipher-suites",
            "--config",
        ],
        "{said}"
    );
}

fn of_two_values_the_last_counts() {
    let hub = ["--hub-kubeconfig=/one", "--workload-source-config=/two"];
    gitspoke()
        .args(["agent", "--spoke-cluster-name=edge-1"])
        .args(["--listen=127.0.0.1:0", "--log=error"])
        .args(hub)
        .assert()
        .code(3)
        .stderr_eq(str![[r#"
error: could not read kubeconfig /two
...
"#]]);
}

fn flags_that_cannot_be_meant_are_wrong_usage() {
    let refused = |flag: &str| {
        let output = gitspoke()
            .args(["agent", "--spoke-cluster-name=edge-1", flag])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}: {said}");
        said.lines().next().unwrap().to_owned()
    };
    let table = [
        ("--workload-source-driver=grpc", "the only driver is kube"),
        (
            "--feature-gates=Everything=true",
            "the gates are RawFeedbackJsonString and ExecutorValidatingCaches",
        ),
        ("--workers=0", "0 is not in 1..=65535"),
        (
            "--appliedmanifestwork-eviction-grace-period=60",
            "missing a unit",
        ),
        (
            "--appliedmanifestwork-eviction-grace-period=-1s",
            "cannot be negative",
        ),
        (
            "--leader-election-renew-deadline=15s",
            "a lease of 15s with a deadline of 15s",
        ),
        (
            "--leader-election-retry-period=0s",
            "--leader-election-retry-period is zero",
        ),
        ("--listen=somewhere", "write an IP address and a port"),
    ];
    for (flag, expected) in table {
        let said = refused(flag);
        assert!(said.contains(expected), "{flag}: {said}");
    }
}
