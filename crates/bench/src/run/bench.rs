//! What a workload has at hand while one engine runs: statements that are timed, shown and recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Settings;
use crate::client::{quote, Connection, ResultSet};
use crate::error::{Error, Result};
use crate::generate::LOAD_FORMAT;
use crate::measure::median;
use crate::progress::Step;
use crate::report::{units, Answer, EngineReport, Group, Unit};
use crate::server::{engines, Server};
use crate::workload::CsvTable;

/// One engine, one repetition.
pub struct Bench<'a> {
    /// Name of the engine.
    pub engine: &'a str,
    /// Its server.
    pub server: &'a mut Server,
    /// What has been found.
    pub report: &'a mut EngineReport,
    /// Everything else.
    pub settings: &'a Settings,
}

/// What a table weighs.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes on disk.
    pub bytes: u64,
}

/// Parts of a progress bar for statements whose progress the server tells in per cent.
const PROGRESS_PARTS: u64 = 1000;
const PROGRESS_EVERY: Duration = Duration::from_millis(400);

impl<'a> Bench<'a> {
    pub(super) fn new(
        engine: &'a str,
        server: &'a mut Server,
        report: &'a mut EngineReport,
        settings: &'a Settings,
    ) -> Bench<'a> {
        Bench { engine, server, report, settings }
    }

    /// Does the engine keep rows, so that there is something to ask and to weigh?
    pub fn keeps_rows(&self) -> bool {
        !engines::keeps_nothing(self.engine)
    }

    /// A session in the run's database, with the engine as the default one.
    pub fn connect(&self) -> Result<Connection> {
        connect(self.server, self.engine, &self.settings.database)
    }

    /// A step with a bar of its own.
    pub fn step(&self, name: &str, parts: u64) -> Step {
        Step::begin(self.engine, name, parts, self.settings.quiet)
    }

    /// Runs a statement with a bar, records its time, and gives the answer and the seconds.
    pub fn timed(
        &mut self,
        connection: &mut Connection,
        group: Group,
        name: &str,
        sql: &str,
    ) -> Result<(ResultSet, f64)> {
        let (result, seconds) = self.watched(connection, name, sql)?;
        self.report.add(group, name, Unit::Seconds, seconds);
        Ok((result, seconds))
    }

    /// Runs a statement with a bar; gives the answer and the seconds.
    pub fn watched(&self, connection: &mut Connection, name: &str, sql: &str) -> Result<(ResultSet, f64)> {
        let step = self.step(name, PROGRESS_PARTS);
        let done = AtomicBool::new(false);
        let id = connection.id;
        let (result, seconds) = thread::scope(|scope| {
            if step.is_shown() {
                scope.spawn(|| self.watch(id, &step, &done));
            }
            let begin = Instant::now();
            let result = connection.query(sql);
            let seconds = begin.elapsed().as_secs_f64();
            done.store(true, Ordering::Relaxed);
            (result, seconds)
        });
        let result = result?;
        step.end("");
        Ok((result, seconds))
    }

    /// Shows how far the server says that a session's statement is.
    fn watch(&self, id: u32, step: &Step, done: &AtomicBool) {
        let Ok(mut connection) = self.server.connect() else { return };
        let sql =
            format!("SELECT stage, max_stage, progress FROM information_schema.processlist WHERE id = {id}");
        let mut waited = Duration::ZERO;
        const PAUSE: Duration = Duration::from_millis(20);
        while !done.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
            waited += PAUSE;
            if waited < PROGRESS_EVERY {
                continue;
            }
            waited = Duration::ZERO;
            let Ok(row) = connection.query(&sql) else { return };
            let cell = |column| row.number::<f64>(0, column).unwrap_or(0.0);
            let (stage, stages, percent) = (cell(0), cell(1), cell(2));
            if stages > 0.0 {
                let part = ((stage - 1.0).max(0.0) + percent / 100.0) / stages;
                step.at((part * PROGRESS_PARTS as f64) as u64);
            }
        }
    }

    /// LOAD DATA of one table from one or more files; records the time of all, checks the numbers of rows, and
    /// gives how many they were.
    pub fn load(&mut self, connection: &mut Connection, name: &str, files: &[CsvTable]) -> Result<u64> {
        let (mut rows, mut seconds) = (0, 0.0);
        for file in files {
            let (result, one) = self.watched(connection, name, &self.load_statement(file))?;
            self.check_load(&result, file)?;
            rows += result.affected;
            seconds += one;
        }
        self.report.add(Group::Load, name, Unit::Seconds, seconds);
        Ok(rows)
    }

    /// The LOAD DATA statement for a table.
    pub fn load_statement(&self, table: &CsvTable) -> String {
        let local = if self.server.is_private() { "" } else { "LOCAL " };
        format!(
            "LOAD DATA {local}INFILE {} INTO TABLE {} {} {}",
            quote(&table.path.display().to_string()),
            table.table,
            LOAD_FORMAT,
            table.columns
        )
    }

    /// Were all rows taken? Warnings become a note.
    pub fn check_load(&mut self, result: &ResultSet, table: &CsvTable) -> Result<()> {
        if let Some(rows) = table.rows.filter(|&rows| rows != result.affected) {
            return Err(Error::Data(format!(
                "{}: {} rows loaded from {} of {rows}",
                self.engine,
                result.affected,
                table.path.display()
            )));
        }
        if result.warnings > 0 {
            self.report.note(format!("loading {} gave {} warnings", table.table, result.warnings));
        }
        Ok(())
    }

    /// Asks a query as often as the settings say, records the times and the answer's digest; gives the times.
    pub fn query(&mut self, connection: &mut Connection, name: &str, sql: &str) -> Result<Vec<f64>> {
        let step = self.step(name, u64::from(self.settings.query_runs));
        let mut times = Vec::new();
        for run in 1..=self.settings.query_runs {
            let begin = Instant::now();
            let result = connection.query(sql)?;
            let seconds = begin.elapsed().as_secs_f64();
            times.push(seconds);
            self.report.add(Group::Query, name, Unit::Seconds, seconds);
            self.answer(name, &result);
            step.at(u64::from(run));
        }
        step.end(&format!("median {}", units::seconds(median(&times))));
        Ok(times)
    }

    /// Keeps an answer that must be equal in all engines and repetitions.
    pub fn answer(&mut self, name: &str, result: &ResultSet) {
        let answer = Answer { name: name.to_owned(), rows: result.rows(), digest: result.digest() };
        if !self.report.answers.contains(&answer) {
            self.report.answers.push(answer);
        }
    }

    /// Weighs the run's database: a private server is stopped for that and started again, so that nothing is left
    /// in memory or in a log that belongs into the tables. `None` where the files cannot be seen.
    pub fn weigh(&mut self, name: &str, rows: u64) -> Result<Option<Size>> {
        if !self.keeps_rows() {
            return Ok(None);
        }
        let step = self.step(&format!("weigh: {name}"), 0);
        engines::settle(&mut self.connect()?, self.engine)?;
        let data_dir = self.server.data_dir();
        if let Some(private) = self.server.private() {
            private.stop()?;
        }
        let size = data_dir.map(|directory| Size {
            bytes: engines::table_bytes(&directory, self.engine, &self.settings.database),
        });
        if let Some(private) = self.server.private() {
            private.launch()?;
        }
        if let Some(size) = size {
            self.report.add(Group::Size, name, Unit::Bytes, size.bytes as f64);
            step.end(&format!(
                "{}, {:.1} B/row",
                units::bytes(size.bytes as f64),
                size.bytes as f64 / rows.max(1) as f64
            ));
        }
        Ok(size)
    }

    /// Records what was written since `before`, in all and for each row.
    pub fn written_since(&mut self, before: Option<u64>, rows: u64, name: &str) {
        if let (Some(before), Some(now)) = (before, self.server.written_bytes()) {
            let bytes = now.saturating_sub(before) as f64;
            self.report.add(Group::Written, name, Unit::Bytes, bytes);
            self.report.add(
                Group::Written,
                &format!("{name}, per row"),
                Unit::BytesPerRow,
                bytes / rows.max(1) as f64,
            );
        }
    }

    /// Records the most memory that the server has had.
    pub fn memory(&mut self) {
        if let Some(bytes) = self.server.memory_bytes_max() {
            self.report.add(Group::Memory, "server's memory at most", Unit::Bytes, bytes as f64);
        }
    }
}

/// As `Bench::connect`, for other threads.
pub(crate) fn connect(server: &Server, engine: &str, database: &str) -> Result<Connection> {
    let mut connection = server.connect()?;
    connection.query(&format!("USE {database}"))?;
    connection.query(&format!("SET default_storage_engine = {engine}"))?;
    Ok(connection)
}
