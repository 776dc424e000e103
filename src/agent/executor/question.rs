//! What is asked about an account before an object is written on its behalf.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::core::Status;

use super::account::Account;
use crate::{
    agent::desired::Desired,
    api::{digest::Digest, work::spec::DeleteOption},
    status::owned::is_owned,
};

/// An object that shall be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    /// Empty for cluster-scoped kinds.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What an account may or may not do. Answers are remembered by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// May it write the object, and delete it if the object goes with its work?
    Write {
        account: Account,
        target: Target,
        with_delete: bool,
    },
    /// May it grant the rights that this body of an RBAC object gives?
    Grant {
        account: Account,
        target: Target,
        body: Digest,
    },
}

/// Why a write is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// The account may not write the object.
    Write,
    /// The account would give away rights it does not have.
    Escalation,
}

impl Question {
    /// The namespace whose roles and bindings decide, beside the cluster's; empty when only the cluster's do.
    pub(super) fn namespace(&self) -> &str {
        match self {
            Self::Write { target, .. } | Self::Grant { target, .. } => &target.namespace,
        }
    }
}

impl Target {
    pub(super) fn of(desired: &Desired<'_>) -> Self {
        Self {
            group: desired.key.group.clone(),
            version: desired.kind.resource.version.clone(),
            resource: desired.key.resource.clone(),
            namespace: desired.key.namespace.clone(),
            name: desired.key.name.clone(),
        }
    }

    /// Whether an object goes away with its work, whatever its update strategy: also one that is only read is checked
    /// for every right that writing it would need.
    pub(super) fn is_deleted_with(&self, option: Option<&DeleteOption>) -> bool {
        is_owned(
            option,
            &self.group,
            &self.resource,
            &self.namespace,
            &self.name,
        )
    }

    /// Whether writing it gives rights to somebody. The agent itself may give any, so the account is tried.
    pub(super) fn grants_rights(&self) -> bool {
        self.group == RBAC && GRANTING.contains(&self.resource.as_str())
    }

    /// The reviews that must all be answered with yes.
    pub(super) fn reviews(&self, account: &Account, with_delete: bool) -> Vec<SubjectAccessReview> {
        let verbs = ["create", "update", "patch", "get"];
        let verbs = verbs.into_iter().chain(with_delete.then_some("delete"));
        verbs
            .map(|verb| SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(account.to_string()),
                    groups: Some(account.groups()),
                    resource_attributes: Some(ResourceAttributes {
                        group: Some(self.group.clone()),
                        version: Some(self.version.clone()),
                        resource: Some(self.resource.clone()),
                        namespace: Some(self.namespace.clone()),
                        name: Some(self.name.clone()),
                        verb: Some(verb.to_owned()),
                        ..ResourceAttributes::default()
                    }),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            })
            .collect()
    }

    /// Says a denial in Open Cluster Management's words. The core group is empty there, and leaves two spaces.
    pub(super) fn denied(&self, denial: Denial) -> String {
        let Self {
            group,
            resource,
            namespace,
            name,
            ..
        } = self;
        let because = match denial {
            Denial::Write => "",
            Denial::Escalation => ", error: permission escalation",
        };
        format!(
            "not allowed to apply the resource {group} {resource}, {namespace} {name}{because}, will try again in 1m0s"
        )
    }
}

/// Whether the answer to a trial creation means that the account has less than it would give away. A refusal that speaks
/// of impersonation is about ourselves: we may not act as the account. Both are refusals; only the words differ.
///
/// Seen on 1.36: `User "…" cannot impersonate-on:serviceaccount:create resource "roles"`; older servers say
/// `cannot impersonate resource "serviceaccounts"`.
pub(super) fn is_escalation(answer: &Status) -> bool {
    answer.code == 403 && !answer.message.contains(" cannot impersonate")
}

pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// The resources of the group that decide who may do what.
pub(super) const GRANTING: [&str; 4] = [
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(group: &str, resource: &str, namespace: &str) -> Target {
        Target {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: "web".into(),
        }
    }

    #[test]
    fn every_verb_of_a_write_is_asked_for() {
        let account = Account {
            namespace: "team-a".into(),
            name: "deployer".into(),
        };
        for (with_delete, expected) in [
            (false, vec!["create", "update", "patch", "get"]),
            (true, vec!["create", "update", "patch", "get", "delete"]),
        ] {
            let reviews = target("apps", "deployments", "team-a").reviews(&account, with_delete);
            let asked: Vec<_> = reviews
                .iter()
                .map(|review| serde_json::to_value(&review.spec).unwrap())
                .collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|verb| {
                    json!({
                        "user": "system:serviceaccount:team-a:deployer",
                        "groups": ["system:serviceaccounts", "system:authenticated", "system:serviceaccounts:team-a"],
                        "resourceAttributes": {
                            "group": "apps", "version": "v1", "resource": "deployments",
                            "namespace": "team-a", "name": "web", "verb": verb,
                        },
                    })
                })
                .collect();
            assert_eq!(asked, expected);
        }
    }

    #[test]
    fn denials_are_worded_as_elsewhere() {
        let table = [
            (
                target("apps", "deployments", "shop"),
                Denial::Write,
                "not allowed to apply the resource apps deployments, shop web, will try again in 1m0s",
            ),
            (
                target("", "configmaps", "shop"),
                Denial::Write,
                "not allowed to apply the resource  configmaps, shop web, will try again in 1m0s",
            ),
            (
                target(RBAC, "clusterroles", ""),
                Denial::Escalation,
                "not allowed to apply the resource rbac.authorization.k8s.io clusterroles,  web, \
                 error: permission escalation, will try again in 1m0s",
            ),
        ];
        for (target, denial, expected) in table {
            assert_eq!(target.denied(denial), expected);
        }
    }

    #[test]
    fn only_four_kinds_grant_rights() {
        for (group, resource, expected) in [
            (RBAC, "roles", true),
            (RBAC, "rolebindings", true),
            (RBAC, "clusterroles", true),
            (RBAC, "clusterrolebindings", true),
            ("example.com", "roles", false),
            ("", "configmaps", false),
        ] {
            assert_eq!(
                target(group, resource, "shop").grants_rights(),
                expected,
                "{group} {resource}"
            );
        }
    }

    #[test]
    fn an_object_that_is_orphaned_needs_no_delete() {
        let map = target("", "configmaps", "shop");
        let orphan: DeleteOption =
            serde_json::from_value(json!({"propagationPolicy": "Orphan"})).unwrap();
        assert!(map.is_deleted_with(None));
        assert!(!map.is_deleted_with(Some(&orphan)));
    }

    #[test]
    fn what_we_may_not_do_ourselves_is_no_escalation() {
        let table = [
            (
                403,
                r#"user "a" (groups=["b"]) is attempting to grant RBAC permissions not currently held"#,
                true,
            ),
            (
                403,
                r#"User "a" cannot impersonate resource "serviceaccounts" in API group """#,
                false,
            ),
            (
                403,
                r#"User "a" cannot impersonate-on:serviceaccount:create resource "roles""#,
                false,
            ),
            (404, r#"namespaces "shop" not found"#, false),
            (409, r#"roles "web" already exists"#, false),
        ];
        for (code, message, expected) in table {
            let answer: Status =
                serde_json::from_value(json!({"code": code, "message": message})).unwrap();
            assert_eq!(is_escalation(&answer), expected, "{answer:?}");
        }
    }
}
