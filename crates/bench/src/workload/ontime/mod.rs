//! `ontime`: the air-traffic table and its ten queries.
//!
//! Loads without any key and with a primary key and the seven keys of the benchmark's users; asks the ten queries
//! with keys, and without where that is wanted. The rows are real flights at other dates (`flights`), or real
//! files (`csv`).

mod csv;
mod flights;
pub mod schema;
mod states;

use std::path::PathBuf;

pub use flights::Flights;

use super::{CsvTable, Data, Workload};
use crate::client::Connection;
use crate::error::{Error, Result};
use crate::measure::median;
use crate::report::{units, Group, Unit};
use crate::run::Bench;

/// Which tables are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Keys {
    /// Without any key.
    None,
    /// With the primary key and the seven keys.
    All,
    /// One after the other.
    Both,
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many rows, of those that are generated.
    pub rows: u64,
    /// Real files in place of generated rows.
    pub csv: Vec<PathBuf>,
    /// Which tables are loaded.
    pub keys: Keys,
    /// No queries.
    pub no_queries: bool,
    /// Ask the queries of the table without keys too.
    pub queries_without_keys: bool,
}

const QUERIES: &str = include_str!("queries.sql");
/// q8 in the sum of the ten is that over ten years, as first published.
const LONGEST_Q8: &str = "10 years";

/// The workload.
pub struct Ontime {
    options: Options,
    tables: Vec<CsvTable>,
}

/// Names and texts of the queries.
pub fn queries() -> Vec<(String, String)> {
    let mut queries: Vec<(String, String)> = Vec::new();
    for line in QUERIES.lines().map(str::trim) {
        match line.strip_prefix("-- ") {
            Some(name) if name.starts_with('q') => queries.push((name.to_owned(), String::new())),
            Some(_) => {}
            None => {
                if let Some((_, sql)) = queries.last_mut() {
                    sql.push_str(line.trim_end_matches(';'));
                    sql.push(' ');
                }
            }
        }
    }
    queries
}

/// Is this one of the ten whose times are summed?
fn is_of_the_ten(name: &str) -> bool {
    !name.starts_with("q8") || name.ends_with(LONGEST_Q8)
}

impl Ontime {
    /// With these choices.
    pub fn new(options: Options) -> Ontime {
        Ontime { options, tables: Vec::new() }
    }

    /// The rows, for `generate`.
    pub fn source(&self) -> Result<Flights> {
        Flights::new(self.options.rows)
    }

    fn table(&self, bench: &mut Bench, keys: bool) -> Result<()> {
        let named = if keys { "with keys" } else { "no keys" };
        let mut connection = bench.connect()?;
        connection.query(&schema::create(keys))?;
        let tables: Vec<CsvTable> = self.tables.iter().map(|table| with_columns(table, keys)).collect();
        let before = bench.server.written_bytes();
        let rows = bench.load(&mut connection, &format!("load, {named}"), &tables)?;
        if bench.keeps_rows() {
            if !self.options.no_queries && (keys || self.options.queries_without_keys) {
                ask(bench, &mut connection, if keys { "" } else { ", no keys" })?;
            }
            drop(connection);
            bench.weigh(named, rows)?;
            bench.written_since(before, rows, &format!("load, {named}"));
        }
        bench.connect()?.query("DROP TABLE ontime")?;
        Ok(())
    }
}

/// A table with keys has one column more than the generated files.
fn with_columns(table: &CsvTable, keys: bool) -> CsvTable {
    let mut table = table.clone();
    if keys && table.columns.is_empty() {
        table.columns = schema::column_list();
    }
    table
}

fn ask(bench: &mut Bench, connection: &mut Connection, suffix: &str) -> Result<()> {
    connection.query("ANALYZE TABLE ontime")?;
    let mut totals = vec![0.0; bench.settings.query_runs as usize];
    for (name, sql) in queries() {
        let seconds = bench.query(connection, &format!("{name}{suffix}"), &sql)?;
        if is_of_the_ten(&name) {
            totals.iter_mut().zip(&seconds).for_each(|(total, one)| *total += one);
        }
    }
    bench.report.add(
        Group::Query,
        &format!("all ten{suffix} (q8: {LONGEST_Q8})"),
        Unit::Seconds,
        median(&totals),
    );
    Ok(())
}

impl Workload for Ontime {
    fn name(&self) -> &'static str {
        "ontime"
    }

    fn about(&self) -> String {
        let source = if self.options.csv.is_empty() {
            format!("{} real flights at dates over 1988 to 2009", units::grouped(self.options.rows as f64))
        } else {
            format!("{} files of the On-Time Performance data", self.options.csv.len())
        };
        format!(
            "The air-traffic table of 93 columns, {source}: loads, sizes, and the benchmark's ten queries."
        )
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let rows = match self.options.csv.is_empty() {
            true => ("rows".to_owned(), units::grouped(self.options.rows as f64)),
            false => ("files".to_owned(), self.options.csv.len().to_string()),
        };
        vec![rows, ("keys".to_owned(), format!("{:?}", self.options.keys).to_lowercase())]
    }

    fn prepare(&mut self, data: &Data) -> Result<()> {
        if self.options.rows == 0 {
            return Err(Error::Usage("rows must not be 0".to_owned()));
        }
        self.tables = if self.options.csv.is_empty() {
            vec![data.table(&self.source()?)?]
        } else {
            self.options.csv.iter().map(|path| csv::table_of(path)).collect::<Result<_>>()?
        };
        Ok(())
    }

    fn run(&self, bench: &mut Bench) -> Result<()> {
        if self.options.keys != Keys::All {
            self.table(bench, false)?;
        }
        if self.options.keys != Keys::None {
            self.table(bench, true)?;
        }
        bench.memory();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_QUERIES: usize = 10;

    #[test]
    fn there_are_ten_queries_and_four_more_years_of_one() {
        let queries = queries();
        assert_eq!(queries.len(), TEN_QUERIES + 4);
        assert_eq!(queries.iter().filter(|(name, _)| is_of_the_ten(name)).count(), TEN_QUERIES);
        for (name, sql) in &queries {
            assert!(sql.starts_with("SELECT") && sql.matches("SELECT").count() <= 3, "{name}: {sql}");
            assert!(!sql.contains(';') && !sql.contains("--"), "{name}: {sql}");
        }
    }
}
