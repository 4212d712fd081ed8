//! Opening a database.
//!
//! With [`Options::despite_damage`] that is done on a shadow of the disk, so that all of it happens as ever and nothing of it is
//! written; the log ends at its first damage, and once the database is open, it refuses whatever would be appended.

use std::path::Path;
use std::sync::Arc;

use pando_storage::vfs::{RealVfs, ShadowVfs, Vfs};

use crate::db::options::{LogLevel, Options};
use crate::db::Db;
use crate::error::Result;
use crate::recovery::recover;

impl Db {
    /// Opens (and recovers) the database, or makes a new one where there is none.
    ///
    /// Errors: I/O, or corruption of the log or the catalog; it is open already, here or in another process
    /// ([`EngineError::Locked`](pando_base::Error::Locked)). A damaged table does not keep the
    /// database from opening; it gives its error when it is opened.
    pub fn open(options: Options) -> Result<Arc<Db>> {
        let descriptors = usize::try_from(options.descriptors_max).unwrap_or(usize::MAX);
        let vfs: Arc<dyn Vfs> = RealVfs::with_limit(options.direct_io, descriptors);
        let log_vfs: Arc<dyn Vfs> = RealVfs::new(false);
        Db::open_with_vfs(options, vfs, log_vfs)
    }

    /// As [`Db::open`], on the given file systems for tables and for the log.
    pub fn open_with_vfs(options: Options, vfs: Arc<dyn Vfs>, log_vfs: Arc<dyn Vfs>) -> Result<Arc<Db>> {
        if !options.despite_damage {
            return Db::open_on(options, vfs, log_vfs);
        }
        let (vfs, log_vfs) = (ShadowVfs::over(vfs), ShadowVfs::over(log_vfs));
        let db = Db::open_on(Options { background_threads: 0, ..options }, vfs, log_vfs)?;
        db.wal.refuse("it was started despite damage");
        db.log(LogLevel::Warning, DESPITE_DAMAGE);
        Ok(db)
    }

    fn open_on(options: Options, vfs: Arc<dyn Vfs>, log_vfs: Arc<dyn Vfs>) -> Result<Arc<Db>> {
        let catalog = Db::catalog_path(&options.engine_dir);
        let mut parts = recover(&options, vfs, log_vfs).map_err(|error| with_advice(error, &catalog))?;
        let (unresolved, private) =
            (std::mem::take(&mut parts.unresolved), std::mem::take(&mut parts.private));
        let damaged_keys = std::mem::take(&mut parts.damaged_keys);
        let db = Db::assemble(options, parts, &unresolved);
        db.settle_damaged_keys(damaged_keys);
        db.restore_prepared(unresolved, private)?;
        db.backups.remove_leftovers(&*db.vfs)?;
        db.finish_intents();
        db.background.start(&db)?;
        Ok(db)
    }
}

const DESPITE_DAMAGE: &str =
    "started despite damage: nothing is written, and what is read may be old, or contradict itself; \
    dump the tables, and load them into a new server";

/// What to do about a damaged catalog.
fn with_advice(mut error: pando_base::Error, catalog: &Path) -> pando_base::Error {
    if let pando_base::Error::Corruption { path, found, .. } = &mut error {
        if path == catalog {
            found.push_str("; the command `pando rebuild-catalog DATADIR` makes a new one of what lies beside the tables' files");
        }
    }
    error
}
