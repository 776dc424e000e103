//! Single requests to the cluster.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    ManagedFieldsEntry, ObjectMeta, OwnerReference,
};
use kube::{
    Api, Client,
    api::{
        DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
        PropagationPolicy,
    },
};
use serde_json::{Value, json};

use super::{
    error::Error,
    kinds::{Kind, Kinds},
};

/// A managed cluster.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    kinds: Arc<Kinds>,
}

/// Where an object is. The version is left out: an object served under a new one is the same object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// API group, empty for core.
    pub group: String,
    /// Lower-case plural of the kind.
    pub resource: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Cluster {
    /// A cluster behind a client.
    pub fn new(client: Client) -> Self {
        Self {
            kinds: Arc::new(Kinds::new(client.clone())),
            client,
        }
    }

    /// The client, for watches.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the cluster serves.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Writes an object by server-side apply, and returns its metadata.
    pub async fn apply(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        body: &Value,
        field_manager: &str,
        force: bool,
    ) -> Result<ObjectMeta, Error> {
        let mut params = PatchParams::apply(field_manager);
        params.force = force;
        let answer = self
            .api(kind, key)
            .patch_metadata(&key.name, &params, &Patch::Apply(body))
            .await;
        Ok(self.checked(kind, answer).await?.metadata)
    }

    /// Tries an apply without writing anything, and returns what the object would be.
    pub async fn try_apply(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        body: &Value,
        field_manager: &str,
    ) -> Result<Value, Error> {
        let mut params = PatchParams::apply(field_manager).force();
        params.dry_run = true;
        let answer = self
            .api(kind, key)
            .patch(&key.name, &params, &Patch::Apply(body))
            .await?;
        Ok(serde_json::to_value(answer).map_err(kube::Error::SerdeError)?)
    }

    /// Tries to create an object without writing anything.
    pub async fn try_create(&self, kind: &Kind, key: &ObjectKey, body: Value) -> Result<(), Error> {
        let body: DynamicObject = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.api(kind, key).create(&params, &body).await?;
        Ok(())
    }

    /// Changes what a merge patch names, and returns the object's metadata.
    pub async fn merge(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        patch: &Value,
        field_manager: &str,
    ) -> Result<ObjectMeta, Error> {
        let params = PatchParams {
            field_manager: Some(field_manager.to_owned()),
            ..PatchParams::default()
        };
        let answer = self
            .api(kind, key)
            .patch_metadata(&key.name, &params, &Patch::Merge(patch))
            .await?;
        Ok(answer.metadata)
    }

    /// Creates an object, and returns its metadata.
    pub async fn create(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        body: Value,
        field_manager: &str,
    ) -> Result<ObjectMeta, Error> {
        let body: DynamicObject = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
        let params = posting(field_manager);
        let answer = self.api(kind, key).create(&params, &body).await;
        Ok(self.checked(kind, answer).await?.metadata)
    }

    /// Replaces an object whole, and returns its metadata. The body names the version that it replaces.
    pub async fn replace(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        body: Value,
        field_manager: &str,
    ) -> Result<ObjectMeta, Error> {
        let body: DynamicObject = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
        let params = posting(field_manager);
        let answer = self.api(kind, key).replace(&key.name, &params, &body).await;
        Ok(self.checked(kind, answer).await?.metadata)
    }

    /// Reads an object's metadata; `None` when there is no such object.
    pub async fn look(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<ObjectMeta>, Error> {
        let answer = self.api(kind, key).get_metadata_opt(&key.name).await;
        let answer = self.checked(kind, answer).await?;
        Ok(answer.map(|object| object.metadata))
    }

    /// Reads a whole object; `None` when there is no such object.
    pub async fn read(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let answer = self.api(kind, key).get_opt(&key.name).await;
        let object = self.checked(kind, answer).await?;
        let value = object
            .map(serde_json::to_value)
            .transpose()
            .map_err(kube::Error::SerdeError)?;
        Ok(value)
    }

    /// Replaces the owners of one certain object, as it was when it was looked at.
    pub async fn set_owners(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        looked_at: &ObjectMeta,
        owners: &[OwnerReference],
        field_manager: &str,
    ) -> Result<ObjectMeta, Error> {
        let patch = json!({"metadata": {
            "uid": looked_at.uid,
            "resourceVersion": looked_at.resource_version,
            "ownerReferences": owners,
        }});
        self.merge(kind, key, &patch, field_manager).await
    }

    /// Replaces who owns which field, of an object as it was answered.
    pub async fn set_managed_fields(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        answered: &ObjectMeta,
        entries: &[ManagedFieldsEntry],
    ) -> Result<ObjectMeta, Error> {
        let patch = serde_json::from_value(json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": answered.resource_version},
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        ]));
        let patch = Patch::Json::<()>(patch.map_err(kube::Error::SerdeError)?);
        let answer = self
            .api(kind, key)
            .patch_metadata(&key.name, &PatchParams::default(), &patch)
            .await?;
        Ok(answer.metadata)
    }

    /// Deletes one certain object, in one certain version if that is known: another of the same name stays. What it owns
    /// is collected in the background. Returns whether it is gone already; otherwise something still holds it.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        resource_version: Option<u64>,
    ) -> Result<bool, Error> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: resource_version.map(|version| version.to_string()),
            }),
            ..DeleteParams::default()
        };
        // What is gone is answered with a status, what has to wait with itself.
        let answer = self.api(kind, key).delete(&key.name, &params).await;
        Ok(self.checked(kind, answer).await?.is_right())
    }

    /// Takes an answer for what it is, unless it shows that the kind is no longer served as it was: then it is forgotten,
    /// and looked for again the next time.
    async fn checked<T>(&self, kind: &Kind, answer: Result<T, kube::Error>) -> Result<T, Error> {
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => Error::from(error),
        };
        if error.is_about_a_kind() {
            self.kinds.forget(kind).await;
            let kind = kind.resource.kind.clone();
            return Err(Error::UnknownKind { kind });
        }
        Err(error)
    }

    fn api(&self, kind: &Kind, key: &ObjectKey) -> Api<DynamicObject> {
        if kind.is_namespaced {
            Api::namespaced_with(self.client.clone(), &key.namespace, &kind.resource)
        } else {
            Api::all_with(self.client.clone(), &kind.resource)
        }
    }
}

fn posting(field_manager: &str) -> PostParams {
    PostParams {
        field_manager: Some(field_manager.to_owned()),
        ..PostParams::default()
    }
}
