//! Tests of the tree as a whole, against a model that keeps every version.

mod concurrent;
mod faults;
mod golden;
mod model;
mod random;
mod sharp;
mod world;
