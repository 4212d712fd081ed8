//! `tpcc`: the tables and transactions of TPC-C.
//!
//! 1. Row at a time: the rows as single INSERTs of one session, some of them a transaction, as most loaders do it.
//! 2. LOAD DATA of the same files into fresh tables.
//! 3. The standard mix of the five transactions by some sessions for some time (`mix`), without thinking times, so
//!    the figures are speeds of engines and no tpmC in the sense of the standard.
//! 4. Conditions of consistency (clause 3.3.2.1 to 3.3.2.4) that must hold after it.

mod mix;
mod tables;
mod transactions;

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

pub use tables::{Kind, Scale, Table, KINDS};

use super::{statements, CsvTable, Data, Workload};
use crate::client::Connection;
use crate::error::{Error, Result};
use crate::report::{units, Group, Unit};
use crate::run::Bench;

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes.
    pub scale: Scale,
    /// Sessions of the mix.
    pub clients: usize,
    /// How long the mix runs; 0 leaves it out.
    pub seconds: u64,
    /// Leave out the row-at-a-time loader.
    pub no_row_loader: bool,
    /// Its rows of a transaction.
    pub rows_per_commit: u64,
    /// With the standard's foreign keys, which loads and transactions then pay for.
    pub foreign_keys: bool,
}

const SCHEMA: &str = include_str!("schema.sql");
const FOREIGN_KEYS: &str = include_str!("foreign_keys.sql");

/// Each finds what contradicts a condition of consistency.
const CONDITIONS: [(&str, &str); 4] = [
    (
        "a warehouse's payments are those of its districts",
        "SELECT COUNT(*) FROM warehouse JOIN (SELECT d_w_id, SUM(d_ytd) AS ytd FROM district GROUP BY d_w_id) AS d \
         ON d_w_id = w_id WHERE w_ytd <> ytd",
    ),
    (
        "a district's next order comes after its last",
        "SELECT COUNT(*) FROM district JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o FROM orders GROUP BY o_w_id, o_d_id) \
         AS o ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id <> o + 1",
    ),
    (
        "new orders have no gap",
        "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 - COUNT(*) AS gap FROM new_order \
         GROUP BY no_w_id, no_d_id) AS n WHERE gap <> 0",
    ),
    (
        "orders have the lines that they say",
        "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) AS o \
         JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id) AS l \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE said <> there",
    ),
];

/// CREATE TABLE of all tables.
pub fn create_statements() -> Vec<String> {
    statements(SCHEMA)
}

/// The workload.
pub struct Tpcc {
    options: Options,
    files: Vec<CsvTable>,
}

impl Tpcc {
    /// With these choices.
    pub fn new(options: Options) -> Tpcc {
        Tpcc { options, files: Vec::new() }
    }

    /// The rows of the nine tables, for `generate`.
    pub fn sources(&self) -> Vec<Table> {
        KINDS.iter().map(|&kind| Table { kind, scale: self.options.scale }).collect()
    }

    fn create(&self, connection: &mut Connection) -> Result<()> {
        let constraints = if self.options.foreign_keys { statements(FOREIGN_KEYS) } else { Vec::new() };
        for statement in create_statements().iter().chain(&constraints) {
            connection.query(statement)?;
        }
        Ok(())
    }

    fn drop_tables(&self, connection: &mut Connection) -> Result<()> {
        // Parents come first in the files, and children go first.
        let names: Vec<&str> = self.files.iter().rev().map(|file| file.table.as_str()).collect();
        connection.query(&format!("DROP TABLE {}", names.join(", ")))?;
        Ok(())
    }

    fn load_rows(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        let name = "load, row at a time";
        let bytes =
            self.files.iter().filter_map(|file| Some(std::fs::metadata(&file.path).ok()?.len())).sum();
        let step = bench.step(name, bytes);
        let begin = Instant::now();
        let (mut rows, mut sent) = (0, 0);
        for file in &self.files {
            let reader = BufReader::new(File::open(&file.path).map_err(Error::file(&file.path))?);
            rows += self.insert_lines(connection, file, reader, |line| {
                sent += line;
                step.at(sent);
            })?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        step.end(&format!("{} rows/s", units::grouped(rows as f64 / seconds)));
        bench.report.add(Group::Load, name, Unit::Seconds, seconds);
        bench.report.add(Group::Throughput, name, Unit::RowsPerSecond, rows as f64 / seconds);
        Ok(())
    }

    /// A line of the file is the list of values of an INSERT.
    fn insert_lines(
        &self,
        connection: &mut Connection,
        file: &CsvTable,
        mut reader: impl std::io::BufRead,
        mut sent: impl FnMut(u64),
    ) -> Result<u64> {
        let prefix = format!("INSERT INTO {} VALUES (", file.table);
        let mut statement = prefix.clone().into_bytes();
        let mut rows = 0;
        connection.query("START TRANSACTION")?;
        loop {
            statement.truncate(prefix.len());
            let count = reader.read_until(b'\n', &mut statement).map_err(Error::file(&file.path))?;
            if count == 0 {
                break;
            }
            if statement.last() == Some(&b'\n') {
                statement.pop();
            }
            statement.push(b')');
            connection.query_bytes(&statement)?;
            rows += 1;
            sent(count as u64);
            if rows % self.options.rows_per_commit == 0 {
                connection.query("COMMIT")?;
                connection.query("START TRANSACTION")?;
            }
        }
        connection.query("COMMIT")?;
        Ok(rows)
    }

    fn load_files(&self, bench: &mut Bench, connection: &mut Connection) -> Result<u64> {
        let (mut rows, mut seconds) = (0, 0.0);
        for file in &self.files {
            let statement = bench.load_statement(file);
            let (result, one) = bench.watched(connection, &format!("load {}", file.table), &statement)?;
            bench.check_load(&result, file)?;
            rows += result.affected;
            seconds += one;
        }
        let name = "load, LOAD DATA";
        bench.report.add(Group::Load, name, Unit::Seconds, seconds);
        bench.report.add(Group::Throughput, name, Unit::RowsPerSecond, rows as f64 / seconds.max(1e-9));
        Ok(rows)
    }

    fn check(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        for (name, sql) in CONDITIONS {
            let wrong = connection.number(sql)?;
            if wrong != 0.0 {
                return Err(Error::Data(format!("{}: '{name}' does not hold ({wrong} cases)", bench.engine)));
            }
        }
        Ok(())
    }
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn about(&self) -> String {
        let mix = match self.options.seconds {
            0 => String::new(),
            seconds => {
                format!(", then the standard mix by {} sessions for {seconds} s", self.options.clients)
            }
        };
        let rows = if self.options.no_row_loader { "" } else { " row at a time and" };
        let keys = if self.options.foreign_keys { " with the standard's foreign keys" } else { "" };
        format!(
            "The nine tables of TPC-C{keys}, {} warehouses, loaded{rows} by LOAD DATA{mix}.",
            self.options.scale.warehouses
        )
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let Options { scale, clients, seconds, rows_per_commit, foreign_keys, .. } = &self.options;
        vec![
            ("warehouses".to_owned(), scale.warehouses.to_string()),
            ("items".to_owned(), format!("{} (100,000 by the standard)", scale.items)),
            ("customers of a district".to_owned(), format!("{} (3,000 by the standard)", scale.customers)),
            ("mix".to_owned(), format!("{clients} sessions, {seconds} s, no thinking times")),
            ("row at a time".to_owned(), format!("{rows_per_commit} rows a transaction")),
            ("foreign keys".to_owned(), if *foreign_keys { "the standard's" } else { "none" }.to_owned()),
        ]
    }

    fn prepare(&mut self, data: &Data) -> Result<()> {
        let Options { scale, clients, rows_per_commit, .. } = &self.options;
        let sizes = [scale.warehouses, scale.items, *clients as u64, *rows_per_commit];
        // Fewer customers would leave districts without new orders, and fewer items orders without enough of them.
        const CUSTOMERS_MIN: u64 = 10;
        const ITEMS_MIN: u64 = 100;
        if sizes.contains(&0) || scale.customers < CUSTOMERS_MIN || scale.items < ITEMS_MIN {
            return Err(Error::Usage(format!(
                "at least 1 warehouse, {ITEMS_MIN} items, {CUSTOMERS_MIN} customers, 1 client"
            )));
        }
        self.files = self.sources().iter().map(|table| data.table(table)).collect::<Result<_>>()?;
        Ok(())
    }

    fn run(&self, bench: &mut Bench) -> Result<()> {
        let mut connection = bench.connect()?;
        if !self.options.no_row_loader {
            self.create(&mut connection)?;
            self.load_rows(bench, &mut connection)?;
            self.answers(bench, &mut connection)?;
            self.drop_tables(&mut connection)?;
        }
        self.create(&mut connection)?;
        let before = bench.server.written_bytes();
        let rows = self.load_files(bench, &mut connection)?;
        if !bench.keeps_rows() {
            return Ok(());
        }
        self.answers(bench, &mut connection)?;
        self.check(bench, &mut connection)?;
        drop(connection);
        bench.weigh("all tables", rows)?;
        bench.written_since(before, rows, "load, LOAD DATA");
        if self.options.seconds > 0 {
            mix::run(bench, &self.options)?;
            self.check(bench, &mut bench.connect()?)?;
        }
        bench.memory();
        Ok(())
    }
}

impl Tpcc {
    /// The same rows whichever way they came.
    fn answers(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        if bench.keeps_rows() {
            for file in &self.files {
                let rows = connection.query(&format!("CHECKSUM TABLE {} EXTENDED", file.table))?;
                bench.answer(&format!("checksum of {}", file.table), &rows);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_nine_tables() {
        let statements = create_statements();
        assert_eq!(statements.len(), KINDS.len());
        assert!(statements.iter().all(|one| one.starts_with("CREATE TABLE ")));
    }

    #[test]
    fn foreign_keys_name_tables_that_are_loaded_before() {
        use crate::generate::Source as _;
        let scale = Scale { warehouses: 1, items: 100, customers: 10, seed: 1 };
        let order: Vec<String> = KINDS.iter().map(|&kind| Table { kind, scale }.name().to_owned()).collect();
        let place = |name: &str| order.iter().position(|one| one == name).unwrap();
        let mut count = 0;
        for statement in statements(FOREIGN_KEYS) {
            let child = statement.split_whitespace().nth(2).unwrap();
            for parent in statement.split("REFERENCES ").skip(1) {
                assert!(place(parent.split(' ').next().unwrap()) < place(child), "{statement}");
                count += 1;
            }
        }
        assert_eq!(count, 10);
    }
}
