//! Queries of all shapes, against a model that goes over all rows, or all pairs of rows.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod joins;
mod null_safe;
mod orders;
mod shapes;
mod spilling;
mod tied;
mod untied;
mod world;
