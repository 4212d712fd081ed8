//! From the words of the command line to workloads and settings.

use std::path::{Path, PathBuf};

use super::{
    FileArguments, Generate, GenerateWorkload, IibenchArguments, LineorderArguments, OntimeArguments,
    Outputs, Run, RunArguments, RunWorkload, ServerArguments, TpccArguments, UsersArguments,
};
use crate::client::Address;
use crate::error::{Error, Result};
use crate::generate::Source;
use crate::run::{Settings, Target};
use crate::server::{engines, Conditions, Programs};
use crate::workload::{iibench, lineorder, ontime, tpcc, users, Workload};

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
            foreign_keys: self.foreign_keys,
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
