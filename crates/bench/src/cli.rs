//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::client::Address;
use crate::error::{Error, Result};
use crate::generate::Source;
use crate::run::{Settings, Target};
use crate::server::{engines, Conditions, Programs};
use crate::workload::{iibench, lineorder, ontime, tpcc, users, Workload};

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

/// As many as there are processors, unless told.
pub fn threads(told: Option<usize>) -> usize {
    told.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl OntimeArguments {
    /// The workload.
    pub fn workload(self) -> ontime::Ontime {
        ontime::Ontime::new(ontime::Options {
            rows: self.rows,
            csv: self.csv,
            keys: self.keys,
            no_queries: self.no_queries,
            queries_without_keys: self.queries_without_keys,
        })
    }
}

impl LineorderArguments {
    /// The workload.
    pub fn workload(self) -> lineorder::Lineorder {
        lineorder::Lineorder::new(lineorder::Options { rows: self.rows, text: self.text })
    }
}

impl TpccArguments {
    /// The workload.
    pub fn workload(self, seed: u64) -> tpcc::Tpcc {
        tpcc::Tpcc::new(tpcc::Options {
            scale: tpcc::Scale {
                warehouses: self.warehouses,
                items: self.items,
                customers: self.customers,
                seed,
            },
            clients: self.clients,
            seconds: self.seconds,
            no_row_loader: self.no_row_loader,
            rows_per_commit: self.rows_per_commit,
        })
    }
}

impl UsersArguments {
    /// The workload.
    pub fn workload(self) -> users::Users {
        users::Users::new(users::Options {
            rows: self.rows,
            rows_per_commit: self.rows_per_commit,
            writers: self.writers,
        })
    }
}

impl IibenchArguments {
    /// The workload.
    pub fn workload(self) -> Result<iibench::Iibench> {
        iibench::Iibench::new(iibench::Options {
            rows: self.rows,
            rows_per_statement: self.rows_per_statement,
            clients: self.clients,
            ascending: self.ascending,
        })
    }
}

impl RunWorkload {
    /// The workload, the settings of the run, and the files to write.
    pub fn build(self) -> Result<(Box<dyn Workload>, Settings, Outputs)> {
        let (workload, run): (Box<dyn Workload>, RunArguments) = match self {
            RunWorkload::Ontime(Run { own, run }) => (Box::new(own.workload()), run),
            RunWorkload::Lineorder(Run { own, run }) => (Box::new(own.workload()), run),
            RunWorkload::Tpcc(Run { own, run }) => (Box::new(own.workload(run.seed)), run),
            RunWorkload::Users(Run { own, run }) => (Box::new(own.workload()), run),
            RunWorkload::Iibench(Run { own, run }) => (Box::new(own.workload()?), run),
        };
        let (settings, outputs) = run.settings()?;
        Ok((workload, settings, outputs))
    }
}

impl GenerateWorkload {
    /// The tables, and where their files go.
    pub fn build(self) -> Result<(Vec<Box<dyn Source>>, FileArguments)> {
        Ok(match self {
            GenerateWorkload::Ontime(Generate { own, files }) => {
                (vec![Box::new(own.workload().source()?)], files)
            }
            GenerateWorkload::Lineorder(Generate { own, files }) => {
                (vec![Box::new(own.workload().source())], files)
            }
            GenerateWorkload::Iibench(Generate { own, files }) => {
                (vec![Box::new(own.workload()?.source())], files)
            }
            GenerateWorkload::Tpcc(Generate { own, files }) => {
                let tables = own.workload(files.seed).sources().into_iter();
                (tables.map(|table| Box::new(table) as Box<dyn Source>).collect(), files)
            }
        })
    }
}

impl RunArguments {
    fn settings(self) -> Result<(Settings, Outputs)> {
        if self.repeat == 0 || self.query_runs == 0 {
            return Err(Error::Usage("--repeat and --query-runs must not be 0".to_owned()));
        }
        let extra_options = self.option.iter().map(|one| split_option(one)).collect::<Result<Vec<_>>>()?;
        let engines: Vec<String> = self.engines.iter().map(|name| engines::canonical(name.trim())).collect();
        let repeated = engines.iter().enumerate().find(|(at, name)| engines[..*at].contains(name));
        if let Some((_, name)) = repeated {
            return Err(Error::Usage(format!("engine {name} is named twice")));
        }
        let settings = Settings {
            engines,
            conditions: Conditions {
                cache_mb: self.cache_mb,
                flush_at_commit: self.flush,
                direct_io: !self.no_direct_io,
            },
            extra_options,
            database: self.server.database.clone(),
            target: self.server.target()?,
            repeat: self.repeat,
            query_runs: self.query_runs,
            seed: self.seed,
            threads: threads(self.threads),
            data: self
                .data
                .map(|path| std::fs::canonicalize(&path).map_err(Error::file(&path)))
                .transpose()?,
            quiet: self.quiet,
            command: command_line(),
        };
        Ok((settings, self.outputs))
    }
}

impl ServerArguments {
    fn target(self) -> Result<Target> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self.database.is_empty() || !self.database.bytes().all(plain) {
            return Err(Error::Usage("--database takes letters, digits and _".to_owned()));
        }
        if let Some(socket) = self.socket {
            let password = std::env::var("MYSQL_PWD").unwrap_or_default();
            return Ok(Target::Given(Address { socket, user: self.user, password }));
        }
        let plugin_dir = self.plugin_dir.unwrap_or_else(default_plugin_dir);
        let work_dir = self.work_dir.unwrap_or_else(std::env::temp_dir);
        let work_dir = std::fs::canonicalize(&work_dir).map_err(Error::file(&work_dir))?;
        Ok(Target::Private(Programs::new(self.mariadbd, self.install_db, plugin_dir, work_dir)))
    }
}

/// "InnoDB:--x=y" in its two halves.
fn split_option(text: &str) -> Result<(String, String)> {
    match text.split_once(':') {
        Some((engine, option)) if option.starts_with("--") => {
            Ok((engines::canonical(engine), option.to_owned()))
        }
        _ => Err(Error::Usage(format!("--option takes ENGINE:--option, not '{text}'"))),
    }
}

/// This program is target/PROFILE/pando-bench; the plugin is built to build/ beside target/.
fn default_plugin_dir() -> PathBuf {
    if let Some(file) = std::env::var_os("PANDO_PLUGIN") {
        return Path::new(&file).parent().map(Path::to_path_buf).unwrap_or_default();
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.ancestors().nth(3)?.join("build")));
    beside.filter(|path| path.is_dir()).unwrap_or_else(|| PathBuf::from("build"))
}

/// As it was typed, without the path of the program.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=/.,:%+".contains(&byte);
        if !word.is_empty() && word.bytes().all(plain) {
            word
        } else {
            format!("'{word}'")
        }
    });
    std::iter::once("pando-bench".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

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
