//! Columns of segments to vectors in the form of the current layout.

use std::sync::Arc;

use pando_column::large::Reference;
use pando_column::layout::{Column, Kind, Layouts, Value};
use pando_column::vector::{Strings, Values, Vector};
use pando_column::{KeyPath, Pick};
use pando_tree::{Columns, Pieces};

use super::gather::Gather;
use super::want::Want;
use super::zones::Zones;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct ColumnReader {
    layouts: Layouts,
    wants: Vec<Want>,
    picks: Vec<Pick>,
    has_references: bool,
}

impl ColumnReader {
    /// Requires: the wants are of columns that there are.
    /// `has_references`: rows may refer to large values.
    pub(super) fn new(layouts: &Layouts, wants: &[Want], has_references: bool) -> ColumnReader {
        let pick = |want: &Want| match want {
            Want::Stored(position) | Want::Length(position) => {
                Pick::Column(layouts.current().columns[*position].id)
            }
            Want::Key { offset, size } => Pick::Key { offset: *offset, size: *size },
            Want::KeyPart(_) | Want::WholeKey => Pick::WholeKey,
        };
        let picks = wants.iter().map(pick).collect();
        ColumnReader { layouts: layouts.clone(), wants: wants.to_vec(), picks, has_references }
    }

    /// What to read of a segment.
    pub(super) fn wanted(&self) -> (&Layouts, &[Pick]) {
        (&self.layouts, &self.picks)
    }

    /// What is known of segment `nth` of the piece that the pieces gave last.
    pub(super) fn zones<'a>(&'a self, pieces: &'a Pieces, nth: usize) -> Zones<'a> {
        Zones { layouts: &self.layouts, wants: &self.wants, pieces, nth, has_references: self.has_references }
    }

    /// For each want its vector, from what was read of a segment of `rows` rows. `None`: the segment does not have what
    /// its layout says.
    pub(super) fn vectors(&self, rows: usize, columns: Columns) -> Option<Vec<Arc<Vector>>> {
        let current = self.layouts.current();
        let version = columns.version.unwrap_or(current.version);
        let vectors = self.wants.iter().zip(columns.vectors).map(|(want, vector)| match (want, vector) {
            (Want::Key { .. } | Want::KeyPart(_) | Want::WholeKey, vector) => vector,
            (Want::Stored(_) | Want::Length(_), Some(vector)) if version == current.version => Some(vector),
            (Want::Stored(position) | Want::Length(position), Some(vector)) => {
                let now = &current.columns[*position];
                let then = self.layouts.get(version)?.columns.iter().find(|column| column.id == now.id)?;
                Some(if then.ty.size == now.ty.size { vector } else { Arc::new(grown(&vector, then, now)) })
            }
            (Want::Stored(position) | Want::Length(position), None) => {
                Some(Arc::new(added(rows, &current.columns[*position])))
            }
        });
        self.parts(vectors.collect::<Option<_>>()?)
    }

    /// Takes what is wanted of keys and values from whole ones. `None`: a key does not have it.
    pub(super) fn parts(&self, mut vectors: Vec<Arc<Vector>>) -> Option<Vec<Arc<Vector>>> {
        for (vector, want) in vectors.iter_mut().zip(&self.wants) {
            match want {
                Want::KeyPart(path) => *vector = Arc::new(part_of_keys(vector, path)?),
                Want::Length(position) => {
                    // Others may have values that look like references.
                    let may_refer = self.layouts.current().columns[*position].ty.kind == Kind::Large;
                    *vector = Arc::new(lengths(vector, self.has_references && may_refer));
                }
                Want::Stored(_) | Want::Key { .. } | Want::WholeKey => {}
            }
        }
        Some(vectors)
    }
}

/// A part of each key. `None`: one does not have it. Keys that nobody looks at are NULL, where few rows of a span are read.
fn part_of_keys(keys: &Vector, path: &KeyPath) -> Option<Vector> {
    let mut parts = Gather::new(path.width());
    let mut part = Vec::new();
    for row in 0..keys.rows() {
        let Some(key) = keys.get(row) else {
            parts.push_null();
            continue;
        };
        path.take(key, &mut part)?;
        parts.push(&part)?;
    }
    Some(parts.take())
}

/// How many bytes each value has; `has_references`: some may be references to values.
fn lengths(vector: &Vector, has_references: bool) -> Vector {
    const WIDTH: usize = size_of::<u64>();
    let length = |value: &[u8]| -> [u8; WIDTH] {
        let reference = if has_references { Reference::decode(value) } else { None };
        reference.map_or(value.len() as u64, |reference| reference.length).to_le_bytes()
    };
    let of_each =
        |strings: &Strings| (0..strings.len()).map(|at| length(strings.get(at))).collect::<Vec<_>>();
    let values = match vector.values() {
        Values::Constant(value) => Values::Constant(length(value).to_vec()),
        Values::Fixed { width, .. } if !has_references => {
            Values::Constant((*width as u64).to_le_bytes().to_vec())
        }
        Values::Fixed { width, bytes } => {
            Values::Fixed { width: WIDTH, bytes: bytes.chunks_exact(*width).flat_map(length).collect() }
        }
        Values::Varying(strings) => Values::Fixed { width: WIDTH, bytes: of_each(strings).into_flattened() },
        Values::Dictionary { codes, entries } => {
            let mut of_entries = Strings::new();
            of_each(entries).iter().for_each(|length| of_entries.push(length));
            Values::Dictionary { codes: codes.clone(), entries: of_entries }
        }
    };
    Vector::new(vector.rows(), vector.nulls().cloned(), values)
}

/// What rows have that were written before the column was there.
fn added(rows: usize, column: &Column) -> Vector {
    match &column.added_with {
        Some(Value::Bytes(bytes)) => Vector::new(rows, None, Values::Constant(bytes.clone())),
        Some(Value::Null) | None => Vector::all_null(rows),
    }
}

/// Values as the type that the column has now has them.
fn grown(vector: &Vector, then: &Column, now: &Column) -> Vector {
    if then.ty.kind.is_counted() {
        return vector.clone();
    }
    let convert = |value: &[u8]| then.ty.convert(value, &now.ty);
    let values = match vector.values() {
        // That of NULLs only has no bytes.
        Values::Constant(value) if value.is_empty() => Values::Constant(Vec::new()),
        Values::Constant(value) => Values::Constant(convert(value)),
        Values::Fixed { width, bytes } => Values::Fixed {
            width: now.ty.size as usize,
            bytes: bytes.chunks_exact(*width).flat_map(convert).collect(),
        },
        Values::Varying(strings) => Values::Varying(converted(strings, convert)),
        Values::Dictionary { codes, entries } => {
            Values::Dictionary { codes: codes.clone(), entries: converted(entries, convert) }
        }
    };
    Vector::new(vector.rows(), vector.nulls().cloned(), values)
}

fn converted(strings: &Strings, convert: impl Fn(&[u8]) -> Vec<u8>) -> Strings {
    let mut all = Strings::new();
    (0..strings.len()).for_each(|at| all.push(&convert(strings.get(at))));
    all
}
