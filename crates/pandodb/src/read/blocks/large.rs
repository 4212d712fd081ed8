//! Blocks of columns in which rows refer to large values: the values are put in their place.
//!
//! Values of a block take memory all at once, and a segment may have references to gigabytes. So a block with references is given
//! in parts, each with so many rows as have [`PART_BYTES`] of large values, or with one row.

use std::sync::Arc;

use pando_column::large::{Reference, REFERENCE_BYTES};
use pando_column::layout::{Kind, Layouts};
use pando_column::vector::{Nulls, Strings, Values, Vector};

use super::want::Want;
use super::Block;
use crate::error::Result;
use crate::read::view::LargeSight;

/// Bytes of large values that a part has about.
const PART_BYTES: u64 = 1 << 20;

/// Which of the wants are columns that may have references.
pub(crate) fn large_wants(layouts: &Layouts, wants: &[Want]) -> Vec<usize> {
    let columns = &layouts.current().columns;
    let is_large = |want: &Want| match want {
        Want::Stored(position) => columns.get(*position).is_some_and(|column| column.ty.kind == Kind::Large),
        Want::Length(_) | Want::Key { .. } | Want::KeyPart(_) | Want::WholeKey => false,
    };
    (0..wants.len()).filter(|at| is_large(&wants[*at])).collect()
}

/// Whether a column has references.
pub(crate) fn has_references(vector: &Vector) -> bool {
    let is_any = |strings: &Strings| {
        // Few texts are as long as a reference.
        strings.has_length(REFERENCE_BYTES)
            && (0..strings.len()).any(|at| Reference::decode(strings.get(at)).is_some())
    };
    match vector.values() {
        Values::Constant(value) => Reference::decode(value).is_some(),
        Values::Fixed { width, .. } if *width != REFERENCE_BYTES => false,
        Values::Fixed { .. } => (0..vector.rows()).any(|row| reference_at(vector, row).is_some()),
        Values::Varying(strings) | Values::Dictionary { entries: strings, .. } => is_any(strings),
    }
}

fn reference_at(vector: &Vector, row: usize) -> Option<Reference> {
    vector.get(row).and_then(Reference::decode)
}

/// Puts values in the place of references, in one block after the other.
#[derive(Debug)]
pub(super) struct LargeReader {
    sight: Option<LargeSight>,
    /// Positions among the vectors of a block.
    wants: Vec<usize>,
    /// A block of which the rows from here on are still to be given.
    rest: Option<(Block, usize)>,
}

impl LargeReader {
    pub(super) fn new(sight: Option<LargeSight>, layouts: &Layouts, wants: &[Want]) -> LargeReader {
        let wants = if sight.is_some() { large_wants(layouts, wants) } else { Vec::new() };
        LargeReader { sight, wants, rest: None }
    }

    /// Whether rows of a block refer to values.
    pub(super) fn has_any(&self, vectors: &[Arc<Vector>]) -> bool {
        self.wants.iter().any(|at| has_references(&vectors[*at]))
    }

    /// Puts the values of some rows of a block (`None`: of all) in the place of their references, and says of how many of these rows, as those of
    /// others would be too many bytes. Rows that are not among these have NULL.
    pub(super) fn put_in_place(&self, block: &mut Block, rows: Option<&[u32]>) -> Result<usize> {
        let all: Vec<u32> = if rows.is_none() { (0..block.rows as u32).collect() } else { Vec::new() };
        let rows = rows.unwrap_or(&all);
        let done = self.end_of_part(&block.vectors, rows);
        for at in &self.wants {
            if has_references(&block.vectors[*at]) {
                block.vectors[*at] =
                    Arc::new(self.resolved(&block.vectors[*at], &rows[..done], block.rows)?);
            }
        }
        Ok(done)
    }

    /// A block that was read, or the first part of it.
    pub(super) fn give(&mut self, block: Block) -> Result<Block> {
        if !self.has_any(&block.vectors) {
            return Ok(block);
        }
        self.part(block, 0)
    }

    /// The next part of the block given last; `None`: it was given whole.
    pub(super) fn next(&mut self) -> Result<Option<Block>> {
        match self.rest.take() {
            Some((block, from)) => self.part(block, from).map(Some),
            None => Ok(None),
        }
    }

    fn part(&mut self, block: Block, from: usize) -> Result<Block> {
        let rows: Vec<u32> = (from as u32..block.rows as u32).collect();
        let to = from + self.end_of_part(&block.vectors, &rows);
        let vectors = block.vectors.iter().enumerate().map(|(at, vector)| {
            let part = slice(vector, from, to);
            Ok(Arc::new(match self.wants.contains(&at) && has_references(&part) {
                true => self.resolved(&part, &(0..part.rows() as u32).collect::<Vec<_>>(), part.rows())?,
                false => part,
            }))
        });
        let vectors: Vec<_> = vectors.collect::<Result<_>>()?;
        let part = Block { rows: to - from, vectors, is_all_wanted: block.is_all_wanted, is_complete: true };
        self.rest = (to < block.rows).then_some((block, to));
        Ok(part)
    }

    /// How many of these rows, of which there are some, have together as many bytes of large values as a part has.
    fn end_of_part(&self, vectors: &[Arc<Vector>], rows: &[u32]) -> usize {
        let mut bytes = 0;
        for (number, row) in rows.iter().enumerate() {
            let of_row =
                |at: &usize| reference_at(&vectors[*at], *row as usize).map_or(0, |large| large.length);
            bytes += self.wants.iter().map(of_row).sum::<u64>();
            if bytes > PART_BYTES && number > 0 {
                return number;
            }
        }
        rows.len()
    }

    /// The values of some rows, ascending, of so many; NULL of the others.
    fn resolved(&self, vector: &Vector, rows: &[u32], of: usize) -> Result<Vector> {
        let size = |row: &u32| match (reference_at(vector, *row as usize), vector.get(*row as usize)) {
            (Some(reference), _) => reference.length as usize,
            (None, value) => value.map_or(0, <[u8]>::len),
        };
        let bytes = rows.iter().map(size).sum();
        let (mut nulls, mut strings) = (Nulls::new(), Strings::with_capacity(of, bytes));
        let push_nulls = |nulls: &mut Nulls, strings: &mut Strings, to: usize| {
            while nulls.rows() < to {
                nulls.push(true);
                strings.push(b"");
            }
        };
        for row in rows {
            let row = *row as usize;
            push_nulls(&mut nulls, &mut strings, row);
            let value = vector.get(row);
            nulls.push(value.is_none());
            match (value.and_then(Reference::decode), &self.sight) {
                (Some(reference), Some(sight)) => strings.push(&sight.get(reference)?),
                _ => strings.push(value.unwrap_or_default()),
            }
        }
        push_nulls(&mut nulls, &mut strings, of);
        Ok(Vector::new(of, Some(nulls), Values::Varying(strings)))
    }
}

/// Some of the rows of a vector.
fn slice(vector: &Vector, from: usize, to: usize) -> Vector {
    let nulls = vector.nulls().map(|all| {
        let mut nulls = Nulls::new();
        (from..to).for_each(|row| nulls.push(all.is_null(row)));
        nulls
    });
    let values = match vector.values() {
        Values::Constant(value) => Values::Constant(value.clone()),
        Values::Fixed { width, bytes } => {
            Values::Fixed { width: *width, bytes: bytes[from * width..to * width].to_vec() }
        }
        Values::Varying(all) => {
            let mut strings = Strings::new();
            (from..to).for_each(|row| strings.push(all.get(row)));
            Values::Varying(strings)
        }
        Values::Dictionary { codes, entries } => {
            Values::Dictionary { codes: codes[from..to].to_vec(), entries: entries.clone() }
        }
    };
    Vector::new(to - from, nulls, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_the_rows_it_is_of_in_every_form() {
        let mut nulls = Nulls::new();
        let mut strings = Strings::new();
        for row in 0..100u8 {
            nulls.push(row % 7 == 0);
            strings.push(&[row % 3, 1]);
        }
        let forms = [
            Values::Constant(vec![1, 2]),
            Values::Fixed { width: 2, bytes: (0..200).collect() },
            Values::Varying(strings.clone()),
            Values::Dictionary { codes: (0..100).map(|row| row % 5).collect(), entries: strings },
        ];
        for values in forms {
            let whole = Vector::new(100, Some(nulls.clone()), values);
            for (from, to) in [(0, 100), (13, 14), (20, 99)] {
                let part = slice(&whole, from, to);
                assert_eq!(part.rows(), to - from);
                assert!((from..to).all(|row| part.get(row - from) == whole.get(row)));
            }
        }
    }

    #[test]
    fn references_are_seen_in_every_form() {
        let reference = Reference { id: 3, length: 4 }.encode();
        let mut strings = Strings::new();
        strings.push(b"x");
        strings.push(&reference);
        let with = [
            Values::Constant(reference.to_vec()),
            Values::Fixed { width: reference.len(), bytes: reference.to_vec() },
            Values::Dictionary { codes: vec![1], entries: strings.clone() },
        ];
        assert!(with.into_iter().all(|values| has_references(&Vector::new(1, None, values))));
        assert!(has_references(&Vector::new(2, None, Values::Varying(strings))));
        assert!(!has_references(&Vector::new(1, None, Values::Constant(b"x".to_vec()))));
        assert!(!has_references(&Vector::all_null(3)));
    }
}
