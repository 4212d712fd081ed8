//! Deterministic simulation of a Pando database.

#[cfg(feature = "planted-bugs")]
pub mod bugs;
mod checks;
mod client;
mod counts;
mod crash;
mod ddl;
mod faults;
mod model;
mod rows;
mod run;
mod scan;
mod setup;
mod trace;
mod world;
mod xa;

pub use counts::Counts;
pub use run::{run, Failure, STEPS};
pub use trace::Trace;
