//! Columns back to rows: of each row the columns that somebody needs, in the current layout.
//!
//! A row is written as far as the last needed column. Of the others zeros and empty texts stand where readers pass them by;
//! not NULLs, which would have readers look at every column.

use std::sync::Arc;

use pando_column::layout::Layouts;
use pando_column::vector::Vector;

use super::want::Want;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct RowWriter {
    /// The version of the layout, and as many null bytes as it has.
    head: Vec<u8>,
    version_bytes: usize,
    steps: Vec<Step>,
    row: Vec<u8>,
}

/// A needed column.
#[derive(Debug)]
struct Step {
    /// What stands for the columns before it that are not needed.
    filler: Vec<u8>,
    null_position: Option<usize>,
    is_counted: bool,
    size: usize,
    /// Which of the vectors has its values.
    from: usize,
}

impl RowWriter {
    /// Writes what `wants` have of the columns.
    pub(super) fn new(layouts: &Layouts, wants: &[Want]) -> RowWriter {
        let layout = layouts.current();
        let mut head = Vec::new();
        put_number(&mut head, u64::from(layout.version));
        let version_bytes = head.len();
        head.resize(version_bytes + layout.null_bytes(), 0);
        let (mut nulls, mut filler, mut steps) = (0, Vec::new(), Vec::new());
        for (position, column) in layout.columns.iter().enumerate() {
            let null_position = column.ty.nullable.then_some(nulls);
            nulls += usize::from(column.ty.nullable);
            let (is_counted, size) = (column.ty.kind.is_counted(), column.ty.size as usize);
            match wants.iter().position(|want| *want == Want::Stored(position)) {
                Some(from) => {
                    let filler = std::mem::take(&mut filler);
                    steps.push(Step { filler, null_position, is_counted, size, from });
                }
                // The length of a text, or the value.
                None => filler.resize(filler.len() + if is_counted { 1 } else { size }, 0),
            }
        }
        RowWriter { head, version_bytes, steps, row: Vec::new() }
    }

    /// Row number `at` of the vectors.
    pub(super) fn write(&mut self, vectors: &[Arc<Vector>], at: usize) -> &[u8] {
        let row = &mut self.row;
        row.clear();
        row.extend_from_slice(&self.head);
        for step in &self.steps {
            row.extend_from_slice(&step.filler);
            match (vectors[step.from].get(at), step.null_position) {
                (Some(value), _) => {
                    if step.is_counted {
                        put_number(row, value.len() as u64);
                    }
                    row.extend_from_slice(value);
                }
                (None, Some(null)) => row[self.version_bytes + null / 8] |= 1 << (null % 8),
                // There is no NULL in such a column.
                (None, None) => row.resize(row.len() + if step.is_counted { 1 } else { step.size }, 0),
            }
        }
        row
    }
}

/// Seven bits a byte, least significant first; the high bit: more follow.
fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}
