//! Tables: DDL, opening, statistics, auto-increment.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pandodb::{IndexSpec, Table, TableSpec};

use crate::bytes::PandoBytes;
use crate::clustering::PandoClustering;
use crate::compression::{compression_of, PandoCompression};
use crate::database::PandoDb;
use crate::definition::{PandoDefinition, PandoIndexName};
use crate::foreign_key::{foreign_keys_of, PandoForeignKey};
use crate::guard::{guard, meet_planted_bug};
use crate::layout::{list, new_columns, LayoutViews, PandoLayout, PandoNewColumn};
use crate::member::{choice, member};
use crate::server_files::PandoServerFiles;
use crate::status::{run, run_contained, PandoStatus};
use crate::watch::{watching, PandoWatch};

/// An open table.
#[derive(Debug)]
pub struct PandoTable {
    pub(crate) table: Arc<Table>,
    pub(crate) layouts: LayoutViews,
}

/// A secondary index of a new table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoIndexSpec {
    /// Its name.
    pub name: PandoBytes,
    /// 1: entries are got by their whole keys, as those of unique indexes are; 0: they take less without what serves
    /// that.
    pub has_filters: u8,
    /// Whether its entries hold rows.
    pub clustering: MaybeUninit<PandoClustering>,
}

/// What a table is created with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoTableSpec {
    /// `./database/table` as the server names it, or an absolute path for temporary tables.
    pub path: PandoBytes,
    /// The secondary indexes; dictionary 0 holds the rows, `i + 1` belongs to `indexes[i]`.
    pub indexes: *const PandoIndexSpec,
    /// How many indexes.
    pub index_count: u32,
    /// Compression.
    pub compression: MaybeUninit<PandoCompression>,
    /// Level for zstd.
    pub compression_level: i32,
    /// 1: gone after a restart, and seen by one session alone.
    pub temporary: u8,
    /// 1: it is filled under a name that is not yet the one it is for; a rename gives it that.
    pub interim: u8,
    /// First auto-increment value, 0 for none.
    pub auto_increment: u64,
    /// What rows consist of. Sources and values do not matter here.
    pub columns: *const PandoNewColumn,
    /// How many columns.
    pub column_count: u32,
    /// What the server says of this definition.
    pub definition: PandoDefinition,
    /// The constraints in which the table is the child.
    pub foreign_keys: *const PandoForeignKey,
    /// How many.
    pub foreign_key_count: u32,
    /// 1: its files are encrypted. 2: they are not, because its definition says nothing of it, and may be encrypted later
    /// (`pando_db_set_encrypt_tables`).
    pub encrypted: u8,
    /// With the key of this number.
    pub encryption_key_id: u32,
    /// Of the table that it is a partition of, where they are known.
    pub server_files: PandoServerFiles,
}

/// Figures of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PandoTableInfo {
    /// Rows, estimated.
    pub rows: u64,
    /// Bytes of the rows before compression.
    pub raw_bytes: u64,
    /// Bytes the rows' file takes on disk.
    pub data_bytes: u64,
    /// Bytes the index files take on disk.
    pub index_bytes: u64,
    /// Bytes inside the files that are free.
    pub free_bytes: u64,
    /// Creation, in seconds since 1970.
    pub created: u64,
    /// The last commit that changed rows, in seconds since 1970; 0 if there was none since the table was opened.
    pub changed: u64,
    /// Next auto-increment value, 0 for none yet.
    pub auto_increment: u64,
}

/// Creates a table.
///
/// # Safety
/// `db` is open; the spec and all it points to are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_create(db: *const PandoDb, spec: *const PandoTableSpec) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, spec) = unsafe { (&(*db).db, &*spec) };
    run(|| {
        choice("encrypted", spec.encrypted, 2)?;
        let mut indexes = Vec::with_capacity(spec.index_count as usize);
        for position in 0..spec.index_count as usize {
            // SAFETY: the caller vouches for the list.
            let (name, has_filters, clustering) = unsafe {
                let index = &*spec.indexes.add(position);
                (index.name.to_name()?, index.has_filters != 0, member(index.clustering)?.into())
            };
            indexes.push(IndexSpec { name, has_filters, clustering });
        }
        db.create_table(&TableSpec {
            // SAFETY: as above.
            path: unsafe { spec.path.to_name()? },
            indexes,
            compression: compression_of(spec.compression, spec.compression_level)?,
            temporary: spec.temporary != 0,
            // SAFETY: as above.
            server_files: unsafe { spec.server_files.to_files() },
            interim: spec.interim != 0,
            auto_increment: spec.auto_increment,
            // SAFETY: as above.
            columns: unsafe { new_columns(spec.columns, spec.column_count)? },
            // SAFETY: as above.
            definition: unsafe { spec.definition.to_definition() },
            // SAFETY: as above.
            foreign_keys: unsafe { foreign_keys_of(spec.foreign_keys, spec.foreign_key_count)? },
            encryption_key_id: (spec.encrypted == 1).then_some(spec.encryption_key_id),
            undecided_key_id: (spec.encrypted == 2).then_some(spec.encryption_key_id),
        })?;
        Ok(PandoStatus::Ok)
    })
}

/// What rows of a version consist of; version 0: those that are written now. `NotFound`: there is no such
/// version.
///
/// # Safety
/// The table is open, `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_layout(
    table: *const PandoTable,
    version: u32,
    out: *mut PandoLayout,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (table, out) = unsafe { (&*table, &mut *out) };
    run_contained(|| match table.layouts.get(version) {
        Some(layout) => {
            *out = layout;
            Ok(PandoStatus::Ok)
        }
        None => Ok(PandoStatus::NotFound),
    })
}

/// Drops a table that nobody uses.
///
/// # Safety
/// `db` is open, `path` is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_drop(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| {
        let path = path?;
        db.drop_table(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// `InUse`: a prepared transaction without a connection has changed the table.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_check_resolved(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run_contained(|| {
        let path = path?;
        db.check_resolved(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// The same for all partitions of a partitioned table.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_check_partitions_resolved(
    db: *const PandoDb,
    path: PandoBytes,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run_contained(|| {
        let path = path?;
        db.check_partitions_resolved(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// Removes all rows and the auto-increment value of a table that nobody else uses.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_truncate(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| {
        let path = path?;
        db.truncate_table(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// Drops what tables a database still has in the engine (DROP DATABASE).
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_drop_database(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| {
        let path = path?;
        db.drop_database(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// Opens a table; give it back with [`pando_table_close`].
///
/// # Safety
/// `db` is open, the path is valid for the call, `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_open(
    db: *const PandoDb,
    path: PandoBytes,
    out: *mut *mut PandoTable,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, out) = unsafe { (&(*db).db, path.to_name(), &mut *out) };
    run_contained(|| {
        let path = path?;
        let table = db.open_table(&path)?;
        let layouts = LayoutViews::new(table.layouts().cloned());
        *out = Box::into_raw(Box::new(PandoTable { table, layouts }));
        Ok(PandoStatus::Ok)
    })
}

/// Gives an open table back. Null is allowed.
///
/// # Safety
/// The object is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_table_close(table: *mut PandoTable) {
    guard(|| {
        if !table.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(table) });
        }
    });
}

/// Which secondary keys are damaged, so that they can be neither read nor asked for duplicates: bit `i` is that of dictionary `i + 1`.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_unusable_keys(table: *const PandoTable) -> u64 {
    // SAFETY: the caller vouches for it.
    let table = unsafe { &(*table).table };
    guard(|| {
        if !table.has_unusable() {
            return 0;
        }
        let keys = 1..table.dicts().len().min(65);
        keys.filter(|index| table.is_unusable(*index)).fold(0, |bits, index| bits | 1 << (index - 1))
    })
}

/// Calls `visit` with `context`, the position and the name of each secondary key's dictionary, as the catalog has them.
///
/// # Safety
/// `db` is open, and `table` is one of its tables; `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_table_key_names_visit(
    db: *const PandoDb,
    table: *const PandoTable,
    context: *mut c_void,
    visit: unsafe extern "C" fn(context: *mut c_void, dictionary: u32, name: PandoBytes),
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    run_contained(|| {
        for (index, name) in db.dictionary_names(table)?.iter().enumerate().skip(1) {
            // SAFETY: the caller vouches for it.
            unsafe { visit(context, index as u32, PandoBytes::from_slice(name.as_bytes())) };
        }
        Ok(PandoStatus::Ok)
    })
}

/// These keys have other names in the server's definition than in the catalog, and so entries of one another: from now on they are damaged
/// keys of these names.
///
/// # Safety
/// `db` is open, and `table` is one of its tables; `names` are `count` names, valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_give_up_misnamed_keys(
    db: *const PandoDb,
    table: *const PandoTable,
    names: *const PandoIndexName,
    count: u32,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, table, names) = unsafe { (&(*db).db, &(*table).table, list(names, count)) };
    run_contained(|| {
        // SAFETY: the caller vouches for the names.
        let named = |it: &PandoIndexName| Ok((it.dictionary as usize, unsafe { it.name.to_name()? }));
        let names: pandodb::Result<Vec<_>> = names.unwrap_or_default().iter().map(named).collect();
        let names = names?;
        db.give_up_misnamed_keys(table, &names)?;
        Ok(PandoStatus::Ok)
    })
}

/// A secondary key was found to have other entries than the rows have: from now on it is a damaged key. Answers `PANDO_STATUS_CORRUPTION`,
/// unless that cannot be recorded.
///
/// # Safety
/// `db` is open, and `table` is one of its tables, which has this dictionary.
#[no_mangle]
pub unsafe extern "C" fn pando_table_give_up_key(
    db: *const PandoDb,
    table: *const PandoTable,
    dictionary: u32,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    run_contained(|| {
        db.give_up_key(table, dictionary as usize)?;
        Ok(PandoStatus::Ok)
    })
}

/// 1 if the file of the large values is damaged or missing: those in it are lost, and there is no place for new ones.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_has_lost_large_file(table: *const PandoTable) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { (*table).table.has_lost_large_file() }))
}

/// Gives up the large values of a table whose file of these is damaged or missing, and begins a new file; else does nothing. Others are
/// kept from the table. Who has it open must open it anew.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_begin_large_values_anew(
    db: *const PandoDb,
    path: PandoBytes,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| {
        let path = path?;
        db.begin_large_values_anew(&path)?;
        Ok(PandoStatus::Ok)
    })
}

/// Figures of a table. Sizes are what the file system has allocated if `is_exact` is not 0, which asks it; else what is in use
/// within the files.
///
/// # Safety
/// The table is open, `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_info(
    table: *const PandoTable,
    is_exact: u8,
    out: *mut PandoTableInfo,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (table, out) = unsafe { (&(*table).table, &mut *out) };
    run_contained(|| {
        let info = table.info(is_exact != 0)?;
        *out = PandoTableInfo {
            rows: info.rows,
            raw_bytes: info.raw_bytes,
            data_bytes: info.data_bytes,
            index_bytes: info.index_bytes,
            free_bytes: info.free_bytes,
            created: info.created,
            changed: info.changed,
            auto_increment: table.auto_increment(),
        };
        Ok(PandoStatus::Ok)
    })
}

/// Reads all of a table and checks it (CHECK TABLE). `watch` is called now and then; it may be null.
///
/// # Safety
/// Both objects are alive; `watch` can be called with `watched` in this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_table_check(
    db: *const PandoDb,
    table: *const PandoTable,
    watch: PandoWatch,
    watched: *mut c_void,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    // SAFETY: the caller vouches for the function.
    let mut look = unsafe { watching(watch, watched) };
    run_contained(|| {
        db.check_table(table, &mut look)?;
        Ok(PandoStatus::Ok)
    })
}

/// The table says nothing of encryption, and would get the key of this number: for tables that were created before this was recorded.
///
/// # Safety
/// `db` is open, and `table` is one of its tables.
#[no_mangle]
pub unsafe extern "C" fn pando_table_note_undecided(
    db: *const PandoDb,
    table: *const PandoTable,
    encryption_key_id: u32,
) {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    guard(|| db.note_undecided(table, encryption_key_id));
}

/// From now on `pando_table_compact` rewrites no more bytes a second, of all tables together. 0: as fast as it goes. Whoever is at work
/// heeds it, too.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_db_set_optimize_rate(db: *const PandoDb, bytes_per_second: u64) {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| db.set_optimize_rate(bytes_per_second));
}

/// Rewrites a table compactly and gives the space back (OPTIMIZE TABLE); others go on meanwhile. `watch` is called
/// before each leaf; it may be null.
///
/// # Safety
/// Both objects are alive; `watch` can be called with `watched` in this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_table_compact(
    db: *const PandoDb,
    table: *const PandoTable,
    watch: PandoWatch,
    watched: *mut c_void,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    // SAFETY: the caller vouches for the function.
    let mut look = unsafe { watching(watch, watched) };
    run(|| {
        db.compact_table(table, &mut look)?;
        Ok(PandoStatus::Ok)
    })
}

/// Rows of dictionary `index` in `[from, to)`, estimated; null is "no bound".
///
/// # Safety
/// The table is open, the keys are valid for the call, `rows` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_estimate(
    table: *const PandoTable,
    index: u32,
    from: PandoBytes,
    to: PandoBytes,
    rows: *mut u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (table, from, to, rows) = unsafe { (&(*table).table, from.as_option(), to.as_option(), &mut *rows) };
    run_contained(|| {
        meet_planted_bug(from.unwrap_or_default());
        *rows = table.rows_in_range(index as usize, from, to)?;
        Ok(PandoStatus::Ok)
    })
}

/// Says where the first `parts` parts of a key end; 0: it is not a key.
pub type PandoKeyEnds =
    Option<unsafe extern "C" fn(context: *const c_void, key: PandoBytes, ends: *mut u32, parts: u32) -> u8>;

/// How many different values the first part of the keys of dictionary `index` has, the first two together, and so on: in
/// `distinct`, for `parts` of them, of `rows` rows. They are counted, or estimated from a sample, where that has not been
/// done since the table has changed much; with `anew` 1 in any case. `rows` 0: they are not known.
///
/// # Safety
/// Both objects are alive; `ends` can be called with `context` in this thread; `distinct` has room, `rows` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_distinct_keys(
    db: *const PandoDb,
    table: *const PandoTable,
    index: u32,
    parts: u32,
    anew: u8,
    ends: PandoKeyEnds,
    context: *const c_void,
    distinct: *mut u64,
    rows: *mut u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, table) = unsafe { (&(*db).db, &(*table).table) };
    // SAFETY: the caller vouches for them.
    let (out, rows) = unsafe { (std::slice::from_raw_parts_mut(distinct, parts as usize), &mut *rows) };
    let mut ends = |key: &[u8], of: &mut [u32]| {
        // SAFETY: the function was given for this purpose; both live for the call.
        ends.is_some_and(|ends| unsafe { ends(context, PandoBytes::from_slice(key), of.as_mut_ptr(), of.len() as u32) } != 0)
    };
    run_contained(|| {
        let known = db.distinct_keys(table, index as usize, parts as usize, anew != 0, &mut ends)?;
        *rows = known.as_ref().map_or(0, |known| known.rows);
        if let Some(known) = known.filter(|known| known.values.len() == out.len()) {
            out.copy_from_slice(&known.values);
        }
        Ok(PandoStatus::Ok)
    })
}

/// A new key for a row of a table without a primary key.
///
/// # Safety
/// The table is open, `key` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_next_hidden_key(table: *const PandoTable, key: *mut u64) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (table, key) = unsafe { (&(*table).table, &mut *key) };
    run_contained(|| {
        *key = table.next_hidden_key()?;
        Ok(PandoStatus::Ok)
    })
}

/// Takes `count` new keys for rows of a table without a primary key: from `first` on.
///
/// # Safety
/// The table is open, `first` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_reserve_hidden_keys(
    table: *const PandoTable,
    count: u64,
    first: *mut u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (table, first) = unsafe { (&(*table).table, &mut *first) };
    run_contained(|| {
        *first = table.reserve_hidden_keys(count)?;
        Ok(PandoStatus::Ok)
    })
}

/// 1 if it seems that nothing is in the table: whether a load is worth a try.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_is_empty(table: *const PandoTable) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| u8::from(unsafe { (*table).table.seems_empty() }))
}

/// Takes `count` auto-increment values: the first is the smallest at or after the counter that
/// equals `offset` modulo `step`. `NotFound`: there is none below 2^64.
///
/// # Safety
/// The table is open, `first` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_reserve_auto_increment(
    table: *const PandoTable,
    step: u64,
    offset: u64,
    count: u64,
    first: *mut u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (table, first) = unsafe { (&(*table).table, &mut *first) };
    run_contained(|| match table.auto_increment_reserve(1, step, offset, count) {
        Some(value) => {
            *first = value;
            Ok(PandoStatus::Ok)
        }
        None => Ok(PandoStatus::NotFound),
    })
}

/// Whether the entries of a dictionary hold rows; dictionary 0, whose entries are the rows, is said not to.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_clustering(
    table: *const PandoTable,
    dictionary: u32,
) -> PandoClustering {
    // SAFETY: the caller vouches for it.
    let table = unsafe { &(*table).table };
    guard(|| table.clustering(dictionary as usize).into())
}
