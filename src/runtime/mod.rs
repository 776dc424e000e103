//! What keeps the rooms running: whose turn it is, when to try again, and how to end.
//!
//! This room knows nothing of any other room: not Git, not Kubernetes, not clusters.

pub mod backoff;
