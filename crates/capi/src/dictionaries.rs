//! Dictionaries of all tables, for the server's information schema.

use std::ffi::c_void;

use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::status::{run, PandoStatus};

/// A dictionary of a table. Its pointers are valid for the call of the visitor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoDictionaryRow {
    /// `database/table`.
    pub table: PandoBytes,
    /// "main" for the rows, or the index's name.
    pub name: PandoBytes,
    /// Its file.
    pub file: PandoBytes,
    /// Its id.
    pub id: u64,
    /// 1: an index whose entries hold the rows.
    pub is_clustering: u8,
    /// 1: it is open, and the figures count.
    pub is_open: u8,
    /// Records, about.
    pub records: u64,
    /// Tombstones among what is stored.
    pub tombstones: u64,
    /// Bytes of all records before compression.
    pub raw_bytes: u64,
    /// Of these, in buffers of nodes.
    pub buffered_bytes: u64,
    /// Levels of nodes.
    pub height: u64,
    /// Nodes.
    pub nodes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Runs.
    pub runs: u64,
    /// Bytes of its file in use.
    pub used_bytes: u64,
    /// Bytes of its file that are free.
    pub free_bytes: u64,
    /// Bytes that the file takes on disk.
    pub file_bytes: u64,
}

/// Calls `visit` with `context` for each dictionary of each table, in the order of their names.
///
/// # Safety
/// `db` is open, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_dictionaries_visit(
    db: *const PandoDb,
    context: *mut c_void,
    visit: unsafe extern "C" fn(context: *mut c_void, row: *const PandoDictionaryRow),
) -> PandoStatus {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    run(|| {
        for row in db.dictionary_rows()? {
            let tree = row.figures.map(|figures| figures.tree).unwrap_or_default();
            let shown = PandoDictionaryRow {
                table: PandoBytes::from_slice(row.table.as_bytes()),
                name: PandoBytes::from_slice(row.name.as_bytes()),
                file: PandoBytes::from_slice(row.file.as_bytes()),
                id: row.id,
                is_clustering: u8::from(row.is_clustering),
                is_open: u8::from(row.figures.is_some()),
                records: tree.rows,
                tombstones: tree.tombstones,
                raw_bytes: tree.raw_bytes,
                buffered_bytes: tree.buffered_bytes,
                height: tree.height,
                nodes: tree.nodes,
                leaves: tree.leaves,
                runs: tree.runs,
                used_bytes: tree.disk_bytes,
                free_bytes: row.figures.map_or(0, |figures| figures.free_bytes),
                file_bytes: row.figures.map_or(0, |figures| figures.file_bytes),
            };
            // SAFETY: the caller vouches for it; the row lives for the call.
            unsafe { visit(context, &shown) };
        }
        Ok(PandoStatus::Ok)
    })
}
