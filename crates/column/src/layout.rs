//! Layouts: the typed columns of a row, and how rows of an older layout are read.
//!
//! A table's columns change without its rows being rewritten: the table keeps every **layout** that it
//! ever had, each with a number, and each row begins with the number of the layout it was written in.
//! Reading goes by **column ids**, which are given once and never used again:
//!
//! - a column that the row's layout does not have was added later: its [`Column::added_with`];
//! - a column that the current layout does not have was dropped: passed over;
//! - a column whose type has grown: [`ColumnType::convert`];
//! - order and names do not matter.
//!
//! **What makes this right for ever**: a type only ever grows ([`ColumnType::can_become`]), so every
//! value of an older layout has its one value in the current one, and growing twice is growing once.
//! A default that is changed counts for rows written later; what a column was added with stays, and
//! grows with the column.
//!
//! A layout also says what an encoder of whole columns wants to know: kind, width, signedness,
//! nullability, and whether equal strings are equal bytes.

mod stored;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::large::Reference;

/// Most layouts a table may keep: a change of columns each week for seventy years. Then a change has to rewrite the rows, which
/// begins anew.
pub const LAYOUTS_MAX: usize = 4000;
/// Most columns of all layouts together, so that layouts take some megabytes of memory at most: a table of 100 columns may be
/// changed a thousand times.
pub const LAYOUT_COLUMNS_MAX: usize = 100_000;
/// A table may always keep as many layouts, however many its columns.
pub const LAYOUTS_MIN: usize = 250;
/// The number of a table's first layout.
pub const FIRST_VERSION: u32 = 1;

/// What the bytes of a value are. In a row, `Char`, `Varchar`, `Blob` and `Large` have a count before them, all
/// others are as long as their column's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// An integer with a sign, little-endian.
    Signed,
    /// An integer without a sign, little-endian; also DATE and YEAR.
    Unsigned,
    /// IEEE 754, little-endian.
    Float,
    /// Bytes that memcmp orders: DECIMAL, TIME, DATETIME, TIMESTAMP, UUID, INET6.
    Bytes,
    /// Bits, most significant byte first.
    Bit,
    /// The number of a member, little-endian.
    Enum,
    /// A bit for each member, little-endian.
    Set,
    /// Text of at most `size` bytes without the filling at its end.
    Char,
    /// At most `size` bytes.
    Varchar,
    /// Less than 2 to the power of `8 * size` bytes.
    Blob,
    /// As `Blob`; but the row may have a [reference](crate::large) in place of the value.
    Large,
}

impl Kind {
    /// Whether values have a length of their own.
    pub fn is_counted(self) -> bool {
        matches!(self, Kind::Char | Kind::Varchar | Kind::Blob | Kind::Large)
    }
}

/// The type of a column, as far as bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColumnType {
    /// What the bytes are.
    pub kind: Kind,
    /// Bytes of a value; of `Char` and `Varchar` at most, of `Blob` and `Large` those of its length.
    pub size: u32,
    /// NULL is possible.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Strings are equal only if their bytes are; always so for other kinds.
    #[serde(default, skip_serializing_if = "is_false")]
    pub binary: bool,
}

/// A value outside of a row: without its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// NULL.
    Null,
    /// The bytes.
    Bytes(#[serde(with = "hexadecimal")] Vec<u8>),
}

/// A column of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The same in all layouts that have this column; never used for another one.
    pub id: u32,
    /// For people; only in the current layout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The type in this layout.
    #[serde(flatten)]
    pub ty: ColumnType,
    /// What rows have that were written before the column was added; none for those of the beginning.
    /// Only in the current layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_with: Option<Value>,
}

/// The columns of a row, in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What rows written in it begin with.
    pub version: u32,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A column that a table is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewColumn {
    /// For people.
    pub name: String,
    /// Its type.
    pub ty: ColumnType,
    /// Where its values come from.
    pub source: Source,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is the current layout's column at this position.
    Column(usize),
    /// It is new, and all rows that there are have this.
    Added(Value),
}

/// Why a list of columns cannot follow the current layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A type would not only grow.
    #[error("column {name} cannot change from {from} to {to} without its rows being rewritten")]
    Type {
        /// The column.
        name: String,
        /// What it is.
        from: ColumnType,
        /// What it was to be.
        to: ColumnType,
    },
    /// A position that is not there, or twice; a value that is not one of the type.
    #[error("column {name} has no source")]
    Source {
        /// The column.
        name: String,
    },
    /// There are as many as a table may keep.
    #[error("the table has had {0} layouts; its rows have to be rewritten")]
    TooMany(usize),
}

/// All layouts a table ever had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "stored::Stored", into = "stored::Stored")]
pub struct Layouts {
    /// Oldest first; never empty.
    versions: Vec<Layout>,
    next_column_id: u32,
}

impl ColumnType {
    /// Whether every value of this type has its value in `to`, without looking at other columns.
    pub fn can_become(&self, to: &ColumnType) -> bool {
        use Kind::*;
        if self.nullable && !to.nullable {
            return false;
        }
        match (self.kind, to.kind) {
            (Unsigned, Signed) => to.size > self.size,
            (Signed, Signed) | (Unsigned, Unsigned) | (Enum, Enum) | (Set, Set) => to.size >= self.size,
            (Char, Char) | (Varchar, Varchar) | (Blob, Blob) => to.size >= self.size,
            // Of another kind, a value could look like a reference.
            (Large, Large) => to.size >= self.size,
            // The zeros that fill a binary CHAR would be missing.
            (Char, Varchar) => !self.binary && to.size >= self.size,
            (Char, Blob) => !self.binary && fits_blob(self.size, to.size),
            (Varchar, Blob) => fits_blob(self.size, to.size),
            (from, to_kind) => from == to_kind && self.size == to.size,
        }
    }

    /// A value of this type as `to` has it. Requires: `can_become`, and a value that `is_valid`.
    pub fn convert(&self, value: &[u8], to: &ColumnType) -> Vec<u8> {
        let mut bytes = value.to_vec();
        if !self.kind.is_counted() && to.size > self.size {
            let negative = self.kind == Kind::Signed && value.last().is_some_and(|top| top & 0x80 != 0);
            bytes.resize(to.size as usize, if negative { 0xff } else { 0 });
        }
        bytes
    }

    /// Whether these are the bytes of a value.
    pub fn is_valid(&self, value: &[u8]) -> bool {
        match self.kind {
            Kind::Char | Kind::Varchar => value.len() <= self.size as usize,
            Kind::Blob | Kind::Large => self.size >= 4 || (value.len() as u64) < 1 << (8 * self.size),
            _ => value.len() == self.size as usize,
        }
    }
}

fn fits_blob(bytes: u32, length_bytes: u32) -> bool {
    length_bytes >= 4 || u64::from(bytes) < 1 << (8 * length_bytes)
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = if self.binary { " binary" } else { "" };
        let null = if self.nullable { " null" } else { "" };
        write!(f, "{:?}({}){binary}{null}", self.kind, self.size)
    }
}

impl NewColumn {
    /// The same without references.
    #[must_use]
    pub fn without_references(mut self) -> NewColumn {
        if self.ty.kind == Kind::Large {
            self.ty.kind = Kind::Blob;
        }
        self
    }

    /// The same without references, unless it comes from a column of `layout` that has them: a value that was written without
    /// them in mind could look like one.
    #[must_use]
    pub fn without_new_references(self, layout: &Layout) -> NewColumn {
        let is_large = |at: usize| layout.columns.get(at).is_some_and(|column| column.ty.kind == Kind::Large);
        let has_none = match &self.source {
            Source::Column(at) => !is_large(*at),
            Source::Added(Value::Bytes(value)) => Reference::decode(value).is_some(),
            Source::Added(Value::Null) => false,
        };
        if has_none {
            self.without_references()
        } else {
            self
        }
    }
}

impl Layout {
    /// Columns that may be NULL have a bit each, in order.
    pub fn null_bytes(&self) -> usize {
        self.columns.iter().filter(|c| c.ty.nullable).count().div_ceil(8)
    }
}

impl Layouts {
    /// A new table's. Where columns come from does not matter.
    pub fn new(columns: Vec<NewColumn>) -> Layouts {
        let mut layouts = Layouts { versions: Vec::new(), next_column_id: 1 };
        let mut first = Layout { version: FIRST_VERSION, columns: Vec::with_capacity(columns.len()) };
        for column in columns {
            let id = layouts.take_id();
            first.columns.push(Column { id, name: column.name, ty: column.ty, added_with: None });
        }
        layouts.versions.push(first);
        layouts
    }

    /// Oldest first.
    pub fn versions(&self) -> &[Layout] {
        &self.versions
    }

    /// Whether another one can follow without the rows being rewritten.
    pub fn has_room(&self) -> bool {
        let count = self.versions.len();
        let columns: usize = self.versions.iter().map(|layout| layout.columns.len()).sum();
        let all = columns + self.current().columns.len();
        count < LAYOUTS_MIN || (count < LAYOUTS_MAX && all <= LAYOUT_COLUMNS_MAX)
    }

    /// What rows are written in.
    pub fn current(&self) -> &Layout {
        self.versions.last().expect("there is always one")
    }

    /// The layout with this number.
    pub fn get(&self, version: u32) -> Option<&Layout> {
        self.versions.get(version.checked_sub(FIRST_VERSION)? as usize)
    }

    /// The layouts of a table that is to have these columns. Without a change of types or order that
    /// is the current one, perhaps with other names.
    pub fn changed(&self, columns: Vec<NewColumn>) -> Result<Layouts, LayoutError> {
        let mut layouts = self.clone();
        let mut used = vec![false; self.current().columns.len()];
        let mut next = Vec::with_capacity(columns.len());
        for column in columns {
            next.push(layouts.follow(column, &mut used)?);
        }
        let forms = |columns: &[Column]| columns.iter().map(|c| (c.id, c.ty)).collect::<Vec<_>>();
        let last = layouts.versions.last_mut().expect("there is always one");
        if forms(&last.columns) == forms(&next) {
            last.columns = next;
            return Ok(layouts);
        }
        for column in &mut last.columns {
            column.name.clear();
            column.added_with = None;
        }
        if !layouts.has_room() {
            return Err(LayoutError::TooMany(layouts.versions.len()));
        }
        let version = layouts.current().version + 1;
        layouts.versions.push(Layout { version, columns: next });
        Ok(layouts)
    }

    /// The column of the next layout; `used` are the positions that it has taken from the current one.
    fn follow(&mut self, new: NewColumn, used: &mut [bool]) -> Result<Column, LayoutError> {
        let NewColumn { name, ty, source } = new;
        match source {
            Source::Added(value) => {
                let valid = match &value {
                    Value::Null => ty.nullable,
                    Value::Bytes(bytes) => ty.is_valid(bytes),
                };
                if !valid {
                    return Err(LayoutError::Source { name });
                }
                Ok(Column { id: self.take_id(), name, ty, added_with: Some(value) })
            }
            Source::Column(position) => {
                let (Some(old), Some(used)) =
                    (self.current().columns.get(position), used.get_mut(position).filter(|used| !**used))
                else {
                    return Err(LayoutError::Source { name });
                };
                *used = true;
                if !old.ty.can_become(&ty) {
                    return Err(LayoutError::Type { name, from: old.ty, to: ty });
                }
                let added_with = old.added_with.as_ref().map(|value| match value {
                    Value::Null => Value::Null,
                    Value::Bytes(bytes) => Value::Bytes(old.ty.convert(bytes, &ty)),
                });
                Ok(Column { id: old.id, name, ty, added_with })
            }
        }
    }

    /// The same with two more columns at the end of each layout: some bytes, and a number of two bytes. Not to be stored.
    pub fn with_tail(&self) -> Layouts {
        let mut layouts = self.clone();
        let column = |id, kind, size| {
            let ty = ColumnType { kind, size, nullable: false, binary: true };
            Column { id, name: String::new(), ty, added_with: None }
        };
        for layout in &mut layouts.versions {
            layout.columns.push(column(u32::MAX - 1, Kind::Blob, 4));
            layout.columns.push(column(u32::MAX, Kind::Unsigned, 2));
        }
        layouts
    }

    fn take_id(&mut self) -> u32 {
        let id = self.next_column_id;
        self.next_column_id += 1;
        id
    }

    /// Why these cannot be layouts that `new` and `changed` made, if so.
    fn fault(&self) -> Option<String> {
        let Some(current) = self.versions.last() else {
            return Some("no layout".into());
        };
        for (at, layout) in self.versions.iter().enumerate() {
            if layout.version != FIRST_VERSION + at as u32 {
                return Some(format!("layout {} at place {at}", layout.version));
            }
            let mut by_id: Vec<&Column> = layout.columns.iter().collect();
            by_id.sort_unstable_by_key(|c| c.id);
            by_id.dedup_by_key(|c| c.id);
            if by_id.len() != layout.columns.len()
                || by_id.last().is_some_and(|c| c.id >= self.next_column_id)
            {
                return Some(format!("ids of layout {}", layout.version));
            }
            for column in &current.columns {
                match by_id.binary_search_by_key(&column.id, |c| c.id).ok().and_then(|at| by_id.get(at)) {
                    Some(old) if !old.ty.can_become(&column.ty) => {
                        return Some(format!("{} in layout {}, then {}", old.ty, layout.version, column.ty));
                    }
                    None if column.added_with.is_none() => {
                        return Some(format!("column {} of nowhere", column.id));
                    }
                    _ => {}
                }
            }
        }
        let odd = current.columns.iter().find(|c| match &c.added_with {
            Some(Value::Bytes(bytes)) => !c.ty.is_valid(bytes),
            Some(Value::Null) => !c.ty.nullable,
            None => false,
        });
        odd.map(|c| format!("column {} added with a value of another type", c.id))
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Bytes as hexadecimal text.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
        let digits = digits.filter(|d| d.len() % 2 == 0);
        let digits = digits.ok_or_else(|| D::Error::custom("bytes are pairs of hexadecimal digits"))?;
        Ok(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
