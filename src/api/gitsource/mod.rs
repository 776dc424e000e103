//! `gitspoke.dev/v1alpha1`: a Git repository that a hub follows.
//!
//! [`spec`] is what an administrator writes, [`status`] what the hub answers, [`fields`] the small types both are
//! made of.

pub mod fields;
pub mod spec;
pub mod status;
