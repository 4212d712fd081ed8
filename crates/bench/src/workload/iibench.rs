//! `iibench`: does the speed of inserts last when the data outgrow the cache?
//!
//! A table with a primary key and three secondary keys takes INSERTs of many rows, each statement a transaction.
//! Primary keys come in random order: a permutation of the row's number (odd multiplications and shifted exclusive
//! ors, each of which can be undone), so they are unique and spread over the whole range and need no memory. The
//! columns of the secondary keys are even random numbers of 32 bits, so every key of every index goes anywhere.
//! `note` is 32 random hexadecimal digits: half of it compresses away.
//!
//! Statements are made ahead by a thread for each client, so that what is measured is the server. The rows of
//! statement n depend on the seed and n alone, whichever client sends it.

mod record;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use record::Recorder;

use super::{Data, Workload};
use crate::client::Connection;
use crate::error::{Error, Result};
use crate::generate::{Fields, Random, Source};
use crate::report::{units, Group, Unit};
use crate::run::{connect, Bench};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many rows.
    pub rows: u64,
    /// Rows of one INSERT.
    pub rows_per_statement: u64,
    /// Sessions that insert at the same time.
    pub clients: usize,
    /// Primary keys ascend instead of coming in random order.
    pub ascending: bool,
}

/// The table; the statement ends with its engine.
pub const TABLE: &str = "CREATE TABLE orders (
    id       BIGINT UNSIGNED NOT NULL,
    customer INT UNSIGNED NOT NULL,
    product  INT UNSIGNED NOT NULL,
    price    INT UNSIGNED NOT NULL,
    note     VARCHAR(40) NOT NULL,
    PRIMARY KEY (id),
    KEY customer (customer),
    KEY product (product, price),
    KEY price (price, customer)
) DEFAULT CHARSET latin1";

const STATEMENTS_AHEAD: usize = 8;
const NOTE_BYTES: usize = 32;

/// The workload.
pub struct Iibench {
    options: Options,
}

/// The rows of the table.
pub struct Orders {
    rows: u64,
    rows_per_block: u64,
    ascending: bool,
}

/// The primary key of row `number`.
pub fn key_of(number: u64) -> u64 {
    let mut key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key ^= key >> 32;
    key = key.wrapping_mul(0xd6e8_feb8_6659_fd93);
    key ^ (key >> 29)
}

impl Source for Orders {
    fn name(&self) -> &str {
        "orders"
    }

    fn units(&self) -> u64 {
        self.rows
    }

    fn block_units(&self) -> u64 {
        self.rows_per_block
    }

    fn fill(&self, unit: u64, random: &mut Random, fields: &mut Fields) {
        let key = if self.ascending { unit } else { key_of(unit) };
        let (columns, note) = (random.next(), [random.next(), random.next()]);
        fields.unsigned(key);
        fields.int((columns & 0xffff_ffff) as i64).int((columns >> 32) as i64);
        fields.int((random.next() & 0xffff_ffff) as i64);
        fields.text_with(|bytes| push_hexadecimal(bytes, note)).end();
    }
}

fn push_hexadecimal(bytes: &mut Vec<u8>, numbers: [u64; 2]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; NOTE_BYTES];
    for (place, digit) in text.iter_mut().enumerate() {
        *digit = DIGITS[(numbers[place / 16] >> (4 * (place % 16)) & 0xf) as usize];
    }
    bytes.extend_from_slice(&text);
}

impl Iibench {
    /// With these choices. Errors: a size of 0.
    pub fn new(options: Options) -> Result<Iibench> {
        if options.rows == 0 || options.rows_per_statement == 0 || options.clients == 0 {
            return Err(Error::Usage("rows, rows of a statement and clients must not be 0".to_owned()));
        }
        Ok(Iibench { options })
    }

    /// The rows, for `generate` and for the statements.
    pub fn source(&self) -> Orders {
        Orders {
            rows: self.options.rows,
            rows_per_block: self.options.rows_per_statement,
            ascending: self.options.ascending,
        }
    }

    fn insert(&self, bench: &mut Bench) -> Result<()> {
        let step = bench.step("insert", self.options.rows);
        let before = bench.server.written_bytes();
        let recorder = Mutex::new(Recorder::new(self.options.rows, before));
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let bar = step.handle();
        let shared: &Bench = bench;
        let outcome: Result<()> = thread::scope(|scope| {
            let clients: Vec<_> = (0..self.options.clients)
                .map(|_| {
                    scope.spawn(|| {
                        let done = self.client(shared, &next, &failed, &recorder, &bar);
                        if done.is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                        done
                    })
                })
                .collect();
            clients.into_iter().try_for_each(|client| {
                client.join().unwrap_or_else(|_| Err(Error::Data("a client panicked".to_owned())))
            })
        });
        outcome?;
        let recorder = recorder.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        step.end(&format!("{}/s", units::grouped(recorder.rows_per_second())));
        bench.written_since(before, self.options.rows, "by the inserts");
        recorder.finish(bench.report);
        Ok(())
    }

    /// One session: takes statements from its producer until all are gone.
    fn client(
        &self,
        bench: &Bench,
        next: &AtomicU64,
        failed: &AtomicBool,
        recorder: &Mutex<Recorder>,
        bar: &indicatif::ProgressBar,
    ) -> Result<()> {
        let mut connection = connect(bench.server, bench.engine, &bench.settings.database)?;
        let (full_sender, full) = sync_channel::<(u64, Vec<u8>)>(STATEMENTS_AHEAD);
        let (empty, empty_receiver) = channel::<Vec<u8>>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (source, mut fields) = (self.source(), Fields::default());
                while !failed.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let mut statement = empty_receiver.try_recv().unwrap_or_default();
                    let rows = build(&source, bench.settings.seed, number, &mut fields, &mut statement);
                    if rows == 0 || full_sender.send((rows, statement)).is_err() {
                        return;
                    }
                }
            });
            // The receiver is gone when this returns, also by an error; then the producer ends.
            let full = full;
            while let Ok((rows, statement)) = full.recv() {
                self.send(&mut connection, bench, rows, &statement, recorder, bar)?;
                let _ = empty.send(statement);
            }
            Ok(())
        })
    }

    fn send(
        &self,
        connection: &mut Connection,
        bench: &Bench,
        rows: u64,
        statement: &[u8],
        recorder: &Mutex<Recorder>,
        bar: &indicatif::ProgressBar,
    ) -> Result<()> {
        let begin = Instant::now();
        let result = connection.query_bytes(statement)?;
        let seconds = begin.elapsed().as_secs_f64();
        if result.affected != rows && bench.keeps_rows() {
            return Err(Error::Data(format!("{} of {rows} rows inserted", result.affected)));
        }
        let mut recorder = recorder.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        recorder.statement(rows, seconds, || bench.server.written_bytes());
        bar.set_position(recorder.rows());
        Ok(())
    }
}

/// The INSERT of block `number`; 0 rows when there is no such block.
fn build(source: &Orders, seed: u64, number: u64, fields: &mut Fields, statement: &mut Vec<u8>) -> u64 {
    let first = number * source.rows_per_block;
    let end = (first + source.rows_per_block).min(source.rows);
    let mut random = Random::of_block(seed, source.name(), number);
    statement.clear();
    statement.extend_from_slice(b"INSERT INTO orders VALUES ");
    for row in first..end {
        fields.clear();
        source.fill(row, &mut random, fields);
        statement.push(if row == first { b'(' } else { b',' });
        if row > first {
            statement.push(b'(');
        }
        let line = fields.bytes();
        statement.extend_from_slice(&line[..line.len() - 1]);
        statement.push(b')');
    }
    end.saturating_sub(first)
}

impl Workload for Iibench {
    fn name(&self) -> &'static str {
        "iibench"
    }

    fn about(&self) -> String {
        format!(
            "{} rows in {} order into a table with three secondary keys, {} a statement, each statement a \
             transaction, {} client{}.",
            units::grouped(self.options.rows as f64),
            if self.options.ascending { "ascending" } else { "random" },
            self.options.rows_per_statement,
            self.options.clients,
            if self.options.clients == 1 { "" } else { "s" }
        )
    }

    fn parameters(&self) -> Vec<(String, String)> {
        vec![
            ("rows".to_owned(), units::grouped(self.options.rows as f64)),
            ("rows per statement".to_owned(), self.options.rows_per_statement.to_string()),
            ("clients".to_owned(), self.options.clients.to_string()),
        ]
    }

    /// Nothing: statements are made while they are sent.
    fn prepare(&mut self, _data: &Data) -> Result<()> {
        Ok(())
    }

    fn run(&self, bench: &mut Bench) -> Result<()> {
        let before = bench.server.written_bytes();
        bench.connect()?.query(TABLE)?;
        self.insert(bench)?;
        if !bench.keeps_rows() {
            return Ok(());
        }
        let mut connection = bench.connect()?;
        bench.query(&mut connection, "count", "SELECT COUNT(*) FROM orders")?;
        let sums =
            "SELECT COUNT(*), SUM(id % 1000003), SUM(customer), SUM(product), SUM(price), SUM(CRC32(note)) \
                    FROM orders";
        bench.query(&mut connection, "sum of every column", sums)?;
        drop(connection);
        bench.memory();
        if let Some(size) = bench.weigh("table and keys", self.options.rows)? {
            let per_row = size.bytes as f64 / self.options.rows as f64;
            bench.report.add(Group::Size, "table and keys, per row", Unit::BytesPerRow, per_row);
        }
        if bench.server.is_private() {
            bench.written_since(before, self.options.rows, "with a clean stop");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_earlier_measurements_and_do_not_repeat() {
        // Made by the program that this one follows; histories stay comparable.
        assert_eq!([key_of(0), key_of(1)], [0, 0x17fb_89ee_35ed_72b0]);
        let mut keys: Vec<u64> = (0..100_000).map(key_of).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100_000);
    }

    #[test]
    fn statements_have_the_rows_of_the_file_in_parentheses() {
        let workload =
            Iibench::new(Options { rows: 25, rows_per_statement: 10, clients: 1, ascending: false }).unwrap();
        let directory = tempfile::tempdir().unwrap();
        crate::generate::write_table(&workload.source(), directory.path(), 5, 2, &mut |_| ()).unwrap();
        let file = std::fs::read_to_string(directory.path().join("orders.csv")).unwrap();
        let (mut fields, mut statement, mut rows) = (Fields::default(), Vec::new(), Vec::new());
        let counts: Vec<u64> = (0..4)
            .map(|number| {
                let count = build(&workload.source(), 5, number, &mut fields, &mut statement);
                let text = String::from_utf8(statement.clone()).unwrap();
                let values = text.strip_prefix("INSERT INTO orders VALUES ").unwrap();
                rows.extend(
                    values.split_terminator(')').map(|row| row.trim_start_matches([',', '(']).to_owned()),
                );
                count
            })
            .collect();
        assert_eq!(counts, [10, 10, 5, 0]);
        assert_eq!(rows.join("\n") + "\n", file);
    }
}
