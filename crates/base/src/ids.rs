//! Names of things: small copyable numbers, each with a type of its own.

use std::fmt;

/// Commit number of a transaction. Zero means "before every commit".
pub type Seqno = u64;

/// What a record is written with once it is in a leaf and every snapshot sees it: nobody asks any more when it was
/// committed, and segments whose records have one seqno take less. As a real seqno it is that of the first commit.
pub const SETTLED_SEQNO: Seqno = 1;

/// A snapshot at this number sees every committed version.
pub const MAX_SEQNO: Seqno = u64::MAX;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A dictionary: one ordered map in one tree file (a table's rows, or one index). Never reused.
    DictId
);
id!(
    /// A run, unique within its tree file for the life of the file.
    RunId
);
id!(
    /// A tree node; kept by the copies that path-copying edits make of it.
    NodeId
);
id!(
    /// A transaction, unique within one life of the process.
    TxnId
);
