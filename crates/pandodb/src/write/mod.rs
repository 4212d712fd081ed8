//! Writing rows: one by one, and bulk loads.

pub(crate) mod building_ops;
pub(crate) mod delete_range;
pub(crate) mod large;
pub(crate) mod load;
pub(crate) mod load_beside;
pub(crate) mod load_by_row;
pub(crate) mod rows;
