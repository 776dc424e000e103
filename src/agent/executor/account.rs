//! The service account on whose behalf a work writes.

use std::fmt;

use crate::api::work::spec::{Executor, ExecutorSubjectType};

/// A service account of the spoke. Nobody looks whether it exists: one that does not has no rights.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Why an executor names no account. The first half of each text is Open Cluster Management's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unnamed {
    #[error(
        "the executor subject is nil: name a service account in spec.executor.subject, or leave out spec.executor"
    )]
    Subject,
    #[error("only support ServiceAccount type for the executor: it is {0:?}")]
    Type(String),
    #[error(
        "the executor service account is nil: name one in spec.executor.subject.serviceAccount"
    )]
    ServiceAccount,
}

impl Account {
    /// Reads the account of an executor. One that names none is an error, never "no checks".
    pub(super) fn of(executor: &Executor) -> Result<Self, Unnamed> {
        let subject = executor.subject.as_ref().ok_or(Unnamed::Subject)?;
        if let ExecutorSubjectType::Other(type_) = &subject.type_ {
            return Err(Unnamed::Type(type_.clone()));
        }
        let account = subject
            .service_account
            .as_ref()
            .ok_or(Unnamed::ServiceAccount)?;
        Ok(Self {
            namespace: account.namespace.clone(),
            name: account.name.clone(),
        })
    }

    /// The groups that the API server puts every service account of the namespace in.
    pub(super) fn groups(&self) -> Vec<String> {
        vec![
            "system:serviceaccounts".to_owned(),
            "system:authenticated".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
        ]
    }
}

/// The user name that the API server knows it by.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Account, Unnamed};

    fn account(executor: Value) -> Result<String, Unnamed> {
        Account::of(&serde_json::from_value(executor).unwrap()).map(|account| account.to_string())
    }

    #[test]
    fn an_executor_without_an_account_is_an_error() {
        let named = json!({"namespace": "team-a", "name": "deployer"});
        let table = [
            (
                json!({"subject": {"type": "ServiceAccount", "serviceAccount": named}}),
                Ok("system:serviceaccount:team-a:deployer".to_owned()),
            ),
            (json!({}), Err(Unnamed::Subject)),
            (
                json!({"subject": {"type": "ServiceAccount"}}),
                Err(Unnamed::ServiceAccount),
            ),
            (
                json!({"subject": {"type": "User", "serviceAccount": named}}),
                Err(Unnamed::Type("User".to_owned())),
            ),
        ];
        for (executor, expected) in table {
            assert_eq!(account(executor.clone()), expected, "{executor}");
        }
    }

    #[test]
    fn an_account_is_in_three_groups() {
        let account = Account {
            namespace: "team-a".into(),
            name: "deployer".into(),
        };
        assert_eq!(
            account.groups(),
            [
                "system:serviceaccounts",
                "system:authenticated",
                "system:serviceaccounts:team-a"
            ]
        );
    }
}
