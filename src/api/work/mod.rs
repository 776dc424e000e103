//! `work.open-cluster-management.io/v1`: what a cluster shall hold, and what a spoke has been given.
//!
//! [`spec`] is what the hub asks for, [`config`] how each manifest is to be treated, [`status`] what the agent
//! answers, [`applied`] the agent's own record on the spoke.

pub mod applied;
pub mod config;
pub mod spec;
pub mod status;

#[cfg(test)]
mod tests;
