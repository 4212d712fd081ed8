//! Numbers of the format of segments of columns, and its limits.

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 40;
/// Most records; segments of more are written row-wise.
pub(crate) const ROWS_MAX: usize = 1 << 16;
/// Most bytes of values; segments of more are written row-wise.
pub(crate) const VALUE_BYTES_MAX: usize = 16 << 20;
/// Most bytes in common: a small part of a run, and what a lookup must have beside its segment.
pub const COMMON_BYTES_MAX: usize = 64 << 10;
/// Most groups; rows of further layouts are not taken apart.
pub(crate) const GROUPS_MAX: usize = 8;

/// NULL everywhere.
pub(crate) const NULLS: u8 = 0;
/// One value for each record.
pub(crate) const PLAIN: u8 = 1;
/// Distinct values and a number for each record.
pub(crate) const DICTIONARY: u8 = 2;
/// Distinct values, and the number follows from another column's.
pub(crate) const MAPPED: u8 = 3;

/// The name of keys as what a mapped column follows from.
pub(crate) const FROM_KEYS: usize = 0;
/// No column has this place.
pub(crate) const FROM_NOWHERE: usize = usize::MAX;
