//! Reports: the model that goes to JSON, and its three showings: a table, a page, a picture.

pub mod chart;
pub mod html;
pub mod model;
pub mod text;
pub mod units;

pub use model::{Answer, Better, Curve, EngineReport, Group, Machine, Metric, Report, Timing, Unit};
