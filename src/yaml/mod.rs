//! The only reader and writer of YAML: manifests mean here what they mean to kubectl.
//!
//! [`read()`] turns the bytes of one file into positioned [`Node`]s, one per document that holds anything; every refusal
//! is an [`Error`] that knows its place, shows the line and says what to do next. [`write()`] and [`write_all`] turn
//! values into YAML that kubectl reads back unchanged.
//!
//! The parser is `granit-parser`, the one inside serde-saphyr; what a scalar *means* is decided in `resolve`, after the
//! YAML 1.1 rules of the Go library in kubectl. Why not a serde deserializer: `docs/adr/0001-yaml-parser.md`. Where we
//! differ from kubectl on purpose: `docs/spec/yaml.md`, kept true by `tests/it/yaml_kubectl.rs`.
//!
//! This room must not know: files, Git, Kubernetes kinds. It gets bytes and a path to print.
//!
//! Start reading in `read`, then `tree` and `mapping`; `node` holds the result, `budget` bounds it. `json` is the side door for files that begin with a
//! brace. `problem` and `hint` say what was wrong, `error` and `excerpt` show it.

mod budget;
mod error;
mod excerpt;
mod hint;
mod json;
mod mapping;
mod node;
mod problem;
mod read;
mod resolve;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use node::{Entry, Node, Position, Value};
pub use read::{Limits, read, read_within};
pub use write::{WriteError, write, write_all};
