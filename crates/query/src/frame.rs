//! Frames: rows that are computed with, by slots.
//!
//! A **slot** is what conditions, groups and aggregates name: the columns of a query first, then its expressions. A frame
//! has for some rows (of a block, of a table in memory, of a join of several) the cells of those slots that were asked for.

use std::sync::Arc;

use pando_column::vector::Vector;

use crate::cells::Cells;
use crate::column::{Collation, Column, Form};
use crate::expression::{self, Expression, Operator};

/// Why an answer cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A number beyond what it may be.
    Overflow,
    /// More rows than there is room for.
    TooMuch,
    /// Bytes that are not those of a value.
    Damaged,
}

/// What slots there are.
#[derive(Debug)]
pub(crate) struct Slots<'a> {
    pub columns: &'a [Column],
    pub expressions: &'a [Expression],
}

#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub rows: usize,
    pub cells: Vec<Option<Cells<'a>>>,
    /// Of columns the bytes that were not looked at yet.
    vectors: Vec<Option<&'a Arc<Vector>>>,
}

impl Slots<'_> {
    pub(crate) fn len(&self) -> usize {
        self.columns.len() + self.expressions.len()
    }

    pub(crate) fn expression(&self, slot: usize) -> Option<&Expression> {
        slot.checked_sub(self.columns.len()).and_then(|place| self.expressions.get(place))
    }

    /// The digits behind the point of its numbers; `None` where it has none.
    pub(crate) fn scale(&self, slot: usize) -> Option<u32> {
        match self.columns.get(slot) {
            Some(column) => column.form.scale(),
            None => self.expression(slot).map(|expression| expression.scale),
        }
    }

    pub(crate) fn collation(&self, slot: usize) -> Option<&Collation> {
        self.columns.get(slot).and_then(|column| column.form.collation())
    }

    /// Whether it has values that are numbers or texts.
    pub(crate) fn has_values(&self, slot: usize) -> bool {
        self.columns.get(slot).is_none_or(|column| !matches!(column.form, Form::Presence))
            && slot < self.len()
    }

    /// Whether its numbers can be added up.
    pub(crate) fn is_summable(&self, slot: usize) -> bool {
        !self.columns.get(slot).is_some_and(|column| matches!(column.form, Form::Ordered))
            && self.scale(slot).is_some()
    }

    /// Whether the conditions in an expression can be evaluated.
    pub(crate) fn conditions_fit(&self, slot: usize) -> bool {
        match self.expression(slot).map(|expression| &expression.operator) {
            Some(Operator::If(filter, ..)) => filter.prepare(self, false).is_some(),
            _ => true,
        }
    }

    /// The columns that a slot is computed from.
    pub(crate) fn columns_of(&self, slot: usize, columns: &mut Vec<usize>) {
        match self.expression(slot) {
            None => columns.push(slot),
            Some(expression) => expression.inputs().into_iter().for_each(|of| self.columns_of(of, columns)),
        }
    }

    /// The tables whose rows a slot is computed from, as bits.
    pub(crate) fn tables_of(&self, slot: usize) -> u64 {
        let mut columns = Vec::new();
        self.columns_of(slot, &mut columns);
        columns.iter().filter_map(|column| self.columns.get(*column)).fold(0, |bits, c| bits | 1 << c.table)
    }
}

impl<'a> Frame<'a> {
    pub(crate) fn new(slots: &Slots<'_>, rows: usize) -> Frame<'a> {
        let mut cells = Vec::new();
        cells.resize_with(slots.len(), || None);
        Frame { rows, cells, vectors: vec![None; slots.columns.len()] }
    }

    /// The rows of a block, whose vectors are those of the given columns.
    pub(crate) fn of_block(
        slots: &Slots<'_>,
        rows: usize,
        columns: &[usize],
        vectors: &'a [Arc<Vector>],
    ) -> Frame<'a> {
        let mut frame = Frame::new(slots, rows);
        for (column, vector) in columns.iter().zip(vectors) {
            frame.vectors[*column] = Some(vector);
        }
        frame
    }

    /// Computes a slot, if it is not there yet.
    pub(crate) fn ensure(&mut self, slots: &Slots<'_>, slot: usize) -> Result<(), Trouble> {
        if self.cells[slot].is_some() {
            return Ok(());
        }
        let cells = match slots.expression(slot) {
            None => {
                let (vector, column) = (self.vectors[slot].ok_or(Trouble::Damaged)?, &slots.columns[slot]);
                if vector.rows() != self.rows {
                    return Err(Trouble::Damaged);
                }
                Cells::of_vector(vector, &column.form, &column.place).ok_or(Trouble::Damaged)?
            }
            Some(expression) => {
                for input in expression.inputs() {
                    self.ensure(slots, input)?;
                }
                expression::evaluate(expression, slots, self)?
            }
        };
        self.cells[slot] = Some(cells);
        Ok(())
    }

    /// A slot that was computed before.
    pub(crate) fn cells(&self, slot: usize) -> &Cells<'a> {
        self.cells[slot].as_ref().expect("slots are computed before they are looked at")
    }

    /// The cells of a slot, computed for some of the rows; those of the others are not looked at.
    pub(crate) fn picked<'b>(&'b self, slots: &Slots<'_>, wanted: &[usize], rows: &[u32]) -> Frame<'b> {
        let mut frame = Frame::new(slots, rows.len());
        for slot in wanted {
            if let Some(cells) = &self.cells[*slot] {
                frame.cells[*slot] = Some(cells.pick(rows));
            }
        }
        frame
    }
}
