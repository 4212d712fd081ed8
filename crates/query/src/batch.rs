//! Batches: some rows as columns of values to compute with, of the columns that a query wants only.
//!
//! A row of the current layout is `version | null bits | columns` (`mariadb/src/row_codec.h`); one of an older layout is read
//! by the ids of the columns, as `pando_column::layout` says. How rows of a layout are read is worked out when the first
//! one is met ([`Plan`]).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use pando_column::vector::Strings;
use pandodb::layout::{ColumnType, Layout, Layouts, Value};

use crate::decimal;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 1024;

/// Tells the order of two texts.
pub type CompareTexts = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// The order of a column's texts: the server's.
#[derive(Clone)]
pub struct Collation(pub Arc<CompareTexts>);

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collation")
    }
}

/// Where a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The column at this position of the table's current layout.
    Stored(usize),
    /// An integer or bytes in the row's key, which has them at this offset.
    Key {
        /// Where.
        offset: usize,
        /// How many bytes.
        size: usize,
        /// The bits are inverted: the key descends.
        is_reversed: bool,
    },
}

/// What the bytes of a column mean.
#[derive(Clone, Debug)]
pub enum Form {
    /// An integer with a sign.
    Signed,
    /// An integer without.
    Unsigned,
    /// A number with so many digits in all and behind the point.
    Decimal {
        /// Digits in all.
        precision: u32,
        /// Behind the point.
        scale: u32,
    },
    /// Bytes in the order of memcmp, at most 15: temporal values.
    Ordered,
    /// Text.
    Text(Collation),
    /// Nothing is asked but whether it is NULL.
    Presence,
}

/// A column that a query wants.
#[derive(Clone, Debug)]
pub struct Column {
    /// Where.
    pub place: Place,
    /// What.
    pub form: Form,
}

/// The values of one column in a batch. Those of NULLs are there and mean nothing.
#[derive(Debug)]
pub(crate) enum Values {
    Numbers(Vec<i128>),
    Texts(Strings),
    Presence,
}

#[derive(Debug)]
pub(crate) struct Cells {
    pub nulls: Vec<bool>,
    pub values: Values,
    form: Form,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Batch {
    pub rows: usize,
    pub columns: Vec<Cells>,
}

impl Cells {
    fn new(form: &Form) -> Cells {
        let values = match form {
            Form::Text(_) => Values::Texts(Strings::new()),
            Form::Presence => Values::Presence,
            _ => Values::Numbers(Vec::new()),
        };
        Cells { nulls: Vec::new(), values, form: form.clone() }
    }

    fn clear(&mut self) {
        self.nulls.clear();
        match &mut self.values {
            Values::Numbers(numbers) => numbers.clear(),
            Values::Texts(texts) => texts.clear(),
            Values::Presence => {}
        }
    }

    fn push_null(&mut self) {
        self.nulls.push(true);
        match &mut self.values {
            Values::Numbers(numbers) => numbers.push(0),
            Values::Texts(texts) => texts.push(b""),
            Values::Presence => {}
        }
    }

    /// `None`: the bytes are not those of a value.
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.nulls.push(false);
        match &mut self.values {
            Values::Numbers(numbers) => numbers.push(number(&self.form, bytes)?),
            Values::Texts(texts) => texts.push(bytes),
            Values::Presence => {}
        }
        Some(())
    }
}

#[inline]
fn number(form: &Form, bytes: &[u8]) -> Option<i128> {
    let size = bytes.len();
    match form {
        Form::Signed | Form::Unsigned if (1..=8).contains(&size) => {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let value = u64::from_le_bytes(word);
            if matches!(form, Form::Unsigned) {
                return Some(i128::from(value));
            }
            let unused = 64 - 8 * size as u32;
            Some(i128::from((value << unused) as i64 >> unused))
        }
        Form::Decimal { precision, scale } => decimal::decode(bytes, *precision, *scale),
        Form::Ordered if size <= 15 => {
            Some(bytes.iter().fold(0, |value, byte| value << 8 | i128::from(*byte)))
        }
        _ => None,
    }
}

impl Batch {
    pub(crate) fn new(columns: &[Column]) -> Batch {
        Batch { rows: 0, columns: columns.iter().map(|column| Cells::new(&column.form)).collect() }
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(Cells::clear);
    }
}

/// How rows of one layout become cells.
#[derive(Debug)]
struct Plan {
    null_bytes: usize,
    steps: Vec<Step>,
    /// Columns that these rows do not have, and what they have for them.
    added: Vec<(usize, Option<Vec<u8>>)>,
}

/// One column of the layout, or several of fixed sizes that nobody wants.
#[derive(Debug)]
struct Step {
    is_counted: bool,
    size: usize,
    null_position: Option<usize>,
    target: Option<usize>,
    /// From what to what it has grown.
    grows: Option<(ColumnType, ColumnType)>,
}

impl Plan {
    fn new(layout: &Layout, current: &Layout, wanted: &[Column]) -> Plan {
        let target_of = |id: u32| {
            let stored = |column: &Column| match column.place {
                Place::Stored(position) => current.columns.get(position).is_some_and(|c| c.id == id),
                Place::Key { .. } => false,
            };
            wanted.iter().position(stored)
        };
        let mut plan = Plan { null_bytes: layout.null_bytes(), steps: Vec::new(), added: Vec::new() };
        let mut nulls = 0;
        for column in &layout.columns {
            let null_position = column.ty.nullable.then(|| {
                nulls += 1;
                nulls - 1
            });
            let target = target_of(column.id);
            let now = current.columns.iter().find(|c| c.id == column.id).map(|c| c.ty);
            let grows =
                now.filter(|now| target.is_some() && now.size != column.ty.size).map(|now| (column.ty, now));
            plan.add(Step {
                is_counted: column.ty.kind.is_counted(),
                size: column.ty.size as usize,
                null_position,
                target,
                grows,
            });
        }
        while plan.steps.last().is_some_and(|step| step.target.is_none()) {
            plan.steps.pop();
        }
        for column in &current.columns {
            let target = target_of(column.id);
            let (Some(target), true) = (target, layout.columns.iter().all(|c| c.id != column.id)) else {
                continue;
            };
            let value = match &column.added_with {
                Some(Value::Bytes(bytes)) => Some(bytes.clone()),
                Some(Value::Null) | None => None,
            };
            plan.added.push((target, value));
        }
        plan
    }

    fn add(&mut self, step: Step) {
        let is_plain =
            |step: &Step| !step.is_counted && step.null_position.is_none() && step.target.is_none();
        match self.steps.last_mut() {
            Some(last) if is_plain(last) && is_plain(&step) => last.size += step.size,
            _ => self.steps.push(step),
        }
    }

    fn read(&self, row: &[u8], batch: &mut Batch) -> Option<()> {
        let (nulls, mut rest) = row.split_at_checked(self.null_bytes)?;
        for step in &self.steps {
            if step.null_position.is_some_and(|at| nulls[at / 8] >> (at % 8) & 1 != 0) {
                if let Some(target) = step.target {
                    batch.columns[target].push_null();
                }
                continue;
            }
            let size =
                if step.is_counted { usize::try_from(take_number(&mut rest)?).ok()? } else { step.size };
            let (bytes, after) = rest.split_at_checked(size)?;
            rest = after;
            match (step.target, &step.grows) {
                (Some(target), None) => batch.columns[target].push(bytes)?,
                (Some(target), Some((from, to))) => batch.columns[target].push(&from.convert(bytes, to))?,
                (None, _) => {}
            }
        }
        for (target, value) in &self.added {
            match value {
                Some(bytes) => batch.columns[*target].push(bytes)?,
                None => batch.columns[*target].push_null(),
            }
        }
        Some(())
    }
}

/// Seven bits a byte, least significant first; the high bit: more follow.
#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Turns rows into cells; of one thread.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    layouts: &'a Layouts,
    wanted: &'a [Column],
    /// By version; those that were met.
    plans: Vec<Option<Plan>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(layouts: &'a Layouts, wanted: &'a [Column]) -> Reader<'a> {
        Reader { layouts, wanted, plans: Vec::new() }
    }

    /// Adds a row to a batch. `None`: its bytes are not those of a row; the batch is of no use then.
    #[inline]
    pub(crate) fn read(&mut self, key: &[u8], mut row: &[u8], batch: &mut Batch) -> Option<()> {
        let version = usize::try_from(take_number(&mut row)?).ok()?;
        if self.plans.get(version).is_none_or(Option::is_none) {
            let layout = self.layouts.get(u32::try_from(version).ok()?)?;
            if self.plans.len() <= version {
                self.plans.resize_with(version + 1, || None);
            }
            self.plans[version] = Some(Plan::new(layout, self.layouts.current(), self.wanted));
        }
        self.plans[version].as_ref()?.read(row, batch)?;
        for (target, column) in self.wanted.iter().enumerate() {
            if let Place::Key { offset, size, is_reversed } = column.place {
                let bytes = key.get(offset..offset + size)?;
                push_from_key(&mut batch.columns[target], bytes, is_reversed)?;
            }
        }
        batch.rows += 1;
        Some(())
    }
}

/// Integers are big-endian in keys, with their sign inverted.
fn push_from_key(cells: &mut Cells, bytes: &[u8], is_reversed: bool) -> Option<()> {
    let mut value = [0u8; 64];
    let value = value.get_mut(..bytes.len())?;
    let mask = if is_reversed { 0xff } else { 0 };
    value.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte ^ mask);
    if let Form::Signed | Form::Unsigned = cells.form {
        if let (Form::Signed, Some(first)) = (&cells.form, value.first_mut()) {
            *first ^= 0x80;
        }
        value.reverse();
    }
    cells.push(value)
}
