//! The same values in every form that storage may give them in have to make the same groups.

use std::sync::Arc;

use pando_column::vector::{Nulls, Strings, Values, Vector};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::aggregate::{Aggregate, Cell};
use crate::column::{Collation, Column, Form, Place};
use crate::filter::{Comparison, Constant, Filter};
use crate::frame::{Frame, Slots};
use crate::groups::{Groups, Shape};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stored {
    Fixed,
    Varying,
    Dictionary,
    /// Codes among many more entries than rows.
    Sparse,
}

fn vector(values: &[Option<Vec<u8>>], stored: Stored, width: usize) -> Arc<Vector> {
    let mut nulls = Nulls::new();
    let mut strings = Strings::new();
    for value in values {
        nulls.push(value.is_none());
        match value {
            Some(value) => strings.push(value),
            None if stored == Stored::Fixed => strings.push(&vec![0; width]),
            None => strings.push(b""),
        }
    }
    let rows = values.len();
    let values = match stored {
        Stored::Fixed => {
            Values::Fixed { width, bytes: (0..rows).flat_map(|row| strings.get(row).to_vec()).collect() }
        }
        Stored::Varying => Values::Varying(strings),
        Stored::Dictionary | Stored::Sparse => {
            let mut entries = Strings::new();
            let unused = if stored == Stored::Sparse { 5 * rows } else { 0 };
            let mut codes = Vec::new();
            let other = values.iter().flatten().next().cloned().unwrap_or(vec![0; width]);
            (0..unused).for_each(|_| entries.push(&other));
            for value in values {
                let value = value.as_ref().unwrap_or(&other);
                let found = (unused..entries.len()).find(|entry| entries.get(*entry) == value);
                codes.push(found.unwrap_or(entries.len()) as u32);
                if found.is_none() {
                    entries.push(value);
                }
            }
            Values::Dictionary { codes, entries }
        }
    };
    Arc::new(Vector::new(rows, Some(nulls), values))
}

fn columns() -> Vec<Column> {
    let collation = Collation(Arc::new(|a: &[u8], b: &[u8]| a.cmp(b)));
    let stored = |form| Column { table: 0, place: Place::Stored(0), form };
    vec![stored(Form::Signed), stored(Form::Unsigned), stored(Form::Text(collation))]
}

fn answer(blocks: &[Vec<Arc<Vector>>], filter: &Filter, groups: &[usize]) -> Vec<String> {
    use Aggregate::*;
    let columns = columns();
    let aggregates =
        [Rows, Count(0), Sum(0), Sum(1), Min(0), Max(1), Min(2), Distinct(0), Distinct(2), Max(2)];
    let slots = Slots { columns: &columns, expressions: &[] };
    let filter = filter.prepare(&slots, false).unwrap();
    let shape = Shape { slots, groups, aggregates: &aggregates };
    // As if each block came to another thread.
    let mut all = Groups::new(&shape);
    for vectors in blocks {
        let mut of_block = Groups::new(&shape);
        let mut frame = Frame::of_block(&shape.slots, vectors[0].rows(), &[0, 1, 2], vectors);
        let selected = filter.select(&shape.slots, &mut frame).unwrap();
        (0..3).for_each(|slot| frame.ensure(&shape.slots, slot).unwrap());
        match selected {
            None => of_block.add(&shape, &frame).unwrap(),
            Some(rows) => of_block.add(&shape, &frame.picked(&shape.slots, &[0, 1, 2], &rows)).unwrap(),
        }
        all.merge(&shape, of_block).unwrap();
    }
    let mut rows: Vec<String> = all.rows(&shape).iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

fn filters() -> Vec<Filter> {
    let number = |value| Constant::Number { value, scale: 0 };
    let Form::Text(order) = columns().remove(2).form else { unreachable!() };
    let text = |text: &str| Constant::Text(text.as_bytes().to_vec(), order.clone());
    let many = (0..20).map(|value| number(value * 3)).collect();
    vec![
        Filter::Always(Some(true)),
        Filter::Compare(0, Comparison::GreaterOrEqual, number(0)),
        Filter::Not(Box::new(Filter::Compare(1, Comparison::Less, number(1 << 62)))),
        Filter::Compare(0, Comparison::Less, number(1 << 100)),
        Filter::In(0, vec![number(1), number(-2), Constant::Null]),
        Filter::Not(Box::new(Filter::In(0, many))),
        Filter::Or(vec![Filter::IsNull(2), Filter::Compare(2, Comparison::Equal, text("b"))]),
        Filter::Not(Box::new(Filter::And(vec![
            Filter::In(2, vec![text("a"), text("dd")]),
            Filter::CompareColumns(0, Comparison::Less, 1),
        ]))),
        Filter::Not(Box::new(Filter::In(2, vec![text("a"), Constant::Null]))),
    ]
}

#[test]
fn all_forms_give_the_same_answers() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..40 {
        let rows = random.random_range(1..200);
        let null_share = [0.0, 0.3, 1.0][random.random_range(0..3)];
        let wide = random.random_bool(0.5);
        let mut column = |value: &mut dyn FnMut(&mut ChaCha8Rng) -> Vec<u8>| -> Vec<Option<Vec<u8>>> {
            (0..rows).map(|_| (!random.random_bool(null_share)).then(|| value(&mut random))).collect()
        };
        let signed = column(&mut |random| random.random_range(-5i16..60).to_le_bytes().to_vec());
        let unsigned = column(&mut |random| {
            let value = if wide { random.random() } else { random.random_range(0..70_000u64) };
            value.to_le_bytes().to_vec()
        });
        let texts =
            column(&mut |random| ["a", "b", "", "dd", "ccc"][random.random_range(0..5)].as_bytes().to_vec());
        for filter in filters() {
            for groups in [&[][..], &[0], &[2], &[2, 0], &[0, 1, 2]] {
                let mut expected = None;
                for stored in [Stored::Fixed, Stored::Varying, Stored::Dictionary, Stored::Sparse] {
                    let of_text = if stored == Stored::Fixed { Stored::Varying } else { stored };
                    let half = rows / 2;
                    let blocks: Vec<_> = [0..half, half..rows]
                        .into_iter()
                        .filter(|range| !range.is_empty())
                        .map(|range| {
                            vec![
                                vector(&signed[range.clone()], stored, 2),
                                vector(&unsigned[range.clone()], stored, 8),
                                vector(&texts[range], of_text, 1),
                            ]
                        })
                        .collect();
                    let got = answer(&blocks, &filter, groups);
                    assert_eq!(&got, expected.get_or_insert(got.clone()), "{stored:?} {filter:?} {groups:?}");
                }
            }
        }
    }
}

#[test]
fn rows_without_a_group_column_are_one_group() {
    let values = [Some(vec![1, 0]), None, Some(vec![2, 0])];
    let (numbers, texts) = (vector(&values, Stored::Fixed, 2), vector(&values, Stored::Varying, 2));
    let wide = vector(&[Some(vec![9; 8]), None, None], Stored::Fixed, 8);
    let rows = answer(&[vec![numbers, wide, texts]], &Filter::Always(Some(true)), &[]);
    let first =
        [Cell::Number(3), Cell::Number(2), Cell::Sum(3, 2)].map(|cell| format!("{cell:?}")).join(", ");
    assert!(rows.len() == 1 && rows[0].starts_with(&format!("[{first}")), "{rows:?}");
}
