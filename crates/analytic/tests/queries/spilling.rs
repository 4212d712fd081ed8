//! Queries with little memory and a temporary file answer what they answer with much memory.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pando_analytic::{
    Block, Comparison, Expr, Function, Kind, Operation, Outcome, Query, SpillTo, Texts, Value,
};
use pando_query::{Limits, Why};
use pandodb::{FaultKind, SimVfs, Table, Vfs};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::world::*;

/// How often a query may ask again whether it is to stop after it was told so: once where each of its loops ends.
const ASKED_AFTER_STOP_MAX: usize = 4;
/// How many rows it may go through between two of its questions, on the average: a scan asks once for each block, of up to some 4,096 rows, and what
/// spills asks more often.
const ROWS_BETWEEN_QUESTIONS_MAX: usize = 400;
const MUCH: Limits = Limits { threads: 2, memory_bytes: 1 << 26 };

fn large() -> World {
    world(&mut ChaCha8Rng::seed_from_u64(31), &[(9000, true), (6000, true), (5000, false)])
}

fn disk() -> (Arc<SimVfs>, SpillTo) {
    let vfs = SimVfs::new(3);
    vfs.create_dir_all(Path::new("/tmp")).unwrap();
    (vfs.clone(), SpillTo { vfs, dir: "/tmp".into() })
}

fn run(
    world: &World,
    block: &Block,
    limits: Limits,
    to: Option<SpillTo>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Outcome {
    let tables: Vec<&Table> = world.tables.iter().map(|table| &**table).collect();
    let mut texts = Texts::default();
    // All are different, but for the order.
    texts.collations.push(Arc::new(|text: &[u8], to: &mut Vec<u8>| to.extend(text.to_ascii_lowercase())));
    let mut query = Query::new(block.clone(), texts);
    query.spill_to = to;
    query.run(&mut world.db.begin(), &tables, limits, stop).unwrap()
}

fn rows(outcome: Outcome, columns: usize) -> Result<Vec<String>, Why> {
    let mut answer = match outcome {
        Outcome::Rows(answer) => answer,
        Outcome::GivenBack(why) => return Err(why),
    };
    let mut all = Vec::new();
    for row in 0..answer.rows() {
        assert!(answer.go_to(row));
        let cell = |column| match (answer.value(row, column), answer.text(row, column)) {
            (Value::Text(text), Some(same)) if text == same => String::from_utf8(text).unwrap(),
            (Value::Null, None) => "NULL".to_owned(),
            (Value::Number(number), None) => number.to_string(),
            (Value::Real(real), None) => real.to_string(),
            other => panic!("{other:?}"),
        };
        all.push((0..columns).map(cell).collect::<Vec<_>>().join("|"));
    }
    Ok(all)
}

fn add(a: Expr, b: Expr) -> Expr {
    Expr::Arithmetic(Operation::Add, Kind::Signed, Box::new(a), Box::new(b))
}

/// `id / 10`, about: several rows have the same.
fn coarse(table: u32) -> Expr {
    add(id(table), number(table))
}

/// Queries, with the memory that is enough with a file, and not without; and whether their order counts.
fn queries(world: &World) -> Vec<(&'static str, Block, usize, bool)> {
    let of =
        |table, exprs| Block { from: vec![from(world, table)], outputs: outputs(exprs), ..Block::default() };
    let join = |kind: bool, exprs| Block {
        from: match kind {
            true => vec![from(world, 0), outer(world, 1, equal(coarse(0), coarse(1)))],
            false => vec![from(world, 0), from(world, 1)],
        },
        filter: (!kind).then(|| equal(coarse(0), coarse(1))),
        outputs: outputs(exprs),
        ..Block::default()
    };
    let not = |expr| Expr::Not(Box::new(expr));
    let tied = |filter: Vec<Expr>| Block {
        from: vec![from(world, 1)],
        filter: Some(Expr::And(filter)),
        ..Block::default()
    };
    let exists = |more: bool| {
        let mut filter = vec![equal(coarse(1), coarse(0))];
        if more {
            filter.push(compare(Comparison::NotEqual, text(0), text(1)));
        }
        Expr::Exists(Box::new(tied(filter)))
    };
    let is_in = |table: u32| {
        let inner = Block {
            from: vec![from(world, table)],
            outputs: vec![(2000, coarse(table))],
            ..Block::default()
        };
        Expr::InQuery(vec![coarse(0)], Box::new(inner))
    };
    let order = vec![(text(0), true), (number(0), false), (id(0), true)];
    vec![
        ("rows", of(0, vec![id(0), number(0), text(0)]), 60_000, false),
        ("order", Block { order: order.clone(), ..of(0, vec![id(0), number(0), text(0)]) }, 60_000, true),
        (
            "first rows of an order",
            Block { order: order.clone(), skip: 1500, limit: Some(4000), ..of(0, vec![id(0), text(0)]) },
            60_000,
            true,
        ),
        (
            "order by NULL and descending",
            Block { order: vec![(number(0), true), (id(0), false)], ..of(0, vec![number(0), id(0)]) },
            60_000,
            true,
        ),
        (
            "groups",
            Block {
                groups: vec![coarse(0), text(0)],
                is_grouped: true,
                ..of(
                    0,
                    vec![
                        coarse(0),
                        text(0),
                        aggregate(Function::Rows, Kind::Signed, None),
                        aggregate(Function::Sum, Kind::Decimal(0), Some(id(0))),
                        aggregate(Function::CountDistinct, Kind::Signed, Some(number(0))),
                        aggregate(Function::Max, TEXT, Some(text(0))),
                        aggregate(Function::BitXor, Kind::Unsigned, Some(id(0))),
                    ],
                )
            },
            400_000,
            false,
        ),
        ("DISTINCT", Block { is_distinct: true, ..of(0, vec![coarse(0), text(0)]) }, 200_000, false),
        ("a join", join(false, vec![id(0), id(1), text(0), text(1), number(1)]), 150_000, false),
        ("a LEFT JOIN", join(true, vec![id(0), id(1), text(1)]), 150_000, false),
        ("EXISTS", Block { filter: Some(exists(false)), ..of(0, vec![id(0), text(0)]) }, 120_000, false),
        (
            "EXISTS with a condition",
            Block { filter: Some(exists(true)), ..of(0, vec![id(0), text(0)]) },
            150_000,
            false,
        ),
        (
            "NOT EXISTS",
            Block { filter: Some(not(exists(true))), ..of(0, vec![id(0), text(0)]) },
            150_000,
            false,
        ),
        ("IN as a value", of(0, vec![id(0), exists(false)]), 150_000, false),
        ("IN", Block { filter: Some(is_in(1)), ..of(0, vec![id(0)]) }, 120_000, false),
        (
            "NOT IN of what has no NULL",
            Block {
                filter: Some(Expr::And(vec![not(Expr::IsNull(Box::new(number(0)))), not(is_in(2))])),
                ..of(0, vec![id(0)])
            },
            120_000,
            false,
        ),
    ]
}

#[test]
fn with_a_file_the_answer_is_that_with_memory() {
    let world = large();
    for (what, block, bytes, is_ordered) in queries(&world) {
        let columns = block.outputs.len();
        let go = || false;
        let mut expected = rows(run(&world, &block, MUCH, None, &go), columns).expect(what);
        assert!(expected.len() > 100, "{what}: {} rows", expected.len());
        for threads in [1, 3] {
            let little = Limits { threads, memory_bytes: bytes };
            let without = rows(run(&world, &block, little, None, &go), columns);
            assert_eq!(without.err(), Some(Why::Memory), "{what}, without a file");
            let (vfs, to) = disk();
            let spilled = |world: &World| world.db.metrics().query_spilled_bytes.get();
            let before = spilled(&world);
            let outcome = run(&world, &block, little, Some(to), &go);
            let mut found = rows(outcome, columns).unwrap_or_else(|why| panic!("{what}: {why:?}"));
            assert!(spilled(&world) > before, "{what}: nothing was written");
            if !is_ordered {
                found.sort();
                expected.sort();
            }
            assert!(found == expected, "{what}: {} rows, expected {}", found.len(), expected.len());
            assert!(vfs.read_dir(Path::new("/tmp")).unwrap().is_empty(), "{what}");
        }
    }
}

#[test]
fn rows_that_are_all_skipped_are_counted_in_the_file_too() {
    let world = large();
    let all = world.rows[0].len() as u64;
    let block = Block {
        from: vec![from(&world, 0)],
        outputs: outputs(vec![id(0), number(0), text(0)]),
        order: vec![(text(0), true), (id(0), false)],
        skip: all,
        limit: Some(10),
        ..Block::default()
    };
    let limits = Limits { threads: 2, memory_bytes: 60_000 };
    for (to, skip, expected) in [(Some(disk().1), all, all), (Some(disk().1), all - 1, 0)] {
        let Outcome::Rows(answer) = run(&world, &Block { skip, ..block.clone() }, limits, to, &|| false)
        else {
            panic!("given back");
        };
        assert_eq!((answer.rows() as u64, answer.rows_skipped), (all - skip, expected));
    }
    assert!(matches!(run(&world, &block, limits, None, &|| false), Outcome::GivenBack(Why::Memory)));
}

#[test]
fn each_failure_of_the_file_gives_the_query_back() {
    let world = large();
    for (what, block, bytes, _) in queries(&world) {
        let columns = block.outputs.len();
        let limits = Limits { threads: 2, memory_bytes: bytes };
        let (vfs, to) = disk();
        let begin = vfs.io_count();
        assert!(rows(run(&world, &block, limits, Some(to), &|| false), columns).is_ok());
        let ios = vfs.io_count() - begin;
        assert!(ios > 3, "{what}: {ios}");
        for kind in [FaultKind::Error, FaultKind::FlippedRead, FaultKind::ShortRead, FaultKind::LostWrite] {
            let mut given_back = 0;
            for io in (0..ios).step_by((ios as usize / 6).max(1)) {
                let (vfs, to) = disk();
                vfs.fail_io_after(io, kind);
                match run(&world, &block, limits, Some(to), &|| false) {
                    // What one thread could not write is still in memory, of which the other may be the first to tell that there is none.
                    Outcome::GivenBack(why) => {
                        assert!(matches!(why, Why::Disk | Why::Memory), "{what}: {kind:?} {why:?}");
                        given_back += 1;
                    }
                    // It met what is no more needed, or what is read with the answer.
                    Outcome::Rows(mut answer) => {
                        given_back += usize::from(!(0..answer.rows()).all(|row| answer.go_to(row)));
                    }
                }
            }
            assert!(given_back > 0, "{what}: {kind:?}");
        }
        let (vfs, to) = disk();
        vfs.set_capacity(Some(vfs.used_bytes() + 1000));
        let outcome = run(&world, &block, limits, Some(to), &|| false);
        assert!(matches!(outcome, Outcome::GivenBack(Why::Disk)), "{what}: a full disk");
    }
}

#[test]
fn who_spills_stops_soon_when_told() {
    let world = large();
    for (what, block, bytes, _) in queries(&world) {
        let limits = Limits { threads: 1, memory_bytes: bytes };
        let asked = AtomicUsize::new(0);
        let count = || asked.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        assert!(matches!(run(&world, &block, limits, Some(disk().1), &count), Outcome::Rows(_)), "{what}");
        let most = asked.into_inner();
        assert!(most * ROWS_BETWEEN_QUESTIONS_MAX >= 20_000, "{what}: asked {most} times only");
        // Wherever it is told, it has stopped before long.
        for at in (0..most).step_by((most / 12).max(1)) {
            let asked = AtomicUsize::new(0);
            let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) >= at;
            let outcome = run(&world, &block, limits, Some(disk().1), &is_stopped);
            assert!(matches!(outcome, Outcome::GivenBack(Why::Stopped)), "{what} at {at} of {most}");
            let after = asked.into_inner() - at;
            assert!(after <= ASKED_AFTER_STOP_MAX, "{what} at {at} of {most}: asked {after} times more");
        }
    }
}
