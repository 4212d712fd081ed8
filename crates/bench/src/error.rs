//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

/// Result of most functions here.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that ends a run or a statement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused a statement; the connection goes on.
    #[error("{message} (error {number}, in: {statement})")]
    Sql {
        /// The server's error number.
        number: u16,
        /// Its text.
        message: String,
        /// The beginning of the statement.
        statement: String,
    },
    /// The connection broke, or the server said something that is no answer.
    #[error("connection to the server: {0}")]
    Connection(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The private server could not be made, started or stopped.
    #[error("{0}")]
    Server(String),
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// What was read is not what it should be.
    #[error("{0}")]
    Data(String),
}

impl Error {
    /// For `map_err`: an I/O error with the path it is about.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::File { path: path.to_path_buf(), source }
    }

    /// The server's error number, if it was the server that refused.
    pub fn sql_number(&self) -> Option<u16> {
        match self {
            Error::Sql { number, .. } => Some(*number),
            _ => None,
        }
    }

    /// Deadlock or lock wait timeout: the transaction is to be tried again.
    pub fn is_retryable(&self) -> bool {
        const LOCK_WAIT_TIMEOUT: u16 = 1205;
        const DEADLOCK: u16 = 1213;
        const CHECK_READ: u16 = 1020;
        matches!(self.sql_number(), Some(LOCK_WAIT_TIMEOUT | DEADLOCK | CHECK_READ))
    }
}
