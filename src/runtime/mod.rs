//! What keeps the rooms running: whose turn it is, when to try again, and how to end.
//!
//! This room knows nothing of any other room: not Git, not Kubernetes, not clusters. A caller chooses what a group and
//! a key are; here they are only compared and hashed.
//!
//! Start reading at [`queue::Queue`], the way every reconcile gets its turn. Its decisions are made in
//! `queue/schedule.rs`, which is plain and synchronous; `queue/shared.rs` adds the waiting. [`tasks::Tasks`] starts and
//! ends everything that runs in the background, and [`signal`] says when. [`pace::Pace`] says how much may be asked of a
//! server at a time.

pub mod backoff;
pub mod pace;
pub mod queue;
pub mod signal;
pub mod tasks;
