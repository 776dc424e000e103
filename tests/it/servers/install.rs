//! Installs our CRDs on a control plane.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{conditions, wait::await_condition},
};

/// Applies every CRD and waits until each is established. Doing it twice changes nothing.
pub(crate) async fn crds(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in gitspoke::api::crds::all() {
        let name = crd.name_any();
        let params = PatchParams::apply("gitspoke-tests").force();
        api.patch(&name, &params, &Patch::Apply(&crd))
            .await
            .unwrap_or_else(|error| panic!("could not apply CRD {name}: {error}"));
        let established = await_condition(api.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_mins(1), established)
            .await
            .unwrap_or_else(|_| panic!("CRD {name} is not established after a minute"))
            .unwrap_or_else(|error| panic!("could not watch CRD {name}: {error}"));
    }
}
