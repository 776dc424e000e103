//! gitspoke runs fleets of Kubernetes clusters from a Git repository.
//!
//! Data flows one way, and each room hands a finished value to the next:
//!
//! ```text
//!  git ──► desired ──► hub ══ Kubernetes API ══► agent ──► spoke
//!   ▲                   ▲                                    │
//!   └──── checks ◄──────┴──────────── status ◄───────────────┘
//! ```
//!
//! Inside a room the order is *observe, decide, act*: the decision is a pure function over plain values. The rooms
//! that exist so far, in reading order; docs/architecture.md has the whole map.

pub mod api;
pub mod yaml;

pub mod agent;
pub mod expression;
pub mod spoke;
pub mod status;

pub mod client;
pub mod election;
pub mod runtime;

pub mod cli;
pub mod telemetry;
pub mod web;
