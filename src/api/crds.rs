//! The CustomResourceDefinitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

use super::{
    gitsource::spec::GitSource,
    wellknown::{MANAGED_BY_GITSPOKE, MANAGED_BY_LABEL},
    work::{applied::AppliedManifestWork, spec::ManifestWork},
};

/// The plural names of [`all`], for whoever must know them before it generates anything.
pub const PLURALS: [&str; 3] = ["manifestworks", "appliedmanifestworks", "gitsources"];

/// Every CRD gitspoke knows, in the order they are printed.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        definition(ManifestWork::crd()),
        definition(AppliedManifestWork::crd()),
        definition(GitSource::crd()),
    ]
}

/// Finishes a derived definition: labels it as ours and corrects what the derive cannot express.
fn definition(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.metadata
        .labels
        .get_or_insert_default()
        .insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY_GITSPOKE.to_owned());
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    for version in &mut crd.spec.versions {
        let Some(root) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        root.title = None;
        forbid_null(root);
    }
    crd
}

/// Takes null out of a schema. An `Option` means that a field may be absent; that it may be null is an
/// invention of the schema generator that Open Cluster Management's CRDs do not share.
fn forbid_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    for (_, property) in schema.properties.iter_mut().flatten() {
        forbid_null(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        forbid_null(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_definitions() {
        let names: Vec<String> = all().into_iter().map(|crd| crd.spec.names.plural).collect();
        assert_eq!(names, PLURALS);
    }
}
