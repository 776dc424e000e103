//! One hub namespace on one spoke: what its works ask for is applied, kept applied, and reported.
//!
//! The order of steps is in one place, [`pass`]: observe the work and what is known of its objects, decide what each
//! manifest needs, write (`apply`, `remove`), record, report. Everything that decides is a pure function: [`body`] (what is sent),
//! [`desired`] (what a work asks for), [`need`] (whether anything has to be sent), [`removal`] (what becomes of an object
//! nobody asks for any more). [`index`] remembers what has been seen on the spoke, [`records`] what must survive a crash;
//! [`report`] is the only place that writes to the hub.
//!
//! This room knows nothing of Git or forges. Start reading at [`pass`].

mod apply;
pub mod body;
pub mod cache;
pub mod desired;
pub mod eviction;
pub mod foreign;
pub mod index;
pub mod need;
mod observe;
pub mod pass;
mod recall;
pub mod records;
pub mod removal;
mod remove;
pub mod report;
pub mod serve;
pub mod state;
pub mod watches;
