//! Which settings of a work apply to one manifest.

use crate::api::work::config::{
    ConditionRule, FeedbackRule, FeedbackScrapeType, ManifestConfig, UpdateStrategy,
};

/// The settings for one manifest, gathered from every entry that matches it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Merged<'a> {
    /// Conditions to derive; empty when no entry has any.
    pub condition_rules: &'a [ConditionRule],
    /// Values to report; empty when no entry has any.
    pub feedback_rules: &'a [FeedbackRule],
    /// How the object is written. Absent: `Update`.
    pub update_strategy: Option<&'a UpdateStrategy>,
    /// How feedback is collected. Absent: `Poll`.
    pub feedback_scrape_type: Option<&'a FeedbackScrapeType>,
}

/// Gathers the settings for one manifest; `None` when no entry has rules or a strategy for it.
///
/// Each setting comes from the first matching entry that has it, except the scrape type: there the last match wins,
/// with or without a value, as in Open Cluster Management.
pub fn config_for<'a>(
    configs: &'a [ManifestConfig],
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Option<Merged<'a>> {
    let mut merged = Merged::default();
    for config in configs {
        let identifier = &config.resource_identifier;
        let is_match = identifier.group.as_deref().unwrap_or_default() == group
            && identifier.resource == resource
            && matches(
                identifier.namespace.as_deref().unwrap_or_default(),
                namespace,
            )
            && matches(&identifier.name, name);
        if !is_match {
            continue;
        }
        if merged.condition_rules.is_empty() {
            merged.condition_rules = config.condition_rules.as_deref().unwrap_or_default();
        }
        if merged.feedback_rules.is_empty() {
            merged.feedback_rules = config.feedback_rules.as_deref().unwrap_or_default();
        }
        merged.update_strategy = merged.update_strategy.or(config.update_strategy.as_ref());
        merged.feedback_scrape_type = config.feedback_scrape_type.as_ref();
    }
    let is_empty = merged.condition_rules.is_empty()
        && merged.feedback_rules.is_empty()
        && merged.update_strategy.is_none();
    (!is_empty).then_some(merged)
}

/// Answers whether a text fits a pattern in which `*` stands for any text, also none, and the rest for itself.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    // Taking the earliest place of each part leaves the most text for the parts after it.
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{ManifestConfig, Merged, config_for, matches};

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("job", "job", true),
            ("job", "jobs", false),
            ("job", "", false),
            ("*", "job", true),
            ("*", "", true),
            ("", "", true),
            ("", "job", false),
            ("job*", "job", true),
            ("job*", "job-1", true),
            ("job*", "a-job", false),
            ("*1", "job1", true),
            ("*1", "job10", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("**", "job", true),
            ("j.b", "job", false),
            ("j?b", "job", false),
            ("[a-z]*", "job", false),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(matches(pattern, text), fits, "{pattern:?} on {text:?}");
        }
    }

    fn configs(entries: &[(Value, Value)]) -> Vec<ManifestConfig> {
        let entries = entries.iter().map(|(identifier, settings)| {
            let mut entry = settings.clone();
            entry["resourceIdentifier"] = identifier.clone();
            serde_json::from_value(entry).unwrap()
        });
        entries.collect()
    }

    fn jobs(name: &str) -> Value {
        json!({"group": "batch", "resource": "jobs", "namespace": "shop", "name": name})
    }

    #[test]
    fn group_and_resource_match_exactly() {
        let strategy = json!({"updateStrategy": {"type": "CreateOnly"}});
        let cases = [
            (jobs("pi"), true),
            (jobs("p*"), true),
            (jobs("e"), false),
            (
                json!({"group": "batch", "resource": "jobs", "namespace": "*", "name": "*"}),
                true,
            ),
            (
                json!({"group": "batch", "resource": "jobs", "name": "pi"}),
                false,
            ),
            (
                json!({"group": "*", "resource": "jobs", "namespace": "shop", "name": "pi"}),
                false,
            ),
            (
                json!({"group": "batch", "resource": "*", "namespace": "shop", "name": "pi"}),
                false,
            ),
            (
                json!({"resource": "jobs", "namespace": "shop", "name": "pi"}),
                false,
            ),
        ];
        for (identifier, is_match) in cases {
            let configs = configs(&[(identifier.clone(), strategy.clone())]);
            let found = config_for(&configs, "batch", "jobs", "shop", "pi");
            assert_eq!(found.is_some(), is_match, "{identifier}");
        }
    }

    #[test]
    fn an_absent_group_or_namespace_is_the_empty_one() {
        let identifier = json!({"resource": "namespaces", "name": "shop"});
        let configs = configs(&[(identifier, json!({"updateStrategy": {"type": "ReadOnly"}}))]);
        assert!(config_for(&configs, "", "namespaces", "", "shop").is_some());
        assert!(config_for(&configs, "", "namespaces", "shop", "shop").is_none());
    }

    #[test]
    fn each_setting_comes_from_the_first_match_that_has_it() {
        let configs = configs(&[
            (
                jobs("other"),
                json!({"updateStrategy": {"type": "ReadOnly"}}),
            ),
            (
                jobs("pi"),
                json!({"feedbackRules": [], "feedbackScrapeType": "Watch"}),
            ),
            (
                jobs("p*"),
                json!({"feedbackRules": [{"type": "WellKnownStatus"}], "feedbackScrapeType": "Poll"}),
            ),
            (
                jobs("*"),
                json!({
                    "feedbackRules": [{"type": "JSONPaths"}],
                    "updateStrategy": {"type": "CreateOnly"},
                    "conditionRules": [{"condition": "Complete", "type": "WellKnownConditions"}],
                    "feedbackScrapeType": "Watch",
                }),
            ),
            (jobs("*i"), json!({"updateStrategy": {"type": "Update"}})),
        ]);
        let expected = Merged {
            condition_rules: configs[3].condition_rules.as_deref().unwrap(),
            feedback_rules: configs[2].feedback_rules.as_deref().unwrap(),
            update_strategy: configs[3].update_strategy.as_ref(),
            feedback_scrape_type: None,
        };
        assert_eq!(
            config_for(&configs, "batch", "jobs", "shop", "pi"),
            Some(expected)
        );
        let expected = Merged {
            feedback_scrape_type: configs[3].feedback_scrape_type.as_ref(),
            ..expected
        };
        assert_eq!(
            config_for(&configs[..4], "batch", "jobs", "shop", "pi"),
            Some(expected)
        );
    }

    #[test]
    fn a_scrape_type_alone_is_no_config() {
        let configs = configs(&[(
            jobs("pi"),
            json!({"feedbackScrapeType": "Watch", "conditionRules": []}),
        )]);
        assert_eq!(config_for(&configs, "batch", "jobs", "shop", "pi"), None);
    }

    /// The obvious matcher: tries every length for every star.
    fn tries_everything(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', pattern)) => {
                (0..=text.len()).any(|skip| tries_everything(pattern, &text[skip..]))
            }
            Some((byte, pattern)) => {
                text.first() == Some(byte) && tries_everything(pattern, &text[1..])
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn matching_agrees_with_trying_everything(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            prop_assert_eq!(matches(&pattern, &text), tries_everything(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
