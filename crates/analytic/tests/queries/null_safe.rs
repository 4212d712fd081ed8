//! Tables that are joined by `<=>`, and EXISTS with further conditions: of NULL, and of rows of few and of many partners.

use pando_analytic::{Block, Comparison, Expr};

use crate::world::*;

fn same(a: Expr, b: Expr) -> Expr {
    compare(Comparison::Same, a, b)
}

/// As tools write it.
fn equal_or_both_null(a: Expr, b: Expr) -> Expr {
    let is_null = |of: &Expr| Expr::IsNull(Box::new(of.clone()));
    let nulls = Expr::And(vec![is_null(&b), is_null(&a)]);
    Expr::Or(vec![equal(a, b), nulls])
}

#[test]
fn null_is_the_partner_of_null_where_that_is_said() {
    for same in [same, equal_or_both_null] {
        joins_find_null(same);
    }
}

fn joins_find_null(same: fn(Expr, Expr) -> Expr) {
    for seed in 0..3 {
        let world = seeded(seed);
        let is_partner = |a: &Row, b: &Row| a.number == b.number && a.id < b.id + 100;
        let on = Expr::And(vec![
            same(number(1), number(0)),
            compare(
                Comparison::Less,
                id(0),
                Expr::Arithmetic(
                    pando_analytic::Operation::Add,
                    pando_analytic::Kind::Signed,
                    Box::new(id(1)),
                    Box::new(constant(100)),
                ),
            ),
        ]);
        let mut inner = Vec::new();
        let mut lonely = Vec::new();
        for a in &world.rows[0] {
            let partners: Vec<_> = world.rows[1].iter().filter(|b| is_partner(a, b)).collect();
            inner.extend(partners.iter().map(|b| format!("{}|{}", a.id, b.id)));
            if partners.is_empty() {
                lonely.push(a);
            }
        }
        assert!(!lonely.is_empty() && world.rows[0].iter().any(|a| a.number.is_none()));
        let joined = Block {
            from: vec![from(&world, 0), from(&world, 1)],
            filter: Some(on.clone()),
            outputs: outputs(vec![id(0), id(1)]),
            ..Block::default()
        };
        assert_eq!(sorted(ask(&world, &joined)), sorted(inner.clone()), "seed {seed}");
        let left = Block {
            from: vec![from(&world, 0), outer(&world, 1, on.clone())],
            outputs: outputs(vec![id(0), id(1)]),
            ..Block::default()
        };
        inner.extend(lonely.iter().map(|a| format!("{}|NULL", a.id)));
        assert_eq!(sorted(ask(&world, &left)), sorted(inner), "seed {seed}");
        for exists in [true, false] {
            let within = Block {
                from: vec![from(&world, 1)],
                filter: Some(on.clone()),
                outputs: outputs(vec![constant(1)]),
                ..Block::default()
            };
            let condition = Expr::Exists(Box::new(within));
            let block = Block {
                from: vec![from(&world, 0)],
                filter: Some(if exists { condition } else { Expr::Not(Box::new(condition)) }),
                outputs: outputs(vec![id(0)]),
                ..Block::default()
            };
            let rows = world.rows[0].iter().filter(|a| lonely.iter().any(|one| one.id == a.id) != exists);
            let expected: Vec<String> = rows.map(|a| a.id.to_string()).collect();
            assert_eq!(sorted(ask(&world, &block)), sorted(expected), "seed {seed}, {exists}");
        }
    }
}

/// Of rows of one key, which are many, partners are tried a few at a time.
#[test]
fn the_first_partner_is_found_wherever_it_stands() {
    let world = seeded(3);
    for least in [0, 10, 100, 280, 299, 300, 1000] {
        for text_matters in [true, false] {
            let mut tie = vec![compare(Comparison::GreaterOrEqual, id(1), constant(least))];
            let one = if text_matters { text(0) } else { constant(1) };
            let other = if text_matters { text(1) } else { constant(1) };
            tie.push(equal(one, other));
            tie.push(compare(Comparison::NotEqual, id(0), id(1)));
            let within = Block {
                from: vec![from(&world, 1)],
                filter: Some(Expr::And(tie)),
                outputs: outputs(vec![constant(1)]),
                ..Block::default()
            };
            let block = Block {
                from: vec![from(&world, 0)],
                filter: Some(Expr::Exists(Box::new(within))),
                outputs: outputs(vec![id(0)]),
                ..Block::default()
            };
            let has_partner = |a: &&Row| {
                world.rows[1].iter().any(|b| {
                    i128::from(b.id) >= least
                        && a.id != b.id
                        && (!text_matters || a.text.eq_ignore_ascii_case(b.text))
                })
            };
            let expected: Vec<String> =
                world.rows[0].iter().filter(has_partner).map(|a| a.id.to_string()).collect();
            assert_eq!(sorted(ask(&world, &block)), sorted(expected), "{least} {text_matters}");
        }
    }
}
