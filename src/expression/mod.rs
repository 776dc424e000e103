//! Evaluates the expressions users write about live objects: JSONPath, CEL and jq, bounded in time and memory.
//!
//! Three questions are answered here, each by a pure function: [`feedback::feedback`] reads values, [`rules::conditions`]
//! derives conditions, [`ignore::strip`] removes fields that are left alone. None of the three languages can be
//! interrupted, so an agent asks a [`sandbox::Evaluator`] instead, which runs the same functions in a child process
//! with resource limits and replaces it when an expression does not come back.
//!
//! This room knows nothing of clients, hubs or reconcile loops: it gets an object and rules, and answers. Start reading
//! at [`feedback`]; `dialect.rs` has the grammar of Kubernetes' JSONPath; docs/spec/expressions.md says what users may
//! write, and where the answers differ from Open Cluster Management's.

pub mod child;
pub mod feedback;
pub mod ignore;
pub mod rules;
pub mod sandbox;

mod cel;
mod dialect;
mod jq;
mod jsonpath;
mod optional;
mod protocol;
mod worker;
