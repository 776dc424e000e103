//! The managed cluster, as the agent needs it.
//!
//! [`cluster`] reads and writes single objects, [`kinds`] knows what the cluster serves, [`seen`] is what is kept of a
//! live object, and [`error`] says what a refusal means. Everything here is one request or a pure reading of an answer;
//! what to write, and when, is decided in `agent`.
//!
//! This room knows nothing of a hub, of works or of Git. Start reading at [`cluster::Cluster`].

pub mod cluster;
pub mod error;
pub mod kinds;
pub mod ownership;
pub mod seen;
