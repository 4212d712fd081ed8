//! How quick the operators are, apart from storage: the shapes of the air-traffic queries on blocks as segments give them.
//!
//! `cargo test --release -p pando-query --lib -- --ignored --nocapture speed` prints nanoseconds a row, on one thread.

use std::sync::Arc;
use std::time::Instant;

use pando_column::vector::{Nulls, Strings, Values, Vector};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::aggregate::Aggregate;
use crate::column::{Collation, Column, Form, Place};
use crate::filter::{Comparison, Constant, Filter};
use crate::frame::{Frame, Slots};
use crate::groups::{Groups, Shape};

const BLOCKS: usize = 200;
const ROWS: usize = 4000;

fn dictionary(random: &mut ChaCha8Rng, words: usize, prefix: &str) -> Arc<Vector> {
    let mut entries = Strings::new();
    (0..words).for_each(|word| entries.push(format!("{prefix}{word}").as_bytes()));
    let codes = (0..ROWS).map(|_| random.random_range(0..words as u32)).collect();
    Arc::new(Vector::new(ROWS, None, Values::Dictionary { codes, entries }))
}

/// Year, weekday, delay, origin, carrier, two cities.
fn block(random: &mut ChaCha8Rng, number: usize) -> Vec<Arc<Vector>> {
    let year = (1988 + number * 21 / BLOCKS) as u16;
    let weekdays = (0..ROWS).map(|_| random.random_range(1..8)).collect();
    let mut nulls = Nulls::new();
    let mut delays = Vec::new();
    for _ in 0..ROWS {
        nulls.push(random.random_bool(0.02));
        delays.extend(random.random_range(-20i16..60).to_le_bytes());
    }
    vec![
        Arc::new(Vector::new(ROWS, None, Values::Constant(year.to_le_bytes().to_vec()))),
        Arc::new(Vector::new(ROWS, None, Values::Fixed { width: 1, bytes: weekdays })),
        Arc::new(Vector::new(ROWS, Some(nulls), Values::Fixed { width: 2, bytes: delays })),
        dictionary(random, 300, "AP"),
        dictionary(random, 20, "C"),
        dictionary(random, 300, "Some city, "),
        dictionary(random, 300, "Another city, "),
    ]
}

fn columns() -> Vec<Column> {
    let bytes = Collation(Arc::new(|a: &[u8], b: &[u8]| a.cmp(b)));
    let column = |form| Column { table: 0, place: Place::Stored(0), form };
    let text = || column(Form::Text(bytes.clone()));
    let mut columns = vec![column(Form::Unsigned), column(Form::Unsigned), column(Form::Signed)];
    columns.extend((0..4).map(|_| text()));
    columns
}

fn measure(
    name: &str,
    blocks: &[Vec<Arc<Vector>>],
    filter: Option<Filter>,
    groups: &[usize],
    aggregate: Aggregate,
) {
    let columns = columns();
    let slots = Slots { columns: &columns, expressions: &[] };
    let filter = filter.map(|filter| filter.prepare(&slots, false).unwrap());
    let aggregates = [aggregate];
    let shape = Shape { slots, groups, aggregates: &aggregates };
    let wanted = shape.wanted();
    let all: Vec<usize> = (0..columns.len()).collect();
    let begin = Instant::now();
    let mut found = Groups::new(&shape);
    for vectors in blocks {
        let mut frame = Frame::of_block(&shape.slots, ROWS, &all, vectors);
        let selected = filter.as_ref().and_then(|filter| filter.select(&shape.slots, &mut frame).unwrap());
        if selected.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        wanted.iter().for_each(|slot| frame.ensure(&shape.slots, *slot).unwrap());
        match selected {
            None => found.add(&shape, &frame).unwrap(),
            Some(rows) => found.add(&shape, &frame.picked(&shape.slots, &wanted, &rows)).unwrap(),
        }
    }
    let nanoseconds = begin.elapsed().as_nanos() as f64 / (BLOCKS * ROWS) as f64;
    println!("{name}: {nanoseconds:.2} ns a row, {} groups", found.rows(&shape).len());
}

#[test]
#[ignore = "a measurement"]
fn speed_of_the_air_traffic_queries() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let blocks: Vec<_> = (0..BLOCKS).map(|number| block(&mut random, number)).collect();
    let number = |value| Constant::Number { value, scale: 0 };
    let years = |from, to| {
        Filter::And(vec![
            Filter::Compare(0, Comparison::GreaterOrEqual, number(from)),
            Filter::Compare(0, Comparison::LessOrEqual, number(to)),
        ])
    };
    let late = || Filter::Compare(2, Comparison::Greater, number(10));
    let rows = Aggregate::Rows;
    measure("q1, weekdays", &blocks, Some(years(2000, 2008)), &[1], rows);
    measure("q2, late, weekdays", &blocks, Some(Filter::And(vec![late(), years(2000, 2008)])), &[1], rows);
    measure("q3, late, airports", &blocks, Some(Filter::And(vec![late(), years(2000, 2008)])), &[3], rows);
    measure("q4, late, airlines", &blocks, Some(Filter::And(vec![late(), years(2007, 2007)])), &[4], rows);
    measure("q7, late, years", &blocks, Some(late()), &[0], rows);
    measure("q8, cities", &blocks, Some(years(1988, 2008)), &[5], Aggregate::Distinct(6));
    measure("q9, years", &blocks, None, &[0], rows);
    measure("sum of delays", &blocks, None, &[], Aggregate::Sum(2));
    measure("sum of delays by airline and weekday", &blocks, None, &[4, 1], Aggregate::Sum(2));
}
