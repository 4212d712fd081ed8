//! GROUP_CONCAT: the texts of a group one after the other.
//!
//! Rows are kept until all are known, then they are sorted by their group and by what ORDER BY says. Where that leaves open
//! which of two different texts comes first, it is the order in which the server meets rows: the query is given back.
//! So it is where the text is too long: the server cuts it, and warns.

use std::collections::HashSet;
use std::sync::Arc;

use pando_column::vector::Strings;
use pando_query::{Failure, Why};

use crate::column::{bytes_of_new_strings, Column, Data, Dict, Kind, Value, UNSUPPORTED};
use crate::eval::{Eval, Result};
use crate::expr::{Expr, Texts};
use crate::keys::{Budget, KeyPart, Keys};
use crate::sort::{sort_rows, Sorter};

/// What comes before the arguments in the row that the aggregate is of: the separator, the bytes at most, how many
/// arguments are shown and whether different ones alone, and which of the others, which it is sorted by, descend.
pub(crate) const HEAD: usize = 4;

/// The second bit of the flags and what is above it: how many arguments are shown.
const IS_DISTINCT: i128 = 1;

/// Rows after which is asked whether to go on.
const ROWS_AT_ONCE: usize = 1 << 16;

/// How it is shown.
#[derive(Clone)]
pub(crate) struct Shown {
    separator: Vec<u8>,
    bytes_max: usize,
    is_distinct: bool,
    /// How many arguments are shown.
    shown: usize,
    descends: Vec<bool>,
    kinds: Vec<Kind>,
    texts: Texts,
}

impl Shown {
    pub(crate) fn of(of: &Expr, texts: &Texts) -> Result<Shown> {
        let [Expr::Constant(Value::Text(separator), _), Expr::Constant(Value::Number(bytes_max), _), Expr::Constant(Value::Number(flags), _), Expr::Constant(Value::Text(descends), _), arguments @ ..] =
            of.row()
        else {
            return Err(UNSUPPORTED);
        };
        let shown = usize::try_from(flags >> 1).map_err(|_| UNSUPPORTED)?;
        if shown == 0 || arguments.len() != shown + descends.len() {
            return Err(UNSUPPORTED);
        }
        Ok(Shown {
            separator: separator.clone(),
            bytes_max: usize::try_from(*bytes_max).map_err(|_| UNSUPPORTED)?,
            is_distinct: flags & IS_DISTINCT != 0,
            shown,
            descends: descends.iter().map(|descends| *descends != 0).collect(),
            kinds: arguments.iter().map(Expr::kind).collect(),
            texts: texts.clone(),
        })
    }
}

/// Rows of all groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Concat {
    groups: Vec<u32>,
    batches: Vec<Vec<Arc<Column>>>,
    /// The texts of the last batch, which may be those of the next one.
    strings: Vec<Option<Arc<Strings>>>,
}

impl Concat {
    /// Adds rows; says how many bytes they take.
    pub(crate) fn add(&mut self, groups: &[u32], columns: &[Arc<Column>]) -> usize {
        let columns: Vec<Arc<Column>> =
            columns.iter().map(|column| Arc::new(column.detached().into_owned())).collect();
        self.groups.extend_from_slice(groups);
        let of_texts = bytes_of_new_strings(&columns, &mut self.strings);
        let of_rows = columns.iter().map(|column| column.bytes()).sum::<usize>() + groups.len() * 4;
        self.batches.push(columns);
        of_rows + of_texts
    }

    pub(crate) fn merge(&mut self, other: Concat, groups: &[u32]) {
        self.groups.extend(other.groups.iter().map(|group| groups[*group as usize]));
        self.batches.extend(other.batches);
    }

    pub(crate) fn finish(
        self,
        how: &Shown,
        groups: usize,
        budget: &Budget,
        eval: Eval<'_>,
    ) -> Result<Column> {
        // Where rows are all in one, beside the batches that they come from, and in which order.
        budget.take(self.groups.len() * 12)?;
        let column = |(at, kind): (usize, &Kind)| {
            let parts: Vec<&Column> = self.batches.iter().map(|batch| &*batch[at]).collect();
            Arc::new(Column::concat(&parts, *kind))
        };
        let columns: Vec<Arc<Column>> = how.kinds.iter().enumerate().map(column).collect();
        let bytes = columns.iter().map(|column| column.bytes()).sum::<usize>();
        budget.take(bytes + bytes_of_new_strings(&columns, &mut Vec::new()))?;
        let of_groups: Vec<i64> = self.groups.iter().map(|group| i64::from(*group)).collect();
        let of_groups = Arc::new(Column { data: Data::Small(of_groups), nulls: None });
        let (shown, others) = columns.split_at(how.shown);
        let is_known = |row: &u32| shown.iter().all(|column| !column.is_null(*row as usize));
        let mut rows: Vec<u32> = (0..self.groups.len() as u32).filter(is_known).collect();
        if how.is_distinct {
            rows = different(how, &of_groups, shown, rows, budget)?;
        }
        let keys = others.iter().zip(&how.kinds[how.shown..]).zip(&how.descends);
        let keys: Vec<_> =
            keys.map(|((column, kind), descends)| (column.clone(), *kind, *descends)).collect();
        let sorter = Sorter::new(&keys, &how.texts, budget)?;
        let group = |row: u32| self.groups[row as usize];
        sort_rows(&mut rows, |a, b| group(a).cmp(&group(b)).then_with(|| sorter.compare(a, b)), eval)?;
        let mut all: Vec<Option<Vec<u8>>> = vec![None; groups];
        let (mut piece, mut before) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for (at, row) in rows.iter().enumerate() {
            if at % ROWS_AT_ONCE == 0 {
                eval.go_on()?;
                budget.take(std::mem::take(&mut bytes))?;
            }
            piece.clear();
            for (column, kind) in shown.iter().zip(&how.kinds) {
                put(column, *kind, *row as usize, &mut piece)?;
            }
            let last = at.checked_sub(1).map(|at| rows[at]).filter(|last| group(*last) == group(*row));
            if last.is_some_and(|last| sorter.compare(last, *row).is_eq()) && piece != before {
                return Err(Failure::GivenBack(Why::Undetermined));
            }
            // Twice: they are put one behind the other in the end.
            bytes += 2 * (piece.len() + how.separator.len());
            match &mut all[group(*row) as usize] {
                Some(text) => {
                    text.extend_from_slice(&how.separator);
                    text.extend_from_slice(&piece);
                }
                none => *none = Some(piece.clone()),
            }
            if all[group(*row) as usize].as_ref().is_some_and(|text| text.len() > how.bytes_max) {
                return Err(UNSUPPORTED);
            }
            std::mem::swap(&mut piece, &mut before);
        }
        budget.take(bytes)?;
        Ok(texts(&all))
    }
}

/// One row of those that are equal.
fn different(
    how: &Shown,
    of_groups: &Arc<Column>,
    shown: &[Arc<Column>],
    rows: Vec<u32>,
    budget: &Budget,
) -> Result<Vec<u32>> {
    let parts = how.kinds[..how.shown].iter().map(|kind| KeyPart::of(*kind, &how.texts.collations));
    let parts = std::iter::once(Some(KeyPart::Word)).chain(parts).collect::<Option<Vec<_>>>();
    let keys = Keys::of_groups(parts.ok_or(UNSUPPORTED)?);
    let columns: Vec<_> = std::iter::once(of_groups).chain(shown).cloned().collect();
    // Words, and where they are found.
    budget.take(of_groups.rows() * keys.words * 8 + rows.len() * 24)?;
    let words = keys.encode(&columns, of_groups.rows(), true, budget)?;
    if keys.is_ambiguous() {
        return Err(Failure::GivenBack(Why::Undetermined));
    }
    let mut seen = HashSet::new();
    let of_row = |row: u32| &words[row as usize * keys.words..(row as usize + 1) * keys.words];
    Ok(rows.into_iter().filter(|row| seen.insert(of_row(*row))).collect())
}

fn texts(all: &[Option<Vec<u8>>]) -> Column {
    let mut strings = Strings::new();
    all.iter().for_each(|text| strings.push(text.as_deref().unwrap_or_default()));
    if strings.is_empty() {
        strings.push(b"");
    }
    let nulls = all.iter().any(Option::is_none).then(|| all.iter().map(Option::is_none).collect());
    Column { data: Data::Text((0..all.len() as u32).collect(), Dict::Strings(Arc::new(strings))), nulls }
}

/// A value as the server writes it.
fn put(column: &Column, kind: Kind, row: usize, to: &mut Vec<u8>) -> Result<()> {
    match (&column.data, kind) {
        (Data::Text(codes, dict), Kind::Text(_)) => to.extend_from_slice(dict.get(codes[row])),
        (Data::Small(_) | Data::Large(_), Kind::Signed | Kind::Unsigned | Kind::Decimal(0)) => {
            to.extend_from_slice(column.number(row).to_string().as_bytes());
        }
        (Data::Small(_) | Data::Large(_), Kind::Decimal(scale)) => {
            let value = column.number(row);
            let unit = 10u128.pow(scale);
            let (whole, behind) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
            let sign = if value < 0 { "-" } else { "" };
            to.extend_from_slice(
                format!("{sign}{whole}.{behind:0width$}", width = scale as usize).as_bytes(),
            );
        }
        (Data::Small(values), Kind::Date) => {
            let date = values[row];
            let text = format!("{:04}-{:02}-{:02}", date >> 9, date >> 5 & 15, date & 31);
            to.extend_from_slice(text.as_bytes());
        }
        _ => return Err(UNSUPPORTED),
    }
    Ok(())
}
