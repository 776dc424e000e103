//! What a work asks for, manifest by manifest.

use kube::core::GroupVersionKind;

use crate::{
    api::{
        digest::Digest,
        manifest::{Manifest, ObjectId},
        wellknown::AGENT_FIELD_MANAGER,
        work::{
            config::{
                ConditionRule, FeedbackRule, IgnoreField, UpdateStrategy, UpdateStrategyType,
            },
            spec::ManifestWorkSpec,
            status::ResourceMeta,
        },
    },
    spoke::{cluster::ObjectKey, kinds::Kind, seen::Author},
    status::{matching::config_for, owned::is_owned},
};

/// How an object is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// What the manifest names wins.
    Update,
    /// Written once.
    CreateOnly,
    /// Server-side apply with settings of the work's own.
    ServerSideApply {
        /// Whose fields they are.
        field_manager: String,
        /// Take fields that others own.
        force: bool,
    },
    /// Never written.
    ReadOnly,
}

/// One manifest, with everything that decides how it is written.
#[derive(Debug, Clone)]
pub struct Desired<'a> {
    /// The manifest.
    pub manifest: &'a Manifest,
    /// Where its object is.
    pub key: ObjectKey,
    /// Its kind on this spoke.
    pub kind: Kind,
    /// How it is written.
    pub strategy: Strategy,
    /// Whether it goes away with the work.
    pub is_owned: bool,
    /// Fields that are to be left alone.
    pub ignored: &'a [IgnoreField],
    /// Values to report from the live object.
    pub feedback_rules: &'a [FeedbackRule],
    /// Conditions to derive from the live object.
    pub condition_rules: &'a [ConditionRule],
}

impl<'a> Desired<'a> {
    /// Puts together what a work's settings say about one manifest.
    pub fn new(
        spec: &'a ManifestWorkSpec,
        manifest: &'a Manifest,
        id: &ObjectId,
        kind: Kind,
    ) -> Self {
        let key = key_of(id, &kind);
        let configs = spec.manifest_configs.as_deref().unwrap_or_default();
        let config = config_for(
            configs,
            &key.group,
            &key.resource,
            &key.namespace,
            &key.name,
        );
        let config = config.unwrap_or_default();
        let strategy = strategy(config.update_strategy);
        let option = spec.delete_option.as_ref();
        let is_owned = strategy != Strategy::ReadOnly
            && is_owned(option, &key.group, &key.resource, &key.namespace, &key.name);
        let ignored = config
            .update_strategy
            .filter(|_| matches!(strategy, Strategy::ServerSideApply { .. }))
            .and_then(|configured| configured.server_side_apply.as_ref())
            .and_then(|apply| apply.ignore_fields.as_deref())
            .unwrap_or_default();
        Self {
            manifest,
            key,
            kind,
            ignored,
            strategy,
            is_owned,
            feedback_rules: config.feedback_rules,
            condition_rules: config.condition_rules,
        }
    }

    /// Whether rules want to know what becomes of the object.
    pub fn is_observed(&self) -> bool {
        !self.feedback_rules.is_empty() || !self.condition_rules.is_empty()
    }

    /// The field manager it is written by.
    pub fn field_manager(&self) -> &str {
        match &self.strategy {
            Strategy::ServerSideApply { field_manager, .. } => field_manager,
            _ => AGENT_FIELD_MANAGER,
        }
    }

    /// Whose entries on the object are ours.
    pub fn author(&self) -> Author {
        Author {
            manager: self.field_manager().into(),
            is_patching: self.is_pod() || !self.kind.is_patchable,
        }
    }

    /// Whether it is a Pod whose spec we cannot apply a second time.
    pub fn is_pod(&self) -> bool {
        self.strategy == Strategy::Update
            && self.key.group.is_empty()
            && self.key.resource == "pods"
    }

    /// The digest of everything that is asked for: a change of any of it is a write. `content` is the digest of what is
    /// to be written.
    pub fn asked(&self, content: &Digest) -> String {
        let text = format!("{content} {:?} {}", self.strategy, self.is_owned);
        Digest::of_bytes(text.as_bytes()).short()
    }

    /// The digest of the rules about the live object.
    pub fn rules(&self) -> String {
        let text = format!("{:?} {:?}", self.feedback_rules, self.condition_rules);
        Digest::of_bytes(text.as_bytes()).short()
    }
}

/// Where the object of a manifest is. A namespace that a cluster-scoped object carries by mistake says nothing.
pub fn key_of(id: &ObjectId, kind: &Kind) -> ObjectKey {
    ObjectKey {
        group: id.group.clone(),
        resource: kind.resource.plural.clone(),
        namespace: if kind.is_namespaced {
            id.namespace.clone()
        } else {
            String::new()
        },
        name: id.name.clone(),
    }
}

/// The kind that a manifest names.
pub fn wanted_kind(id: &ObjectId) -> GroupVersionKind {
    GroupVersionKind::gvk(&id.group, &id.version, &id.kind)
}

/// How status names a manifest. What is not known is empty, never absent: Open Cluster Management's clients read it so.
pub fn resource_meta(
    ordinal: usize,
    id: Option<&ObjectId>,
    key: Option<&ObjectKey>,
) -> ResourceMeta {
    let text = |value: Option<&String>| Some(value.cloned().unwrap_or_default());
    ResourceMeta {
        ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
        group: text(id.map(|id| &id.group)),
        version: text(id.map(|id| &id.version)),
        kind: text(id.map(|id| &id.kind)),
        resource: text(key.map(|key| &key.resource)),
        name: text(id.map(|id| &id.name)),
        namespace: text(key.map(|key| &key.namespace).or(id.map(|id| &id.namespace))),
    }
}

fn strategy(configured: Option<&UpdateStrategy>) -> Strategy {
    let Some(configured) = configured else {
        return Strategy::Update;
    };
    match &configured.type_ {
        Some(UpdateStrategyType::CreateOnly) => Strategy::CreateOnly,
        Some(UpdateStrategyType::ReadOnly) => Strategy::ReadOnly,
        Some(UpdateStrategyType::ServerSideApply) => {
            let settings = configured.server_side_apply.as_ref();
            Strategy::ServerSideApply {
                field_manager: settings
                    .and_then(|settings| settings.field_manager.clone())
                    .unwrap_or_else(|| AGENT_FIELD_MANAGER.to_owned()),
                force: settings
                    .and_then(|settings| settings.force)
                    .unwrap_or(false),
            }
        }
        Some(UpdateStrategyType::Update | UpdateStrategyType::Other(_)) | None => Strategy::Update,
    }
}
