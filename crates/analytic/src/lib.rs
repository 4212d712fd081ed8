//! SELECTs of any shape over the columns of tables: joins of all kinds, queries within queries, groups, orders.
//!
//! `pando-query` answers one shape well: one table, or several around a large one, and groups. This crate answers the
//! others. It is given what the server has resolved ([`Block`]: FROM, WHERE, GROUP BY and so on, each column named by a
//! number), makes a plan of joins (`planner.rs`, `subquery.rs`), and executes it batch by batch over the same blocks of
//! whole columns (`execute.rs`), under the transaction's own view.
//!
//! What holds:
//! * **Exact or not at all.** Numbers are integers of 64 or 128 bits, every operation is checked; what the server's own code
//!   has to decide about texts (order, patterns, functions) is asked of it, once for each different text. What cannot be
//!   told exactly gives the query back before anything was given out.
//! * What has no form here is computed by the server's own code, in the session's thread, of the rows that are left
//!   (`served.rs`); if that says anything, the query is given back.
//! * Conditions are three-valued.
//! * Memory is taken from a budget before it is used for long; beyond it, the query is given back.

mod aggregates;
mod block;
mod budget;
mod column;
mod concat;
mod decode;
mod determined;
mod direct_groups;
mod distinct;
mod domain;
mod estimate;
mod eval;
mod execute;
mod explain;
mod expr;
mod external_sort;
mod first_rows;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod grace_join;
mod groups;
mod hash_join;
mod interner;
mod interval;
mod key_filter;
mod keys;
mod marks;
mod measure;
mod memo;
mod moment_ranges;
mod moments;
mod near_order;
mod null_safe;
mod packing;
mod partition;
mod plan;
mod planner;
mod query;
mod renamed;
mod repeated;
mod rollup;
mod rounding;
mod sample;
mod selection;
mod served;
mod sets;
mod sort;
mod spill;
mod spilled_groups;
mod steps;
mod subquery;
mod sums;
mod table_rows;
mod tags;
mod text_bounds;
mod warnings;
mod whole;
mod window;
mod word_table;
mod zones;

pub use block::{Block, From, Operation as SetOperation, Other, Source, TableColumn};
pub use column::{Batch, Column, Data, Dict, Kind, Value};
pub use explain::{Operator, COLUMN_BEGIN, NAME_END, SERVED_BEGIN};
pub use expr::{
    ChangeText, Comparison, Expr, FloorOfMoment, Function, Hearing, KeyOfText, MeasureText, Operation, Part,
    ServerValues, Slot, TestText, TextOrder, Texts,
};
pub use query::{Answer, Outcome, Query};
pub use spill::SpillTo;
pub use window::{Bound, Frame, Function as WindowFunction, Window};
