//! Groups, and what is told of each.
//!
//! A group is known by the bytes of its columns ([`Groups::find`]), so texts that the server takes for equal but that are
//! not the same are two groups here. At the end they are looked for ([`Groups::is_determined`]): where there are any, which
//! of the texts stands for the group depends on the order in which rows are met, and the query is given back.

use std::cmp::Ordering;
use std::collections::HashSet;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::{Batch, Cells, Collation, Column, Form, Values};

/// What is told of a group. Columns are those of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// How many rows.
    Rows,
    /// How many rows where the column is not NULL.
    Count(usize),
    /// The sum of the column, and of how many values.
    Sum(usize),
    /// The smallest value.
    Min(usize),
    /// The largest.
    Max(usize),
    /// How many different values.
    Distinct(usize),
}

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A count, or a value of a column with numbers; a DECIMAL without its point.
    Number(i128),
    /// A sum, and of how many values it is.
    Sum(i128, u64),
    /// Text.
    Text(Vec<u8>),
}

/// What has been found out of a group.
#[derive(Debug)]
enum State {
    Count(u64),
    Sum(i128, u64),
    Number(Option<i128>),
    /// The best text so far, and whether another one that is not the same was equal.
    Text(Option<Vec<u8>>, bool),
    Numbers(HashSet<i128>),
    Texts(HashSet<Vec<u8>>),
}

/// Why an answer cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Aggregate {
    fn column(self) -> Option<usize> {
        match self {
            Aggregate::Rows => None,
            Aggregate::Count(c)
            | Aggregate::Sum(c)
            | Aggregate::Min(c)
            | Aggregate::Max(c)
            | Aggregate::Distinct(c) => Some(c),
        }
    }

    /// Whether it can be told of these columns.
    pub(crate) fn fits(self, columns: &[Column]) -> bool {
        let Some(column) = self.column() else { return true };
        match (columns.get(column).map(|c| &c.form), self) {
            (None, _) => false,
            (Some(_), Aggregate::Count(_)) => true,
            (Some(Form::Presence), _) => false,
            (Some(Form::Text(_) | Form::Ordered), Aggregate::Sum(_)) => false,
            _ => true,
        }
    }

    fn begin(self, columns: &[Column]) -> State {
        let is_text = self.column().is_some_and(|c| matches!(columns[c].form, Form::Text(_)));
        match self {
            Aggregate::Rows | Aggregate::Count(_) => State::Count(0),
            Aggregate::Sum(_) => State::Sum(0, 0),
            Aggregate::Min(_) | Aggregate::Max(_) if is_text => State::Text(None, false),
            Aggregate::Min(_) | Aggregate::Max(_) => State::Number(None),
            Aggregate::Distinct(_) if is_text => State::Texts(HashSet::new()),
            Aggregate::Distinct(_) => State::Numbers(HashSet::new()),
        }
    }

    fn is_better(self, order: Ordering) -> bool {
        if self.is_min() {
            order.is_lt()
        } else {
            order.is_gt()
        }
    }

    fn is_min(self) -> bool {
        matches!(self, Aggregate::Min(_))
    }
}

/// What a query asks of its groups.
#[derive(Debug)]
pub(crate) struct Shape<'a> {
    pub columns: &'a [Column],
    pub groups: &'a [usize],
    pub aggregates: &'a [Aggregate],
}

impl Shape<'_> {
    fn collation(&self, column: usize) -> Option<&Collation> {
        match &self.columns[column].form {
            Form::Text(collation) => Some(collation),
            _ => None,
        }
    }
}

/// The groups that one thread has met; in the end all.
#[derive(Debug)]
pub(crate) struct Groups {
    table: HashTable<u32>,
    /// Of each group its columns as bytes.
    keys: Vec<Box<[u8]>>,
    /// Of each group its aggregates.
    states: Vec<State>,
    bytes: usize,
    /// Of a batch: the group of each selected row, and room for a key.
    found: Vec<u32>,
    key: Vec<u8>,
}

impl Groups {
    pub(crate) fn new(shape: &Shape<'_>) -> Groups {
        let (table, keys, states) = (HashTable::new(), Vec::new(), Vec::new());
        let mut groups = Groups { table, keys, states, bytes: 0, found: Vec::new(), key: Vec::new() };
        if shape.groups.is_empty() {
            // Of no rows, too, something is told.
            groups.find(shape);
        }
        groups
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The group of `key`; a new one if need be.
    fn find(&mut self, shape: &Shape<'_>) -> u32 {
        let hash = xxh3_64(&self.key);
        if let Some(group) = self.table.find(hash, |group| *self.keys[*group as usize] == *self.key) {
            return *group;
        }
        let group = self.keys.len() as u32;
        self.keys.push(self.key.as_slice().into());
        self.states.extend(shape.aggregates.iter().map(|aggregate| aggregate.begin(shape.columns)));
        self.bytes += self.key.len() + 48 + shape.aggregates.len() * size_of::<State>();
        let keys = &self.keys;
        self.table.insert_unique(hash, group, |group| xxh3_64(&keys[*group as usize]));
        group
    }

    /// Adds the selected rows of a batch.
    pub(crate) fn add(&mut self, shape: &Shape<'_>, batch: &Batch, selected: &[u32]) -> Result<(), Overflow> {
        self.find_all(shape, batch, selected);
        let width = shape.aggregates.len();
        for (place, aggregate) in shape.aggregates.iter().enumerate() {
            let cells = aggregate.column().map(|column| &batch.columns[column]);
            let collation = aggregate.column().and_then(|column| shape.collation(column));
            for (row, group) in selected.iter().zip(&self.found) {
                let state = &mut self.states[*group as usize * width + place];
                let Some(cells) = cells else {
                    let State::Count(count) = state else { unreachable!("rows are counted") };
                    *count += 1;
                    continue;
                };
                let row = *row as usize;
                if !cells.nulls[row] {
                    self.bytes += add_value(state, *aggregate, cells, row, collation)?;
                }
            }
        }
        Ok(())
    }

    fn find_all(&mut self, shape: &Shape<'_>, batch: &Batch, selected: &[u32]) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        if shape.groups.is_empty() {
            found.resize(selected.len(), 0);
        } else {
            for row in selected {
                self.key.clear();
                for column in shape.groups {
                    append_key(&mut self.key, &batch.columns[*column], *row as usize);
                }
                found.push(self.find(shape));
            }
        }
        self.found = found;
    }

    /// Adds the groups of another thread.
    pub(crate) fn merge(&mut self, shape: &Shape<'_>, other: Groups) -> Result<(), Overflow> {
        let width = shape.aggregates.len();
        let mut states = other.states.into_iter();
        for key in other.keys {
            self.key.clear();
            self.key.extend_from_slice(&key);
            let group = self.find(shape) as usize;
            for (place, state) in states.by_ref().take(width).enumerate() {
                let aggregate = shape.aggregates[place];
                let collation = aggregate.column().and_then(|column| shape.collation(column));
                self.bytes +=
                    merge_state(&mut self.states[group * width + place], aggregate, state, collation)?;
            }
        }
        Ok(())
    }

    /// Whether the answer does not depend on which of several equal texts is met first.
    pub(crate) fn is_determined(&self, shape: &Shape<'_>) -> bool {
        if self.states.iter().any(|state| matches!(state, State::Text(_, true))) {
            return false;
        }
        (0..shape.groups.len()).all(|place| {
            let Some(collation) = shape.collation(shape.groups[place]) else { return true };
            let mut texts: HashSet<Vec<u8>> = HashSet::new();
            for group in 0..self.len() {
                if let Some(Cell::Text(text)) = self.key_cells(shape, group).nth(place) {
                    texts.insert(text);
                }
            }
            let different = texts.len();
            classes(texts, collation) == different
        })
    }

    /// The columns of a group.
    pub(crate) fn key_cells<'a>(
        &'a self,
        shape: &'a Shape<'_>,
        group: usize,
    ) -> impl Iterator<Item = Cell> + 'a {
        let mut rest = &self.keys[group][..];
        shape.groups.iter().map(move |column| {
            let is_text = shape.collation(*column).is_some();
            let (null, after) = rest.split_at(1);
            rest = after;
            if null == [0] {
                return Cell::Null;
            }
            if !is_text {
                let (number, after) = rest.split_first_chunk().expect("a number of a key has 16 bytes");
                rest = after;
                return Cell::Number(i128::from_le_bytes(*number));
            }
            let (size, after) = rest.split_first_chunk().expect("a text of a key has its size before it");
            let (text, after) = after.split_at(u32::from_le_bytes(*size) as usize);
            rest = after;
            Cell::Text(text.to_vec())
        })
    }

    /// What is told of a group.
    pub(crate) fn cells<'a>(&'a self, shape: &'a Shape<'_>, group: usize) -> impl Iterator<Item = Cell> + 'a {
        let width = shape.aggregates.len();
        let states = &self.states[group * width..(group + 1) * width];
        states.iter().zip(shape.aggregates).map(|(state, aggregate)| match state {
            State::Count(count) => Cell::Number(i128::from(*count)),
            State::Sum(_, 0) => Cell::Null,
            State::Sum(sum, count) => Cell::Sum(*sum, *count),
            State::Number(value) => value.map_or(Cell::Null, Cell::Number),
            State::Text(text, _) => text.clone().map_or(Cell::Null, Cell::Text),
            State::Numbers(values) => Cell::Number(values.len() as i128),
            State::Texts(texts) => {
                let collation = aggregate.column().and_then(|column| shape.collation(column));
                let count = collation.map_or(texts.len(), |collation| classes(texts.clone(), collation));
                Cell::Number(count as i128)
            }
        })
    }
}

fn append_key(key: &mut Vec<u8>, cells: &Cells, row: usize) {
    if cells.nulls[row] {
        key.push(0);
        return;
    }
    key.push(1);
    match &cells.values {
        Values::Numbers(values) => key.extend_from_slice(&values[row].to_le_bytes()),
        Values::Texts(texts) => {
            let text = texts.get(row);
            key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            key.extend_from_slice(text);
        }
        Values::Presence => unreachable!("checked before: groups are made by values"),
    }
}

/// How many of the texts are different in the collation's order.
fn classes(texts: HashSet<Vec<u8>>, Collation(order): &Collation) -> usize {
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| order(a, b));
    texts.dedup_by(|a, b| order(a, b).is_eq());
    texts.len()
}

/// Bytes of memory that the state takes more.
#[inline]
fn add_value(
    state: &mut State,
    aggregate: Aggregate,
    cells: &Cells,
    row: usize,
    collation: Option<&Collation>,
) -> Result<usize, Overflow> {
    match (state, &cells.values) {
        (State::Count(count), _) => *count += 1,
        (State::Sum(sum, count), Values::Numbers(values)) => {
            *sum = sum.checked_add(values[row]).ok_or(Overflow)?;
            *count += 1;
        }
        (State::Number(best), Values::Numbers(values)) => {
            let value = values[row];
            if best.is_none_or(|best| aggregate.is_better(value.cmp(&best))) {
                *best = Some(value);
            }
        }
        (State::Text(best, tied), Values::Texts(texts)) => {
            better_text(best, tied, aggregate, texts.get(row), false, collation);
        }
        (State::Numbers(set), Values::Numbers(values)) => {
            return Ok(if set.insert(values[row]) { 2 * size_of::<i128>() } else { 0 });
        }
        (State::Texts(set), Values::Texts(texts)) => {
            let text = texts.get(row);
            if !set.contains(text) {
                set.insert(text.to_vec());
                return Ok(text.len() + 56);
            }
        }
        _ => unreachable!("checked before: the aggregate fits its column"),
    }
    Ok(0)
}

fn better_text(
    best: &mut Option<Vec<u8>>,
    tied: &mut bool,
    aggregate: Aggregate,
    text: &[u8],
    text_tied: bool,
    collation: Option<&Collation>,
) {
    let order = match (&best, collation) {
        (Some(best), _) if best.as_slice() == text => Ordering::Equal,
        (Some(best), Some(Collation(order))) => order(text, best),
        _ => return (*best, *tied) = (Some(text.to_vec()), text_tied),
    };
    if order.is_eq() {
        *tied |= text_tied || best.as_deref() != Some(text);
    } else if aggregate.is_better(order) {
        (*best, *tied) = (Some(text.to_vec()), text_tied);
    }
}

fn merge_state(
    into: &mut State,
    aggregate: Aggregate,
    from: State,
    collation: Option<&Collation>,
) -> Result<usize, Overflow> {
    match (into, from) {
        (State::Count(count), State::Count(more)) => *count += more,
        (State::Sum(sum, count), State::Sum(more, of)) => {
            *sum = sum.checked_add(more).ok_or(Overflow)?;
            *count += of;
        }
        (State::Number(best), State::Number(Some(value))) => {
            if best.is_none_or(|best| aggregate.is_better(value.cmp(&best))) {
                *best = Some(value);
            }
        }
        (State::Text(best, tied), State::Text(Some(text), text_tied)) => {
            better_text(best, tied, aggregate, &text, text_tied, collation);
        }
        (State::Numbers(set), State::Numbers(more)) => {
            let before = set.len();
            set.extend(more);
            return Ok((set.len() - before) * 2 * size_of::<i128>());
        }
        (State::Texts(set), State::Texts(more)) => {
            let mut bytes = 0;
            for text in more {
                bytes += text.len() + 56;
                set.insert(text);
            }
            return Ok(bytes);
        }
        (_, State::Number(None) | State::Text(None, _)) => {}
        _ => unreachable!("states of one aggregate are of one kind"),
    }
    Ok(0)
}
