//! Whether an object goes away with its work.

use crate::api::work::spec::{DeleteOption, OrphaningRule, PropagationPolicy};

/// Answers whether the work owns an object: the spoke carries our owner reference, and the object is deleted with the
/// work or when its manifest is dropped.
///
/// The caller passes an empty namespace for a cluster-scoped kind, whatever the manifest says.
pub fn is_owned(
    delete_option: Option<&DeleteOption>,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> bool {
    let Some(option) = delete_option else {
        return true;
    };
    match &option.propagation_policy {
        None | Some(PropagationPolicy::Foreground) => true,
        // A policy of a newer API: what is kept by mistake can still be deleted, the reverse cannot be undone.
        Some(PropagationPolicy::Orphan | PropagationPolicy::Other(_)) => false,
        Some(PropagationPolicy::SelectivelyOrphan) => {
            let names = |rule: &OrphaningRule| {
                rule.group.as_deref().unwrap_or_default() == group
                    && rule.resource == resource
                    && rule.namespace.as_deref().unwrap_or_default() == namespace
                    && rule.name == name
            };
            let rules = option.selectively_orphans.as_ref();
            !rules
                .and_then(|orphans| orphans.orphaning_rules.as_deref())
                .is_some_and(|rules| rules.iter().any(names))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_owned;

    #[test]
    fn the_delete_option_decides_who_owns_the_object() {
        let rule = |group: Value, resource, namespace: Value, name| {
            json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [
                    {"resource": "secrets", "name": "other"},
                    {"group": group, "resource": resource, "namespace": namespace, "name": name},
                ]},
            })
        };
        let hit = rule(json!("apps"), "deployments", json!("shop"), "web");
        let mut unread = hit.clone();
        unread["propagationPolicy"] = json!("Foreground");
        let cases = [
            ("no option", Value::Null, true),
            ("no policy", json!({"ttlSecondsAfterFinished": 5}), true),
            (
                "foreground",
                json!({"propagationPolicy": "Foreground"}),
                true,
            ),
            ("rules without their policy", unread, true),
            ("orphan", json!({"propagationPolicy": "Orphan"}), false),
            (
                "unknown policy",
                json!({"propagationPolicy": "Archive"}),
                false,
            ),
            (
                "no rules",
                json!({"propagationPolicy": "SelectivelyOrphan"}),
                true,
            ),
            (
                "empty rules",
                json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {}}),
                true,
            ),
            ("a rule matches", hit, false),
            (
                "another group",
                rule(Value::Null, "deployments", json!("shop"), "web"),
                true,
            ),
            (
                "another resource",
                rule(json!("apps"), "daemonsets", json!("shop"), "web"),
                true,
            ),
            (
                "another namespace",
                rule(json!("apps"), "deployments", Value::Null, "web"),
                true,
            ),
            (
                "another name",
                rule(json!("apps"), "deployments", json!("shop"), "api"),
                true,
            ),
            (
                "a pattern is a name",
                rule(json!("apps"), "deployments", json!("*"), "*"),
                true,
            ),
        ];
        for (case, option, owned) in cases {
            let option = serde_json::from_value::<Option<_>>(option).unwrap();
            assert_eq!(
                is_owned(option.as_ref(), "apps", "deployments", "shop", "web"),
                owned,
                "{case}"
            );
        }
    }

    #[test]
    fn an_absent_group_or_namespace_is_the_empty_one() {
        let option = serde_json::from_value(json!({
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": {"orphaningRules": [{"resource": "namespaces", "name": "shop"}]},
        }))
        .unwrap();
        assert!(!is_owned(Some(&option), "", "namespaces", "", "shop"));
    }
}
