//! `lineorder`: a fact table of the star schema benchmark with a text, and four keys, before or after the load.
//!
//! Columns: the row's number, the 17 columns of LINEORDER, and a TEXT of ten words. Distributions, after the
//! benchmark's own generator (O'Neil, O'Neil, Chen: Star Schema Benchmark, revision 3) for a scale of one per six
//! million rows, at least one:
//!
//! - an order has 1 to 7 lines (28 rows hold an order of each length); customer, date, priority and total are
//!   the order's, everything else the line's;
//! - customer 1 to 30,000 times the scale, supplier 1 to 2,000 times the scale, part 1 to 200,000, all even;
//! - order date even over 1992-01-01 to 1998-08-02, commit date 30 to 90 days later; both numbers as 19920131;
//! - quantity 1 to 50, discount 0 to 10, tax 0 to 8, even; prices in cents follow from part and quantity as in
//!   TPC-H; the order's total is even over 1,000.00 to 400,000.00 (not the sum of its lines);
//! - text: ten words of 3 to 9 random letters each (`random`), which no codec makes much smaller than 4.7 bits
//!   a letter; or the same ten words in every row (`repeating`).

use super::calendar::{date_of, day_of};
use super::{CsvTable, Data, Workload};
use crate::client::Connection;
use crate::error::{Error, Result};
use crate::generate::{Fields, Random, Source};
use crate::report::{units, Group};
use crate::run::Bench;

/// What the text column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Text {
    /// Ten words of random letters.
    Random,
    /// The same ten words in every row.
    Repeating,
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many rows.
    pub rows: u64,
    /// What the text column holds.
    pub text: Text,
}

/// The table's columns.
pub const COLUMNS: &str = "
    lo_id            BIGINT UNSIGNED NOT NULL,
    lo_orderkey      BIGINT UNSIGNED NOT NULL,
    lo_linenumber    TINYINT UNSIGNED NOT NULL,
    lo_custkey       INT UNSIGNED NOT NULL,
    lo_partkey       INT UNSIGNED NOT NULL,
    lo_suppkey       INT UNSIGNED NOT NULL,
    lo_orderdate     INT UNSIGNED NOT NULL,
    lo_orderpriority CHAR(15) NOT NULL,
    lo_shippriority  CHAR(1) NOT NULL,
    lo_quantity      TINYINT UNSIGNED NOT NULL,
    lo_extendedprice INT UNSIGNED NOT NULL,
    lo_ordtotalprice INT UNSIGNED NOT NULL,
    lo_discount      TINYINT UNSIGNED NOT NULL,
    lo_revenue       INT UNSIGNED NOT NULL,
    lo_supplycost    INT UNSIGNED NOT NULL,
    lo_tax           TINYINT UNSIGNED NOT NULL,
    lo_commitdate    INT UNSIGNED NOT NULL,
    lo_shipmode      CHAR(10) NOT NULL,
    lo_text          TEXT NOT NULL";

const KEYS: [&str; 4] = [
    "KEY lo_custkey (lo_custkey)",
    "KEY lo_partkey (lo_partkey)",
    "KEY lo_suppkey (lo_suppkey)",
    "KEY lo_orderdate (lo_orderdate)",
];

const QUERIES: [(&str, &str); 5] = [
    (
        "q1.1, a year",
        "SELECT SUM(lo_extendedprice * lo_discount) FROM lineorder WHERE lo_orderdate BETWEEN 19930101 AND 19931231 \
         AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25",
    ),
    (
        "q1.2, a month",
        "SELECT SUM(lo_extendedprice * lo_discount) FROM lineorder WHERE lo_orderdate BETWEEN 19940101 AND 19940131 \
         AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35",
    ),
    (
        "q1.3, a week",
        "SELECT SUM(lo_extendedprice * lo_discount) FROM lineorder WHERE lo_orderdate BETWEEN 19940205 AND 19940211 \
         AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35",
    ),
    (
        "a customer's lines",
        "SELECT lo_orderdate, lo_orderkey, lo_linenumber, lo_revenue, lo_text FROM lineorder \
         WHERE lo_custkey = 77 ORDER BY lo_id",
    ),
    (
        "sum of every column",
        "SELECT COUNT(*), SUM(lo_id), SUM(lo_orderkey), SUM(lo_custkey), SUM(lo_partkey), SUM(lo_suppkey), \
         SUM(lo_orderdate), SUM(CRC32(lo_orderpriority)), SUM(lo_quantity), SUM(lo_extendedprice), \
         SUM(lo_ordtotalprice), SUM(lo_discount), SUM(lo_revenue), SUM(lo_supplycost), SUM(lo_tax), \
         SUM(lo_commitdate), SUM(CRC32(lo_shipmode)), SUM(CRC32(lo_text)) FROM lineorder",
    ),
];

/// The rows of the table.
pub struct Lines {
    rows: u64,
    scale: u64,
    text: Text,
    first_day: i64,
    days: u64,
}

const ROWS_PER_SCALE: u64 = 6_000_000;
/// 1 + 2 + ... + 7 lines.
const GROUP_ROWS: u64 = 28;
const GROUP_ORDERS: u64 = 7;
const PRIORITIES: [&[u8]; 5] = [b"1-URGENT", b"2-HIGH", b"3-MEDIUM", b"4-NOT SPECI", b"5-LOW"];
const SHIP_MODES: [&[u8]; 7] = [b"REG AIR", b"AIR", b"RAIL", b"SHIP", b"TRUCK", b"MAIL", b"FOB"];
const REPEATED: &[u8] = b"the quick brown foxes jump over lazy dogs every day";
const WORDS: usize = 10;

impl Lines {
    /// Rows of this number and text.
    pub fn new(options: &Options) -> Lines {
        let first_day = day_of(1992, 1, 1);
        Lines {
            rows: options.rows,
            scale: options.rows.div_ceil(ROWS_PER_SCALE).max(1),
            text: options.text,
            first_day,
            days: (day_of(1998, 8, 2) - first_day + 1) as u64,
        }
    }
}

/// Order (from 1) and line (from 1) of a row: orders of 1, 2, ... 7 lines, again and again.
fn order_and_line(row: u64) -> (u64, u64) {
    let (group, place) = (row / GROUP_ROWS, row % GROUP_ROWS);
    // Order n (from 0) of a group begins after 0 + 1 + ... + n rows.
    let order = (0..GROUP_ORDERS).rev().find(|&order| order * (order + 1) / 2 <= place).unwrap_or(0);
    (group * GROUP_ORDERS + order + 1, place - order * (order + 1) / 2 + 1)
}

fn day_number(day: i64) -> i64 {
    let (year, month, of_month) = date_of(day);
    i64::from(year * 10_000 + month * 100 + of_month)
}

impl Source for Lines {
    fn name(&self) -> &str {
        "lineorder"
    }

    fn units(&self) -> u64 {
        self.rows
    }

    fn fill(&self, row: u64, random: &mut Random, fields: &mut Fields) {
        let (order, line) = order_and_line(row);
        // What belongs to the order must be the same in all its lines, also across blocks.
        let mut of_order = Random::of_block(self.rows, "order", order);
        let day = self.first_day + of_order.below(self.days) as i64;
        let part = random.between(1, 200_000);
        let (quantity, discount) = (random.between(1, 50), random.between(0, 10));
        let price = 90_000 + part / 10 % 20_001 + 100 * (part % 1_000);
        let extended = quantity * price;
        fields.int(row as i64 + 1).int(order as i64).int(line as i64);
        fields.int(of_order.between(1, 30_000 * self.scale as i64)).int(part);
        fields.int(random.between(1, 2_000 * self.scale as i64)).int(day_number(day));
        fields.text(of_order.pick(&PRIORITIES)).text(b"0").int(quantity).int(extended);
        fields
            .int(of_order.between(100_000, 40_000_000))
            .int(discount)
            .int(extended * (100 - discount) / 100);
        fields.int(6 * price / 10).int(random.between(0, 8)).int(day_number(day + random.between(30, 90)));
        fields.text(random.pick(&SHIP_MODES));
        match self.text {
            Text::Repeating => fields.text(REPEATED),
            Text::Random => fields.text_with(|bytes| push_words(bytes, random)),
        }
        .end();
    }
}

fn push_words(bytes: &mut Vec<u8>, random: &mut Random) {
    for word in 0..WORDS {
        if word > 0 {
            bytes.push(b' ');
        }
        // Nine letters and a length from one number: 26^9 * 7 is below 2^64.
        let mut bits = random.next();
        let letters = 3 + bits % 7;
        bits /= 7;
        for _ in 0..letters {
            bytes.push(b'a' + (bits % 26) as u8);
            bits /= 26;
        }
    }
}

/// The workload.
pub struct Lineorder {
    options: Options,
    table: Option<CsvTable>,
}

impl Lineorder {
    /// With these choices.
    pub fn new(options: Options) -> Lineorder {
        Lineorder { options, table: None }
    }

    /// The rows, for `generate`.
    pub fn source(&self) -> Lines {
        Lines::new(&self.options)
    }

    fn without_then_with(&self, bench: &mut Bench, table: &CsvTable) -> Result<()> {
        let mut connection = bench.connect()?;
        connection.query(&format!("CREATE TABLE lineorder ({COLUMNS}) DEFAULT CHARSET latin1"))?;
        bench.load(&mut connection, "load, no keys", std::slice::from_ref(table))?;
        if !bench.keeps_rows() {
            connection.query("DROP TABLE lineorder")?;
            return Ok(());
        }
        drop(connection);
        bench.weigh("without keys", self.options.rows)?;
        let mut connection = bench.connect()?;
        let add: Vec<String> = KEYS.iter().map(|key| format!("ADD {key}")).collect();
        let alter = format!("ALTER TABLE lineorder {}", add.join(", "));
        bench.timed(&mut connection, Group::Schema, "add 4 keys", &alter)?;
        queries(bench, &mut connection)?;
        drop(connection);
        bench.weigh("4 keys added", self.options.rows)?;
        bench.connect()?.query("DROP TABLE lineorder")?;
        Ok(())
    }

    fn with_keys(&self, bench: &mut Bench, table: &CsvTable) -> Result<()> {
        let mut connection = bench.connect()?;
        let keys = KEYS.join(", ");
        connection.query(&format!("CREATE TABLE lineorder ({COLUMNS}, {keys}) DEFAULT CHARSET latin1"))?;
        bench.load(&mut connection, "load, 4 keys", std::slice::from_ref(table))?;
        if bench.keeps_rows() {
            let (name, sql) = QUERIES[QUERIES.len() - 1];
            let result = connection.query(sql)?;
            bench.answer(name, &result);
        }
        drop(connection);
        bench.weigh("loaded with 4 keys", self.options.rows)?;
        Ok(())
    }
}

fn queries(bench: &mut Bench, connection: &mut Connection) -> Result<()> {
    connection.query("ANALYZE TABLE lineorder")?;
    for (name, sql) in QUERIES {
        bench.query(connection, name, sql)?;
    }
    Ok(())
}

impl Workload for Lineorder {
    fn name(&self) -> &'static str {
        "lineorder"
    }

    fn about(&self) -> String {
        format!(
            "LINEORDER of the star schema benchmark, {} rows with a {} text: loaded without keys, four keys added, \
             and loaded with four keys.",
            units::grouped(self.options.rows as f64),
            if self.options.text == Text::Random { "random" } else { "repeating" }
        )
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let text = format!("{:?}", self.options.text).to_lowercase();
        vec![("rows".to_owned(), units::grouped(self.options.rows as f64)), ("text".to_owned(), text)]
    }

    fn prepare(&mut self, data: &Data) -> Result<()> {
        if self.options.rows == 0 {
            return Err(Error::Usage("rows must not be 0".to_owned()));
        }
        self.table = Some(data.table(&self.source())?);
        Ok(())
    }

    fn run(&self, bench: &mut Bench) -> Result<()> {
        let Some(table) = &self.table else { return Err(Error::Data("not prepared".to_owned())) };
        let before = bench.server.written_bytes();
        self.without_then_with(bench, table)?;
        self.with_keys(bench, table)?;
        bench.written_since(before, self.options.rows, "in the whole run");
        bench.memory();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_one_to_seven_lines_in_turn() {
        let rows: Vec<_> = (0..GROUP_ROWS + 2).map(order_and_line).collect();
        assert_eq!(rows[..6], [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]);
        assert_eq!(rows[27..], [(7, 7), (8, 1), (9, 1)]);
    }

    #[test]
    fn what_belongs_to_an_order_is_the_same_in_its_lines() {
        let lines = Lines::new(&Options { rows: 1000, text: Text::Random });
        let mut fields = Fields::default();
        let mut random = Random::new(1);
        // Rows 3, 4, 5 are the third order.
        for row in 3..6 {
            lines.fill(row, &mut random, &mut fields);
        }
        let text = String::from_utf8(fields.bytes().to_vec()).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        for column in [1, 3, 6, 7, 11] {
            assert!(rows.iter().all(|row| row[column] == rows[0][column]), "column {column}: {text}");
        }
        assert!(rows[0][4] != rows[1][4], "{text}");
    }
}
