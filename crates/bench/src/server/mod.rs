//! The servers that are measured: a private one for each engine, or one that is there already.

pub mod engines;
mod private;
pub(crate) mod process;

use std::path::{Path, PathBuf};

use crate::client::{Address, Connection};
use crate::error::Result;

pub use engines::Conditions;
pub use private::{PrivateServer, Programs};

/// A server to measure.
pub enum Server {
    /// Ours, in a directory of its own.
    Private(PrivateServer),
    /// Somebody's; we only talk to it, and look at its files and process where we may.
    Given(Address),
}

impl Server {
    /// A new session, in no database.
    pub fn connect(&self) -> Result<Connection> {
        Connection::open(self.address())
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        match self {
            Server::Private(server) => server.address(),
            Server::Given(address) => address,
        }
    }

    /// The private server, if it is one.
    pub fn private(&mut self) -> Option<&mut PrivateServer> {
        match self {
            Server::Private(server) => Some(server),
            Server::Given(_) => None,
        }
    }

    /// Whether it is ours: it may read any file, and be stopped.
    pub fn is_private(&self) -> bool {
        matches!(self, Server::Private(_))
    }

    /// Its data directory as a path on this machine; `None` when it cannot be seen from here.
    pub fn data_dir(&self) -> Option<PathBuf> {
        match self {
            Server::Private(server) => Some(server.data_dir()),
            Server::Given(_) => {
                let path = PathBuf::from(self.connect().ok()?.value("SELECT @@datadir").ok()??);
                std::fs::read_dir(&path).is_ok().then_some(path)
            }
        }
    }

    /// Its process, if it is on this machine and can be told.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Server::Private(server) => server.pid(),
            Server::Given(_) => {
                let path = self.connect().ok()?.value("SELECT @@pid_file").ok()??;
                std::fs::read_to_string(Path::new(&path)).ok()?.trim().parse().ok()
            }
        }
    }

    /// Bytes that its process has caused to be written to disk so far; `None` where that is not to be seen.
    pub fn written_bytes(&self) -> Option<u64> {
        match self {
            Server::Private(server) => server.written_bytes(),
            Server::Given(_) => process::written_bytes(self.pid()?),
        }
    }

    /// The most memory that its process has had; `None` where that is not to be seen.
    pub fn memory_bytes_max(&self) -> Option<u64> {
        match self {
            Server::Private(server) => server.memory_bytes_max(),
            Server::Given(_) => process::memory_bytes_max(self.pid()?),
        }
    }
}
