//! Whole queries over one table: which rows count, into which groups they fall, what is told of each group.
//!
//! The server's executor asks for one row after the other. A query that this crate can answer is answered here
//! instead: threads share the ranges of the table's leaves, each turns rows into columns of a thousand ([`batch`]),
//! filters these ([`filter`]) and aggregates what is left ([`aggregate`]); at the end the groups of all threads become
//! one set. Everything is read from the transaction's own view: its snapshot and its own writes.
//!
//! What holds:
//! * **Exact or not at all.** Numbers are integers of 128 bits (a DECIMAL is one with a scale), sums are checked, the
//!   order of texts is the server's. Where the answer is not determined by the rows alone (texts that are equal and not the
//!   same stand for one group), or memory would not do, [`Query::run`] says [`Outcome::GivenBack`] before anything was
//!   given out, and whoever asked takes the other way.
//! * Conditions are three-valued: a row counts if its condition is true, not if it is unknown.

pub mod aggregate;
pub mod batch;
mod decimal;
pub mod filter;
mod run;

pub use aggregate::{Aggregate, Cell};
pub use batch::{Collation, Column, CompareTexts, Form, Place};
pub use filter::{Comparison, Constant, Filter};
pub use run::{Limits, Outcome, Query, Why};
