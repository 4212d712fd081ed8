//! The first rows of an order, of tables and of joins.

use std::cmp::Ordering;

use pando_analytic::{Block, Comparison, Expr};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::*;

/// What rows are sorted by, as text and as a model.
type Key<'a> = (Expr, &'a dyn Fn(&Pair<'_>) -> Option<String>);

/// A row of the first table, and its partner of the second, if there is one.
type Pair<'a> = (&'a Row, Option<&'a Row>);

/// Numbers that are ordered as texts.
fn ordered(number: i64) -> String {
    format!("{:020}", i128::from(number) + (1 << 40))
}

#[test]
fn the_first_rows_of_an_order_are_those_of_all_rows() {
    let keys: [Key<'_>; 4] = [
        (number(0), &|(a, _)| a.number.map(|number| ordered(number.into()))),
        (text(0), &|(a, _)| Some(a.text.to_ascii_lowercase())),
        (number(1), &|(_, b)| b.and_then(|b| b.number).map(|number| ordered(number.into()))),
        (id(0), &|(a, _)| Some(ordered(a.id.into()))),
    ];
    let of_ids: [Key<'_>; 2] = [keys[3].clone(), (id(1), &|(_, b)| b.map(|b| ordered(b.id.into())))];
    let mut random = ChaCha8Rng::seed_from_u64(17);
    for round in 0..120 {
        let world = if round % 30 == 0 { seeded(round) } else { seeded(round / 30 * 30) };
        // Alone; joined; with a partner or without; only with one.
        let form = random.random_range(0..4);
        let limit = random.random_range(0..40u64);
        let skip = if random.random_bool(0.3) { random.random_range(0..30u64) } else { 0 };
        let least = random.random_range(0..300);
        let mut order: Vec<(Key<'_>, bool)> = Vec::new();
        for _ in 0..random.random_range(1..3) {
            let key = &keys[random.random_range(0..if form == 0 { 2 } else { 3 })];
            order.push((key.clone(), random.random_bool(0.5)));
        }
        order.extend(of_ids[..if form == 0 { 1 } else { 2 }].iter().map(|key| (key.clone(), false)));
        let on = || equal(number(0), number(1));
        let mut block = Block {
            from: vec![from(&world, 0)],
            filter: Some(compare(Comparison::Greater, id(0), constant(least))),
            outputs: outputs(vec![id(0), text(0)]),
            order: order.iter().map(|((expr, _), descends)| (expr.clone(), *descends)).collect(),
            skip,
            limit: Some(limit),
            ..Block::default()
        };
        match form {
            0 => {}
            1 => {
                block.from.push(from(&world, 1));
                block.filter = block.filter.map(|filter| Expr::And(vec![filter, on()]));
            }
            _ => block.from.push(outer(&world, 1, on())),
        }
        if form == 3 {
            let has_partner = Expr::Not(Box::new(Expr::IsNull(Box::new(id(1)))));
            block.filter = block.filter.map(|filter| Expr::And(vec![filter, has_partner]));
        }
        let mut pairs: Vec<Pair<'_>> = Vec::new();
        for a in world.rows[0].iter().filter(|a| i128::from(a.id) > least) {
            let partners =
                world.rows[1].iter().filter(|b| form > 0 && a.number.is_some() && b.number == a.number);
            let before = pairs.len();
            pairs.extend(partners.map(|b| (a, Some(b))));
            if pairs.len() == before && matches!(form, 0 | 2) {
                pairs.push((a, None));
            }
        }
        pairs.sort_by(|one, other| {
            let compared = order.iter().map(|((_, key), descends)| {
                let compared = key(one).cmp(&key(other));
                if *descends {
                    compared.reverse()
                } else {
                    compared
                }
            });
            compared.fold(Ordering::Equal, Ordering::then)
        });
        let rows = pairs.iter().skip(skip as usize).take(limit as usize);
        let expected: Vec<String> = rows.map(|(a, _)| format!("{}|{}", a.id, a.text)).collect();
        assert_eq!(ask(&world, &block), expected, "round {round}: form {form}, {:?}", block.order);
    }
}
