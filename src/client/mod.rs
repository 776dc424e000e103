//! How API servers are asked: never more at a time than one copes with, and not at all while it wants quiet.
//!
//! Start reading at [`paced::Paced`], a layer around a client. What an answer asks for is decided in `wish.rs`, how many
//! requests may be under way in [`crate::runtime::pace`]; `gate.rs` makes requests wait for both. This room must not
//! know what requests are for, but for one: the lease by which replicas elect a leader does not wait.

mod gate;
pub mod paced;
mod wish;

#[cfg(test)]
mod tests;
