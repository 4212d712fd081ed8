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

    /// The columns that a slot is computed from, each once.
    pub(crate) fn columns_of(&self, slot: usize, columns: &mut Vec<usize>) {
        if self.expression(slot).is_none() {
            return columns.push(slot);
        }
        let below = self.needed(slot, |_| false);
        columns.extend(below.into_iter().filter(|slot| self.expression(*slot).is_none()));
    }

    /// A slot and all that it is computed from, in an order in which it can be computed, but for what is known and what is needed
    /// for that alone. In a loop: expressions stand in each other as deep as a statement's author likes.
    fn needed(&self, slot: usize, is_known: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut seen = vec![false; self.len().max(slot + 1)];
        let mut open = vec![slot];
        let mut needed = Vec::new();
        while let Some(slot) = open.pop() {
            if std::mem::replace(&mut seen[slot], true) || is_known(slot) {
                continue;
            }
            needed.push(slot);
            if let Some(expression) = self.expression(slot) {
                open.extend(expression.inputs());
            }
        }
        // Whatever an expression is computed from comes before it (`Expression::fits`).
        needed.sort_unstable();
        needed
    }

    /// The tables whose rows a slot is computed from, as bits.
    pub(crate) fn tables_of(&self, slot: usize) -> u64 {
        let mut columns = Vec::new();
        self.columns_of(slot, &mut columns);
        columns.iter().filter_map(|column| self.columns.get(*column)).fold(0, |bits, c| bits | 1 << c.table)
    }

    /// The same of all slots.
    pub(crate) fn tables(&self) -> Vec<u64> {
        let mut tables: Vec<u64> = self.columns.iter().map(|column| 1 << column.table).collect();
        for expression in self.expressions {
            let of = |slot: usize| tables.get(slot).copied().unwrap_or(0);
            tables.push(expression.inputs().into_iter().fold(0, |bits, slot| bits | of(slot)));
        }
        tables
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

    /// Computes a slot, if it is not there yet. What it is computed from is kept only if it was there before, or is a column:
    /// expressions have many parts, and whole columns of each.
    pub(crate) fn ensure(&mut self, slots: &Slots<'_>, slot: usize) -> Result<(), Trouble> {
        if self.cells[slot].is_some() {
            return Ok(());
        }
        if slots.expression(slot).is_none() {
            return self.look_at(slots, slot);
        }
        let needed = slots.needed(slot, |slot| self.cells[slot].is_some());
        // How often each will be looked at by those that are still to be computed.
        let mut uses = vec![0u32; slot + 1];
        for slot in needed.iter().filter_map(|slot| slots.expression(*slot)) {
            slot.inputs().into_iter().for_each(|input| uses[input] += 1);
        }
        let is_new = |slot: &usize| needed.binary_search(slot).is_ok();
        for slot in &needed {
            let Some(expression) = slots.expression(*slot) else {
                self.look_at(slots, *slot)?;
                continue;
            };
            self.cells[*slot] = Some(expression::evaluate(expression, slots, self)?);
            for input in expression.inputs() {
                uses[input] -= 1;
                if uses[input] == 0 && slots.expression(input).is_some() && is_new(&input) {
                    self.cells[input] = None;
                }
            }
        }
        Ok(())
    }

    /// The values of a column.
    fn look_at(&mut self, slots: &Slots<'_>, slot: usize) -> Result<(), Trouble> {
        let (vector, column) = (self.vectors[slot].ok_or(Trouble::Damaged)?, &slots.columns[slot]);
        if vector.rows() != self.rows {
            return Err(Trouble::Damaged);
        }
        let cells = Cells::of_vector(vector, &column.form, &column.place).ok_or(Trouble::Damaged)?;
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
