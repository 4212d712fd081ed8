//! Names and checks of files that several rooms share.

use std::path::Path;

use pando_base::{Error, Result, Seqno};
use pando_storage::vfs::Vfs;

/// The copy of the descriptor in a table's directory.
pub(crate) const STATUS_FILE: &str = "status.pando";

/// Makes the name of a file or directory durable.
pub(crate) fn sync_parent(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => vfs.sync_dir(parent),
        None => Ok(()),
    }
}

/// Refuses a tree file with commits from behind the end of the log.
pub(crate) fn check_durable(path: &Path, durable_seqno: Seqno, last_seqno: Seqno) -> Result<()> {
    if durable_seqno <= last_seqno {
        return Ok(());
    }
    let expected = format!("at most {last_seqno}, where the log ends");
    Err(Error::corruption(path, 0, "durable seqno of the superblock", expected, durable_seqno))
}
