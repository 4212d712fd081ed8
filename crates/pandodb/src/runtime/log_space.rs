//! Which space of the log a commit may take.

/// What space of the log a commit may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogSpace {
    /// All but what is kept.
    Free,
    /// The reserve too ([`pando_wal::Wal::append_from_reserve`]).
    Reserve,
    /// The same, and as much stays for taking it back ([`pando_wal::Wal::append_with_way_back`]).
    WithWayBack,
    /// What was promised for taking a commit back ([`pando_wal::Wal::append_way_back`]).
    WayBack(u64),
}
