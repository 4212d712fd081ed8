//! Columns of tables: what rows consist of now and consisted of, and changes of tables that leave the
//! rows alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pandodb::layout::{ColumnType, Kind, Layouts, NewColumn, Source, Value};
use pandodb::{IndexChange, TableChange};

use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::definition::PandoDefinition;
use crate::foreign_key::{foreign_keys_of, names_in_pairs, texts, PandoForeignKey};
use crate::index_build::{places_of, PandoBuild, PandoIndexPlace};
use crate::status::{run, run_contained, PandoStatus};
use crate::table::{compression_of, PandoCompression, PandoTable};

/// What the bytes of a value are. Of `Char`, `Varchar` and `Blob` each value has a count before it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoColumnKind {
    /// An integer with a sign, little-endian.
    Signed = 0,
    /// An integer without a sign, little-endian.
    Unsigned = 1,
    /// IEEE 754, little-endian.
    Float = 2,
    /// Bytes that memcmp orders.
    Bytes = 3,
    /// Bits, most significant byte first.
    Bit = 4,
    /// The number of a member, little-endian.
    Enum = 5,
    /// A bit for each member, little-endian.
    Set = 6,
    /// At most `size` bytes, without the filling.
    Char = 7,
    /// At most `size` bytes.
    Varchar = 8,
    /// `size` bytes hold the length of every value.
    Blob = 9,
}

/// A column that a table is to have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoNewColumn {
    /// For people.
    pub name: PandoBytes,
    /// What the bytes are.
    pub kind: PandoColumnKind,
    /// Bytes of a value.
    pub size: u32,
    /// 1: NULL is possible.
    pub nullable: u8,
    /// 1: strings are equal only if their bytes are.
    pub binary: u8,
    /// Its position in the current layout; negative: it is new.
    pub source: i32,
    /// Of a new column: what all rows that there are have. A null pointer is NULL.
    pub value: PandoBytes,
}

/// A column of a layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoColumn {
    /// The same in all layouts that have this column.
    pub id: u32,
    /// What the bytes are.
    pub kind: PandoColumnKind,
    /// Bytes of a value.
    pub size: u32,
    /// 1: NULL is possible.
    pub nullable: u8,
    /// 1: strings are equal only if their bytes are.
    pub binary: u8,
    /// 1: rows of layouts without this column have `value` (a null pointer is NULL).
    pub added: u8,
    /// See `added`. Lives as long as the table is open.
    pub value: PandoBytes,
    /// For people; only in the current layout.
    pub name: PandoBytes,
}

/// What rows of one version consist of. Lives as long as the table is open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoLayout {
    /// What these rows begin with.
    pub version: u32,
    /// How many columns.
    pub column_count: u32,
    /// The columns, in the order of their bytes.
    pub columns: *const PandoColumn,
    /// 0: no other layout can follow the table's current one without the rows being rewritten, there are too many already.
    pub has_room: u8,
}

/// A name that an index is to have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoIndexName {
    /// The position of its dictionary.
    pub dictionary: u32,
    /// The name.
    pub name: PandoBytes,
}

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
    pub compression: PandoCompression,
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

/// Layouts as C sees them, made when they are asked for.
#[derive(Debug)]
pub(crate) struct LayoutViews {
    layouts: Option<Arc<Layouts>>,
    made: Mutex<BTreeMap<u32, Box<[PandoColumn]>>>,
}

impl LayoutViews {
    pub(crate) fn new(layouts: Option<Arc<Layouts>>) -> LayoutViews {
        LayoutViews { layouts, made: Mutex::default() }
    }

    fn get(&self, version: u32) -> Option<PandoLayout> {
        let layouts = self.layouts.as_ref()?;
        let layout = if version == 0 { layouts.current() } else { layouts.get(version)? };
        let mut made = self.made.lock();
        let columns = made.entry(layout.version).or_insert_with(|| layout.columns.iter().map(view).collect());
        Some(PandoLayout {
            version: layout.version,
            column_count: columns.len() as u32,
            columns: columns.as_ptr(),
            has_room: u8::from(layouts.has_room()),
        })
    }
}

fn view(column: &pandodb::layout::Column) -> PandoColumn {
    let null = PandoBytes { data: std::ptr::null(), len: 0 };
    let value = match &column.added_with {
        // Not null, also when it is empty: a vector's pointer never is.
        Some(Value::Bytes(bytes)) => PandoBytes::from_slice(bytes),
        Some(Value::Null) | None => null,
    };
    PandoColumn {
        id: column.id,
        kind: kind_to_c(column.ty.kind),
        size: column.ty.size,
        nullable: u8::from(column.ty.nullable),
        binary: u8::from(column.ty.binary),
        added: u8::from(column.added_with.is_some()),
        value,
        name: PandoBytes::from_slice(column.name.as_bytes()),
    }
}

fn kind_to_c(kind: Kind) -> PandoColumnKind {
    match kind {
        Kind::Signed => PandoColumnKind::Signed,
        Kind::Unsigned => PandoColumnKind::Unsigned,
        Kind::Float => PandoColumnKind::Float,
        Kind::Bytes => PandoColumnKind::Bytes,
        Kind::Bit => PandoColumnKind::Bit,
        Kind::Enum => PandoColumnKind::Enum,
        Kind::Set => PandoColumnKind::Set,
        Kind::Char => PandoColumnKind::Char,
        Kind::Varchar => PandoColumnKind::Varchar,
        Kind::Blob => PandoColumnKind::Blob,
    }
}

fn kind_from_c(kind: PandoColumnKind) -> Kind {
    match kind {
        PandoColumnKind::Signed => Kind::Signed,
        PandoColumnKind::Unsigned => Kind::Unsigned,
        PandoColumnKind::Float => Kind::Float,
        PandoColumnKind::Bytes => Kind::Bytes,
        PandoColumnKind::Bit => Kind::Bit,
        PandoColumnKind::Enum => Kind::Enum,
        PandoColumnKind::Set => Kind::Set,
        PandoColumnKind::Char => Kind::Char,
        PandoColumnKind::Varchar => Kind::Varchar,
        PandoColumnKind::Blob => Kind::Blob,
    }
}

/// # Safety
/// `columns` is null or points to `count` columns whose bytes are valid for the call.
pub(crate) unsafe fn new_columns(columns: *const PandoNewColumn, count: u32) -> Option<Vec<NewColumn>> {
    // SAFETY: the caller vouches for the list.
    let columns = unsafe { list(columns, count) }?;
    let new = |column: &PandoNewColumn| NewColumn {
        // SAFETY: as above.
        name: unsafe { column.name.to_text() },
        ty: ColumnType {
            kind: kind_from_c(column.kind),
            size: column.size,
            nullable: column.nullable != 0,
            binary: column.binary != 0,
        },
        source: match usize::try_from(column.source) {
            Ok(position) => Source::Column(position),
            // SAFETY: as above.
            Err(_) => Source::Added(match unsafe { column.value.as_option() } {
                Some(bytes) => Value::Bytes(bytes.to_vec()),
                None => Value::Null,
            }),
        },
    };
    Some(columns.iter().map(new).collect())
}

/// # Safety
/// `first` is null or points to `count` elements that are valid for `'a`.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: u32) -> Option<&'a [T]> {
    if first.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    Some(unsafe { std::slice::from_raw_parts(first, count as usize) })
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

/// Changes tables that nobody else uses, all or none. `Unsupported`: their rows would have to be rewritten.
///
/// # Safety
/// `db` is open; the changes and all they point to are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_tables_alter(
    db: *const PandoDb,
    changes: *const PandoTableChange,
    count: u32,
) -> PandoStatus {
    // SAFETY: the caller vouches for both.
    let (db, changes) = unsafe { (&(*db).db, list(changes, count).unwrap_or_default()) };
    run(|| {
        // SAFETY: the caller vouches for what they point to.
        let mut given: Vec<TableChange> =
            changes.iter().map(|change| unsafe { table_change(change) }).collect();
        let result = db.alter_tables(&mut given);
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
unsafe fn table_change(change: &PandoTableChange) -> TableChange {
    // SAFETY: the caller vouches for it, here and below.
    let names = unsafe { list(change.index_names, change.index_name_count) }.unwrap_or_default();
    TableChange {
        // SAFETY: as above.
        path: unsafe { change.path.to_text() },
        // SAFETY: as above.
        columns: unsafe { new_columns(change.columns, change.column_count) },
        // SAFETY: as above.
        index_names: names.iter().map(|n| (n.dictionary as usize, unsafe { n.name.to_text() })).collect(),
        indexes: (change.sets_indexes != 0).then(|| IndexChange {
            // SAFETY: as above.
            places: unsafe { places_of(change.places, change.place_count) },
            // SAFETY: as above.
            build: unsafe { change.build.as_mut() }.and_then(|build| build.build.take()),
        }),
        compression: (change.sets_compression != 0)
            .then(|| compression_of(change.compression, change.compression_level)),
        auto_increment: (change.sets_auto_increment != 0).then_some(change.auto_increment),
        // SAFETY: as above.
        definition: Some(unsafe { change.definition.to_definition() }),
        foreign_keys: (change.sets_foreign_keys != 0)
            // SAFETY: as above.
            .then(|| unsafe { foreign_keys_of(change.foreign_keys, change.foreign_key_count) }),
        renamed_columns: names_in_pairs(
            // SAFETY: as above.
            unsafe { texts(change.renamed_columns, change.renamed_column_count) },
        ),
    }
}
