//! Outcomes and errors of the public interface.

use pando_txn::LockError;

/// Result with [`Error`].
///
/// Calls that have nothing to do with transactions, as those on tables and files, give [`EngineResult`](crate::EngineResult) instead: the
/// operator `?` makes the one of the other.
///
/// ```
/// use std::sync::Arc;
///
/// use pandodb::{Db, EngineResult, LockWait, Table};
///
/// fn fruit(db: &Db) -> EngineResult<Arc<Table>> {
///     db.open_table("fruit")
/// }
///
/// fn paint(db: &Arc<Db>, colour: &[u8]) -> pandodb::Result<Arc<Table>> {
///     let (table, mut txn) = (fruit(db)?, db.begin());
///     txn.put(&table, 0, b"apple", colour, LockWait::Default)?;
///     txn.commit()?;
///     Ok(table)
/// }
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What a call may come back with besides its answer. The plugin maps each variant to the server's
/// error numbers in one table.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Something failed below transactions: I/O, corruption, a full disk, the latch (I8).
    #[error(transparent)]
    Engine(#[from] pando_base::Error),
    /// The log failed after a commit was published (steps 5 and 7 of `txn::commit`): nobody knows whether the next start finds it.
    #[error(
        "the change is in doubt: it can be read until the server restarts, and may be gone then; {reason}"
    )]
    InDoubt {
        /// What the log says.
        reason: String,
    },
    /// This transaction was chosen as victim; it must be rolled back.
    #[error("deadlock found when trying to get lock; try restarting transaction")]
    Deadlock,
    /// A lock was not granted in time; the statement fails, the transaction may go on.
    #[error("lock wait timeout exceeded; try restarting transaction")]
    LockTimeout,
    /// The connection was killed while waiting.
    #[error("query execution was interrupted")]
    Killed,
    /// NOWAIT, and the lock is held by another.
    #[error("lock is held by another transaction")]
    WouldBlock,
    /// The table has other indexes than this object, or this snapshot, knows of.
    #[error("table definition has changed, please retry transaction")]
    DefinitionChanged,
    /// A damaged index is asked for, or a unique one would have to say whether a key is free.
    #[error(
        "the key is damaged and cannot be used until it is built anew (REPAIR TABLE does that): {reason}"
    )]
    KeyUnusable {
        /// What is wrong, and with which file.
        reason: String,
    },
    /// A large value is lost with its file, or that file is to take new ones.
    #[error("{what}")]
    ValuesLost {
        /// What is asked for, and what is wrong with which file.
        what: String,
    },
    /// A unique dictionary holds this key already. Nothing was written.
    #[error("duplicate key in dictionary {index}")]
    Duplicate {
        /// Position of the dictionary in the table.
        index: usize,
        /// Value stored there under the key.
        existing: Vec<u8>,
    },
}

impl Error {
    /// The outcome of the wait for the log once others see what was to be made durable.
    pub(crate) fn after_publication(waited: pando_base::Result<()>) -> Result<()> {
        waited.map_err(|error| Error::InDoubt { reason: error.to_string() })
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        match error {
            LockError::Deadlock => Error::Deadlock,
            LockError::Timeout => Error::LockTimeout,
            LockError::Killed => Error::Killed,
            LockError::WouldBlock => Error::WouldBlock,
        }
    }
}
