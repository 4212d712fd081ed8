//! Whole queries over tables: which rows count, into which groups they fall, what is told of each group.
//!
//! The server's executor asks for one row after the other. A query that this crate can answer is answered here
//! instead: threads share the ranges of the table's leaves (`scan.rs`) and get blocks of whole columns
//! (`pandodb::Blocks`); where the bounds of a segment's columns say that none of its rows counts, it is passed over
//! (`zone.rs`). What conditions, groups and aggregates name are **slots**: columns, and expressions of them
//! ([`expression`]). A block's slots are computed when something asks (`frame.rs`, `cells.rs`); its rows are filtered
//! ([`filter`]), joined with tables in memory (`join.rs`) and added to groups (`groups.rs`, [`aggregate`]); at the end the
//! groups of all threads become one set. Everything is read from the transaction's own view: its snapshot and its own
//! writes.
//!
//! A query's condition alone, of one table, is a [`RowFilter`]: what scans that give rows to the server pass by
//! (`pandodb::FilteredRows`).
//!
//! What holds:
//! * **Exact or not at all.** Numbers are integers of 64 or 128 bits (a DECIMAL is one with a scale), every operation is
//!   checked, the order of texts is the server's. Where the answer is not determined by the rows alone (texts that are
//!   equal and not the same stand for one group), a number is none of the server's, or memory would not do, [`Query::run`]
//!   says [`Outcome::GivenBack`] before anything was given out, and whoever asked takes the other way.
//! * Conditions are three-valued: a row counts if its condition is true, not if it is unknown.

pub mod aggregate;
mod budget;
pub mod cells;
pub mod column;
mod decimal;
pub mod expression;
pub mod filter;
#[cfg(test)]
mod forms_tests;
mod frame;
mod groups;
mod intern;
mod join;
mod memory;
mod range;
mod row_filter;
mod run;
pub mod scan;
#[cfg(test)]
mod speed_tests;
mod words;
pub mod zone;

pub use aggregate::{Aggregate, Cell};
pub use budget::{memory_left_bytes, memory_used_bytes, set_memory_max_bytes, Budget, Share};
pub use column::{Collation, Column, CompareTexts, Form, Place};
pub use expression::{Bounds, DatePart, Expression, Operator, EXPRESSIONS_MAX};
pub use filter::{Comparison, Constant, Filter, Predicate, TestText, DEPTH_MAX};
pub use row_filter::RowFilter;
pub use run::{Failure, Limits, Outcome, Query, Why};
