//! The workloads. Each is a directory or file: its tables, how its rows are made, and what is done with them.

pub mod calendar;
pub mod iibench;
pub mod lineorder;
pub mod ontime;
pub mod tpcc;
pub mod users;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::generate::{write_table, Source, Written};
use crate::progress::Step;
use crate::report::units;
use crate::run::Bench;

/// Something to measure engines with.
pub trait Workload {
    /// As on the command line.
    fn name(&self) -> &'static str;
    /// What is done, for the head of the report.
    fn about(&self) -> String;
    /// Sizes and choices, for the report.
    fn parameters(&self) -> Vec<(String, String)>;
    /// Makes or finds the data, before any engine runs.
    fn prepare(&mut self, data: &Data) -> Result<()>;
    /// One engine, one repetition.
    fn run(&self, bench: &mut Bench) -> Result<()>;
}

/// Where generated files go, and how they are made.
pub struct Data {
    /// The directory.
    pub directory: PathBuf,
    /// They are there already.
    pub ready: bool,
    /// Seed of the random choices.
    pub seed: u64,
    /// Threads that generate.
    pub threads: usize,
    /// Say nothing.
    pub quiet: bool,
}

/// A file with a table's rows.
#[derive(Clone, Debug)]
pub struct CsvTable {
    /// The table to load it into.
    pub table: String,
    /// The file.
    pub path: PathBuf,
    /// How many rows it has, if known.
    pub rows: Option<u64>,
    /// List of columns and SET clause of LOAD DATA; empty for all columns in order.
    pub columns: String,
}

impl Data {
    /// Makes the file of a table, or finds it.
    pub fn table(&self, source: &dyn Source) -> Result<CsvTable> {
        let name = source.name();
        let path = self.directory.join(format!("{name}.csv"));
        let rows = if self.ready {
            if !path.is_file() {
                return Err(Error::Usage(format!(
                    "{} is not there; make it with `generate`",
                    path.display()
                )));
            }
            None
        } else {
            Some(self.generate(source)?.rows)
        };
        Ok(CsvTable { table: name.to_owned(), path, rows, columns: String::new() })
    }

    fn generate(&self, source: &dyn Source) -> Result<Written> {
        let step = Step::begin("generate", source.name(), source.units(), self.quiet);
        let begin = std::time::Instant::now();
        let written =
            write_table(source, &self.directory, self.seed, self.threads, &mut |done| step.at(done))?;
        let seconds = begin.elapsed().as_secs_f64().max(1e-9);
        step.end(&format!(
            "{} rows, {}, {}/s",
            units::grouped(written.rows as f64),
            units::bytes(written.bytes as f64),
            units::bytes(written.bytes as f64 / seconds)
        ));
        Ok(written)
    }
}

/// Statements in a text, separated by semicolons at the ends of lines; lines that begin with -- are left out.
pub fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let code = code.join("\n");
    code.split(";\n")
        .map(|one| one.trim().trim_end_matches(';').to_owned())
        .filter(|one| !one.is_empty())
        .collect()
}

/// Makes a directory if it is not there.
pub fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    #[test]
    fn statements_end_at_semicolons_and_comments_go() {
        let text = "-- a\nSELECT 1,\n 2;\n\n-- b\nSELECT ';' ;\nSELECT 3";
        assert_eq!(super::statements(text), ["SELECT 1,\n 2", "SELECT ';' ", "SELECT 3"].map(str::trim));
    }
}
