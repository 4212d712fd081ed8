//! EXISTS of queries that nothing ties to the rows around them: one row is enough.

use pando_analytic::{Block, Comparison, Expr, Kind, Operation, Outcome};
use pando_query::Limits;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::world::*;

fn rows_met(world: &World, block: &Block) -> u64 {
    let Outcome::Rows(answer) = outcome(world, block, Limits { threads: 1, ..LIMITS }) else {
        panic!("given back")
    };
    answer.rows_met
}

fn exists(block: Block) -> Expr {
    let outputs = if block.outputs.is_empty() { vec![(2000, constant(1))] } else { block.outputs.clone() };
    Expr::Exists(Box::new(Block { outputs, ..block }))
}

/// Rows of the small table, where a condition with an EXISTS is true of them.
fn asking(world: &World, condition: Expr) -> Block {
    Block {
        from: vec![from(world, 1)],
        filter: Some(condition),
        outputs: outputs(vec![id(1)]),
        ..Block::default()
    }
}

const MANY: usize = 6000;
const FEW: usize = 20;

fn large() -> World {
    world(&mut ChaCha8Rng::seed_from_u64(3), &[(MANY, true), (FEW, false), (50, true)])
}

/// A query of the large table.
fn of_large(world: &World, filter: Expr) -> Block {
    Block { from: vec![from(world, 0)], filter: Some(filter), ..Block::default() }
}

#[test]
fn a_table_is_read_no_further_than_to_the_first_row_of_an_exists() {
    let world = large();
    let before = |limit| compare(Comparison::Less, id(0), constant(limit));
    let more = |least| compare(Comparison::GreaterOrEqual, number(0), constant(least));
    let joined = Block {
        from: vec![from(&world, 0), from(&world, 2)],
        filter: Some(Expr::And(vec![equal(number(0), id(2)), more(-100)])),
        ..Block::default()
    };
    for (what, block, is_there, reads_all) in [
        ("a condition that many rows meet", of_large(&world, more(0)), true, false),
        ("a condition that the first rows meet", of_large(&world, before(3)), true, false),
        ("a condition that no row meets", of_large(&world, more(100)), false, true),
        ("a join", joined, true, false),
        ("DISTINCT", Block { is_distinct: true, ..of_large(&world, more(0)) }, true, true),
        ("a limit", Block { limit: Some(3), ..of_large(&world, more(0)) }, true, false),
        ("no row at all", Block { limit: Some(0), ..of_large(&world, more(0)) }, false, false),
        ("rows passed over", Block { skip: 2, limit: Some(3), ..of_large(&world, before(2)) }, false, true),
        (
            "rows passed over, and one",
            Block { skip: 2, limit: Some(3), ..of_large(&world, before(3)) },
            true,
            true,
        ),
    ] {
        for (condition, expected) in [
            (exists(block.clone()), is_there),
            (Expr::Not(Box::new(exists(block.clone()))), !is_there),
            (Expr::Or(vec![exists(block.clone()), equal(id(1), constant(-1))]), is_there),
        ] {
            let block = asking(&world, condition);
            assert_eq!(ask(&world, &block).len(), if expected { FEW } else { 0 }, "{what}");
            let met = rows_met(&world, &block);
            assert!(reads_all || met < (MANY / 2) as u64, "{what}: {met} rows were met");
        }
    }
}

/// What would fail of a later row is not found out by who stops before it; here nobody stops.
#[test]
fn an_exists_whose_condition_may_fail_is_asked_of_all_rows() {
    let world = large();
    let sum = Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(id(0)), Box::new(constant(1)));
    let block = asking(&world, exists(of_large(&world, compare(Comparison::Greater, sum, constant(0)))));
    assert_eq!(ask(&world, &block).len(), FEW);
    assert!(rows_met(&world, &block) >= MANY as u64);
}

/// `SELECT COUNT(*) FROM (SELECT 1 FROM many LIMIT 70)`.
#[test]
fn so_many_rows_of_which_no_column_is_looked_at_are_any_rows() {
    let world = large();
    for (limit, expected) in [(70u64, 70), (0, 0), (100_000, MANY)] {
        let inner = Block {
            from: vec![from(&world, 0)],
            outputs: vec![(2000, constant(1))],
            limit: Some(limit),
            ..Block::default()
        };
        let source = pando_analytic::Source::Query(Box::new(inner));
        let block = Block {
            from: vec![pando_analytic::From { source, is_outer: false, on: None }],
            is_grouped: true,
            outputs: outputs(vec![aggregate(pando_analytic::Function::Rows, Kind::Signed, None)]),
            ..Block::default()
        };
        assert_eq!(ask(&world, &block), [expected.to_string()]);
        assert!(expected == MANY || rows_met(&world, &block) < (MANY / 2) as u64);
    }
}
