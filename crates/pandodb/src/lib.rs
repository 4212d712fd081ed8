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
//! Lock order, outermost first: the DDL mutex; the gates of trees by dictionary id; the log's
//! mutexes; the publication's; the maps of open tables and of dictionaries, in this order, the catalog's
//! content and the scheduler's queue, which are leaves: nothing is called with them held (but `idle`
//! asks trees whether they are clean).

mod alter;
mod background;
mod backup;
mod backup_command;
mod backup_copy;
mod blocks;
mod building;
mod catalog;
mod check;
mod commit;
mod cursor;
mod db;
mod ddl;
mod definition;
mod descriptor;
mod error;
mod escalation;
mod failure;
mod gone;
mod heap;
mod horizon;
mod idle;
mod index_base;
mod indexes;
mod inserts;
mod key_statistics;
mod load;
mod load_pool;
mod lock_report;
pub mod offline;
mod options;
mod own;
mod prepared;
mod recovery;
mod removed;
mod row_count;
mod rows;
mod scan;
mod spill;
mod status;
mod table;
mod transaction;
mod validate;
mod whole;
mod writes;

pub use alter::TableChange;
pub use backup::{BackupFile, BackupList, BackupLogFile, BackupSource};
pub use backup_command::SuperblockText;
pub use backup_copy::{adopted_by_log, prepare_restored, Adopted, PinnedCopy, Restored};
pub use blocks::{Block, Blocks, FilteredRows, RowCondition, Verdict, Want, Zone, Zones};
pub use building::Building;
pub use cursor::{Cursor, ReadMode};
pub use db::Db;
pub use definition::{Definition, DefinitionState};
pub use descriptor::{IndexSpec, TableSpec};
pub use error::{Error, Result};
pub use indexes::{IndexBuild, IndexChange, IndexPlace, IndexSource, NewIndex};
pub use key_statistics::{Distinct, KeyEnds};
pub use load::{BulkLoad, LoadEnd, RowEncoder};
pub use lock_report::{PlacedDeadlock, PlacedLock};
pub use options::{LogLevel, LogSink, Options};
pub use pando_base::{Accesses, Error as EngineError, Metrics, TxnId};
pub use pando_column::{layout, vector, Compression};
pub use pando_load::{Admission, Entries};
pub use pando_storage::vfs::{RealVfs, SimVfs, Vfs};
pub use pando_storage::{Place, Superblock};
pub use pando_tree::{Estimate, TreeConfig};
pub use pando_txn::{
    Deadlock, DeadlockWait, LockKind, LockMode, LockRow, LockWatch, Mark, TxnHandle, TxnRow,
};
pub use pando_wal::FlushMode;
pub use rows::Entry;
pub use scan::{on_threads, processors, View, ViewCursor};
pub use table::{Dict, Table, TableInfo};
pub use transaction::{is_too_long, too_long, LockWait, LockedRead, Txn};
