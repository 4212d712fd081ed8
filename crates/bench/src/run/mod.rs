//! The loop over repetitions and engines.

mod bench;
mod machine;

use std::path::PathBuf;

pub(crate) use bench::connect;
pub use bench::{Bench, Size};

use crate::cleanup::Directory;
use crate::error::{Error, Result};
use crate::report::model::FORMAT;
use crate::report::{EngineReport, Report};
use crate::server::{engines, Conditions, PrivateServer, Programs, Server};
use crate::workload::{Data, Workload};

/// Where the engines are.
pub enum Target {
    /// A fresh private server for each run of an engine.
    Private(Programs),
    /// This server, with the settings that it has.
    Given(crate::client::Address),
}

/// Everything that does not depend on the workload.
pub struct Settings {
    /// Names, in the order in which they run and are shown.
    pub engines: Vec<String>,
    /// Cache and durability.
    pub conditions: Conditions,
    /// Further server options of an engine: name, option.
    pub extra_options: Vec<(String, String)>,
    /// Where they run.
    pub target: Target,
    /// How often everything is done.
    pub repeat: u32,
    /// How often each query is asked.
    pub query_runs: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// Threads that generate.
    pub threads: usize,
    /// Generated files that are there already, to be used in place of new ones.
    pub data: Option<PathBuf>,
    /// The database that is made and dropped.
    pub database: String,
    /// Say nothing while working.
    pub quiet: bool,
    /// The command line, for the report.
    pub command: String,
}

/// Runs a workload on all engines.
pub fn run(workload: &mut dyn Workload, settings: &Settings) -> Result<Report> {
    let machine = machine::look();
    let work_dir = match &settings.target {
        Target::Private(programs) => programs.work_dir.clone(),
        Target::Given(_) => std::env::temp_dir(),
    };
    let temporary = Directory::new(&work_dir, "pando-bench-data.")?;
    let data = Data {
        directory: settings.data.clone().unwrap_or_else(|| temporary.path().to_path_buf()),
        ready: settings.data.is_some(),
        seed: settings.seed,
        threads: settings.threads,
        quiet: settings.quiet,
    };
    workload.prepare(&data)?;
    let mut reports: Vec<EngineReport> =
        settings.engines.iter().map(|name| EngineReport::new(name)).collect();
    for repetition in 0..settings.repeat {
        for report in &mut reports {
            if settings.repeat > 1 && !settings.quiet {
                eprintln!("{} ({} of {})", report.engine, repetition + 1, settings.repeat);
            }
            run_engine(&*workload, settings, report)?;
        }
    }
    let mut parameters = workload.parameters();
    parameters.extend([
        ("seed".to_owned(), settings.seed.to_string()),
        (
            "repetitions".to_owned(),
            format!("{} of everything, {} of each query", settings.repeat, settings.query_runs),
        ),
    ]);
    let mut report = Report {
        format: FORMAT,
        workload: workload.name().to_owned(),
        about: workload.about(),
        date: machine::now_utc(),
        command: settings.command.clone(),
        machine,
        parameters,
        engines: reports,
        differences: Vec::new(),
    };
    report.compare_answers();
    Ok(report)
}

fn run_engine(workload: &dyn Workload, settings: &Settings, report: &mut EngineReport) -> Result<()> {
    let engine = report.engine.clone();
    let mut server = match &settings.target {
        Target::Given(address) => Server::Given(address.clone()),
        Target::Private(programs) => {
            let mut options = engines::options(&engine, &settings.conditions);
            let own = settings.extra_options.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&engine));
            options.extend(own.map(|(_, option)| option.clone()));
            report.settings = options.clone();
            Server::Private(PrivateServer::start(programs, &options)?)
        }
    };
    let mut connection = server.connect()?;
    report.server = connection.value("SELECT VERSION()")?.unwrap_or_default();
    if matches!(settings.target, Target::Given(_)) {
        report.settings = given_settings(&mut connection, &engine)?;
    }
    let there = format!(
        "SELECT COUNT(*) FROM information_schema.engines WHERE engine = '{engine}' AND support <> 'NO'"
    );
    if connection.number(&there)? == 0.0 {
        return Err(Error::Usage(format!("the server has no engine {engine}")));
    }
    connection.query(&format!("CREATE DATABASE {}", settings.database)).map_err(|error| {
        match error.sql_number() {
            Some(1007) => Error::Usage(format!(
            "the server has a database {}; it may be somebody's: drop it, or choose another with --database",
            settings.database
        )),
            _ => error,
        }
    })?;
    drop(connection);
    let done = workload.run(&mut Bench::new(&engine, &mut server, report, settings));
    if let Server::Given(_) = server {
        server.connect()?.query(&format!("DROP DATABASE {}", settings.database))?;
    }
    done
}

fn given_settings(connection: &mut crate::client::Connection, engine: &str) -> Result<Vec<String>> {
    let mut settings = Vec::new();
    for name in engines::variables(engine) {
        let row = connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        if let Some(value) = row.text(0, 1) {
            settings.push(format!("{name}={value}"));
        }
    }
    Ok(settings)
}
