//! Tables in memory: the rows of a table that a join needs, as columns.

use pando_column::vector::{Nulls, Strings};

use crate::cells::{Cells, Codes, Dense, Entries};
use crate::frame::{Frame, Slots};
use crate::intern::Interner;

/// One column, to which rows are added.
#[derive(Debug)]
struct Gathered {
    slot: usize,
    nulls: Nulls,
    values: GatheredValues,
}

#[derive(Debug)]
enum GatheredValues {
    Small(Vec<i64>),
    Large(Vec<i128>),
    /// Each different text once.
    Texts(Box<Interner>, Vec<u32>),
    Presence,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Gathering {
    rows: usize,
    columns: Vec<Gathered>,
}

impl Gathering {
    /// Of these columns.
    pub(crate) fn new(slots: &Slots<'_>, columns: &[usize]) -> Gathering {
        let gathered = |slot: &usize| {
            let values = match (slots.collation(*slot), slots.has_values(*slot)) {
                (Some(_), _) => GatheredValues::Texts(Box::new(Interner::new(true)), Vec::new()),
                (None, true) => GatheredValues::Small(Vec::new()),
                (None, false) => GatheredValues::Presence,
            };
            Gathered { slot: *slot, nulls: Nulls::new(), values }
        };
        Gathering { rows: 0, columns: columns.iter().map(gathered).collect() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |column: &Gathered| match &column.values {
            GatheredValues::Small(values) => values.len() * 8,
            GatheredValues::Large(values) => values.len() * 16,
            GatheredValues::Texts(interner, codes) => interner.bytes() + codes.len() * 4,
            GatheredValues::Presence => 0,
        };
        self.columns.iter().map(of).sum()
    }

    /// Adds the rows of a frame, which has the columns.
    pub(crate) fn add(&mut self, frame: &Frame<'_>) {
        self.rows += frame.rows;
        self.columns.iter_mut().for_each(|column| column.add(frame.cells(column.slot)));
    }

    /// Adds the rows of another one.
    pub(crate) fn append(&mut self, slots: &Slots<'_>, other: Gathering) {
        self.add(&other.finish(slots));
    }

    /// The rows.
    pub(crate) fn finish(self, slots: &Slots<'_>) -> Frame<'static> {
        let mut frame = Frame::new(slots, self.rows);
        for column in self.columns {
            let slot = column.slot;
            frame.cells[slot] = Some(column.finish(self.rows));
        }
        frame
    }
}

impl Gathered {
    fn add(&mut self, cells: &Cells<'_>) {
        (0..cells.rows).for_each(|row| self.nulls.push(cells.is_null(row)));
        match &mut self.values {
            GatheredValues::Presence => {}
            GatheredValues::Texts(interner, codes) => {
                let mut ids = Vec::new();
                interner.ids(cells, &mut ids);
                codes.extend(ids);
            }
            GatheredValues::Large(values) => (0..cells.rows).for_each(|row| values.push(cells.dense_at(row))),
            GatheredValues::Small(values) => match cells.dense() {
                Dense::Small(more) => values.extend_from_slice(&more),
                Dense::Large(more) => {
                    let mut large: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
                    large.extend_from_slice(&more);
                    self.values = GatheredValues::Large(large);
                }
            },
        }
    }

    fn finish(self, rows: usize) -> Cells<'static> {
        let nulls = (self.nulls.count() > 0).then_some(std::borrow::Cow::Owned(self.nulls));
        let (codes, entries) = match self.values {
            GatheredValues::Small(values) => (Codes::Own, Entries::Small(values.into())),
            GatheredValues::Large(values) => (Codes::Own, Entries::Large(values.into())),
            GatheredValues::Texts(interner, codes) => {
                let texts: Strings = interner.into_texts();
                (Codes::Of(codes.into()), Entries::Texts(std::borrow::Cow::Owned(texts)))
            }
            GatheredValues::Presence => (Codes::First, Entries::Presence),
        };
        Cells { rows, nulls, codes, entries }
    }
}
