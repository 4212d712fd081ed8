//! Groups: which rows belong together, and what is told of each.
//!
//! A group has a number. Each of its columns has numbered values ([`Interner`]); of one column, the value's number is the
//! group's; of several, the group so far and the next value make a pair, whose number it is ([`Pairs`]).
//!
//! Texts are told apart by their bytes, so texts that the server takes for equal but that are not the same are two groups
//! here. At the end they are looked for ([`Groups::is_determined`]): where there are any, which of the texts stands for
//! the group depends on the order in which rows are met, and the query is given back.

use crate::aggregate::{Aggregate, Cell, Found, State};
use crate::column::Collation;
use crate::frame::{Frame, Slots, Trouble};
use crate::intern::{Interner, Known, Pairs};

/// What a query asks of its groups.
#[derive(Debug)]
pub(crate) struct Shape<'a> {
    pub slots: Slots<'a>,
    pub groups: &'a [usize],
    pub aggregates: &'a [Aggregate],
}

/// The groups that one thread has met; in the end all.
#[derive(Debug)]
pub(crate) struct Groups {
    values: Vec<Interner>,
    /// One fewer than there are columns.
    pairs: Vec<Pairs>,
    states: Vec<State>,
    count: usize,
    /// Of some rows: the group of each, and room for numbers.
    found: Vec<u32>,
    ids: Vec<u32>,
}

impl Shape<'_> {
    /// The slots that have to be there.
    pub(crate) fn wanted(&self) -> Vec<usize> {
        let aggregates = self.aggregates.iter().filter_map(|aggregate| aggregate.slot());
        let mut wanted: Vec<usize> = self.groups.iter().copied().chain(aggregates).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

impl Groups {
    pub(crate) fn new(shape: &Shape<'_>) -> Groups {
        let is_text = |slot: &usize| shape.slots.collation(*slot).is_some();
        let values: Vec<_> = shape.groups.iter().map(|slot| Interner::new(is_text(slot))).collect();
        let mut pairs = Vec::new();
        pairs.resize_with(values.len().saturating_sub(1), Pairs::default);
        let states = shape.aggregates.iter().map(|aggregate| State::new(*aggregate, &shape.slots)).collect();
        let mut groups = Groups { values, pairs, states, count: 0, found: Vec::new(), ids: Vec::new() };
        if shape.groups.is_empty() {
            // Of no rows, too, something is told.
            groups.grow(1);
        }
        groups
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        let values: usize = self.values.iter().map(Interner::bytes).sum();
        let pairs: usize = self.pairs.iter().map(Pairs::bytes).sum();
        let states: usize = self.states.iter().map(State::bytes).sum();
        values + pairs + states
    }

    fn grow(&mut self, count: usize) {
        self.count = count;
        self.states.iter_mut().for_each(|state| state.grow(count));
    }

    /// Adds the rows of a frame, which has what is wanted.
    pub(crate) fn add(&mut self, shape: &Shape<'_>, frame: &Frame<'_>) -> Result<(), Trouble> {
        if frame.rows == 0 {
            return Ok(());
        }
        self.find(shape, frame);
        // Neighbours are often of one group, which spares to look at each.
        let found = match (shape.groups.is_empty(), self.found.first()) {
            (true, _) | (_, None) => Found::Only,
            (false, Some(first)) if self.found.iter().all(|group| group == first) => Found::One(*first),
            (false, Some(_)) => Found::Each(&self.found),
        };
        for (state, aggregate) in self.states.iter_mut().zip(shape.aggregates) {
            let cells = aggregate.slot().map(|slot| frame.cells(slot));
            let collation = aggregate.slot().and_then(|slot| shape.slots.collation(slot));
            state.add(*aggregate, frame.rows, cells, found, collation)?;
        }
        Ok(())
    }

    fn find(&mut self, shape: &Shape<'_>, frame: &Frame<'_>) {
        let Some((first, others)) = shape.groups.split_first() else { return };
        let mut count;
        {
            self.values[0].ids(frame.cells(*first), &mut self.found);
            count = self.values[0].len();
        }
        for (place, slot) in others.iter().enumerate() {
            let values = &mut self.values[place + 1];
            values.ids(frame.cells(*slot), &mut self.ids);
            let pairs = &mut self.pairs[place];
            pairs.expect(count, values.len());
            let mut last = (u32::MAX, u32::MAX, 0);
            for (found, id) in self.found.iter_mut().zip(&self.ids) {
                if (last.0, last.1) != (*found, *id) {
                    last = (*found, *id, pairs.find(*found, *id));
                }
                *found = last.2;
            }
            count = pairs.len();
        }
        self.grow(count);
    }

    /// The numbers of a group's values.
    fn key(&self, group: usize) -> Vec<u32> {
        let mut key = vec![0; self.values.len()];
        let mut id = group as u32;
        for (place, pairs) in self.pairs.iter().enumerate().rev() {
            (id, key[place + 1]) = pairs.get(id);
        }
        if let Some(first) = key.first_mut() {
            *first = id;
        }
        key
    }

    /// Adds the groups of another thread.
    pub(crate) fn merge(&mut self, shape: &Shape<'_>, other: Groups) -> Result<(), Trouble> {
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for (mine, its) in self.values.iter_mut().zip(&other.values) {
            ids.push((0..its.len() as u32).map(|id| mine.known(its.get(id))).collect());
        }
        let mut count = self.values.first().map_or(1, Interner::len);
        for (place, pairs) in self.pairs.iter_mut().enumerate() {
            // Pairs of each step that come of its groups: no more than those.
            pairs.expect(count + other.count, self.values[place + 1].len());
            count = pairs.len();
        }
        let mut groups = Vec::with_capacity(other.count);
        for group in 0..other.count {
            let key = other.key(group);
            let mut id = key.first().map_or(0, |first| ids[0][*first as usize]);
            for (place, pairs) in self.pairs.iter_mut().enumerate() {
                id = pairs.find(id, ids[place + 1][key[place + 1] as usize]);
            }
            groups.push(id);
        }
        let count = self.pairs.last().map_or(self.values.first().map_or(1, Interner::len), Pairs::len);
        self.grow(count);
        for ((mine, its), aggregate) in self.states.iter_mut().zip(other.states).zip(shape.aggregates) {
            let collation = aggregate.slot().and_then(|slot| shape.slots.collation(slot));
            mine.merge(*aggregate, its, &groups, collation)?;
        }
        Ok(())
    }

    /// Whether the answer does not depend on which of several equal texts is met first.
    pub(crate) fn is_determined(&self, shape: &Shape<'_>) -> bool {
        let all_different = |(values, slot): (&Interner, &usize)| {
            shape.slots.collation(*slot).is_none_or(|collation| are_all_different(values, collation))
        };
        self.states.iter().all(State::is_determined)
            && self.values.iter().zip(shape.groups).all(all_different)
    }

    /// Its rows: the groups' columns, then the aggregates.
    pub(crate) fn rows(&self, shape: &Shape<'_>) -> Vec<Vec<Cell>> {
        let mut told = Vec::new();
        for (state, aggregate) in self.states.iter().zip(shape.aggregates) {
            let collation = aggregate.slot().and_then(|slot| shape.slots.collation(slot));
            told.push(state.cells(self.count, collation).into_iter());
        }
        let mut rows = Vec::with_capacity(self.count);
        for group in 0..self.count {
            let key = self.key(group).into_iter().zip(&self.values);
            let mut row: Vec<Cell> = key
                .map(|(id, values)| match values.get(id) {
                    Known::Null => Cell::Null,
                    Known::Number(value) => Cell::Number(value),
                    Known::Text(text) => Cell::Text(text.to_vec()),
                })
                .collect();
            row.extend(told.iter_mut().filter_map(Iterator::next));
            rows.push(row);
        }
        rows
    }
}

/// Whether no two of the texts are equal in the collation's order.
pub(crate) fn are_all_different(values: &Interner, collation: &Collation) -> bool {
    let classes = classes(values, collation);
    classes.iter().enumerate().all(|(id, class)| *class as usize == id)
}

/// For each text the number of the first that is equal to it in the collation's order.
pub(crate) fn classes(values: &Interner, Collation(order): &Collation) -> Vec<u32> {
    let texts = values.texts();
    let mut sorted: Vec<u32> = (0..texts.len() as u32).filter(|id| values.null_id() != Some(*id)).collect();
    sorted.sort_by(|a, b| order(texts.get(*a as usize), texts.get(*b as usize)).then(a.cmp(b)));
    let mut classes: Vec<u32> = (0..texts.len() as u32).collect();
    for pair in sorted.windows(2) {
        if order(texts.get(pair[0] as usize), texts.get(pair[1] as usize)).is_eq() {
            classes[pair[1] as usize] = classes[pair[0] as usize];
        }
    }
    classes
}
