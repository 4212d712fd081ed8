//! Columns back to rows: of each row the columns that somebody needs, in the current layout.
//!
//! A row is written as far as the last needed column. Of the others NULLs, zeros and empty texts stand where readers
//! pass them by.

use std::sync::Arc;

use pando_column::layout::Layouts;
use pando_column::vector::Vector;

use super::Want;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct RowWriter {
    /// The version of the layout, and as many null bytes as it has.
    head: Vec<u8>,
    version_bytes: usize,
    steps: Vec<Step>,
    row: Vec<u8>,
}

/// A column.
#[derive(Debug)]
struct Step {
    null_position: Option<usize>,
    is_counted: bool,
    size: usize,
    /// Which of the vectors has its values.
    from: Option<usize>,
}

impl RowWriter {
    /// Writes what `wants` have of the columns.
    pub(super) fn new(layouts: &Layouts, wants: &[Want]) -> RowWriter {
        let layout = layouts.current();
        let mut head = Vec::new();
        put_number(&mut head, u64::from(layout.version));
        let version_bytes = head.len();
        head.resize(version_bytes + layout.null_bytes(), 0);
        let mut nulls = 0;
        let step = |(position, column): (usize, &pando_column::layout::Column)| {
            let null_position = column.ty.nullable.then_some(nulls);
            nulls += usize::from(column.ty.nullable);
            Step {
                null_position,
                is_counted: column.ty.kind.is_counted(),
                size: column.ty.size as usize,
                from: wants.iter().position(|want| *want == Want::Stored(position)),
            }
        };
        let mut steps: Vec<Step> = layout.columns.iter().enumerate().map(step).collect();
        while steps.last().is_some_and(|step| step.from.is_none()) {
            steps.pop();
        }
        RowWriter { head, version_bytes, steps, row: Vec::new() }
    }

    /// Row number `at` of the vectors.
    pub(super) fn write(&mut self, vectors: &[Arc<Vector>], at: usize) -> &[u8] {
        let row = &mut self.row;
        row.clear();
        row.extend_from_slice(&self.head);
        for step in &self.steps {
            let value = match step.from {
                Some(from) => vectors[from].get(at),
                None => None,
            };
            match (value, step.null_position) {
                (Some(value), _) => {
                    if step.is_counted {
                        put_number(row, value.len() as u64);
                    }
                    row.extend_from_slice(value);
                }
                (None, Some(null)) => row[self.version_bytes + null / 8] |= 1 << (null % 8),
                (None, None) if step.is_counted => row.push(0),
                (None, None) => row.resize(row.len() + step.size, 0),
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
