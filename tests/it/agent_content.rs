//! What a work asks for, and whether all of it is there: on the spoke, on record, and reported to the hub.

use std::collections::BTreeMap;

use gitspoke::api::work::applied::AppliedManifestWork;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    agent_pair::PATIENCE,
    agent_wired::Wired,
    servers::{wait, wire::Sent},
};

/// Objects of the spoke by path, with a text that each must contain.
pub(crate) type Objects = BTreeMap<String, (Value, String)>;

/// What is there at the end of a phase: uid and version of each object.
pub(crate) type Found = BTreeMap<String, (String, String)>;

impl Wired {
    /// Waits until the spoke, the record and the hub have what a work asks for, nothing else of what it had before.
    pub(crate) async fn end(
        &self,
        plan: &str,
        work: &str,
        wanted: &Objects,
        before: &Objects,
    ) -> Found {
        let what = format!("{work}, {plan}, to have what it asks for and nothing else");
        wait::until(&what, PATIENCE, || async {
            for path in before.keys().filter(|path| !wanted.contains_key(*path)) {
                if self.read(path).await?.is_some() {
                    return Err(format!("{path} is still there"));
                }
            }
            let record = self.record_of(work).await?;
            if wanted.is_empty() {
                return self.is_gone(work, record).await;
            }
            self.is_reported(work, wanted.len()).await?;
            self.is_recorded(record.ok_or("there is no record")?, wanted)
                .await
        })
        .await
    }

    async fn is_gone(
        &self,
        work: &str,
        record: Option<AppliedManifestWork>,
    ) -> Result<Found, String> {
        if let Some(record) = record {
            return Err(format!("the record is still there: {record:?}"));
        }
        match self.pair.works().get_opt(&self.pair.named(work)).await {
            Ok(None) => Ok(Found::new()),
            other => Err(format!("the work is still there: {other:?}")),
        }
    }

    /// The hub has been told, about the work as it is now.
    async fn is_reported(&self, work: &str, count: usize) -> Result<(), String> {
        let work = self.pair.works().get(&self.pair.named(work)).await;
        let work = work.map_err(|error| error.to_string())?;
        let status = work.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().0;
        for wanted in ["Applied", "Available"] {
            let holds = conditions.iter().any(|found| {
                found.type_ == wanted
                    && found.status == "True"
                    && found.observed_generation == work.metadata.generation
            });
            if !holds {
                return Err(format!("not {wanted}: {conditions:?}"));
            }
        }
        let manifests = status.resource_status.unwrap_or_default().manifests;
        let reported = manifests.unwrap_or_default().len();
        if reported == count {
            Ok(())
        } else {
            Err(format!("{reported} manifests in its status"))
        }
    }

    /// The record has exactly the objects that are there, and they have exactly the record as their owner.
    async fn is_recorded(
        &self,
        record: AppliedManifestWork,
        wanted: &Objects,
    ) -> Result<Found, String> {
        let mut found = Found::new();
        let mut live = Vec::new();
        for (path, (_, text)) in wanted {
            let object = self
                .read(path)
                .await?
                .ok_or_else(|| format!("{path} is not there"))?;
            let meta = &object["metadata"];
            if !object.to_string().contains(text.as_str()) {
                return Err(format!("{path} has no {text}: {object}"));
            }
            let owners: Vec<_> = meta["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .collect();
            let ours = record.metadata.uid.as_deref();
            if owners.len() != 1 || owners[0]["uid"].as_str() != ours {
                return Err(format!(
                    "{path} is owned by {owners:?}, and not by {ours:?}"
                ));
            }
            let uid = meta["uid"].as_str().unwrap_or_default().to_owned();
            live.push(uid.clone());
            let version = Sent::version_of(path, meta).unwrap_or_default();
            found.insert(path.clone(), (uid, version));
        }
        let resources = record
            .status
            .unwrap_or_default()
            .applied_resources
            .unwrap_or_default();
        let mut recorded: Vec<String> = resources
            .into_iter()
            .filter_map(|found| found.uid)
            .collect();
        recorded.sort();
        live.sort();
        if recorded != live {
            return Err(format!("on record are {recorded:?}, there are {live:?}"));
        }
        let annotations = record.metadata.annotations.unwrap_or_default();
        for name in ["gitspoke.dev/intent", "gitspoke.dev/applied"] {
            let text = annotations.get(name).map_or("{}", String::as_str);
            // By place, an entry for each object; what has not been written has an empty mark.
            let places: BTreeMap<String, Vec<String>> =
                serde_json::from_str(text).map_err(|error| error.to_string())?;
            let entries = places.values().flatten();
            if entries.filter(|entry| !entry.is_empty()).count() != wanted.len() {
                return Err(format!("{name} is {text}"));
            }
        }
        Ok(found)
    }

    /// Content for a work: maps of these names, a Secret, and perhaps a definition with an object of it.
    pub(crate) fn objects(
        &self,
        work: &str,
        names: &[&str],
        value: &str,
        defines: bool,
    ) -> Objects {
        let namespace = &self.pair.cluster;
        let mut objects = Objects::new();
        for name in names {
            let name = format!("{work}-{name}");
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
            objects.insert(
                path,
                (self.pair.map(&name, value), format!(r#""key":"{value}""#)),
            );
        }
        let name = format!("{work}-secret");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {"word": "open"},
        });
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        objects.insert(path, (secret, r#""word":"b3Blbg==""#.to_owned()));
        if defines {
            objects.extend(definition(namespace, work));
        }
        objects
    }

    async fn read(&self, path: &str) -> Result<Option<Value>, String> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        match self.pair.spoke.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(format!("{path} could not be read: {error}")),
        }
    }

    async fn record_of(&self, work: &str) -> Result<Option<AppliedManifestWork>, String> {
        let records: Api<AppliedManifestWork> = Api::all(self.pair.spoke.clone());
        let all = records.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let name = self.pair.named(work);
        let mut records = all.items.into_iter();
        Ok(records.find(|record| record.spec.manifest_work_name == name))
    }
}

/// A definition and an object of it. The group is the work's own: a definition that has just gone is not free at once.
fn definition(namespace: &str, work: &str) -> Objects {
    let group = format!("{work}.{namespace}.example.com");
    let name = format!("widgets.{group}");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": "one", "namespace": namespace}, "size": "7",
    });
    Objects::from([
        (
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"),
            (definition, r#""Widget""#.to_owned()),
        ),
        (
            format!("/apis/{group}/v1/namespaces/{namespace}/widgets/one"),
            (widget, r#""size":"7""#.to_owned()),
        ),
    ])
}

pub(crate) fn manifests(objects: &Objects) -> Vec<Value> {
    objects
        .values()
        .map(|(manifest, _)| manifest.clone())
        .collect()
}
