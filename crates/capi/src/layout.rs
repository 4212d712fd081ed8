//! Columns of tables: what rows consist of now and consisted of.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pandodb::layout::{ColumnType, Kind, Layouts, NewColumn, Source, Value};

use crate::bytes::PandoBytes;
use crate::member::member;

/// What the bytes of a value are. Of `Char`, `Varchar`, `Blob` and `Large` each value has a count before it.
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
    /// As `Blob`, but a row may have a reference in place of the value.
    Large = 10,
}

crate::member::members! {
    PandoColumnKind: Signed Unsigned Float Bytes Bit Enum Set Char Varchar Blob Large;
}

/// A column that a table is to have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoNewColumn {
    /// For people.
    pub name: PandoBytes,
    /// What the bytes are.
    pub kind: MaybeUninit<PandoColumnKind>,
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

    pub(crate) fn get(&self, version: u32) -> Option<PandoLayout> {
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
        Kind::Large => PandoColumnKind::Large,
    }
}

fn kind_from_c(given: MaybeUninit<PandoColumnKind>) -> pandodb::Result<Kind> {
    Ok(match member(given)? {
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
        PandoColumnKind::Large => Kind::Large,
    })
}

/// # Safety
/// `columns` is null or points to `count` columns whose bytes are valid for the call.
pub(crate) unsafe fn new_columns(
    columns: *const PandoNewColumn,
    count: u32,
) -> pandodb::Result<Option<Vec<NewColumn>>> {
    // SAFETY: the caller vouches for the list.
    let Some(columns) = (unsafe { list(columns, count) }) else { return Ok(None) };
    let new = |column: &PandoNewColumn| {
        Ok(NewColumn {
            // SAFETY: as above.
            name: unsafe { column.name.to_name()? },
            ty: ColumnType {
                kind: kind_from_c(column.kind)?,
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
        })
    };
    columns.iter().map(new).collect::<pandodb::Result<_>>().map(Some)
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
