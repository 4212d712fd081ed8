//! Columns back to the bytes of values, as they were: first the length of every value, then column after
//! column into all of them.
#![deny(clippy::indexing_slicing)]

use super::decode::{Column, Values};
use super::shape::{Form, Physical, Shape, Span};
use crate::wire::put_varint;

/// Columns of some of a segment's records.
pub(crate) struct Group {
    pub(crate) shape: Shape,
    /// The records, ascending.
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<Column>,
}

impl Group {
    /// Adds the length of each value to that record's place in `lengths`.
    pub(crate) fn add_lengths(&self, lengths: &mut [u64]) {
        let mut all = (self.shape.prefix().len() + self.shape.null_bytes()) as u64;
        for (form, column) in self.shape.forms().iter().zip(&self.columns) {
            match (form.physical.size(), column) {
                (_, Column::Nulls) => {}
                (Some(size), Column::Plain { nulls, .. }) if nulls.is_empty() => all += size as u64,
                (Some(size), Column::Coded { has_null: false, .. }) => all += size as u64,
                _ => self.add_each(*form, column, lengths),
            }
        }
        for row in &self.rows {
            if let Some(length) = lengths.get_mut(*row as usize) {
                *length += all;
            }
        }
    }

    fn add_each(&self, form: Form, column: &Column, lengths: &mut [u64]) {
        let of = |values: &Values, at: usize| match (form.physical, values) {
            (physical, Values::Integers(_)) => physical.size().unwrap_or(8) as u64,
            (Physical::Counted, Values::Strings { spans, .. }) => {
                spans.get(at).map_or(0, |span| u64::from(span.len) + varint_bytes(span.len))
            }
            (_, Values::Strings { spans, .. }) => spans.get(at).map_or(0, |span| u64::from(span.len)),
        };
        let mut add = |row: &u32, bytes: u64| {
            if let Some(length) = lengths.get_mut(*row as usize) {
                *length += bytes;
            }
        };
        match column {
            Column::Nulls => {}
            Column::Plain { values, nulls } => {
                let mut at = 0;
                for (i, row) in self.rows.iter().enumerate() {
                    if nulls.get(i).copied().unwrap_or(false) {
                        continue;
                    }
                    add(row, of(values, at));
                    at += 1;
                }
            }
            Column::Coded { codes, values, has_null } => {
                let skipped = usize::from(*has_null);
                let mut table = vec![0; skipped];
                table.extend((0..values.len()).map(|at| of(values, at)));
                for (row, code) in self.rows.iter().zip(codes) {
                    add(row, table.get(usize::from(*code)).copied().unwrap_or(0));
                }
            }
        }
    }

    /// Writes the values to where `starts` says, one entry per record of the segment.
    pub(crate) fn write(&self, starts: &[u32], out: &mut [u8]) {
        let start = |row: &u32| starts.get(*row as usize).copied().unwrap_or(0);
        let begins: Vec<u32> = self.rows.iter().map(start).collect();
        let prefix = self.shape.prefix();
        let mut writer = Writer { out, cursors: begins.clone() };
        for i in 0..begins.len() {
            writer.put(i, &prefix);
        }
        let null_at = prefix.len() as u32;
        let after = self.shape.null_bytes() as u32;
        writer.cursors.iter_mut().for_each(|cursor| *cursor += after);
        let mut nullable = 0;
        for (form, column) in self.shape.forms().iter().zip(&self.columns) {
            writer.column(form.physical, column);
            if form.nullable {
                let (byte, bit) = (null_at + nullable / 8, 1u8 << (nullable % 8));
                nullable += 1;
                writer.mark_nulls(column, &begins, byte, bit);
            }
        }
    }
}

fn varint_bytes(n: u32) -> u64 {
    u64::from((38 - (n | 1).leading_zeros()) / 7)
}

struct Writer<'a> {
    out: &'a mut [u8],
    /// Where the next byte of each value goes.
    cursors: Vec<u32>,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, i: usize, bytes: &[u8]) {
        let Some(cursor) = self.cursors.get_mut(i) else { return };
        let at = *cursor as usize;
        if let Some(place) = self.out.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        *cursor += bytes.len() as u32;
    }

    fn column(&mut self, physical: Physical, column: &Column) {
        match column {
            Column::Nulls => {}
            Column::Plain { values: Values::Integers(values), nulls } => {
                let mut values = values.iter();
                self.integers(physical, |i| match nulls.get(i) {
                    Some(true) => None,
                    _ => values.next().copied(),
                });
            }
            Column::Coded { codes, values: Values::Integers(values), has_null } => {
                let skipped = usize::from(*has_null);
                self.integers(physical, |i| {
                    values.get(usize::from(*codes.get(i)?).checked_sub(skipped)?).copied()
                });
            }
            Column::Plain { values: Values::Strings { spans, text }, nulls } => {
                let mut spans = spans.iter();
                for i in 0..self.cursors.len() {
                    if nulls.get(i).copied().unwrap_or(false) {
                        continue;
                    }
                    if let Some(span) = spans.next() {
                        self.string(i, physical, text_of(text, *span));
                    }
                }
            }
            Column::Coded { codes, values: Values::Strings { spans, text }, has_null } => {
                let skipped = usize::from(*has_null);
                let (mut bytes, mut ends) =
                    (Vec::with_capacity(text.len() + spans.len() * 2), vec![0; skipped + 1]);
                for span in spans {
                    if physical == Physical::Counted {
                        put_varint(&mut bytes, u64::from(span.len));
                    }
                    bytes.extend_from_slice(text_of(text, *span));
                    ends.push(bytes.len());
                }
                for (i, code) in codes.iter().enumerate() {
                    let code = usize::from(*code);
                    if let (Some(start), Some(end)) = (ends.get(code), ends.get(code + 1)) {
                        self.put(i, bytes.get(*start..*end).unwrap_or_default());
                    }
                }
            }
        }
    }

    #[inline]
    fn string(&mut self, i: usize, physical: Physical, bytes: &[u8]) {
        if physical == Physical::Counted {
            let mut count = [0; 5];
            let mut used = 0;
            let mut n = bytes.len();
            for byte in &mut count {
                used += 1;
                *byte = n as u8 | 0x80;
                n >>= 7;
                if n == 0 {
                    *byte &= 0x7f;
                    break;
                }
            }
            self.put(i, count.get(..used).unwrap_or_default());
        }
        self.put(i, bytes);
    }

    /// Writes integers, `None` where there is none; a loop for each size, so that copies are of known length.
    fn integers(&mut self, physical: Physical, value: impl FnMut(usize) -> Option<u64>) {
        match physical.size() {
            Some(1) => self.integers_of::<1>(physical, value),
            Some(2) => self.integers_of::<2>(physical, value),
            Some(3) => self.integers_of::<3>(physical, value),
            Some(4) => self.integers_of::<4>(physical, value),
            Some(5) => self.integers_of::<5>(physical, value),
            Some(6) => self.integers_of::<6>(physical, value),
            Some(7) => self.integers_of::<7>(physical, value),
            _ => self.integers_of::<8>(physical, value),
        }
    }

    fn integers_of<const SIZE: usize>(
        &mut self,
        physical: Physical,
        mut value: impl FnMut(usize) -> Option<u64>,
    ) {
        for (i, cursor) in self.cursors.iter_mut().enumerate() {
            let Some(value) = value(i) else { continue };
            let at = *cursor as usize;
            let bytes = physical.bytes_of(value);
            if let (Some(place), Some(bytes)) = (self.out.get_mut(at..at + SIZE), bytes.first_chunk::<SIZE>())
            {
                place.copy_from_slice(bytes);
            }
            *cursor += SIZE as u32;
        }
    }

    fn mark_nulls(&mut self, column: &Column, begins: &[u32], byte: u32, bit: u8) {
        let mut mark = |begin: &u32| {
            if let Some(place) = self.out.get_mut((begin + byte) as usize) {
                *place |= bit;
            }
        };
        match column {
            Column::Nulls => begins.iter().for_each(mark),
            Column::Plain { nulls, .. } => {
                begins.iter().zip(nulls).filter(|(_, null)| **null).for_each(|(begin, _)| mark(begin));
            }
            Column::Coded { codes, has_null: true, .. } => {
                begins.iter().zip(codes).filter(|(_, code)| **code == 0).for_each(|(begin, _)| mark(begin));
            }
            Column::Coded { .. } => {}
        }
    }
}

fn text_of(text: &[u8], span: Span) -> &[u8] {
    text.get(span.start as usize..).and_then(|rest| rest.get(..span.len as usize)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_varints_are_those_written() {
        for n in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 21, 1 << 28, u32::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, u64::from(n));
            assert_eq!(varint_bytes(n), out.len() as u64, "{n}");
        }
    }
}
