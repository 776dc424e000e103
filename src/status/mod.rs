//! What the agent found, turned into the answer a work carries.
//!
//! This room must not know: network, clock, tokio. Time is an argument.
//!
//! [`matching`], [`owned`] and [`order`] read a work's settings for one manifest.

pub mod matching;
pub mod order;
pub mod owned;
