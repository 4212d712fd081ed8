//! What is told of groups: counts, sums, extremes, numbers of different values; of each aggregate one for each group.

use std::cmp::Ordering;

use hashbrown::HashTable;
use pando_column::vector::Nulls;

use crate::cells::{Cells, Dense};
use crate::column::Collation;
use crate::frame::{Slots, Trouble};
use crate::groups::classes;
use crate::intern::{hash_of, Interner, Pairs};

/// What is told of a group. Columns are those of the query, or expressions.
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

/// A sum, and of how many values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    sum: i128,
    count: u64,
}

/// The best text so far, and whether another one that is not the same was equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct BestText {
    text: Option<Box<[u8]>>,
    is_tied: bool,
}

/// Values, and the pairs of groups and values that there are.
#[derive(Debug)]
pub(crate) struct Distinct {
    values: Interner,
    pairs: Pairs,
    /// Room for the values of some rows.
    ids: Vec<u32>,
}

/// The groups that rows belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    /// There is only one, number 0.
    Only,
    /// All of them to this one.
    One(u32),
    /// Each to its own.
    Each(&'a [u32]),
}

impl Found<'_> {
    #[inline]
    fn of(self, row: usize) -> usize {
        match self {
            Found::Only => 0,
            Found::One(group) => group as usize,
            Found::Each(groups) => groups[row] as usize,
        }
    }
}

/// What has been found out, by group.
#[derive(Debug)]
pub(crate) enum State {
    Rows(Vec<u64>),
    Count(Vec<u64>),
    Sum(Vec<Total>),
    Number(Vec<Option<i128>>),
    Text(Vec<BestText>),
    Distinct(Box<Distinct>),
}

impl Aggregate {
    pub(crate) fn slot(self) -> Option<usize> {
        match self {
            Aggregate::Rows => None,
            Aggregate::Count(c)
            | Aggregate::Sum(c)
            | Aggregate::Min(c)
            | Aggregate::Max(c)
            | Aggregate::Distinct(c) => Some(c),
        }
    }

    pub(crate) fn renumbered(self, number: &dyn Fn(usize) -> usize) -> Aggregate {
        match self {
            Aggregate::Rows => Aggregate::Rows,
            Aggregate::Count(slot) => Aggregate::Count(number(slot)),
            Aggregate::Sum(slot) => Aggregate::Sum(number(slot)),
            Aggregate::Min(slot) => Aggregate::Min(number(slot)),
            Aggregate::Max(slot) => Aggregate::Max(number(slot)),
            Aggregate::Distinct(slot) => Aggregate::Distinct(number(slot)),
        }
    }

    /// Whether it can be told of these slots.
    pub(crate) fn fits(self, slots: &Slots<'_>) -> bool {
        let Some(slot) = self.slot() else { return true };
        slot < slots.len()
            && match self {
                Aggregate::Rows | Aggregate::Count(_) => true,
                Aggregate::Sum(_) => slots.is_summable(slot),
                Aggregate::Min(_) | Aggregate::Max(_) | Aggregate::Distinct(_) => slots.has_values(slot),
            }
    }

    fn is_better(self, order: Ordering) -> bool {
        if matches!(self, Aggregate::Min(_)) {
            order.is_lt()
        } else {
            order.is_gt()
        }
    }
}

impl State {
    pub(crate) fn new(aggregate: Aggregate, slots: &Slots<'_>) -> State {
        let is_text = aggregate.slot().is_some_and(|slot| slots.collation(slot).is_some());
        match aggregate {
            Aggregate::Rows => State::Rows(Vec::new()),
            Aggregate::Count(_) => State::Count(Vec::new()),
            Aggregate::Sum(_) => State::Sum(Vec::new()),
            Aggregate::Min(_) | Aggregate::Max(_) if is_text => State::Text(Vec::new()),
            Aggregate::Min(_) | Aggregate::Max(_) => State::Number(Vec::new()),
            Aggregate::Distinct(_) => State::Distinct(Box::new(Distinct {
                values: Interner::new(is_text),
                pairs: Pairs::default(),
                ids: Vec::new(),
            })),
        }
    }

    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            State::Rows(counts) | State::Count(counts) => counts.resize(groups, 0),
            State::Sum(totals) => totals.resize(groups, Total::default()),
            State::Number(best) => best.resize(groups, None),
            State::Text(best) => best.resize(groups, BestText::default()),
            State::Distinct(_) => {}
        }
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            State::Rows(counts) | State::Count(counts) => counts.len() * 8,
            State::Sum(totals) => totals.len() * size_of::<Total>(),
            State::Number(best) => best.len() * size_of::<Option<i128>>(),
            // Texts are as long as they are; columns of this kind have at most some hundred characters.
            State::Text(best) => best.len() * (size_of::<BestText>() + 64),
            State::Distinct(distinct) => distinct.values.bytes() + distinct.pairs.bytes(),
        }
    }

    /// Adds rows with these cells; `found` are their groups.
    pub(crate) fn add(
        &mut self,
        aggregate: Aggregate,
        rows: usize,
        cells: Option<&Cells<'_>>,
        found: Found<'_>,
        collation: Option<&Collation>,
    ) -> Result<(), Trouble> {
        let Some(cells) = cells else {
            let State::Rows(counts) = self else { unreachable!("rows are counted without a column") };
            match found {
                Found::Each(found) => found.iter().for_each(|group| counts[*group as usize] += 1),
                one => counts[one.of(0)] += rows as u64,
            }
            return Ok(());
        };
        match self {
            State::Rows(_) => unreachable!("rows are counted without a column"),
            State::Count(counts) => add_count(counts, cells, found),
            State::Sum(totals) => add_sums(totals, cells, found)?,
            State::Number(best) => {
                let values = cells.dense();
                for_each(cells, found, |row, group| {
                    let value = values.get(row);
                    let best = &mut best[group];
                    if best.is_none_or(|best| aggregate.is_better(value.cmp(&best))) {
                        *best = Some(value);
                    }
                });
            }
            State::Text(best) => {
                let texts = cells.texts();
                for_each(cells, found, |row, group| {
                    best[group].add(aggregate, texts.get(cells.code(row)), false, collation);
                });
            }
            State::Distinct(distinct) => distinct.add(cells, found),
        }
        Ok(())
    }

    /// Adds what another thread has found out; `groups` are the numbers here of its groups.
    pub(crate) fn merge(
        &mut self,
        aggregate: Aggregate,
        other: State,
        groups: &[u32],
        collation: Option<&Collation>,
    ) -> Result<(), Trouble> {
        match (self, other) {
            (State::Rows(counts), State::Rows(more)) | (State::Count(counts), State::Count(more)) => {
                groups.iter().zip(more).for_each(|(group, more)| counts[*group as usize] += more);
            }
            (State::Sum(totals), State::Sum(more)) => {
                for (group, more) in groups.iter().zip(more) {
                    let total = &mut totals[*group as usize];
                    total.sum = total.sum.checked_add(more.sum).ok_or(Trouble::Overflow)?;
                    total.count += more.count;
                }
            }
            (State::Number(best), State::Number(more)) => {
                for (group, value) in groups.iter().zip(more) {
                    let best = &mut best[*group as usize];
                    if let Some(value) = value {
                        if best.is_none_or(|best| aggregate.is_better(value.cmp(&best))) {
                            *best = Some(value);
                        }
                    }
                }
            }
            (State::Text(best), State::Text(more)) => {
                for (group, more) in groups.iter().zip(more) {
                    if let Some(text) = more.text {
                        best[*group as usize].add(aggregate, &text, more.is_tied, collation);
                    }
                }
            }
            (State::Distinct(distinct), State::Distinct(more)) => distinct.merge(&more, groups),
            _ => unreachable!("states of one aggregate are of one kind"),
        }
        Ok(())
    }

    /// Whether no text stands for others that are equal to it.
    pub(crate) fn is_determined(&self) -> bool {
        match self {
            State::Text(best) => best.iter().all(|best| !best.is_tied),
            _ => true,
        }
    }

    /// What is told, by group.
    pub(crate) fn cells(&self, groups: usize, collation: Option<&Collation>) -> Vec<Cell> {
        match self {
            State::Rows(counts) | State::Count(counts) => {
                counts.iter().map(|count| Cell::Number((*count).into())).collect()
            }
            State::Sum(totals) => totals
                .iter()
                .map(|total| if total.count == 0 { Cell::Null } else { Cell::Sum(total.sum, total.count) })
                .collect(),
            State::Number(best) => best.iter().map(|best| best.map_or(Cell::Null, Cell::Number)).collect(),
            State::Text(best) => {
                let text =
                    |best: &BestText| best.text.as_ref().map_or(Cell::Null, |t| Cell::Text(t.to_vec()));
                best.iter().map(text).collect()
            }
            State::Distinct(distinct) => {
                let counts = distinct.counts(groups, collation);
                counts.into_iter().map(|count| Cell::Number(count.into())).collect()
            }
        }
    }
}

impl BestText {
    fn add(&mut self, aggregate: Aggregate, text: &[u8], is_tied: bool, collation: Option<&Collation>) {
        let order = match (&self.text, collation) {
            (Some(best), _) if **best == *text => Ordering::Equal,
            (Some(best), Some(Collation(order))) => order(text, best),
            _ => return *self = BestText { text: Some(text.into()), is_tied },
        };
        if order.is_eq() {
            self.is_tied |= is_tied || self.text.as_deref() != Some(text);
        } else if aggregate.is_better(order) {
            *self = BestText { text: Some(text.into()), is_tied };
        }
    }
}

/// Every row that is not NULL, with its group.
fn for_each(cells: &Cells<'_>, found: Found<'_>, mut each: impl FnMut(usize, usize)) {
    for row in 0..cells.rows {
        if !cells.is_null(row) {
            each(row, found.of(row));
        }
    }
}

fn add_count(counts: &mut [u64], cells: &Cells<'_>, found: Found<'_>) {
    match (found, &cells.nulls) {
        (Found::Each(found), None) => found.iter().for_each(|group| counts[*group as usize] += 1),
        (Found::Each(found), Some(nulls)) => {
            for (row, group) in found.iter().enumerate() {
                counts[*group as usize] += u64::from(!nulls.is_null(row));
            }
        }
        (one, nulls) => {
            counts[one.of(0)] += (cells.rows - nulls.as_deref().map_or(0, Nulls::count)) as u64;
        }
    }
}

fn add_sums(totals: &mut [Total], cells: &Cells<'_>, found: Found<'_>) -> Result<(), Trouble> {
    match (cells.dense(), found, &cells.nulls) {
        (Dense::Small(values), one @ (Found::Only | Found::One(_)), None) => {
            let total = &mut totals[one.of(0)];
            total.sum = total.sum.checked_add(sum(&values)).ok_or(Trouble::Overflow)?;
            total.count += values.len() as u64;
        }
        (Dense::Small(values), Found::Each(found), None) => {
            for (value, group) in values.iter().zip(found) {
                let total = &mut totals[*group as usize];
                // A wrap would take more rows than there can be, unless there were large numbers as well.
                total.sum = total.sum.checked_add(i128::from(*value)).ok_or(Trouble::Overflow)?;
                total.count += 1;
            }
        }
        (values, found, _) => {
            let mut trouble = Ok(());
            for_each(cells, found, |row, group| {
                let total = &mut totals[group];
                match total.sum.checked_add(values.get(row)) {
                    Some(sum) => *total = Total { sum, count: total.count + 1 },
                    None => trouble = Err(Trouble::Overflow),
                }
            });
            trouble?;
        }
    }
    Ok(())
}

/// Halves of numbers are added up on their own, which cannot overflow within 2^31 of them.
fn sum(values: &[i64]) -> i128 {
    let of_piece = |piece: &[i64]| {
        let (low, high) = piece.iter().fold((0u64, 0i64), |(low, high), value| {
            (low + (value & 0xffff_ffff) as u64, high + (value >> 32))
        });
        (i128::from(high) << 32) + i128::from(low)
    };
    values.chunks(1 << 30).map(of_piece).sum()
}

impl Distinct {
    fn add(&mut self, cells: &Cells<'_>, found: Found<'_>) {
        self.values.ids(cells, &mut self.ids);
        let groups = match found {
            Found::Only => return,
            Found::One(group) => group as usize + 1,
            Found::Each(found) => found.iter().max().map_or(0, |group| *group as usize + 1),
        };
        self.pairs.expect(groups, self.values.len());
        let null = self.values.null_id();
        for (row, id) in self.ids.iter().enumerate() {
            if Some(*id) != null {
                self.pairs.find(found.of(row) as u32, *id);
            }
        }
    }

    fn merge(&mut self, more: &Distinct, groups: &[u32]) {
        let ids: Vec<u32> =
            (0..more.values.len() as u32).map(|id| self.values.known(more.values.get(id))).collect();
        let count = groups.iter().max().map_or(0, |group| *group as usize + 1);
        self.pairs.expect(count, self.values.len());
        for pair in 0..more.pairs.len() as u32 {
            let (group, id) = more.pairs.get(pair);
            self.pairs.find(groups[group as usize], ids[id as usize]);
        }
    }

    fn counts(&self, groups: usize, collation: Option<&Collation>) -> Vec<u64> {
        let (values, pairs) = (&self.values, &self.pairs);
        let classes = collation.map(|collation| classes(values, collation));
        let classes = classes.filter(|of| of.iter().enumerate().any(|(id, class)| *class as usize != id));
        if pairs.len() == 0 {
            // One group, whose values these are; or groups of nothing but NULLs.
            let is_counted = |id: &u32| values.null_id() != Some(*id);
            let is_first = |id: &u32| classes.as_ref().is_none_or(|classes| classes[*id as usize] == *id);
            let count = (0..values.len() as u32).filter(|id| is_counted(id) && is_first(id)).count();
            return vec![count as u64; groups];
        }
        let mut counts = vec![0; groups];
        let mut seen: HashTable<(u32, u32)> = HashTable::new();
        let hash = |pair: &(u32, u32)| hash_of(u64::from(pair.0) << 32 | u64::from(pair.1));
        for pair in 0..pairs.len() as u32 {
            let (group, id) = pairs.get(pair);
            if let Some(classes) = &classes {
                let pair = (group, classes[id as usize]);
                if seen.find(hash(&pair), |other| *other == pair).is_some() {
                    continue;
                }
                seen.insert_unique(hash(&pair), pair, hash);
            }
            counts[group as usize] += 1;
        }
        counts
    }
}
