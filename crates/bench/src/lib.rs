//! `pando-bench`: what storage engines take for the work that this one is made for.
//!
//! ```text
//!   cli ──► run ──► workload::{ontime, lineorder, tpcc, users, iibench}
//!            │            │  generate: rows as CSV, the same for the same seed
//!            │            │  client:   statements over a socket
//!            │            ▼  measure:  samples, percentiles, histograms
//!            │         report::model ──► text table, JSON, HTML page, SVG chart
//!            └──► server: a private server for each engine, or one that is there
//! ```
//!
//! Rules that make numbers comparable:
//!
//! 1. Every engine gets a fresh private server with the same cache and the same durability; what that means
//!    as options of each engine is one table (`server::engines`), and the options are part of every report.
//! 2. The same statements and the same bytes for every engine: data are generated once, before the clock runs.
//! 3. Answers are kept as digests and compared: a query that is fast and wrong is reported as wrong.
//! 4. Repetitions go round the engines, not one engine after the other, so that a disturbance of the machine
//!    does not fall on one of them; what is shown is the median.
//! 5. A number that could not be measured is missing; it is never estimated.

pub mod cleanup;
pub mod cli;
pub mod client;
pub mod error;
pub mod generate;
pub mod measure;
pub mod progress;
pub mod report;
pub mod run;
pub mod server;
pub mod workload;
