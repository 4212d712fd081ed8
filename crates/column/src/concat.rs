//! Vectors of rows that follow each other, as one vector.

use std::collections::HashMap;
use std::sync::Arc;

use crate::vector::{Nulls, Strings, Values, Vector};

/// The form of a vector that has the rows of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Constant,
    Dictionary,
    Fixed(usize),
    Varying,
}

impl Vector {
    /// The rows of all these vectors, of which there are some, in this order.
    ///
    /// Dictionaries stay one if their entries are few in all. Panics beyond 4 GiB of texts.
    pub fn concat(parts: &[Arc<Vector>]) -> Vector {
        let rows = parts.iter().map(|part| part.rows()).sum();
        // What values a vector of NULLs has means nothing.
        let with_values: Vec<&Vector> =
            parts.iter().map(|part| &**part).filter(|part| !is_all_null(part)).collect();
        let Some(first) = with_values.first() else { return Vector::all_null(rows) };
        let values = match form_of(&with_values) {
            Form::Constant => first.values().clone(),
            Form::Dictionary => match dictionary(parts, rows) {
                Some(values) => values,
                None => plain(parts, rows, form_of_plain(&with_values)),
            },
            form => plain(parts, rows, form),
        };
        Vector::new(rows, nulls_of(parts, rows), values)
    }
}

fn is_all_null(vector: &Vector) -> bool {
    vector.nulls().is_some_and(|nulls| nulls.count() == vector.rows())
}

fn nulls_of(parts: &[Arc<Vector>], rows: usize) -> Option<Nulls> {
    if parts.iter().all(|part| part.nulls().is_none()) {
        return None;
    }
    let mut words = vec![0u64; rows.div_ceil(64)];
    let mut at = 0;
    for part in parts {
        if let Some(nulls) = part.nulls() {
            let (first, shift) = (at / 64, at % 64);
            for (number, word) in nulls.words().iter().enumerate() {
                words[first + number] |= word << shift;
                // Bits beyond the rows are zero, so there is a word for the others.
                if shift > 0 && word >> (64 - shift) != 0 {
                    words[first + number + 1] |= word >> (64 - shift);
                }
            }
        }
        at += part.rows();
    }
    Some(Nulls::from_words(words, rows))
}

/// Of vectors that have values; there are some.
fn form_of(parts: &[&Vector]) -> Form {
    let is_same = |part: &&Vector| match (part.values(), parts[0].values()) {
        (Values::Constant(a), Values::Constant(b)) => a == b,
        _ => false,
    };
    if parts.iter().all(is_same) {
        return Form::Constant;
    }
    let is_of_few = |part: &&Vector| matches!(part.values(), Values::Constant(_) | Values::Dictionary { .. });
    match parts.iter().all(is_of_few) {
        true => Form::Dictionary,
        false => form_of_plain(parts),
    }
}

fn form_of_plain(parts: &[&Vector]) -> Form {
    let width = |part: &&Vector| match part.values() {
        Values::Constant(value) => Some(value.len()),
        Values::Fixed { width, .. } => Some(*width),
        Values::Dictionary { entries, .. } => entries.of_one_width().map(|(width, _)| width),
        Values::Varying(_) => None,
    };
    match width(&parts[0]).filter(|width| *width > 0) {
        Some(first) if parts.iter().all(|part| width(part) == Some(first)) => Form::Fixed(first),
        _ => Form::Varying,
    }
}

/// Of constants and dictionaries. `None`: there are so many entries that it is of no use.
fn dictionary(parts: &[Arc<Vector>], rows: usize) -> Option<Values> {
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let (mut entries, mut codes) = (Strings::new(), Vec::with_capacity(rows));
    for part in parts {
        let mut number = |value| {
            *numbers.entry(value).or_insert_with(|| {
                entries.push(value);
                entries.len() as u32 - 1
            })
        };
        match part.values() {
            // That of any entry; the next one is there, as there are values.
            _ if is_all_null(part) => codes.resize(codes.len() + part.rows(), 0),
            Values::Dictionary { codes: of, entries: known } => {
                let new: Vec<u32> = (0..known.len()).map(|code| number(known.get(code))).collect();
                codes.extend(of.iter().map(|code| new[*code as usize]));
            }
            Values::Constant(value) => codes.resize(codes.len() + part.rows(), number(value)),
            Values::Fixed { .. } | Values::Varying(_) => return None,
        }
        if entries.len() * 2 > rows {
            return None;
        }
    }
    Some(Values::Dictionary { codes, entries })
}

fn plain(parts: &[Arc<Vector>], rows: usize, form: Form) -> Values {
    match form {
        Form::Fixed(width) => {
            let mut bytes = Vec::with_capacity(rows * width);
            parts.iter().for_each(|part| add_fixed(part, width, &mut bytes));
            Values::Fixed { width, bytes }
        }
        _ => {
            let total: usize = parts.iter().map(|part| bytes_of(part)).sum();
            let mut strings = Strings::with_capacity(rows, total);
            parts.iter().for_each(|part| add_varying(part, &mut strings));
            Values::Varying(strings)
        }
    }
}

fn add_fixed(part: &Vector, width: usize, bytes: &mut Vec<u8>) {
    match part.values() {
        _ if is_all_null(part) => bytes.resize(bytes.len() + part.rows() * width, 0),
        Values::Fixed { bytes: of, .. } => bytes.extend_from_slice(of),
        Values::Constant(value) => (0..part.rows()).for_each(|_| bytes.extend_from_slice(value)),
        Values::Dictionary { codes, entries } => {
            codes.iter().for_each(|code| bytes.extend_from_slice(entries.get(*code as usize)));
        }
        Values::Varying(_) => unreachable!("values of different lengths have no width"),
    }
}

fn add_varying(part: &Vector, strings: &mut Strings) {
    match part.values() {
        Values::Varying(of) if !is_all_null(part) => strings.extend(of),
        _ => (0..part.rows()).for_each(|row| strings.push(part.get(row).unwrap_or_default())),
    }
}

/// As [`add_varying`] adds them, or more.
fn bytes_of(part: &Vector) -> usize {
    match part.values() {
        _ if is_all_null(part) => 0,
        Values::Varying(strings) => strings.total_bytes(),
        _ => (0..part.rows()).map(|row| part.get(row).map_or(0, <[u8]>::len)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(of: &[&[u8]]) -> Strings {
        let mut strings = Strings::new();
        of.iter().for_each(|value| strings.push(value));
        strings
    }

    fn nulls(of: &[bool]) -> Option<Nulls> {
        let mut nulls = Nulls::new();
        of.iter().for_each(|null| nulls.push(*null));
        Some(nulls)
    }

    /// A vector of values that are the numbers' text, in one of the forms; every `null_each`th is NULL.
    fn vector(rows: usize, form: u8, width: usize, few: usize, null_each: usize) -> Arc<Vector> {
        let text = |number: usize| -> Vec<u8> {
            let all = format!("{:08}", number % few);
            all.as_bytes()[8 - width..].to_vec()
        };
        let is_null: Vec<bool> = (0..rows).map(|row| null_each > 0 && row % null_each == 0).collect();
        let values = match form {
            0 => Values::Constant(text(few / 2)),
            1 if width > 0 => Values::Fixed { width, bytes: (0..rows).flat_map(text).collect() },
            2 => {
                let mut entries = Strings::new();
                (0..few).for_each(|number| entries.push(&text(number)));
                Values::Dictionary { codes: (0..rows).map(|row| (row * 7 % few) as u32).collect(), entries }
            }
            _ => {
                let mut strings = Strings::new();
                for (row, is_null) in is_null.iter().enumerate() {
                    let value = text(row);
                    strings.push(if *is_null { b"" } else { &value[row % 2 * width / 2..] });
                }
                Values::Varying(strings)
            }
        };
        Arc::new(Vector::new(rows, nulls(&is_null), values))
    }

    proptest! {
        #[test]
        fn the_rows_are_those_of_the_parts(
            parts in prop::collection::vec((1usize..150, 0u8..4, 0usize..8, 1usize..40, 0usize..4), 1..8),
            one_width in prop::option::of(1usize..8),
        ) {
            let parts: Vec<Arc<Vector>> = parts
                .into_iter()
                .map(|(rows, form, width, few, null_each)| vector(rows, form, one_width.unwrap_or(width), few, null_each))
                .collect();
            let all = Vector::concat(&parts);
            let got: Vec<_> = (0..all.rows()).map(|row| all.get(row)).collect();
            let expected: Vec<_> = parts.iter().flat_map(|part| (0..part.rows()).map(|row| part.get(row))).collect();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn the_form_is_that_of_few_values_if_all_have_few() {
        let dictionary = |entries: &[&[u8]], codes: &[u32]| {
            let values = Values::Dictionary { codes: codes.to_vec(), entries: strings(entries) };
            Arc::new(Vector::new(codes.len(), None, values))
        };
        let constant = |value: &[u8]| Arc::new(Vector::new(5, None, Values::Constant(value.to_vec())));
        let nothing = Arc::new(Vector::all_null(3));

        let all = Vector::concat(&[nothing.clone(), constant(b"ab"), constant(b"ab")]);
        assert_eq!(*all.values(), Values::Constant(b"ab".to_vec()));
        assert_eq!((all.rows(), all.nulls().map(Nulls::count)), (13, Some(3)));

        let all = Vector::concat(&[
            nothing.clone(),
            dictionary(&[b"ab", b"c"], &[0, 1, 1, 0]),
            dictionary(&[b"c", b"d"], &[0, 1, 1]),
            constant(b"ab"),
        ]);
        let codes = [0, 0, 0, 0, 1, 1, 0, 1, 2, 2, 0, 0, 0, 0, 0];
        let entries = strings(&[b"ab", b"c", b"d"]);
        assert_eq!(*all.values(), Values::Dictionary { codes: codes.to_vec(), entries });

        // Many entries are no dictionary.
        let all = Vector::concat(&[dictionary(&[b"a", b"b"], &[1, 0]), nothing.clone()]);
        assert_eq!(
            *all.values(),
            Values::Dictionary { codes: vec![1, 0, 0, 0, 0], entries: strings(&[b"a", b"b"]) }
        );
        let all = Vector::concat(&[dictionary(&[b"a", b"b"], &[1, 0]), constant(b"c")]);
        assert!(matches!(all.values(), Values::Dictionary { .. }));
        let all = Vector::concat(&[dictionary(&[b"a", b"b"], &[1, 0]), dictionary(&[b"c"], &[0])]);
        assert_eq!(*all.values(), Values::Fixed { width: 1, bytes: b"bac".to_vec() });

        assert_eq!(Vector::concat(&[nothing.clone(), nothing]), Vector::all_null(6));
    }
}
