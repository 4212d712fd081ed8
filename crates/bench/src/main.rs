//! `pando-bench`: see the crate's documentation and `pando-bench --help`.
//!
//! Exit status: 0 all is well, 1 engines answered differently, 2 the run could not be carried out.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use pando_bench::cleanup::end_by_signals;
use pando_bench::cli::{threads, Arguments, Command, GenerateWorkload, Outputs, ReportArguments};
use pando_bench::error::{Error, Result};
use pando_bench::report::{chart, html, text, Report};
use pando_bench::workload::{make_directory, Data};

fn main() -> ExitCode {
    end_by_signals();
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("pando-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<bool> {
    match command {
        Command::Run { workload } => {
            let (mut workload, settings, outputs) = workload.build()?;
            outputs.check()?;
            let report = pando_bench::run::run(&mut *workload, &settings)?;
            print!("{}", text::render(&report));
            write(&report, &outputs)?;
            Ok(report.differences.is_empty())
        }
        Command::Generate { workload } => generate(workload).map(|()| true),
        Command::List => {
            print!("{LIST}");
            Ok(true)
        }
        Command::Report(ReportArguments { report: json, outputs }) => {
            let content = std::fs::read_to_string(&json).map_err(Error::file(&json))?;
            let report = Report::from_json(&content).map_err(|what| {
                Error::Data(format!("{}: no report of pando-bench: {what}", json.display()))
            })?;
            print!("{}", text::render(&report));
            write(&report, &outputs)?;
            Ok(report.differences.is_empty())
        }
    }
}

fn write(report: &Report, outputs: &Outputs) -> Result<()> {
    let save = |path: &Path, content: &str| std::fs::write(path, content).map_err(Error::file(path));
    if let Some(path) = &outputs.json {
        save(path, &report.to_json())?;
    }
    if let Some(path) = &outputs.html {
        save(path, &html::render(report))?;
    }
    if let Some(path) = &outputs.svg {
        let picture = chart::picture(report);
        save(path, &picture.ok_or_else(|| Error::Usage("--svg: this workload has no curves".to_owned()))?)?;
    }
    Ok(())
}

fn generate(workload: GenerateWorkload) -> Result<()> {
    let (tables, files) = workload.build()?;
    make_directory(&files.out)?;
    let data = Data {
        directory: files.out.clone(),
        ready: false,
        seed: files.seed,
        threads: threads(files.threads),
        quiet: files.quiet,
    };
    tables.iter().try_for_each(|table| data.table(&**table).map(|_| ()))
}

const LIST: &str = "\
ontime     The air-traffic table, 93 columns. Rows are real flights (data/) at dates over 1988 to 2009, or real
           monthly files (--csv). Load without keys and with a primary key and seven keys, sizes, ten queries
           and one of them over 1, 2, 3, 4 and 10 years.
lineorder  LINEORDER of the star schema benchmark with a TEXT of ten words, random or repeating. Load without
           keys, add four keys, load with four keys, sizes, five queries.
tpcc       The nine tables of TPC-C as CSV. Load row at a time and by LOAD DATA, then the standard mix of five
           transactions by several sessions; consistency is checked.
users      A stored procedure inserts random rows one at a time; three scans by LIKE, an UPDATE over one, ADD
           COLUMN, ADD INDEX while others insert, with the longest wait that those see.
iibench    Inserts in random key order into a table with three secondary keys: rows per second over the rows in
           the table, percentiles, longest statement, bytes written and stored per row.

pando-bench run WORKLOAD --help   tells each one's choices
";
