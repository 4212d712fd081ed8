//! Tests of the tree as a whole, against a model that keeps every version.

mod bottom;
mod chunks;
mod concurrent;
mod faults;
mod golden;
mod model;
mod random;
mod ranges;
mod sharp;
mod world;
