//! Expressions, computed of all rows of a batch.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashTable;
use pando_base::Error as EngineError;
use pando_column::vector::Strings;
use pando_query::{Failure, Why};
use xxhash_rust::xxh3::xxh3_64;

use crate::column::{Batch, Column, Data, Dict, Kind, Value, OVERFLOW, UNSUPPORTED};
use crate::expr::{Comparison, Expr, Operation, Texts};
use crate::measure::measured;
use crate::moments;
use crate::selection::rows_of;
use crate::text_bounds::{test_of, TextBounds};

use crate::whole::{divide, rounded, rounded_small};

/// Of a condition, for a row.
pub(crate) const FALSE: u8 = 0;
pub(crate) const TRUE: u8 = 1;
pub(crate) const UNKNOWN: u8 = 2;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

const POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut at = 1;
    while at < 39 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

pub(crate) fn power(digits: u32) -> Result<i128> {
    POWERS.get(digits as usize).copied().ok_or(OVERFLOW)
}

/// A value for all rows, or one for each.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    One(Value),
    Each(Arc<Column>),
}

impl Val {
    fn is_null(&self, row: usize) -> bool {
        match self {
            Val::One(value) => matches!(value, Value::Null),
            Val::Each(column) => column.is_null(row),
        }
    }

    fn text(&self, row: usize) -> &[u8] {
        match self {
            Val::One(Value::Text(text)) => text,
            Val::Each(column) => match &column.data {
                Data::Text(codes, dict) => dict.get(codes[row]),
                _ => b"",
            },
            Val::One(_) => b"",
        }
    }

    fn real(&self, row: usize) -> f64 {
        match self {
            Val::One(Value::Real(value)) => *value,
            Val::Each(column) => match &column.data {
                Data::Real(values) => values[row],
                _ => 0.0,
            },
            Val::One(_) => 0.0,
        }
    }

    pub(crate) fn number(&self, row: usize) -> i128 {
        match self {
            Val::One(Value::Number(value)) => *value,
            Val::Each(column) => column.number(row),
            Val::One(_) => 0,
        }
    }

    fn nulls(&self) -> Option<Cow<'_, [bool]>> {
        match self {
            Val::Each(column) => column.nulls.as_deref().map(Cow::Borrowed),
            Val::One(_) => None,
        }
    }

    pub(crate) fn column(self, kind: Kind, rows: usize) -> Arc<Column> {
        match self {
            Val::Each(column) => column,
            Val::One(value) => Arc::new(Column::constant(&value, kind, rows)),
        }
    }
}

/// Numbers of both operands.
pub(crate) enum Small<'a> {
    One(i64),
    Each(&'a [i64]),
}

impl Small<'_> {
    pub(crate) fn of(val: &Val) -> Option<Small<'_>> {
        match val {
            Val::One(Value::Number(value)) => i64::try_from(*value).ok().map(Small::One),
            Val::Each(column) => match &column.data {
                Data::Small(values) => Some(Small::Each(values)),
                _ => None,
            },
            Val::One(_) => None,
        }
    }
}

/// Applies `f` to pairs of numbers.
#[inline]
pub(crate) fn zip<T>(a: &Small<'_>, b: &Small<'_>, rows: usize, f: impl Fn(i64, i64) -> T) -> Vec<T> {
    match (a, b) {
        (Small::Each(a), Small::Each(b)) => a.iter().zip(*b).map(|(a, b)| f(*a, *b)).collect(),
        (Small::Each(a), Small::One(b)) => a.iter().map(|a| f(*a, *b)).collect(),
        (Small::One(a), Small::Each(b)) => b.iter().map(|b| f(*a, *b)).collect(),
        (Small::One(a), Small::One(b)) => (0..rows).map(|_| f(*a, *b)).collect(),
    }
}

pub(crate) fn either_null(a: &Val, b: &Val, rows: usize) -> Option<Vec<bool>> {
    if matches!(a, Val::One(Value::Null)) || matches!(b, Val::One(Value::Null)) {
        return Some(vec![true; rows]);
    }
    match (a.nulls(), b.nulls()) {
        (None, None) => None,
        (Some(nulls), None) | (None, Some(nulls)) => Some(nulls.into_owned()),
        (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(a, b)| *a || *b).collect()),
    }
}

/// Computes with the texts' functions, until the query is to stop.
#[derive(Clone, Copy)]
pub(crate) struct Eval<'a> {
    pub texts: &'a Texts,
    /// Any thread may ask.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Eval<'_> {
    /// An error when the query is to stop; asked wherever a batch may become many rows.
    pub(crate) fn go_on(&self) -> Result<()> {
        if (self.is_stopped)() {
            Err(Failure::GivenBack(Why::Stopped))
        } else {
            Ok(())
        }
    }

    pub(crate) fn column(&self, expr: &Expr, batch: &Batch) -> Result<Arc<Column>> {
        Ok(self.value(expr, batch)?.column(expr.kind(), batch.rows))
    }

    /// The rows of which a condition is true; `None`: all.
    pub(crate) fn select(&self, condition: &Expr, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let mut truth = self.truth(condition, batch)?;
        truth.iter_mut().for_each(|truth| *truth = u8::from(*truth == TRUE));
        Ok(rows_of(&truth))
    }

    pub(crate) fn value(&self, expr: &Expr, batch: &Batch) -> Result<Val> {
        let rows = batch.rows;
        Ok(match expr {
            Expr::Slot(place, _) => Val::Each(batch.columns[*place as usize].clone()),
            Expr::Constant(value, _) => Val::One(value.clone()),
            Expr::Arithmetic(operation, kind, a, b) => {
                let scales = (a.kind().scale(), b.kind().scale());
                let (a, b) = (self.value(a, batch)?, self.value(b, batch)?);
                Val::Each(Arc::new(arithmetic(*operation, *kind, &a, &b, scales, rows)?))
            }
            Expr::Divide(scale, a, b) => {
                let scales = (a.kind().scale(), b.kind().scale());
                let (a, b) = (self.value(a, batch)?, self.value(b, batch)?);
                Val::Each(Arc::new(divide(*scale, &a, &b, scales, rows)?))
            }
            Expr::Real(operation, a, b) => {
                let (a, b) = (self.value(a, batch)?, self.value(b, batch)?);
                Val::Each(Arc::new(real(*operation, &a, &b, rows)?))
            }
            Expr::Case(kind, whens, otherwise) => {
                Val::Each(Arc::new(self.choice(*kind, whens, otherwise, batch)?))
            }
            Expr::Change(number, _, text) => {
                let text = self.value(text, batch)?;
                Val::Each(Arc::new(self.changed(*number, &text, rows)?))
            }
            Expr::Part(part, moment) => {
                let kind = moment.kind();
                let moment = self.value(moment, batch)?.column(kind, rows);
                Val::Each(Arc::new(moments::parts_of(*part, kind, &moment)))
            }
            Expr::Floor(number, of) => Val::Each(Arc::new(self.floor(*number, of, batch)?)),
            Expr::Measure(number, text) => {
                let measure = self.texts.measures.get(*number as usize).ok_or(UNSUPPORTED)?;
                Val::Each(Arc::new(measured(&self.value(text, batch)?, rows, &**measure)))
            }
            Expr::Convert(kind, of) => {
                let from = of.kind();
                convert(&self.value(of, batch)?, from, *kind, rows)?
            }
            Expr::Compare(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::In(..)
            | Expr::Test(..) => {
                let truth = self.truth(expr, batch)?;
                let data = Data::Small(truth.iter().map(|truth| i64::from(*truth == TRUE)).collect());
                let has_nulls = truth.contains(&UNKNOWN);
                let nulls = has_nulls.then(|| truth.iter().map(|truth| *truth == UNKNOWN).collect());
                Val::Each(Arc::new(Column { data, nulls }))
            }
            Expr::Sure(condition, value) => {
                if self.truth(condition, batch)?.contains(&FALSE) {
                    return Err(Failure::GivenBack(Why::Unsure));
                }
                self.value(value, batch)?
            }
            Expr::Near(value, ..) => self.value(value, batch)?,
            Expr::Kept { decimals, whole, is_same, of } => {
                let of = self.value(of, batch)?;
                let mut values = Vec::with_capacity(rows);
                for row in 0..rows {
                    values.push(match of.is_null(row) {
                        true => 0.0,
                        false => kept(of.real(row), *decimals, *whole, *is_same)?,
                    });
                }
                let nulls: Vec<bool> = (0..rows).map(|row| of.is_null(row)).collect();
                let nulls = nulls.contains(&true).then_some(nulls);
                Val::Each(Arc::new(Column { data: Data::Real(values), nulls }))
            }
            Expr::Server { number, kind, of, on_saying, .. } => {
                Val::Each(Arc::new(self.served((*number, *on_saying), *kind, of, batch)?))
            }
            Expr::Aggregate(..)
            | Expr::Row(_)
            | Expr::Window(_)
            | Expr::Scalar(..)
            | Expr::Exists(_)
            | Expr::InQuery(..) => return Err(UNSUPPORTED),
        })
    }

    /// What a condition is, for each row.
    pub(crate) fn truth(&self, expr: &Expr, batch: &Batch) -> Result<Vec<u8>> {
        let rows = batch.rows;
        Ok(match expr {
            Expr::And(parts) if TextBounds::of(parts).is_some() => self.within(parts, batch)?,
            Expr::And(parts) => self.combined(parts, batch, |all, one| match (all, one) {
                (FALSE, _) | (_, FALSE) => FALSE,
                (TRUE, TRUE) => TRUE,
                _ => UNKNOWN,
            })?,
            Expr::Or(parts) => self.combined(parts, batch, |all, one| match (all, one) {
                (TRUE, _) | (_, TRUE) => TRUE,
                (FALSE, FALSE) => FALSE,
                _ => UNKNOWN,
            })?,
            Expr::Not(part) => {
                let mut truth = self.truth(part, batch)?;
                truth.iter_mut().filter(|truth| **truth != UNKNOWN).for_each(|truth| *truth = TRUE - *truth);
                truth
            }
            Expr::IsNull(part) => {
                let val = self.value(part, batch)?;
                (0..rows).map(|row| u8::from(val.is_null(row))).collect()
            }
            Expr::Compare(comparison, a, b) => self.compare(*comparison, a, b, batch)?,
            Expr::In(of, list) => self.is_in(of, list, batch)?,
            Expr::Test(number, text) => {
                let test = self.texts.tests.get(*number as usize).ok_or(UNSUPPORTED)?;
                let text = self.value(text, batch)?;
                by_text(&text, rows, |text| u8::from(test(text)))
            }
            other => {
                let kind = other.kind();
                let val = self.value(other, batch)?;
                let is_true = |row| match kind {
                    Kind::Real => val.real(row) != 0.0,
                    _ => val.number(row) != 0,
                };
                if kind.is_text() {
                    return Err(UNSUPPORTED);
                }
                (0..rows).map(|row| if val.is_null(row) { UNKNOWN } else { is_true(row).into() }).collect()
            }
        })
    }

    fn combined(&self, parts: &[Expr], batch: &Batch, combine: impl Fn(u8, u8) -> u8) -> Result<Vec<u8>> {
        let Some((first, others)) = parts.split_first() else { return Err(UNSUPPORTED) };
        let mut all = self.truth(first, batch)?;
        for other in others {
            if other.needs_server() {
                self.combine_open(other, batch, &mut all, &combine)?;
                continue;
            }
            let one = self.truth(other, batch)?;
            all.iter_mut().zip(one).for_each(|(all, one)| *all = combine(*all, one));
        }
        Ok(all)
    }

    /// Comparisons of one text.
    fn within(&self, parts: &[Expr], batch: &Batch) -> Result<Vec<u8>> {
        let bounds = TextBounds::of(parts).ok_or(UNSUPPORTED)?;
        let text = self.value(&Expr::Slot(bounds.slot, Kind::Text(bounds.collation)), batch)?;
        let mut test = bounds.test(self.texts)?;
        Ok(by_text_mut(&text, batch.rows, |text| test(text).into()))
    }

    fn compare(&self, comparison: Comparison, a: &Expr, b: &Expr, batch: &Batch) -> Result<Vec<u8>> {
        let (kinds, rows) = ((a.kind(), b.kind()), batch.rows);
        let (mut a, mut b) = (self.value(a, batch)?, self.value(b, batch)?);
        let mut truth = match kinds {
            (Kind::Text(collation), Kind::Text(_)) => {
                self.compare_texts(comparison, collation, &a, &b, rows)?
            }
            (Kind::Real, Kind::Real) => {
                let holds = |row: usize| holds(comparison, a.real(row).total_cmp(&b.real(row)));
                let plain = |row: usize| match a.real(row) == b.real(row) {
                    true => self::holds(comparison, std::cmp::Ordering::Equal),
                    false => holds(row),
                };
                (0..rows).map(|row| plain(row).into()).collect()
            }
            (Kind::Text(_) | Kind::Real, _) | (_, Kind::Text(_) | Kind::Real) => return Err(UNSUPPORTED),
            (of_a, of_b) => {
                let scale = of_a.scale().max(of_b.scale());
                a = scaled(&a, scale - of_a.scale(), rows)?;
                b = scaled(&b, scale - of_b.scale(), rows)?;
                compare_numbers(comparison, &a, &b, rows)
            }
        };
        let (null_a, null_b) = (matches!(a, Val::One(Value::Null)), matches!(b, Val::One(Value::Null)));
        if null_a || null_b || a.nulls().is_some() || b.nulls().is_some() {
            for (row, truth) in truth.iter_mut().enumerate() {
                match (a.is_null(row), b.is_null(row)) {
                    (false, false) => {}
                    (of_a, of_b) if comparison == Comparison::Same => *truth = (of_a && of_b).into(),
                    _ => *truth = UNKNOWN,
                }
            }
        }
        Ok(truth)
    }

    fn compare_texts(
        &self,
        comparison: Comparison,
        collation: u32,
        a: &Val,
        b: &Val,
        rows: usize,
    ) -> Result<Vec<u8>> {
        if let Val::One(constant) = b {
            let Value::Text(constant) = constant else { return Ok(vec![UNKNOWN; rows]) };
            let mut test = test_of(self.texts, collation, &[(comparison, constant)])?;
            return Ok(by_text_mut(a, rows, |text| test(text).into()));
        }
        if let Val::One(_) = a {
            return self.compare_texts(comparison.swapped(), collation, b, a, rows);
        }
        let key = self.texts.collations.get(collation as usize).ok_or(UNSUPPORTED)?;
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        let compare = |row: usize| {
            let (a, b) = (a.text(row), b.text(row));
            if a == b {
                return u8::from(holds(comparison, std::cmp::Ordering::Equal));
            }
            of_a.clear();
            of_b.clear();
            key(a, &mut of_a);
            key(b, &mut of_b);
            holds(comparison, of_a.cmp(&of_b)).into()
        };
        Ok((0..rows).map(compare).collect())
    }

    fn is_in(&self, of: &Expr, list: &[Value], batch: &Batch) -> Result<Vec<u8>> {
        let rows = batch.rows;
        let val = self.value(of, batch)?;
        if let Kind::Text(collation) = of.kind() {
            let key = self.texts.collations.get(collation as usize).ok_or(UNSUPPORTED)?;
            let mut keys = Vec::new();
            for value in list {
                let Value::Text(text) = value else { return Err(UNSUPPORTED) };
                let mut of_text = Vec::new();
                key(text, &mut of_text);
                keys.push(of_text);
            }
            keys.sort_unstable();
            let mut of_text = Vec::new();
            return Ok(by_text_mut(&val, rows, |text| {
                of_text.clear();
                key(text, &mut of_text);
                keys.binary_search(&of_text).is_ok().into()
            }));
        }
        let mut numbers = Vec::new();
        for value in list {
            let Value::Number(number) = value else { return Err(UNSUPPORTED) };
            numbers.push(*number);
        }
        numbers.sort_unstable();
        let is_in = |row| match val.is_null(row) {
            true => UNKNOWN,
            false => numbers.binary_search(&val.number(row)).is_ok().into(),
        };
        Ok((0..rows).map(is_in).collect())
    }

    fn changed(&self, number: u32, text: &Val, rows: usize) -> Result<Column> {
        let change = self.texts.changes.get(number as usize).ok_or(UNSUPPORTED)?;
        let text = text.clone().column(Kind::Text(0), rows);
        let Data::Text(codes, dict) = &text.data else { return Err(UNSUPPORTED) };
        let mut strings = Strings::new();
        let mut known = match dict.len() > rows * DICT_PER_ROW {
            true => Vec::new(),
            false => vec![u32::MAX; dict.len()],
        };
        let mut nulls = vec![false; rows];
        let (mut changed, mut of_text) = (Vec::with_capacity(rows), Vec::new());
        // Different texts often become the same one.
        let mut numbers: HashTable<u32> = HashTable::new();
        const NULL: u32 = u32::MAX - 1;
        for row in 0..rows {
            if text.is_null(row) {
                nulls[row] = true;
                changed.push(0);
                continue;
            }
            let mut unknown = u32::MAX;
            let code = known.get_mut(codes[row] as usize).unwrap_or(&mut unknown);
            if *code == u32::MAX {
                of_text.clear();
                *code = match change(dict.get(codes[row]), &mut of_text) {
                    true => {
                        let hash = xxh3_64(&of_text);
                        let same = |number: &u32| strings.get(*number as usize) == of_text.as_slice();
                        numbers.find(hash, same).copied().unwrap_or(u32::MAX)
                    }
                    false => NULL,
                };
                if *code == u32::MAX {
                    *code = strings.len() as u32;
                    strings.push(&of_text);
                    let hash_of = |number: &u32| xxh3_64(strings.get(*number as usize));
                    numbers.insert_unique(xxh3_64(&of_text), *code, hash_of);
                }
            }
            nulls[row] = *code == NULL;
            changed.push(if *code == NULL { 0 } else { *code });
        }
        if strings.is_empty() {
            strings.push(b"");
        }
        let nulls = nulls.contains(&true).then_some(nulls);
        Ok(Column { data: Data::Text(changed, Dict::Strings(Arc::new(strings))), nulls })
    }

    /// Values are computed only of the rows that take them: they may fail of others.
    fn choice(&self, kind: Kind, whens: &[(Expr, Expr)], otherwise: &Expr, batch: &Batch) -> Result<Column> {
        let rows = batch.rows;
        let mut left: Vec<u32> = (0..rows as u32).collect();
        let mut parts: Vec<Column> = Vec::new();
        // Of each row: which part has it, and where.
        let mut places = vec![(0u32, 0u32); rows];
        let take = |of_rows: &[u32], value: &Expr, parts: &mut Vec<Column>, places: &mut Vec<(u32, u32)>| {
            if of_rows.is_empty() {
                return Ok(());
            }
            let some =
                if of_rows.len() == rows { Cow::Borrowed(batch) } else { Cow::Owned(batch.gather(of_rows)) };
            let from = value.kind();
            let column = convert(&self.value(value, &some)?, from, kind, some.rows)?.column(kind, some.rows);
            let number = parts.len() as u32;
            of_rows.iter().enumerate().for_each(|(at, row)| places[*row as usize] = (number, at as u32));
            parts.push(Column::clone(&column));
            Ok::<(), Failure>(())
        };
        for (when, then) in whens {
            if left.is_empty() {
                break;
            }
            let some =
                if left.len() == rows { Cow::Borrowed(batch) } else { Cow::Owned(batch.gather(&left)) };
            let truth = self.truth(when, &some)?;
            let (mut taken, mut others) = (Vec::new(), Vec::new());
            for (row, truth) in left.iter().zip(truth) {
                if truth == TRUE { &mut taken } else { &mut others }.push(*row);
            }
            take(&taken, then, &mut parts, &mut places)?;
            left = others;
        }
        take(&left, otherwise, &mut parts, &mut places)?;
        let mut starts = vec![0u32];
        parts.iter().for_each(|part| starts.push(starts[starts.len() - 1] + part.rows() as u32));
        if parts.is_empty() {
            return Ok(Column::constant(&Value::Null, kind, rows));
        }
        let all = Column::concat(&parts.iter().collect::<Vec<_>>(), kind);
        let order: Vec<u32> = places.iter().map(|(part, at)| starts[*part as usize] + at).collect();
        Ok(all.gather(&order))
    }
}

/// Where a dictionary has more entries than so many for each row, nobody notes what was computed of its entries.
pub(crate) const DICT_PER_ROW: usize = 4;

fn by_text(val: &Val, rows: usize, test: impl Fn(&[u8]) -> u8) -> Vec<u8> {
    by_text_mut(val, rows, test)
}

/// What `test` says of each row's text; UNKNOWN of NULL. Each entry is asked for once.
fn by_text_mut(val: &Val, rows: usize, mut test: impl FnMut(&[u8]) -> u8) -> Vec<u8> {
    const UNASKED: u8 = 3;
    match val {
        Val::One(Value::Text(text)) => vec![test(text); rows],
        Val::One(_) => vec![UNKNOWN; rows],
        Val::Each(column) => {
            let Data::Text(codes, dict) = &column.data else { return vec![UNKNOWN; rows] };
            if dict.len() > rows * DICT_PER_ROW {
                let of_row = |row: usize| match column.is_null(row) {
                    true => UNKNOWN,
                    false => test(dict.get(codes[row])),
                };
                return (0..rows).map(of_row).collect();
            }
            let mut known = vec![UNASKED; dict.len()];
            let mut of_row = |row: usize| {
                if column.is_null(row) {
                    return UNKNOWN;
                }
                let known = &mut known[codes[row] as usize];
                if *known == UNASKED {
                    *known = test(dict.get(codes[row]));
                }
                *known
            };
            (0..rows).map(&mut of_row).collect()
        }
    }
}

#[inline]
pub(crate) fn holds(comparison: Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        Comparison::Equal | Comparison::Same => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn compare_numbers(comparison: Comparison, a: &Val, b: &Val, rows: usize) -> Vec<u8> {
    if let (Some(a), Some(b)) = (Small::of(a), Small::of(b)) {
        return match comparison {
            Comparison::Equal | Comparison::Same => zip(&a, &b, rows, |a, b| u8::from(a == b)),
            Comparison::NotEqual => zip(&a, &b, rows, |a, b| u8::from(a != b)),
            Comparison::Less => zip(&a, &b, rows, |a, b| u8::from(a < b)),
            Comparison::LessOrEqual => zip(&a, &b, rows, |a, b| u8::from(a <= b)),
            Comparison::Greater => zip(&a, &b, rows, |a, b| u8::from(a > b)),
            Comparison::GreaterOrEqual => zip(&a, &b, rows, |a, b| u8::from(a >= b)),
        };
    }
    (0..rows).map(|row| holds(comparison, a.number(row).cmp(&b.number(row))).into()).collect()
}

/// The same numbers with more digits behind the point.
fn scaled(val: &Val, digits: u32, rows: usize) -> Result<Val> {
    if digits == 0 {
        return Ok(val.clone());
    }
    let factor = power(digits)?;
    match val {
        Val::One(Value::Number(number)) => {
            Ok(Val::One(Value::Number(number.checked_mul(factor).ok_or(OVERFLOW)?)))
        }
        Val::One(_) => Ok(val.clone()),
        Val::Each(column) => {
            let one = Val::One(Value::Number(factor));
            let exact = arithmetic(Operation::Multiply, Kind::Decimal(0), val, &one, (0, 0), rows)?;
            Ok(Val::Each(Arc::new(Column { data: exact.data, nulls: column.nulls.clone() })))
        }
    }
}

/// Numbers as those of a kind with its own scale.
fn convert(val: &Val, from: Kind, to: Kind, rows: usize) -> Result<Val> {
    match (from, to) {
        (Kind::Date, Kind::DateTime) => {
            let column = val.clone().column(from, rows);
            let values = (0..rows).map(|row| {
                let date = column.number(row) as i64;
                let (year, month, day) = (date >> 9, date >> 5 & 15, date & 31);
                ((year * 13 + month) << 5 | day) << 41
            });
            let data = Data::Small(values.collect());
            Ok(Val::Each(Arc::new(Column { data, nulls: column.nulls.clone() })))
        }
        (Kind::Real, Kind::Real) => Ok(val.clone()),
        (Kind::Signed | Kind::Unsigned, Kind::Real) => {
            let column = val.clone().column(from, rows);
            let data = Data::Real((0..rows).map(|row| column.number(row) as f64).collect());
            Ok(Val::Each(Arc::new(Column { data, nulls: column.nulls.clone() })))
        }
        _ if from.is_text() || to.is_text() || from == to => Ok(val.clone()),
        (Kind::Real, _) | (_, Kind::Real) => Err(UNSUPPORTED),
        _ if to.scale() >= from.scale() => scaled(val, to.scale() - from.scale(), rows),
        _ => {
            let unit = power(from.scale() - to.scale())?;
            let column = val.clone().column(from, rows);
            if let (Data::Small(values), Ok(unit)) = (&column.data, i64::try_from(unit)) {
                let data = Data::Small(values.iter().map(|value| rounded_small(*value, unit)).collect());
                return Ok(Val::Each(Arc::new(Column { data, nulls: column.nulls.clone() })));
            }
            let values = (0..rows).map(|row| rounded(column.number(row), unit)).collect();
            Ok(Val::Each(Arc::new(Column::of_large(values, column.nulls.clone()))))
        }
    }
}

fn arithmetic(
    operation: Operation,
    kind: Kind,
    a: &Val,
    b: &Val,
    scales: (u32, u32),
    rows: usize,
) -> Result<Column> {
    let nulls = either_null(a, b, rows);
    let scale = scales.0.max(scales.1);
    let (a, b) = match operation {
        Operation::Multiply => (Cow::Borrowed(a), Cow::Borrowed(b)),
        _ => (Cow::Owned(scaled(a, scale - scales.0, rows)?), Cow::Owned(scaled(b, scale - scales.1, rows)?)),
    };
    if let (Some(a), Some(b), false) = (Small::of(&a), Small::of(&b), kind == Kind::Unsigned) {
        let mut has_overflown = false;
        let overflow = std::cell::Cell::new(false);
        let note = |(value, is_over): (i64, bool)| {
            if is_over {
                overflow.set(true);
            }
            value
        };
        let values = match operation {
            Operation::Add => zip(&a, &b, rows, |a, b| note(a.overflowing_add(b))),
            Operation::Subtract => zip(&a, &b, rows, |a, b| note(a.overflowing_sub(b))),
            Operation::Multiply => zip(&a, &b, rows, |a, b| note(a.overflowing_mul(b))),
        };
        has_overflown |= overflow.get();
        if !has_overflown {
            return Ok(Column { data: Data::Small(values), nulls });
        }
    }
    let one = |row: usize| {
        if nulls.as_ref().is_some_and(|nulls| nulls[row]) {
            return Ok(0);
        }
        let (a, b) = (a.number(row), b.number(row));
        let value = match operation {
            Operation::Add => a.checked_add(b),
            Operation::Subtract => a.checked_sub(b),
            Operation::Multiply => a.checked_mul(b),
        };
        let value = value.ok_or(OVERFLOW)?;
        let fits = match kind {
            Kind::Signed => i64::try_from(value).is_ok(),
            Kind::Unsigned => u64::try_from(value).is_ok(),
            _ => value.unsigned_abs() < POWERS[38].unsigned_abs(),
        };
        if fits {
            Ok(value)
        } else {
            Err(OVERFLOW)
        }
    };
    let values = (0..rows).map(one).collect::<Result<Vec<i128>>>()?;
    Ok(Column::of_large(values, nulls))
}

fn real(operation: Operation, a: &Val, b: &Val, rows: usize) -> Result<Column> {
    let nulls = either_null(a, b, rows);
    let values: Vec<f64> = (0..rows)
        .map(|row| match operation {
            Operation::Add => a.real(row) + b.real(row),
            Operation::Subtract => a.real(row) - b.real(row),
            Operation::Multiply => a.real(row) * b.real(row),
        })
        .collect();
    // The server says an error.
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    if values.iter().enumerate().any(|(row, value)| !value.is_finite() && !is_null(row)) {
        return Err(OVERFLOW);
    }
    Ok(Column { data: Data::Real(values), nulls })
}

/// What a DOUBLE of the server with so many digits keeps of a number (`truncate_double` in its `sql/field.cc`).
fn kept(number: f64, decimals: u8, whole: u8, is_same: bool) -> Result<f64> {
    let power = |digits: u8| 10f64.powi(digits.into());
    let floor = number.floor();
    let kept = floor + ((number - floor) * power(decimals)).round_ties_even() / power(decimals);
    // What is beyond its type it cuts, and warns.
    let fits = kept.abs() < power(whole) - 1.0;
    if !fits {
        return Err(Failure::GivenBack(Why::Overflow));
    }
    match is_same && kept != number {
        true => Err(Failure::GivenBack(Why::Unsure)),
        false => Ok(kept),
    }
}

/// What is wrong with a plan that the planner has made.
pub(crate) fn wrong_plan(what: &str) -> Failure {
    Failure::Error(EngineError::Unsupported { what: format!("a plan: {what}") }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_keeps_its_digits_as_the_server_cuts_them() {
        assert_eq!(kept(1.0 / 3.0, 10, 20, false).unwrap(), 0.333_333_333_3);
        assert_eq!(kept(-1.0 / 3.0, 10, 20, false).unwrap(), -1.0 + 0.666_666_666_7);
        assert_eq!(kept(2.5, 0, 20, false).unwrap(), 2.0, "half to even");
        assert_eq!(kept(0.25, 2, 20, true).unwrap(), 0.25);
        assert!(matches!(kept(1.0 / 3.0, 10, 20, true), Err(Failure::GivenBack(Why::Unsure))));
        for wide in [1e6, -1e6, f64::INFINITY, f64::NAN] {
            assert!(matches!(kept(wide, 2, 6, false), Err(Failure::GivenBack(Why::Overflow))), "{wide}");
        }
    }
}
