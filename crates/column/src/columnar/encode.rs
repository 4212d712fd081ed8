//! Columns of values to streams: which encoding each column gets.
//!
//! 1. Number the distinct values of each column, where they repeat.
//! 2. From the column with most distinct values to the one with fewest: see whether the numbers of an
//!    earlier one say its numbers (an airport's code says its city). Then rows cost nothing, and its dictionary gets the order
//!    of that one's.
//! 3. Else compare what the numbers and their dictionary, in the order of the values, take with the plain values.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use super::codes::{DICTIONARY, FROM_KEYS, FROM_NOWHERE, MAPPED, NULLS, PLAIN};
use super::dictionary::{code, Coded, Dependencies, CODES_MAX};
use super::shape::{Cells, Physical, Shape, Span, Taken};
use super::streams::Writer;
use super::{ints, strings};

/// Numbers that are written already, and may say those of other columns.
struct Known<'a> {
    /// As the format names it: [`FROM_KEYS`], or the column's place in what is written, from 1.
    name: usize,
    codes: Cow<'a, [u16]>,
    distinct: usize,
}

/// Writes the columns of `rows` values. `heads`: the number of the head of each value's key, and of heads.
pub(crate) fn put_columns(
    to: &mut Writer<'_>,
    shape: &Shape,
    columns: &[Taken],
    rows: usize,
    bytes: &[u8],
    heads: Option<(&[u16], usize)>,
) {
    let most = (rows - rows / 4).clamp(1, CODES_MAX);
    let coded = columns.iter().map(|column| if column.all_null { None } else { code(column, bytes, most) });
    let mut coded: Vec<Option<Coded>> = coded.collect();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    let distinct = |at: &usize| coded.get(*at).and_then(|c| c.as_ref()).map_or(usize::MAX, Coded::distinct);
    order.sort_by_key(|at| (std::cmp::Reverse(distinct(at)), *at));

    let mut known: Vec<Known<'_>> = Vec::new();
    known.extend(heads.map(|(codes, distinct)| Known { name: FROM_KEYS, codes: codes.into(), distinct }));
    let mut dependencies = Dependencies::default();
    for (place, at) in (1..).zip(order) {
        let (Some(column), Some(form)) = (columns.get(at), shape.forms().get(at)) else { continue };
        to.varint(at as u64);
        if column.all_null {
            to.head.push(NULLS);
            continue;
        }
        let Some(coded) = coded.get_mut(at).and_then(Option::take) else {
            put_plain(to, column, form.physical, bytes);
            continue;
        };
        let mut writer = ColumnWriter { to, column, physical: form.physical, bytes, coded };
        if writer.put(&mut dependencies, &known) {
            let Coded { codes, rows, .. } = writer.coded;
            known.push(Known { name: place, codes: codes.into(), distinct: rows.len() });
        }
    }
}

struct ColumnWriter<'a, 'b> {
    to: &'a mut Writer<'b>,
    column: &'a Taken,
    physical: Physical,
    bytes: &'a [u8],
    coded: Coded,
}

impl ColumnWriter<'_, '_> {
    /// Says whether other columns may follow from this one's numbers.
    fn put(&mut self, dependencies: &mut Dependencies, known: &[Known<'_>]) -> bool {
        let distinct = self.coded.distinct();
        if distinct == 1 {
            self.put_mapped(FROM_NOWHERE, &[]);
            return true;
        }
        if self.coded.bits > 64.0 {
            // The one with the fewest numbers has the smallest map.
            for other in known.iter().rev() {
                let map_bits = other.distinct as f32 * (distinct as f32).log2();
                if other.distinct < distinct || map_bits > self.coded.bits * 0.8 {
                    continue;
                }
                if let Some(mut map) = dependencies.map(&other.codes, other.distinct, &self.coded.codes) {
                    self.coded.sort_by(&mut map);
                    self.put_mapped(other.name, &map);
                    return true;
                }
            }
        }
        self.coded.sort(self.column, self.bytes);
        let (mark, common) = (self.to.mark(), self.to.common.len());
        self.put_mapped(FROM_NOWHERE, &[]);
        let took = self.to.since(mark);
        if self.is_doubtful(took) {
            self.to.back_to(mark);
            self.to.common.truncate(common);
            put_plain(self.to, self.column, self.physical, self.bytes);
            if self.to.since(mark) < took {
                return false;
            }
            self.to.back_to(mark);
            self.put_mapped(FROM_NOWHERE, &[]);
        }
        true
    }

    /// Whether the values themselves may take less than the dictionary and its numbers, which took so much. Of few
    /// values a dictionary is what readers like best.
    fn is_doubtful(&self, took: usize) -> bool {
        let (rows, distinct) = (self.coded.codes.len(), self.coded.distinct());
        let plain_bytes = match &self.column.cells {
            Cells::Integers(values) => {
                let bounds = |(least, most): (u64, u64), value: &u64| (least.min(*value), most.max(*value));
                let (least, most) = values.iter().fold((u64::MAX, 0), bounds);
                rows * (u64::BITS - (most - least).leading_zeros()) as usize / 8
            }
            Cells::Spans(spans) => spans.iter().map(|span| span.len as usize).sum::<usize>() / 2,
        };
        distinct > 64 && took * 4 > plain_bytes * 3
    }

    /// A dictionary and the numbers, or what they follow from.
    fn put_mapped(&mut self, from: usize, map: &[u64]) {
        let entries = self.coded.rows.iter().flatten();
        let has_null = self.coded.rows.first().is_some_and(Option::is_none);
        self.to.head.push(if from == FROM_NOWHERE { DICTIONARY } else { MAPPED });
        self.to.varint(self.coded.distinct() as u64);
        self.to.head.push(u8::from(has_null));
        self.to.is_common = true;
        match &self.column.cells {
            Cells::Integers(values) => {
                let entries: Vec<u64> =
                    entries.filter_map(|row| values.get(*row as usize).copied()).collect();
                ints::put(self.to, &entries);
            }
            Cells::Spans(spans) => {
                let entries: Vec<Span> =
                    entries.filter_map(|row| spans.get(*row as usize).copied()).collect();
                put_strings(self.to, &entries, self.physical, self.bytes);
            }
        }
        self.to.is_common = false;
        if from == FROM_NOWHERE {
            if self.coded.distinct() == 1 {
                return ints::put_constant(self.to, 0);
            }
            let codes: Vec<u64> = self.coded.codes.iter().map(|code| u64::from(*code)).collect();
            ints::put(self.to, &codes);
        } else {
            self.to.varint(from as u64);
            ints::put(self.to, map);
        }
    }
}

/// Values as they are, without those that are NULL.
fn put_plain(to: &mut Writer<'_>, column: &Taken, physical: Physical, bytes: &[u8]) {
    to.head.push(PLAIN);
    to.head.push(u8::from(column.has_null));
    let is_there = |row: usize| !column.nulls.get(row).copied().unwrap_or(false);
    if column.has_null {
        let nulls: Vec<u64> = column.nulls.iter().map(|null| u64::from(*null)).collect();
        ints::put(to, &nulls);
    }
    match &column.cells {
        Cells::Integers(values) if !column.has_null => ints::put(to, values),
        Cells::Integers(values) => {
            let rows = values.iter().enumerate().filter(|(row, _)| is_there(*row));
            ints::put(to, &rows.map(|(_, value)| *value).collect::<Vec<_>>());
        }
        Cells::Spans(spans) => {
            let rows = spans.iter().enumerate().filter(|(row, _)| is_there(*row));
            let spans: Vec<Span> = rows.map(|(_, span)| *span).collect();
            put_strings(to, &spans, physical, bytes);
        }
    }
}

fn put_strings(to: &mut Writer<'_>, spans: &[Span], physical: Physical, bytes: &[u8]) {
    let lengths: Vec<u64> = spans.iter().map(|span| u64::from(span.len)).collect();
    if physical.size().is_none() {
        ints::put(to, &lengths);
    }
    let mut text = Vec::with_capacity(spans.iter().map(|span| span.len as usize).sum());
    for span in spans {
        text.extend_from_slice(
            bytes.get(span.start as usize..).unwrap_or_default().get(..span.len as usize).unwrap_or_default(),
        );
    }
    strings::put(to, &text, &lengths);
}
