//! In which order the manifests of a work are applied.

/// Where a kind stands among the others; a lower rank is applied first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u16);

/// Open Cluster Management's ranks, first to last. Groups are not looked at: a custom `Service` ranks as a `Service`.
const RANKS: [&[&str]; 7] = [
    &[
        "PriorityClass",
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PodSecurityPolicy",
    ],
    &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    &[
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "PodDisruptionBudget",
        "ServiceAccount",
    ],
    &["Secret", "ConfigMap", "PersistentVolumeClaim"],
    &["Service"],
    &[
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ],
    &[
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ],
];

impl Rank {
    /// Every kind that has no rank of its own, custom ones above all.
    pub const OTHER: Self = Self(1000);
    /// A manifest that names no kind.
    pub const UNREADABLE: Self = Self(1001);

    /// Returns the rank of a kind; `None` stands for a manifest that could not be read.
    pub fn of(kind: Option<&str>) -> Self {
        let Some(kind) = kind else {
            return Self::UNREADABLE;
        };
        (0..)
            .zip(RANKS)
            .find(|(_, kinds)| kinds.contains(&kind))
            .map_or(Self::OTHER, |(rank, _)| Self(rank))
    }
}

/// Returns the positions of the manifests in the order in which they are applied: by rank, then as in the spec.
pub fn apply_order<'a>(kinds: impl IntoIterator<Item = Option<&'a str>>) -> Vec<usize> {
    let ranks: Vec<Rank> = kinds.into_iter().map(Rank::of).collect();
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&ordinal| ranks[ordinal]);
    order
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::{Rank, apply_order};

    #[test]
    fn a_kind_has_its_rank() {
        let cases = [
            (Some("Namespace"), 0),
            (Some("CustomResourceDefinition"), 0),
            (Some("PodSecurityPolicy"), 0),
            (Some("RoleBinding"), 1),
            (Some("ServiceAccount"), 2),
            (Some("PersistentVolumeClaim"), 3),
            (Some("Service"), 4),
            (Some("CronJob"), 5),
            (Some("ValidatingAdmissionPolicyBinding"), 6),
            (Some("Ingress"), 1000),
            (Some("namespace"), 1000),
            (Some(""), 1000),
            (None, 1001),
        ];
        for (kind, rank) in cases {
            assert_eq!(Rank::of(kind), Rank(rank), "{kind:?}");
        }
    }

    #[test]
    fn manifests_of_one_rank_keep_the_order_of_the_spec() {
        let kinds = [
            None,
            Some("Widget"),
            Some("Deployment"),
            Some("ConfigMap"),
            Some("Job"),
            Some("Namespace"),
            Some("Secret"),
        ];
        assert_eq!(apply_order(kinds), [5, 3, 6, 2, 4, 1, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_manifest_has_one_place(
            kinds in vec(select(vec![None, Some("Secret"), Some("Widget"), Some("Pod"), Some("Role")]), 0..20),
        ) {
            let order = apply_order(kinds.iter().copied());
            for pair in order.windows(2) {
                let place = |at: usize| (Rank::of(kinds[at]), at);
                prop_assert!(place(pair[0]) < place(pair[1]));
            }
            prop_assert_eq!(order.len(), kinds.len());
        }
    }
}
