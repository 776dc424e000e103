//! What a running process answers over HTTP: whether it lives, whether it is ready, and what it has done.
//!
//! Start reading at [`server`], which has the routes; [`health`] decides, `gauges` reads the agent when metrics are
//! asked for. This room only reads: nothing that can be asked of it changes anything.

mod gauges;
pub mod health;
pub mod server;
pub mod subject;
