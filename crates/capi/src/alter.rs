//! Changes of tables: ALTER TABLE.

use std::mem::MaybeUninit;

use pandodb::{IndexChange, TableChange};

use crate::bytes::PandoBytes;
use crate::compression::{compression_of, PandoCompression};
use crate::database::PandoDb;
use crate::definition::{PandoDefinition, PandoIndexName};
use crate::foreign_key::{foreign_keys_of, names_in_pairs, names_of, PandoForeignKey};
use crate::index_build::{places_of, PandoBuild, PandoIndexPlace};
use crate::layout::{list, new_columns, PandoNewColumn};
use crate::server_files::PandoServerFiles;
use crate::status::{run, PandoStatus};

/// What becomes of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoTableChange {
    /// `./database/table`.
    pub path: PandoBytes,
    /// All columns that rows consist of from now on; a null pointer: as they are.
    pub columns: *const PandoNewColumn,
    /// How many.
    pub column_count: u32,
    /// New names of indexes.
    pub index_names: *const PandoIndexName,
    /// How many.
    pub index_name_count: u32,
    /// 1: `places` are all indexes from now on, those left out are dropped; `index_names` do not count.
    pub sets_indexes: u8,
    /// In the order of the definition.
    pub places: *const PandoIndexPlace,
    /// How many.
    pub place_count: u32,
    /// Where the new ones among them come from, or null. After success it is finished; after an error it is as
    /// it was, see [`crate::pando_build_duplicate`].
    pub build: *mut PandoBuild,
    /// 1: `compression` and `compression_level` count from now on.
    pub sets_compression: u8,
    /// Compression.
    pub compression: MaybeUninit<PandoCompression>,
    /// Level for zstd.
    pub compression_level: i32,
    /// 1: `auto_increment` is the next value.
    pub sets_auto_increment: u8,
    /// Also smaller than what it is.
    pub auto_increment: u64,
    /// What the server says of the new definition.
    pub definition: PandoDefinition,
    /// 1: `foreign_keys` are all constraints in which the table is the child from now on.
    pub sets_foreign_keys: u8,
    /// The constraints.
    pub foreign_keys: *const PandoForeignKey,
    /// How many.
    pub foreign_key_count: u32,
    /// Old and new names of columns, two for each.
    pub renamed_columns: *const PandoBytes,
    /// How many names.
    pub renamed_column_count: u32,
}

/// Changes tables that nobody else uses, all or none. `files`: those of the table that they are the partitions of. `Unsupported`: their
/// rows would have to be rewritten.
///
/// # Safety
/// `db` is open; the changes and all they point to are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_tables_alter(
    db: *const PandoDb,
    changes: *const PandoTableChange,
    count: u32,
    files: *const PandoServerFiles,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, changes) = unsafe { (&(*db).db, list(changes, count).unwrap_or_default()) };
    // SAFETY: as above.
    let files = unsafe { files.as_ref().and_then(|files| files.to_files()) };
    run(|| {
        // SAFETY: the caller vouches for what they point to.
        let given: pandodb::Result<Vec<TableChange>> =
            changes.iter().map(|change| unsafe { table_change(change) }).collect();
        let mut given = given?;
        // Not before nothing is wrong with any of them.
        for (change, given) in changes.iter().zip(&mut given) {
            if let Some(indexes) = &mut given.indexes {
                // SAFETY: as above.
                indexes.build = unsafe { change.build.as_mut() }.and_then(|build| build.build.take());
            }
        }
        let result = db.alter_partitions(&mut given, files);
        for (change, given) in changes.iter().zip(given) {
            if let Some(build) = given.indexes.and_then(|indexes| indexes.build) {
                // SAFETY: it came from there.
                unsafe { (*change.build).build = Some(build) };
            }
        }
        result?;
        Ok(PandoStatus::Ok)
    })
}

/// # Safety
/// All that the change points to is valid for the call.
unsafe fn table_change(change: &PandoTableChange) -> pandodb::Result<TableChange> {
    // SAFETY: the caller vouches for it, here and below.
    let names = unsafe { list(change.index_names, change.index_name_count) }.unwrap_or_default();
    // SAFETY: as above.
    let named = |it: &PandoIndexName| Ok((it.dictionary as usize, unsafe { it.name.to_name()? }));
    let index_names: pandodb::Result<_> = names.iter().map(named).collect();
    let indexes = match change.sets_indexes {
        0 => None,
        _ => {
            // SAFETY: as above.
            let places = unsafe { places_of(change.places, change.place_count)? };
            Some(IndexChange { places, build: None })
        }
    };
    let compression = match change.sets_compression {
        0 => None,
        _ => Some(compression_of(change.compression, change.compression_level)?),
    };
    let foreign_keys = match change.sets_foreign_keys {
        0 => None,
        // SAFETY: as above.
        _ => Some(unsafe { foreign_keys_of(change.foreign_keys, change.foreign_key_count)? }),
    };
    Ok(TableChange {
        // SAFETY: as above.
        path: unsafe { change.path.to_name()? },
        // SAFETY: as above.
        columns: unsafe { new_columns(change.columns, change.column_count)? },
        index_names: index_names?,
        indexes,
        compression,
        auto_increment: (change.sets_auto_increment != 0).then_some(change.auto_increment),
        // SAFETY: as above.
        definition: Some(unsafe { change.definition.to_definition() }),
        foreign_keys,
        renamed_columns: names_in_pairs(
            // SAFETY: as above.
            unsafe { names_of(change.renamed_columns, change.renamed_column_count)? },
        ),
    })
}
