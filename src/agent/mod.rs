//! One hub namespace on one spoke: what its works ask for is applied, kept applied, and reported.
//!
//! The order of steps is in one place, [`pass`]: observe the work and what is known of its objects, decide what each
//! manifest needs, write (`apply`, `send`, `special`, `remove`), record, report. Everything that decides is a pure function:
//! [`desired`] (what a work asks for), [`need`] (whether anything has to be sent), [`body`], [`ignored`], [`mend`] and
//! [`pod`] (what is sent), [`unwritten`] (what follows from a failure), [`removal`] (what becomes of an object nobody asks
//! for any more). [`index`] remembers what has been seen on the spoke, [`records`] what must survive a crash; [`report`] is
//! the only place that writes works on the hub; [`announce`] tells people by Events.
//!
//! This room knows nothing of Git or forges. Start reading at [`pass`].

pub mod announce;
mod apply;
pub mod body;
pub mod cache;
pub mod census;
pub mod coalesce;
pub mod desired;
pub mod eviction;
pub mod executor;
pub mod foreign;
pub mod ignored;
pub mod index;
pub mod listings;
pub mod mend;
pub mod need;
mod observe;
mod owners;
pub mod pass;
pub mod pod;
mod recall;
pub mod records;
pub mod removal;
mod remove;
pub mod report;
mod send;
pub mod serve;
pub mod size;
mod special;
pub mod state;
pub mod turns;
pub mod unwritten;
pub mod watches;
