//! The command line.

mod build;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use build::threads;

use crate::error::{Error, Result};
use crate::workload::{lineorder, ontime};

/// Everything.
#[derive(Parser)]
#[command(name = "pando-bench", version, about, long_about = None, after_help = EXAMPLES)]
#[command(about = "Measures storage engines of MariaDB on the same work, with the same cache and durability")]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  pando-bench run iibench --rows 10000000 --engines PANDO,InnoDB,ROCKSDB --html insert.html
  pando-bench run ontime --rows 2000000 --cache-mb 1024 --engines PANDO,InnoDB,BLACKHOLE
  pando-bench run ontime --csv On_Time_*.csv
  pando-bench run tpcc --warehouses 10 --socket /run/mysqld/mysqld.sock --user root
  pando-bench generate lineorder --rows 3000000 --out /tmp/lineorder

BLACKHOLE as an engine shows the floor: client and parser alone.
Results are only comparable within one run, on a machine that does nothing else.";

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Run a workload on some engines and report
    Run {
        /// Which.
        #[command(subcommand)]
        workload: Box<RunWorkload>,
    },
    /// Write a workload's rows as CSV files: the same bytes for the same seed and sizes
    Generate {
        /// Which.
        #[command(subcommand)]
        workload: GenerateWorkload,
    },
    /// Say what the workloads do
    List,
    /// Make the page or the picture of a run from its JSON again
    Report(ReportArguments),
}

/// Choices of `report`.
#[derive(Args)]
pub struct ReportArguments {
    /// What `run --json` wrote
    pub report: PathBuf,
    /// Files to write.
    #[command(flatten)]
    pub outputs: Outputs,
}

/// A workload's choices with those of every run.
#[derive(Args)]
pub struct Run<T: Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    run: RunArguments,
}

/// A workload's choices with those of its files.
#[derive(Args)]
pub struct Generate<T: Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    files: FileArguments,
}

/// A workload to run.
#[derive(Subcommand)]
pub enum RunWorkload {
    /// Air traffic, 93 columns: load without and with keys, sizes, the ten queries
    Ontime(Run<OntimeArguments>),
    /// Star schema fact table with a text: load, add four keys, load with four keys
    Lineorder(Run<LineorderArguments>),
    /// TPC-C: row at a time, LOAD DATA, then the standard mix
    Tpcc(Run<TpccArguments>),
    /// Stored procedure, LIKE scans, UPDATE, ADD COLUMN, ADD INDEX under writes
    Users(Run<UsersArguments>),
    /// Random-key inserts into a table with three secondary keys
    Iibench(Run<IibenchArguments>),
}

/// A workload whose rows are made here.
#[derive(Subcommand)]
pub enum GenerateWorkload {
    /// ontime.csv
    Ontime(Generate<OntimeArguments>),
    /// lineorder.csv
    Lineorder(Generate<LineorderArguments>),
    /// The nine tables
    Tpcc(Generate<TpccArguments>),
    /// orders.csv
    Iibench(Generate<IibenchArguments>),
}

/// Choices of `ontime`.
#[derive(Args)]
pub struct OntimeArguments {
    /// Rows to generate
    #[arg(long, default_value_t = 2_000_000)]
    rows: u64,
    /// Real monthly files of the On-Time Performance data instead of generated rows
    #[arg(long, num_args = 1.., value_name = "FILE")]
    csv: Vec<PathBuf>,
    /// Which tables to load: without keys, with all, or both
    #[arg(long, value_enum, default_value_t = ontime::Keys::Both)]
    keys: ontime::Keys,
    /// Only load
    #[arg(long)]
    no_queries: bool,
    /// Ask the queries of the table without keys too
    #[arg(long)]
    queries_without_keys: bool,
}

/// Choices of `lineorder`.
#[derive(Args)]
pub struct LineorderArguments {
    /// Rows
    #[arg(long, default_value_t = 3_000_000)]
    rows: u64,
    /// What the text column holds
    #[arg(long, value_enum, default_value_t = lineorder::Text::Random)]
    text: lineorder::Text,
}

/// Choices of `tpcc`.
#[derive(Args)]
pub struct TpccArguments {
    /// Warehouses; one is about 600,000 rows
    #[arg(long, default_value_t = 1)]
    warehouses: u64,
    /// Items; fewer than the standard's for a quick try
    #[arg(long, default_value_t = 100_000)]
    items: u64,
    /// Customers of a district; fewer than the standard's for a quick try
    #[arg(long, default_value_t = 3_000)]
    customers: u64,
    /// Sessions of the mix
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// How long the mix runs; 0: not at all
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Leave out the row-at-a-time loader
    #[arg(long)]
    no_row_loader: bool,
    /// Rows of a transaction of the row-at-a-time loader
    #[arg(long, default_value_t = 1000)]
    rows_per_commit: u64,
    /// With the standard's foreign keys
    #[arg(long)]
    foreign_keys: bool,
}

/// Choices of `users`.
#[derive(Args)]
pub struct UsersArguments {
    /// Rows that the procedure inserts
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Rows of a transaction of the procedure
    #[arg(long, default_value_t = 1000)]
    rows_per_commit: u64,
    /// Sessions that insert while the index is made
    #[arg(long, default_value_t = 2)]
    writers: usize,
}

/// Choices of `iibench`.
#[derive(Args)]
pub struct IibenchArguments {
    /// Rows
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Rows of one INSERT
    #[arg(long, default_value_t = 1000)]
    rows_per_statement: u64,
    /// Sessions that insert
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// Primary keys in ascending instead of random order
    #[arg(long)]
    ascending: bool,
}

/// Choices of every run.
#[derive(Args)]
pub struct RunArguments {
    /// Engines, separated by commas; the others are compared with the first
    #[arg(long, value_delimiter = ',', default_value = "PANDO,InnoDB")]
    engines: Vec<String>,
    /// Cache of each engine, MiB (private server)
    #[arg(long, default_value_t = 256)]
    cache_mb: u64,
    /// flush_log_at_trx_commit of each engine (private server)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    flush: u8,
    /// Let the page cache be a second cache (private server)
    #[arg(long)]
    no_direct_io: bool,
    /// One more server option for an engine, such as InnoDB:--innodb-io-capacity=2000
    #[arg(long, value_name = "ENGINE:OPTION")]
    option: Vec<String>,
    /// How often to do everything, going round the engines
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// How often to ask each query
    #[arg(long, default_value_t = 3)]
    query_runs: u32,
    /// Seed of all random choices
    #[arg(long, default_value_t = 2008)]
    seed: u64,
    /// Threads that generate [default: one for each processor]
    #[arg(long)]
    threads: Option<usize>,
    /// Use files that `generate` has written (with the same sizes) instead of making new ones
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// No progress, only the table
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    server: ServerArguments,
}

/// Files to write.
#[derive(Args)]
pub struct Outputs {
    /// Write everything to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the curves to this file as a picture (SVG)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Outputs {
    /// Can they be written? Asked before a run that may take hours. What is in them stays until the end.
    pub fn check(&self) -> Result<()> {
        for path in [&self.json, &self.html, &self.svg].into_iter().flatten() {
            std::fs::File::options().append(true).create(true).open(path).map_err(Error::file(path))?;
        }
        Ok(())
    }
}

/// Which server.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArguments {
    /// Use the server at this socket, with the settings that it has, instead of private ones
    #[arg(long)]
    socket: Option<PathBuf>,
    /// User at that server; the password is taken from MYSQL_PWD
    #[arg(long, default_value = "root")]
    user: String,
    /// Database to make and drop; it must not be there before
    #[arg(long, default_value = "pando_bench")]
    database: String,
    /// Directory with ha_pando.so [default: that of PANDO_PLUGIN, or build/ beside target/ or here]
    #[arg(long, value_name = "DIR")]
    plugin_dir: Option<PathBuf>,
    /// The server's program
    #[arg(long, default_value = "mariadbd")]
    mariadbd: PathBuf,
    /// The program that makes its data directory
    #[arg(long, default_value = "mariadb-install-db")]
    install_db: PathBuf,
    /// Where data and private servers go; they need some times the size of the data [default: TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

/// Where generated files go.
#[derive(Args)]
pub struct FileArguments {
    /// The directory; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Seed of all random choices
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
    /// Threads [default: one for each processor]
    #[arg(long)]
    pub threads: Option<usize>,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    use crate::run::Settings;

    #[test]
    fn the_command_line_is_sound_and_every_workload_has_help() {
        Arguments::command().debug_assert();
        for workload in ["ontime", "lineorder", "tpcc", "users", "iibench"] {
            let error = Arguments::try_parse_from(["pando-bench", "run", workload, "--help"]).err().unwrap();
            let help = error.to_string();
            assert!(
                help.contains("--engines") && help.contains("--socket") && help.contains("--html"),
                "{help}"
            );
        }
    }

    fn settings(words: &[&str]) -> Result<Settings> {
        let words = ["pando-bench", "run", "iibench"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Run { workload } => Ok(workload.build()?.1),
            _ => unreachable!("run was asked for"),
        }
    }

    #[test]
    fn engines_and_their_options_are_understood() {
        let found = settings(&["--engines", "pando,myrocks", "--option", "rocksdb:--rocksdb-x=1"]).unwrap();
        assert_eq!(found.engines, ["PANDO", "ROCKSDB"]);
        assert_eq!(found.extra_options, [("ROCKSDB".to_owned(), "--rocksdb-x=1".to_owned())]);
        for wrong in [
            &["--engines", "PANDO,pando"][..],
            &["--option", "nothing"],
            &["--repeat", "0"],
            &["--rows", "0"],
            &["--database", "a b"],
        ] {
            assert!(settings(wrong).is_err(), "{wrong:?}");
        }
    }
}
