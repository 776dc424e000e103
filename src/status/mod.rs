//! What the agent found, turned into the answer a work carries.
//!
//! Reasons, messages and the order of conditions are Open Cluster Management's, word for word: its clients read them.
//! Whatever the hub would refuse is left out or cut, because one bad text costs a work its whole status.
//!
//! This room must not know: network, clock, tokio. Time is an argument, and the same findings give the same answer.
//!
//! Start reading at [`work_status`]: it finds what was [`Stored`] about each manifest, lets `manifest` say what is new
//! (`feedback` the values), and rolls that up; `aggregate` does so for the conditions that rules made. `condition`
//! knows when a condition's time moves, `limits` what the hub takes. [`differs`] says whether the hub must be told.
//!
//! [`matching`], [`owned`] and [`order`] read a work's settings for one manifest.

mod aggregate;
mod condition;
mod difference;
mod feedback;
mod finding;
mod limits;
mod manifest;
pub mod matching;
pub mod order;
pub mod owned;
mod stored;
mod work;

#[cfg(test)]
mod tests;

pub use difference::differs;
pub use finding::{Applied, Availability, Feedback, Finding, RuleOutcome, Rules, Truth};
pub use stored::Stored;
pub use work::{deleting, is_complete, refused, work_status};
