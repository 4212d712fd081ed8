//! Pando: ordered transactional maps on a write-optimised tree; the engine under `ENGINE=PANDO`.
//!
//! A [`Db`] holds tables; a [`Table`] is a set of dictionaries (its rows and its secondary
//! indexes), each an ordered map of byte strings in a tree file of its own. All reading and
//! writing goes through a [`Txn`].
//!
//! Life of a write: [`Txn::insert_row`] locks the unique keys, looks them up, and puts the entries
//! into the write set; [`Txn::commit`] runs the pipeline of `commit`: log, memtables, publication,
//! durability. Background jobs (`background`) bring the records down the tree, checkpoints let go
//! of the log. After a crash, `recovery` replays what the files lack.
//!
//! The rooms, each of which uses only those below it (`scripts/check-rooms.py`):
//!
//! ```text
//!   backup                   pinning a moment, and copies of it
//!   recovery                 opening a database: catalog, log, prepared transactions
//!   ddl        jobs reports  definitions and indexes | background work | what it says of itself
//!   read       write         cursors, views, columns | rows, bulk loads
//!   txn                      transactions, their locks, commits in one phase and in two
//!   db                       the handle, its options, and what it owns
//!   catalog                  which tables there are
//!   table                    open tables and dictionaries, and uncommitted writes to them
//!   runtime                  threads, files, clock, failures: what knows nothing of tables
//! ```
//!
//! Files *define* a part of [`Db`] or [`Txn`], or *extend* one with methods (`impl Db`), never both: so a commit can call
//! what pays for background work, though `jobs` is above `txn`.
//!
//! Lock order, outermost first: the DDL mutex; the gates of trees by dictionary id; the log's
//! mutexes; the publication's; the maps of open tables and of dictionaries, in this order, the catalog's
//! content and the scheduler's queue, which are leaves: nothing is called with them held (but `idle`
//! asks trees whether they are clean).

mod backup;
mod catalog;
mod db;
mod ddl;
mod error;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod jobs;
mod read;
mod recovery;
mod reports;
mod runtime;
mod table;
mod txn;
mod write;

pub use backup::command::SuperblockText;
pub use backup::copy::{adopted_by_log, prepare_restored, Adopted, PinnedCopy, Restored};
pub use catalog::definition::{Definition, DefinitionState};
pub use catalog::descriptor::{IndexSpec, TableSpec};
pub use catalog::foreign_key::{ForeignKey, NewName, ReferentialAction};
pub use catalog::server_files::ServerFiles;
pub use db::backups::{BackupFile, BackupList, BackupLogFile, BackupSource};
pub use db::options::{LeftOut, LogLevel, LogSink, Options, OtherMemory};
pub use db::Db;
pub use ddl::alter::TableChange;
pub use ddl::indexes::{IndexBuild, IndexChange, IndexPlace, IndexSource, NewIndex};
pub use error::{Error, Result};
pub use jobs::key_rotation::KeyUse;
pub use pando_base::{Accesses, Error as EngineError, Metrics, Result as EngineResult, TxnId};
pub use pando_column::{large, layout, vector, Compression, KeyPath};
pub use pando_load::{Admission, Entries, Memory as LoadMemory, Notes};
pub use pando_storage::encryption::{KeyList, KeyProvider, KeyRing, SecretKey};
pub use pando_storage::vfs::{FaultKind, RealVfs, SimVfs, Vfs};
pub use pando_storage::{Place, Superblock, TempFile, TempPiece};
pub use pando_tree::{Estimate, TreeConfig};
pub use pando_txn::{
    Deadlock, DeadlockWait, LockKind, LockMode, LockRow, LockWatch, Mark, TxnHandle, TxnRow,
};
pub use pando_wal::{FlushMode, LOG_KEY_ID, NOTE_OF_NEXT_FILE};
pub use read::blocks::{Block, Blocks, FilteredRows, RowCondition, Verdict, Want, Zone, Zones};
pub use read::cursor::{Cursor, ReadMode};
pub use read::view::{View, ViewCursor};
pub use reports::dictionaries::{DictionaryFigures, DictionaryRow};
pub use reports::locks::{PlacedDeadlock, PlacedLock};
pub use reports::offline;
pub use runtime::threads::{on_threads, processors, QueryThreads};
pub use table::building::Building;
pub use table::clustering::Clustering;
pub use table::entry::Entry;
pub use table::key_statistics::{Distinct, KeyEnds};
pub use table::large::LargeValue;
pub use table::{Dict, Table, TableInfo};
pub use txn::transaction::{LockWait, LockedRead, Txn};
pub use write::load::{BulkLoad, LoadEnd, RowEncoder};
pub use write::rows::OnDuplicate;

/// The example of the crate's page, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
