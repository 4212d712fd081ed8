//! `users`: a table as a small application has it, filled by a stored procedure, searched, changed and altered.
//!
//! 1. A stored procedure inserts random rows one at a time, some of them a transaction. Its random numbers are
//!    RAND() with the session's seeds set, so that every engine gets the same rows: first and last name from 16
//!    each, a city from 12, even; a mail address with 32 random hexadecimal digits; a balance even over 0 to
//!    10,000; a day of birth even over 20,000 days; 64 random hexadecimal digits about oneself.
//! 2. Three searches by LIKE with a leading wildcard: scans of the table.
//! 3. An UPDATE of the rows that such a search finds.
//! 4. ADD COLUMN with a default.
//! 5. ADD INDEX while other sessions insert rows one at a time, each its own transaction: how long the index takes,
//!    and how long the others have to wait. Before it they insert for a while by themselves, to compare.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Data, Workload};
use crate::client::Connection;
use crate::error::{Error, Result};
use crate::measure::Histogram;
use crate::report::{units, Group, Unit};
use crate::run::{connect, Bench};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many rows.
    pub rows: u64,
    /// Rows of one transaction of the procedure.
    pub rows_per_commit: u64,
    /// Sessions that insert while the index is made.
    pub writers: usize,
}

const TABLE: &str = "CREATE TABLE users (
    id      INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name    VARCHAR(60) NOT NULL,
    email   VARCHAR(100) NOT NULL,
    city    VARCHAR(40) NOT NULL,
    born    DATE NOT NULL,
    balance DECIMAL(10,2) NOT NULL,
    about   VARCHAR(200) NOT NULL
) DEFAULT CHARSET latin1";

const INSERT: &str = "INSERT INTO users (name, email, city, born, balance, about) VALUES (
    CONCAT(ELT(1 + FLOOR(RAND() * 16), 'Anna', 'Ben', 'Clara', 'David', 'Emma', 'Felix', 'Greta', 'Hugo', 'Ida',
        'Jonas', 'Karla', 'Leo', 'Mia', 'Noah', 'Olga', 'Paul'), ' ',
        ELT(1 + FLOOR(RAND() * 16), 'Adams', 'Baker', 'Carter', 'Dixon', 'Evans', 'Foster', 'Grant', 'Hudson', 'Irving',
        'Johnson', 'Keller', 'Lawson', 'Mason', 'Nelson', 'Owens', 'Parker')),
    CONCAT(MD5(RAND()), '@example.org'),
    ELT(1 + FLOOR(RAND() * 12), 'Athens', 'Berlin', 'Cairo', 'Delhi', 'Essen', 'Fargo', 'Geneva', 'Havana', 'Izmir',
        'Jakarta', 'Kyoto', 'Lima'),
    '1950-01-01' + INTERVAL FLOOR(RAND() * 20000) DAY,
    FLOOR(RAND() * 1000000) / 100,
    CONCAT(MD5(RAND()), MD5(RAND())))";

const SEARCHES: [(&str, &str); 3] = [
    ("search a name", "SELECT COUNT(*), MIN(id), MAX(id) FROM users WHERE name LIKE '%son'"),
    ("search an address", "SELECT COUNT(*), MIN(id), MAX(id) FROM users WHERE email LIKE '%a1b%'"),
    ("search a text", "SELECT COUNT(*), MIN(id), MAX(id) FROM users WHERE about LIKE '%00%ff%'"),
];
const UPDATE: &str =
    "UPDATE users SET balance = balance + 1, about = CONCAT('seen ', about) WHERE name LIKE '%a%son'";
const ADD_COLUMN: &str = "ALTER TABLE users ADD COLUMN visits INT NOT NULL DEFAULT 7";
const ADD_INDEX: &str = "ALTER TABLE users ADD INDEX email (email)";
const SUMS: &str = "SELECT COUNT(*), SUM(id), SUM(CRC32(name)), SUM(CRC32(email)), SUM(CRC32(city)), \
                    SUM(TO_DAYS(born)), SUM(balance), SUM(CRC32(about)) FROM users";
/// The server refuses LOCK=NONE: not supported, or not supported for a reason.
const LOCK_REFUSED: [u16; 2] = [1845, 1846];
/// How long the writers run by themselves.
const ALONE: Duration = Duration::from_secs(1);

/// The workload.
pub struct Users {
    options: Options,
}

impl Users {
    /// With these choices.
    pub fn new(options: Options) -> Users {
        Users { options }
    }

    fn fill(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        connection.query(&format!(
            "CREATE PROCEDURE fill_users (IN wanted INT)
             BEGIN
                 DECLARE done INT DEFAULT 0;
                 START TRANSACTION;
                 WHILE done < wanted DO
                     {INSERT};
                     SET done = done + 1;
                 END WHILE;
                 COMMIT;
             END"
        ))?;
        let seed = bench.settings.seed;
        connection.query(&format!(
            "SET rand_seed1 = {}, rand_seed2 = {}",
            seed % (1 << 30),
            seed / 7 % (1 << 30) + 1
        ))?;
        let step = bench.step("insert by a procedure", self.options.rows);
        let begin = Instant::now();
        let mut done = 0;
        while done < self.options.rows {
            let count = self.options.rows_per_commit.min(self.options.rows - done);
            connection.query(&format!("CALL fill_users({count})"))?;
            done += count;
            step.at(done);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let speed = self.options.rows as f64 / seconds;
        step.end(&format!("{}/s", units::grouped(speed)));
        bench.report.add(Group::Load, "insert by a procedure", Unit::Seconds, seconds);
        bench.report.add(Group::Throughput, "inserts by a procedure", Unit::RowsPerSecond, speed);
        Ok(())
    }

    fn search_and_change(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        for (name, sql) in SEARCHES {
            bench.query(connection, name, sql)?;
        }
        bench.timed(connection, Group::Change, "update by a search", UPDATE)?;
        bench.timed(connection, Group::Schema, "add a column", ADD_COLUMN)?;
        for (name, sql) in [("all rows", SUMS), ("the new column", "SELECT SUM(visits) FROM users")] {
            let result = connection.query(sql)?;
            bench.answer(name, &result);
        }
        Ok(())
    }

    fn hot_index(&self, bench: &mut Bench, connection: &mut Connection) -> Result<()> {
        let phase = AtomicU8::new(BEFORE);
        let shared: &Bench = bench;
        let (altered, writers) = thread::scope(|scope| {
            let writers: Vec<_> =
                (0..self.options.writers).map(|_| scope.spawn(|| write(shared, &phase))).collect();
            thread::sleep(ALONE);
            phase.store(DURING, Ordering::SeqCst);
            let altered = alter(shared, connection);
            phase.store(AFTER, Ordering::SeqCst);
            let writers: Result<Vec<Writer>> = writers
                .into_iter()
                .map(|writer| {
                    writer.join().unwrap_or_else(|_| Err(Error::Data("a writer panicked".to_owned())))
                })
                .collect();
            (altered, writers)
        });
        let ((seconds, note), writers) = (altered?, writers?);
        if let Some(note) = note {
            bench.report.note(note);
        }
        bench.report.add(Group::Schema, "add an index while others write", Unit::Seconds, seconds);
        let (mut before, mut during) = (Histogram::default(), Histogram::default());
        for writer in &writers {
            before.merge(&writer.before);
            during.merge(&writer.during);
        }
        for (histogram, when) in [(&before, "before"), (&during, "while the index is made")] {
            let report = &mut bench.report;
            report.add(
                Group::Latency,
                &format!("an insert {when}, median"),
                Unit::Seconds,
                histogram.percentile(0.5),
            );
            report.add(
                Group::Latency,
                &format!("an insert {when}, 99 of 100"),
                Unit::Seconds,
                histogram.percentile(0.99),
            );
            report.add(
                Group::Latency,
                &format!("an insert {when}, longest"),
                Unit::Seconds,
                histogram.longest_seconds,
            );
            report.add_timing(&format!("single inserts {when}"), histogram);
        }
        bench.report.add(
            Group::Throughput,
            "inserts before",
            Unit::RowsPerSecond,
            before.count as f64 / ALONE.as_secs_f64(),
        );
        bench.report.add(
            Group::Throughput,
            "inserts while the index is made",
            Unit::RowsPerSecond,
            during.count as f64 / seconds.max(1e-9),
        );
        self.check(connection, writers.iter().map(|writer| writer.rows).sum())
    }

    /// Table and new index both have every row that was acknowledged.
    fn check(&self, connection: &mut Connection, inserted: u64) -> Result<()> {
        let expected = self.options.rows + inserted;
        for index in ["USE INDEX ()", "FORCE INDEX (email)"] {
            let found =
                connection.number(&format!("SELECT COUNT(email) FROM users {index} WHERE email >= ''"))?;
            if found != expected as f64 {
                return Err(Error::Data(format!("{found} rows by {index} where {expected} were inserted")));
            }
        }
        Ok(())
    }
}

const BEFORE: u8 = 0;
const DURING: u8 = 1;
const AFTER: u8 = 2;

#[derive(Default)]
struct Writer {
    before: Histogram,
    during: Histogram,
    rows: u64,
}

/// Inserts row after row until the index is there.
fn write(bench: &Bench, phase: &AtomicU8) -> Result<Writer> {
    let mut connection = connect(bench.server, bench.engine, &bench.settings.database)?;
    let mut writer = Writer::default();
    loop {
        let at_begin = phase.load(Ordering::SeqCst);
        if at_begin == AFTER {
            return Ok(writer);
        }
        let begin = Instant::now();
        match connection.query(INSERT) {
            Ok(_) => writer.rows += 1,
            // The ALTER may make a transaction give way; how long that took counts all the same.
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error),
        }
        let seconds = begin.elapsed().as_secs_f64();
        // Whatever overlaps with the ALTER belongs to it: the longest wait may have begun before.
        if at_begin == DURING || phase.load(Ordering::SeqCst) == DURING {
            writer.during.add(seconds);
        } else {
            writer.before.add(seconds);
        }
    }
}

/// Adds the index without a lock, or where the engine cannot do that, as it can; then with a note.
fn alter(bench: &Bench, connection: &mut Connection) -> Result<(f64, Option<String>)> {
    let name = "add an index while others write";
    match bench.watched(connection, name, &format!("{ADD_INDEX}, LOCK=NONE")) {
        Ok((_, seconds)) => Ok((seconds, None)),
        Err(error) if error.sql_number().is_some_and(|number| LOCK_REFUSED.contains(&number)) => {
            let (_, seconds) = bench.watched(connection, name, ADD_INDEX)?;
            Ok((seconds, Some(format!("ADD INDEX with LOCK=NONE was refused ({error}); done without it"))))
        }
        Err(error) => Err(error),
    }
}

impl Workload for Users {
    fn name(&self) -> &'static str {
        "users"
    }

    fn about(&self) -> String {
        format!(
            "{} rows inserted one at a time by a stored procedure, {} a transaction; three searches by LIKE, an \
             UPDATE over one, ADD COLUMN, and ADD INDEX while {} sessions insert.",
            units::grouped(self.options.rows as f64),
            self.options.rows_per_commit,
            self.options.writers
        )
    }

    fn parameters(&self) -> Vec<(String, String)> {
        vec![
            ("rows".to_owned(), units::grouped(self.options.rows as f64)),
            ("rows per transaction".to_owned(), self.options.rows_per_commit.to_string()),
            ("writers".to_owned(), self.options.writers.to_string()),
        ]
    }

    /// Nothing: the server makes the rows.
    fn prepare(&mut self, _data: &Data) -> Result<()> {
        if self.options.rows == 0 || self.options.rows_per_commit == 0 {
            return Err(Error::Usage("rows and rows of a transaction must not be 0".to_owned()));
        }
        Ok(())
    }

    fn run(&self, bench: &mut Bench) -> Result<()> {
        let mut connection = bench.connect()?;
        connection.query(TABLE)?;
        self.fill(bench, &mut connection)?;
        if !bench.keeps_rows() {
            return Ok(());
        }
        self.search_and_change(bench, &mut connection)?;
        self.hot_index(bench, &mut connection)?;
        drop(connection);
        bench.memory();
        bench.weigh("table and index", self.options.rows)?;
        Ok(())
    }
}
