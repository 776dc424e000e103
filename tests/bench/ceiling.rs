//! The raw ceiling: how many writes a real API server takes, from a client that does nothing else.
//!
//! `cargo bench --bench ceiling`. Other benchmarks state their rate as a share of this one, measured in the same run.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    reason = "a benchmark prints numbers, fails by panicking, and uses a part of the tests' servers"
)]

#[path = "../it/servers/mod.rs"]
mod servers;

mod load;

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use serde_json::json;

use load::Measured;
use servers::Lab;

const REQUESTS: usize = 3_000;

#[tokio::main]
async fn main() {
    let lab = Lab::new();
    let plane = lab.start("ceiling").await;
    let client = plane.client().await;
    println!(
        "{REQUESTS} ConfigMaps each, one API server, {} cores",
        std::thread::available_parallelism().unwrap()
    );
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>9}",
        "", "in flight", "per s", "p50", "p99"
    );
    // The first requests of a new API server pay for its caches; nobody wants to know how much.
    run(&client, "warm", 16, create).await;
    for in_flight in [16, 64] {
        print(
            "create",
            in_flight,
            &run(&client, "create", in_flight, create).await,
        );
    }
    for in_flight in [16, 64] {
        print(
            "server-side apply",
            in_flight,
            &run(&client, "apply", in_flight, apply).await,
        );
    }
    drop((client, plane));
    lab.finish(false);
}

async fn run(
    client: &Client,
    name: &str,
    in_flight: usize,
    request: fn(&str, usize) -> Request<Vec<u8>>,
) -> Measured {
    let namespace = format!("{name}-{in_flight}");
    let object: Namespace =
        serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let requests = (0..REQUESTS)
        .map(|number| request(&namespace, number))
        .collect();
    load::send(client, in_flight, requests).await
}

fn create(namespace: &str, number: usize) -> Request<Vec<u8>> {
    Request::post(format!("/api/v1/namespaces/{namespace}/configmaps"))
        .header("content-type", "application/json")
        .body(config_map(number))
        .unwrap()
}

fn apply(namespace: &str, number: usize) -> Request<Vec<u8>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/load-{number}");
    Request::patch(format!("{path}?fieldManager=work-agent&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(config_map(number))
        .unwrap()
}

/// About the size of a small ConfigMap in a fleet.
fn config_map(number: usize) -> Vec<u8> {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("load-{number}"), "labels": {"app.kubernetes.io/name": "load"}},
        "data": {"number": number.to_string(), "text": "x".repeat(200)},
    })
    .to_string()
    .into_bytes()
}

fn print(what: &str, in_flight: usize, measured: &Measured) {
    let milliseconds = |duration: Duration| format!("{:.1} ms", duration.as_secs_f64() * 1e3);
    println!(
        "{what:<20} {in_flight:>9} {:>9.0} {:>9} {:>9}",
        measured.rate(),
        milliseconds(measured.quantile(0.5)),
        milliseconds(measured.quantile(0.99)),
    );
}
