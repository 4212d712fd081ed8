//! Bulk loading: entries of many rows, in any order, to sorted runs of leaves, with all processors.
//!
//! A [`Sorter`] takes the entries of one dictionary in numbered batches from any thread; [`finish`] merges
//! those of several dictionaries and gives runs that a transaction owns (private runs): its commit adopts
//! them by reference, or a new index puts them at the bottom of its tree (`Tree::adopt_bottom`). What
//! happens in between is told in `sorter`.
//!
//! Memory: sorted chunks stay within half of the budget ([`Memory`]) and are spilled beyond it; three eighths are for rows that
//! are in no chunk yet, of all loads together, and an eighth is for reading chunks when they are merged, in several passes if there are many
//! (`narrow`). `memory_budget` has the rules. Runs that are being written are besides: a leaf or two for each worker.

mod admission;
mod chunk;
mod entries;
mod entry_order;
mod executor;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod key_list;
mod key_set;
mod memory_budget;
mod merge;
mod narrow;
mod sorter;
mod stage_times;

pub use admission::{Admission, Admissions, Notes};
pub use entries::Entries;
pub use executor::{Inline, Task, Workers};
pub use memory_budget::{Held, Memory};
pub use sorter::{finish, Duplicate, Finished, Setting, Sorter};
pub use stage_times::{Stage, Stages, STAGES};
