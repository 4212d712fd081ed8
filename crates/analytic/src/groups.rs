//! Groups, and what is told of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pando_column::vector::Strings;
use pando_query::{Failure, Why};

use crate::aggregates::Other;
use crate::column::{Batch, Column, Data, Dict, Kind, OVERFLOW, UNSUPPORTED};
use crate::concat::Shown;
use crate::direct_groups::{DirectGroups, GroupsByNumber};
use crate::distinct::Distinct;
use crate::eval::{Eval, Result};
use crate::expr::{Function, KeyOfText};
use crate::keys::{Budget, KeyPart, Keys};
use crate::sums::{count_rows, Sums};
use crate::word_table::{with_width, WordTable};

/// What is told, and of values of which kind.
#[derive(Clone)]
pub(crate) struct Told {
    pub function: Function,
    pub kind: Kind,
    /// Of texts.
    pub key: Option<Arc<KeyOfText>>,
    /// Of different values.
    pub keys: Option<Keys>,
    /// Of texts one after the other.
    pub concat: Option<Arc<Shown>>,
}

/// The shape of groups, shared by all threads.
#[derive(Clone)]
pub(crate) struct Shape {
    pub keys: Keys,
    pub told: Vec<Told>,
    pub is_one: bool,
}

/// What is known of all groups so far, of one aggregate.
#[derive(Clone, Debug)]
enum State {
    Count(Vec<i64>),
    Sum(Sums),
    Real(Vec<f64>, Vec<bool>),
    Number(Vec<i128>, Vec<bool>),
    Text(Vec<Option<Best>>),
    Distinct(Distinct),
    Other(Other),
}

/// The least or greatest text so far.
#[derive(Clone, Debug)]
struct Best {
    key: Vec<u8>,
    text: Vec<u8>,
    /// Another one is equal, and not the same: which of both the server shows depends on its plan.
    is_open: bool,
}

/// See the head of this file; of one thread.
#[derive(Debug)]
pub(crate) struct Groups {
    table: WordTable,
    direct: DirectGroups,
    /// Of one text: instead of both.
    by_number: Option<GroupsByNumber>,
    words: Vec<u64>,
    count: usize,
    states: Vec<State>,
    /// What was taken of the budget.
    taken: usize,
    extra: usize,
}

impl Groups {
    pub(crate) fn new(shape: &Shape) -> Groups {
        let state = |told: &Told| match (told.function, told.kind) {
            (Function::Rows | Function::Count, _) => State::Count(Vec::new()),
            (Function::Sum, Kind::Real) => State::Real(Vec::new(), Vec::new()),
            (Function::Sum, _) => State::Sum(Sums::new(shape.is_one)),
            (Function::Min | Function::Max, Kind::Text(_)) => State::Text(Vec::new()),
            (Function::Min | Function::Max, Kind::Real) => State::Real(Vec::new(), Vec::new()),
            (Function::Min | Function::Max, _) => State::Number(Vec::new(), Vec::new()),
            (Function::CountDistinct | Function::SumDistinct, _) => {
                // Without the word that says which are NULL.
                State::Distinct(Distinct::new(told.keys.as_ref().map_or(1, |keys| keys.words - 1)))
            }
            (other, _) => State::Other(Other::new(other)),
        };
        let states = shape.told.iter().map(state).collect();
        let mut groups = Groups {
            table: WordTable::new(0),
            direct: DirectGroups::new(&shape.keys),
            by_number: shape.keys.is_one_text().then(GroupsByNumber::default),
            words: Vec::new(),
            count: 0,
            states,
            taken: 0,
            extra: 0,
        };
        if shape.is_one {
            groups.count = 1;
            groups.words = vec![0];
            groups.grow();
        }
        groups
    }

    /// Of a part of all rows, by the hash of their keys.
    pub(crate) fn of_part(shape: &Shape) -> Groups {
        Groups { direct: DirectGroups::none(), ..Groups::new(shape) }
    }

    fn grow(&mut self) {
        let count = self.count;
        for state in &mut self.states {
            match state {
                State::Count(counts) => counts.resize(count, 0),
                State::Sum(sums) => sums.grow(count),
                State::Number(sums, has) => {
                    sums.resize(count, 0);
                    has.resize(count, false);
                }
                State::Real(sums, has) => {
                    sums.resize(count, 0.0);
                    has.resize(count, false);
                }
                State::Text(texts) => texts.resize(count, None),
                State::Distinct(_) => {}
                State::Other(other) => other.grow(count),
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The groups of rows with these words.
    fn find(&mut self, words: &[u64], width: usize) -> Vec<u32> {
        let mut groups = Vec::with_capacity(words.len() / width);
        if let Some(by_number) = &mut self.by_number {
            by_number.find_or_add(words, &mut self.words, &mut groups);
            self.count = self.words.len() / width;
            return groups;
        }
        let known = (&mut self.words, width);
        with_width!(width, W => self.table.find_or_add::<W>(words, known, |group| groups.push(group)));
        self.count = self.table.len();
        groups
    }

    /// The groups of rows.
    fn of_rows(
        &mut self,
        keys: &Keys,
        columns: &[Arc<Column>],
        rows: usize,
        budget: &Budget,
    ) -> Result<Vec<u32>> {
        let places = match self.by_number {
            Some(_) => None,
            None => self.direct.places(keys, columns, rows, budget)?,
        };
        let Some(places) = places else {
            let words = keys.encode(columns, rows, true, budget)?;
            return Ok(self.find(&words, keys.words));
        };
        let (mut groups, unknown) = self.direct.groups(&places);
        if !unknown.is_empty() {
            let columns: Vec<Arc<Column>> =
                columns.iter().map(|column| Arc::new(column.gather(&unknown))).collect();
            let words = keys.encode(&columns, unknown.len(), true, budget)?;
            for (row, group) in unknown.iter().zip(self.find(&words, keys.words)) {
                groups[*row as usize] = group;
                self.direct.note(places[*row as usize], group);
            }
        }
        Ok(groups)
    }

    /// Adds rows: the columns of the groups, and of each aggregate its own.
    pub(crate) fn add(
        &mut self,
        shape: &Shape,
        columns: &[Arc<Column>],
        arguments: &[Vec<Arc<Column>>],
        rows: usize,
        budget: &Budget,
    ) -> Result<()> {
        let groups = match shape.is_one {
            true => FIRST_GROUP.get(..rows).map_or_else(|| Cow::Owned(vec![0; rows]), Cow::Borrowed),
            false => {
                let groups = self.of_rows(&shape.keys, columns, rows, budget)?;
                self.grow();
                Cow::Owned(groups)
            }
        };
        for ((told, state), argument) in shape.told.iter().zip(&mut self.states).zip(arguments) {
            self.extra += update(told, state, &groups, argument, budget)?;
        }
        self.take(budget, shape)
    }

    fn take(&mut self, budget: &Budget, shape: &Shape) -> Result<()> {
        let of_states = shape.told.len() * 17;
        let of_groups = self.count * (shape.keys.words * 8 + of_states);
        let by_number = self.by_number.as_ref().map_or(0, GroupsByNumber::bytes);
        let bytes = of_groups + self.table.bytes() + self.direct.bytes() + by_number + self.extra;
        if bytes > self.taken {
            budget.take(bytes - self.taken)?;
            self.taken = bytes;
        }
        Ok(())
    }

    /// The groups of these by the first of what they are groups of.
    pub(crate) fn rolled_up(&self, shape: &Shape, kept: usize, budget: &Budget) -> Result<Groups> {
        // The copy is there until it is merged.
        budget.take(self.taken)?;
        let mut copy = Groups {
            table: WordTable::new(0),
            direct: DirectGroups::new(&shape.keys),
            by_number: None,
            words: self.words.clone(),
            count: self.count,
            states: self.states.clone(),
            taken: self.taken,
            extra: self.extra,
        };
        shape.keys.without(&mut copy.words, kept);
        let mut upper = Groups::new(shape);
        upper.merge(shape, copy, budget)?;
        Ok(upper)
    }

    /// The words of all groups.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The groups if they had these words: those that have the same are one.
    pub(crate) fn united(mut self, shape: &Shape, words: Vec<u64>, budget: &Budget) -> Result<Groups> {
        self.words = words;
        let mut united = Groups::new(shape);
        united.merge(shape, self, budget)?;
        Ok(united)
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, shape: &Shape, other: Groups, budget: &Budget) -> Result<()> {
        let groups = match shape.is_one {
            true => vec![0],
            false => {
                let groups = self.find(&other.words, shape.keys.words);
                self.grow();
                groups
            }
        };
        for ((told, state), of_other) in shape.told.iter().zip(&mut self.states).zip(other.states) {
            merge(told, state, of_other, &groups)?;
        }
        self.extra += other.extra;
        budget.release(other.taken);
        self.take(budget, shape)
    }

    /// The columns of the groups, then those of the aggregates.
    pub(crate) fn finish(self, shape: &Shape, budget: &Budget, eval: Eval<'_>) -> Result<Batch> {
        if shape.keys.have_equal(&self.words, budget)? {
            return Err(Failure::GivenBack(Why::Undetermined));
        }
        let rows = self.count;
        let mut columns = match shape.is_one {
            true => Vec::new(),
            false => shape.keys.decode(&self.words, rows),
        };
        for (told, state) in shape.told.iter().zip(self.states) {
            columns.push(Arc::new(finish(told, state, rows, (budget, eval))?));
        }
        Ok(Batch { rows, columns })
    }
}

/// The groups of rows where there is one group.
static FIRST_GROUP: [u32; 4096] = [0; 4096];

fn update(
    told: &Told,
    state: &mut State,
    groups: &[u32],
    columns: &[Arc<Column>],
    budget: &Budget,
) -> Result<usize> {
    let Some(column) = columns.first() else {
        if let State::Count(counts) = state {
            count_rows(groups, counts);
        }
        return Ok(0);
    };
    let is_some = |row: usize| !column.is_null(row);
    let rows = groups.iter().enumerate().map(|(row, group)| (row, *group as usize));
    match state {
        State::Count(counts) => match &column.nulls {
            None => count_rows(groups, counts),
            Some(nulls) => rows.for_each(|(row, group)| counts[group] += i64::from(!nulls[row])),
        },
        State::Sum(sums) => sums.add(groups, column)?,
        State::Real(best, has) => {
            let Data::Real(values) = &column.data else { return Err(UNSUPPORTED) };
            for (row, group) in rows.filter(|(row, _)| is_some(*row)) {
                let value = values[row];
                best[group] = match told.function {
                    Function::Sum => best[group] + value,
                    Function::Min if has[group] => best[group].min(value),
                    Function::Max if has[group] => best[group].max(value),
                    _ => value,
                };
                has[group] = true;
            }
        }
        State::Number(best, has) => {
            if let (Data::Small(values), None) = (&column.data, &column.nulls) {
                best_of_small(told.function, groups, values, (best, has));
                return Ok(0);
            }
            for (row, group) in rows.filter(|(row, _)| is_some(*row)) {
                let value = column.number(row);
                let is_better = !has[group]
                    || if told.function == Function::Min { value < best[group] } else { value > best[group] };
                if is_better {
                    best[group] = value;
                    has[group] = true;
                }
            }
        }
        State::Text(best) => return update_texts(told, best, groups, column),
        State::Distinct(seen) => {
            let Some(keys) = &told.keys else { return Err(UNSUPPORTED) };
            let words = keys.encode(columns, groups.len(), true, budget)?;
            let is_known = |row: usize| columns.iter().all(|column| !column.is_null(row));
            let before = seen.bytes();
            seen.add(groups, &words, keys.words, is_known);
            return Ok(seen.bytes() - before);
        }
        State::Other(other) => return other.add(told.kind, groups, columns),
    }
    Ok(0)
}

/// The least or greatest numbers so far, of rows without NULLs.
fn best_of_small(
    function: Function,
    groups: &[u32],
    values: &[i64],
    (best, has): (&mut [i128], &mut [bool]),
) {
    let is_least = function == Function::Min;
    for (group, value) in groups.iter().zip(values) {
        let (best, has) = (&mut best[*group as usize], &mut has[*group as usize]);
        let value = i128::from(*value);
        if !*has || (if is_least { value < *best } else { value > *best }) {
            (*best, *has) = (value, true);
        }
    }
}

fn update_texts(told: &Told, best: &mut [Option<Best>], groups: &[u32], column: &Column) -> Result<usize> {
    let (Some(key), Data::Text(codes, dict)) = (&told.key, &column.data) else { return Err(UNSUPPORTED) };
    let mut new = 0;
    // Of texts that come again the keys are kept; of others, it would be for nothing.
    let mut keys = HashMap::new();
    let comes_again = dict.len() <= groups.len() / 2;
    let mut once = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        if column.is_null(row) {
            continue;
        }
        let text = dict.get(codes[row]);
        let best = &mut best[*group as usize];
        if best.as_ref().is_some_and(|best| best.text == text) {
            continue;
        }
        let of_text = match comes_again {
            true => keys.entry(codes[row]).or_insert_with(Vec::new),
            false => {
                once.clear();
                &mut once
            }
        };
        if of_text.is_empty() {
            key(text, of_text);
        }
        new += better(told.function, best, (of_text, text), false);
    }
    Ok(new)
}

/// Takes a text, with its key and whether it is open, if it is better. An equality with a text that is not the last one's says nothing.
fn better(function: Function, best: &mut Option<Best>, (key, text): (&[u8], &[u8]), is_open: bool) -> usize {
    let Some(known) = best else {
        *best = Some(Best { key: key.to_vec(), text: text.to_vec(), is_open });
        return key.len() + text.len();
    };
    let order = key.cmp(&known.key);
    if order.is_eq() {
        known.is_open |= is_open || known.text != text;
    } else if order.is_lt() == (function == Function::Min) {
        *known = Best { key: key.to_vec(), text: text.to_vec(), is_open };
    }
    0
}

fn merge(told: &Told, state: &mut State, other: State, groups: &[u32]) -> Result<()> {
    let places = groups.iter().map(|group| *group as usize);
    match (state, other) {
        (State::Count(counts), State::Count(others)) => {
            places.zip(others).for_each(|(group, count)| counts[group] += count);
        }
        (State::Sum(sums), State::Sum(others)) => sums.merge(others, groups)?,
        (State::Real(best, has), State::Real(others, has_other)) => {
            for ((group, value), _) in places.zip(others).zip(has_other).filter(|(_, is_some)| *is_some) {
                best[group] = match told.function {
                    Function::Sum => best[group] + value,
                    Function::Min if has[group] => best[group].min(value),
                    Function::Max if has[group] => best[group].max(value),
                    _ => value,
                };
                has[group] = true;
            }
        }
        (State::Number(best, has), State::Number(others, has_other)) => {
            for ((group, value), _) in places.zip(others).zip(has_other).filter(|(_, is_some)| *is_some) {
                let is_better = !has[group]
                    || if told.function == Function::Min { value < best[group] } else { value > best[group] };
                if is_better {
                    best[group] = value;
                    has[group] = true;
                }
            }
        }
        (State::Text(best), State::Text(others)) => {
            for (group, other) in places.zip(others) {
                if let Some(Best { key, text, is_open }) = other {
                    better(told.function, &mut best[group], (&key, &text), is_open);
                }
            }
        }
        (State::Distinct(seen), State::Distinct(others)) => seen.merge(others, groups),
        (State::Other(own), State::Other(other)) => own.merge(other, groups)?,
        _ => return Err(UNSUPPORTED),
    }
    Ok(())
}

fn finish(told: &Told, state: State, rows: usize, with: (&Budget, Eval<'_>)) -> Result<Column> {
    let nulls = |has: Vec<bool>| has.contains(&false).then(|| has.iter().map(|has| !has).collect());
    Ok(match state {
        State::Count(counts) => Column { data: Data::Small(counts), nulls: None },
        State::Sum(sums) => sums.into_column(),
        State::Number(values, has) => Column::of_large(values, nulls(has)),
        State::Real(values, has) => {
            if values.iter().any(|value| !value.is_finite()) {
                return Err(OVERFLOW);
            }
            Column { data: Data::Real(values), nulls: nulls(has) }
        }
        State::Text(best) if best.iter().flatten().any(|best| best.is_open) => {
            return Err(Failure::GivenBack(Why::Undetermined));
        }
        State::Text(best) => {
            let mut strings = Strings::new();
            let has: Vec<bool> = best.iter().map(Option::is_some).collect();
            best.iter().for_each(|best| strings.push(best.as_ref().map_or(&b""[..], |best| &best.text)));
            if strings.is_empty() {
                strings.push(b"");
            }
            let dict = Dict::Strings(Arc::new(strings));
            Column { data: Data::Text((0..rows as u32).collect(), dict), nulls: nulls(has) }
        }
        State::Distinct(seen) => distinct(told, &seen, rows)?,
        State::Other(other) => other.finish(told.function, told.concat.as_deref(), rows, with)?,
    })
}

fn distinct(told: &Told, seen: &Distinct, rows: usize) -> Result<Column> {
    if told.function == Function::CountDistinct {
        let mut counts = vec![0; rows];
        seen.keys().for_each(|key| counts[key[0] as usize] += 1);
        return Ok(Column { data: Data::Small(counts), nulls: None });
    }
    if told.kind == Kind::Real {
        return sum_of_reals(seen, rows);
    }
    let is_wide = match told.keys.as_ref().map(|keys| keys.parts.as_slice()) {
        Some([KeyPart::Word | KeyPart::Natural]) => false,
        Some([KeyPart::Wide]) => true,
        _ => return Err(UNSUPPORTED),
    };
    let is_signed = told.kind != Kind::Unsigned;
    let (mut sums, mut has) = (vec![0i128; rows], vec![false; rows]);
    for key in seen.keys() {
        let value = match is_wide {
            true => i128::from(key[2] as i64) << 64 | i128::from(key[1]),
            false if is_signed => i128::from(key[1] as i64),
            false => i128::from(key[1]),
        };
        let group = key[0] as usize;
        sums[group] = sums[group].checked_add(value).ok_or(OVERFLOW)?;
        has[group] = true;
    }
    Ok(Column::of_large(sums, has.contains(&false).then(|| has.iter().map(|has| !has).collect())))
}

/// The server has different DOUBLEs in a tree that is sorted by their bytes, the lowest first, and adds them up in that order.
fn sum_of_reals(seen: &Distinct, rows: usize) -> Result<Column> {
    let mut values: Vec<(usize, f64)> =
        seen.keys().map(|key| (key[0] as usize, f64::from_bits(key[1]))).collect();
    values.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.to_le_bytes().cmp(&b.1.to_le_bytes())));
    let (mut sums, mut has) = (vec![0.0; rows], vec![false; rows]);
    for (group, value) in values {
        sums[group] += value;
        has[group] = true;
    }
    if sums.iter().any(|sum: &f64| !sum.is_finite()) {
        return Err(OVERFLOW);
    }
    Ok(Column {
        data: Data::Real(sums),
        nulls: has.contains(&false).then(|| has.iter().map(|has| !has).collect()),
    })
}
