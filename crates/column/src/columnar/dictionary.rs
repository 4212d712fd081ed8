//! Numbers for the distinct values of a column: first in the order in which they come, then in that of the values, or of
//! another column's numbers.
#![deny(clippy::indexing_slicing)]

use super::shape::{little_endian, Cells, Span, Taken};
use crate::compression::bits_of;

/// The most distinct values that are numbered.
pub(crate) const CODES_MAX: usize = 1 << 15;

/// A column as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Coded {
    /// One per row.
    pub(crate) codes: Vec<u16>,
    /// A row that has the value, for each number; `None` for NULL, which is number 0 if there are NULLs.
    pub(crate) rows: Vec<Option<u32>>,
    /// Bits that an entropy coder needs for all codes.
    pub(crate) bits: f32,
}

impl Coded {
    pub(crate) fn distinct(&self) -> usize {
        self.rows.len()
    }

    /// Puts the numbers into the order of the values, so that neighbouring segments have the same stretches. NULL stays first.
    pub(crate) fn sort(&mut self, column: &Taken, bytes: &[u8]) {
        let mut order: Vec<u16> = (0..self.rows.len() as u16).collect();
        let row =
            |number: &u16| self.rows.get(usize::from(*number)).copied().flatten().map(|row| row as usize);
        match &column.cells {
            Cells::Integers(values) => {
                order.sort_by_key(|number| row(number).map(|row| values.get(row).copied()));
            }
            Cells::Spans(spans) => {
                let of = |span: &Span| bytes.get(span.start as usize..(span.start + span.len) as usize);
                order.sort_by_key(|number| row(number).map(|row| spans.get(row).and_then(of)));
            }
        }
        self.renumber(&order);
    }

    /// Puts the numbers into the order in which `map`, from the numbers of the column that this one follows from,
    /// names them; changes `map` accordingly. NULL stays first.
    pub(crate) fn sort_by(&mut self, map: &mut [u64]) {
        let mut new_of: Vec<Option<u16>> = vec![None; self.rows.len()];
        let mut order = Vec::with_capacity(self.rows.len());
        let has_null = self.rows.first().is_some_and(Option::is_none);
        let null = has_null.then_some(0);
        for number in null.into_iter().chain(map.iter().copied()) {
            if let Some(new @ None) = new_of.get_mut(number as usize) {
                *new = Some(order.len() as u16);
                order.push(number as u16);
            }
        }
        // None is left: each number is some row's, and the map says those of all rows.
        debug_assert_eq!(order.len(), self.rows.len());
        for number in map {
            *number = new_of.get(*number as usize).copied().flatten().map_or(0, u64::from);
        }
        self.renumber(&order);
    }

    /// `order` has the present number of each new one.
    fn renumber(&mut self, order: &[u16]) {
        let mut new_of = vec![0u16; order.len()];
        for (new, old) in (0..).zip(order) {
            if let Some(of) = new_of.get_mut(usize::from(*old)) {
                *of = new;
            }
        }
        self.rows = order.iter().filter_map(|old| self.rows.get(usize::from(*old)).copied()).collect();
        for code in &mut self.codes {
            *code = new_of.get(usize::from(*code)).copied().unwrap_or(*code);
        }
    }

    fn finish(mut self) -> Coded {
        if self.rows.len() == 1 {
            return self;
        }
        let mut counts = vec![0u32; self.rows.len()];
        for code in &self.codes {
            if let Some(count) = counts.get_mut(usize::from(*code)) {
                *count += 1;
            }
        }
        self.bits = bits_of(counts.into_iter(), self.codes.len());
        self
    }
}

/// Numbers the values of a column; `None` if more than `most` are distinct.
pub(crate) fn code(column: &Taken, bytes: &[u8], most: usize) -> Option<Coded> {
    let nulls = &column.nulls;
    match &column.cells {
        Cells::Integers(values) => {
            let bounds = |(least, most): (u64, u64), value: &u64| (least.min(*value), most.max(*value));
            let none = (u64::MAX, 0);
            // What stands for NULL does not count.
            let (least, most_of_all) = match nulls.is_empty() {
                true => values.iter().fold(none, bounds),
                false => {
                    values.iter().zip(nulls).filter(|(_, null)| !**null).map(|(v, _)| v).fold(none, bounds)
                }
            };
            let span = most_of_all.checked_sub(least)?;
            if span < 4 * values.len() as u64 + 1024 {
                let slots = Slots::Direct(vec![0; span as usize + 1]);
                return code_by(values, nulls, most, slots, |value| value - least, |a, b| a == b);
            }
            let slots = Slots::hashed(values.len(), most);
            code_by(values, nulls, most, slots, |value| mix(*value), |a, b| a == b)
        }
        Cells::Spans(spans) => {
            let of = |span: &Span| bytes.get(span.start as usize..(span.start + span.len) as usize);
            let slots = Slots::hashed(spans.len(), most);
            code_by(
                spans,
                nulls,
                most,
                slots,
                |span| hash(of(span).unwrap_or_default()),
                // Nothing is not compared, see `Taker::walk`.
                |a, b| a.len == b.len && (a.len == 0 || of(a) == of(b)),
            )
        }
    }
}

/// From values to numbers + 1; 0 is free.
enum Slots {
    /// By the value itself.
    Direct(Vec<u16>),
    /// By its hash, linear probing, at most half full.
    Hashed(Vec<u16>),
}

impl Slots {
    fn hashed(rows: usize, most: usize) -> Slots {
        Slots::Hashed(vec![0; (2 * (rows.min(most) + 2)).next_power_of_two()])
    }
}

fn code_by<T>(
    values: &[T],
    nulls: &[bool],
    most: usize,
    mut slots: Slots,
    place: impl Fn(&T) -> u64,
    same: impl Fn(&T, &T) -> bool,
) -> Option<Coded> {
    let mut coded = Coded { codes: Vec::with_capacity(values.len()), rows: Vec::new(), bits: 0.0 };
    if !nulls.is_empty() {
        coded.rows.push(None);
    }
    let mut last: Option<(&T, u16)> = None;
    for (row, value) in values.iter().enumerate() {
        if nulls.get(row).copied().unwrap_or(false) {
            coded.codes.push(0);
            continue;
        }
        // Values often stay as they are.
        if let Some((_, code)) = last.filter(|(last, _)| same(last, value)) {
            coded.codes.push(code);
            continue;
        }
        let key = place(value);
        let slot = match &mut slots {
            Slots::Direct(slots) => slots.get_mut(key as usize)?,
            Slots::Hashed(slots) => {
                let mask = slots.len() - 1;
                let mut at = key as usize & mask;
                loop {
                    let taken = usize::from(*slots.get(at)?);
                    let known = taken.checked_sub(1).and_then(|code| *coded.rows.get(code)?);
                    match known.and_then(|row| values.get(row as usize)) {
                        Some(other) if !same(other, value) => at = (at + 1) & mask,
                        _ => break,
                    }
                }
                slots.get_mut(at)?
            }
        };
        if *slot == 0 {
            if coded.rows.len() >= most {
                return None;
            }
            coded.rows.push(Some(row as u32));
            *slot = coded.rows.len() as u16;
        }
        coded.codes.push(*slot - 1);
        last = Some((value, *slot - 1));
    }
    Some(coded.finish())
}

fn mix(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n ^ n >> 32
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        hash = mix(hash.rotate_left(23) ^ little_endian(chunk));
    }
    hash
}

/// Whether one column's numbers say another's.
#[derive(Default)]
pub(crate) struct Dependencies {
    /// By number: mark in the high half, the other number in the low one.
    seen: Vec<u64>,
    mark: u64,
}

impl Dependencies {
    /// The number in `to` for each of the `distinct` numbers in `from`, if there is one.
    pub(crate) fn map(&mut self, from: &[u16], distinct: usize, to: &[u16]) -> Option<Vec<u64>> {
        self.seen.resize(self.seen.len().max(distinct), 0);
        self.mark += 1;
        for (a, b) in from.iter().zip(to) {
            let seen = self.seen.get_mut(usize::from(*a))?;
            if *seen >> 32 != self.mark {
                *seen = self.mark << 32 | u64::from(*b);
            } else if *seen as u32 != u32::from(*b) {
                return None;
            }
        }
        let map = self.seen.iter().take(distinct);
        Some(map.map(|seen| if *seen >> 32 == self.mark { *seen & 0xffff_ffff } else { 0 }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(cells: Cells, nulls: Vec<bool>) -> Taken {
        Taken { cells, has_null: !nulls.is_empty(), nulls, all_null: false }
    }

    #[test]
    fn numbers_follow_first_appearance_and_null_is_zero() {
        let near = code(&taken(Cells::Integers(vec![9, 5, 9, 7]), vec![]), b"", 100).unwrap();
        assert_eq!((near.codes, near.rows), (vec![0, 1, 0, 2], vec![Some(0), Some(1), Some(3)]));
        let nulls = vec![false, true, false, false];
        let far = code(&taken(Cells::Integers(vec![1 << 60, 0, 3, 1 << 60]), nulls), b"", 100).unwrap();
        assert_eq!((far.codes, far.rows), (vec![1, 0, 2, 1], vec![None, Some(0), Some(2)]));
        let span = |start, len| Span { start, len };
        let text = Cells::Spans(vec![span(0, 2), span(2, 2), span(0, 1), span(4, 2)]);
        assert_eq!(code(&taken(text, vec![]), b"abcdab", 100).unwrap().codes, [0, 1, 2, 0]);
    }

    #[test]
    fn too_many_distinct_values_are_not_numbered() {
        let column = taken(Cells::Integers((0..100).map(|n| n << 40).collect()), vec![]);
        assert!(code(&column, b"", 99).is_none());
        assert_eq!(code(&column, b"", 100).unwrap().distinct(), 100);
    }

    #[test]
    fn a_dependency_is_found_only_where_it_is() {
        let mut dependencies = Dependencies::default();
        let a = [0, 1, 2, 1, 0];
        assert_eq!(dependencies.map(&a, 3, &[0, 1, 0, 1, 0]), Some(vec![0, 1, 0]));
        assert_eq!(dependencies.map(&a, 3, &[0, 1, 0, 1, 1]), None);
        assert_eq!(dependencies.map(&[0, 0], 1, &[0, 0]), Some(vec![0]));
    }
}
