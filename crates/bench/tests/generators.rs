//! Generators are deterministic, and what they write fits the tables.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use pando_bench::generate::{write_table, Source};
use pando_bench::workload::iibench::{Iibench, Options};
use pando_bench::workload::lineorder::{self, Lines, Text};
use pando_bench::workload::ontime::{schema, Flights};
use pando_bench::workload::tpcc::{Scale, Table, KINDS};
use xxhash_rust::xxh3::xxh3_64;

const SEED: u64 = 2008;

fn text_of(source: &dyn Source, seed: u64, threads: usize) -> String {
    let directory = tempfile::tempdir().unwrap();
    write_table(source, directory.path(), seed, threads, &mut |_| ()).unwrap();
    std::fs::read_to_string(directory.path().join(format!("{}.csv", source.name()))).unwrap()
}

fn orders() -> impl Source {
    Iibench::new(Options { rows: 5000, rows_per_statement: 1000, clients: 1, ascending: false })
        .unwrap()
        .source()
}

fn lines(text: Text) -> Lines {
    Lines::new(&lineorder::Options { rows: 10_000, text })
}

const SCALE: Scale = Scale { warehouses: 2, items: 200, customers: 40, seed: SEED };

/// The hashes are of the bytes: what they are is a promise, because results are compared over months. Who changes
/// a generator changes them, and with that says that earlier results are of other rows.
#[test]
fn the_same_seed_gives_the_same_bytes_on_every_machine_and_with_any_number_of_threads() {
    let mut found = Vec::new();
    let mut check = |source: &dyn Source, label: &str| {
        let text = text_of(source, SEED, 1);
        assert_eq!(text, text_of(source, SEED, 3), "{label}: the number of threads");
        found.push(format!("{label} {} {:016x}", text.lines().count(), xxh3_64(text.as_bytes())));
    };
    check(&Flights::new(5000).unwrap(), "ontime");
    check(&lines(Text::Random), "lineorder random");
    check(&lines(Text::Repeating), "lineorder repeating");
    check(&orders(), "orders");
    for kind in KINDS {
        let table = Table { kind, scale: SCALE };
        check(&table, table.name());
    }
    let golden = include_str!("golden-hashes.txt");
    assert_eq!(found.join("\n"), golden.trim_end(), "tests/golden-hashes.txt");
}

#[test]
fn another_seed_gives_other_rows() {
    for source in [&Flights::new(500).unwrap() as &dyn Source, &lines(Text::Random), &orders()] {
        assert_ne!(text_of(source, 1, 1), text_of(source, 2, 1), "{}", source.name());
    }
}

/// Fields of a line, commas within quotes not counting.
fn fields(line: &str) -> usize {
    let (mut quoted, mut count) = (false, 1);
    for character in line.chars() {
        quoted ^= character == '"';
        count += usize::from(character == ',' && !quoted);
    }
    count
}

/// Columns of a CREATE TABLE: names at the beginnings of definitions that are no keys.
fn columns(create: &str) -> usize {
    let body = &create[create.find('(').unwrap() + 1..create.rfind(')').unwrap()];
    // "(...) DEFAULT CHARSET latin1" ends without a parenthesis of its own.
    let mut depth = 0;
    let mut definitions = vec![String::new()];
    for character in body.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => definitions.push(String::new()),
            _ => {}
        }
        if depth > 0 || character != ',' {
            definitions.last_mut().unwrap().push(character);
        }
    }
    let keys = ["KEY ", "PRIMARY KEY"];
    definitions.iter().filter(|one| !keys.iter().any(|key| one.trim().starts_with(key))).count()
}

#[test]
fn every_line_has_a_field_for_each_column() {
    let mut pairs: Vec<(Box<dyn Source>, String)> = vec![
        (Box::new(Flights::new(3000).unwrap()), schema::create(false)),
        (Box::new(lines(Text::Random)), format!("CREATE TABLE lineorder ({})", lineorder::COLUMNS)),
        (Box::new(orders()), pando_bench::workload::iibench::TABLE.to_owned()),
    ];
    let statements = pando_bench::workload::tpcc::create_statements();
    for kind in KINDS {
        let table = Table { kind, scale: SCALE };
        let prefix = format!("CREATE TABLE {} (", table.name());
        let create = statements.iter().find(|one| one.starts_with(&prefix)).unwrap();
        pairs.push((Box::new(table), create.clone()));
    }
    for (source, create) in pairs {
        let expected = columns(&create);
        assert!(expected > 2, "{create}");
        for line in text_of(&*source, SEED, 1).lines() {
            assert_eq!(fields(line), expected, "{}: {line}", source.name());
        }
    }
    assert_eq!(columns(&schema::create(false)), 93);
    assert_eq!(columns(&schema::create(true)), 94);
}
