//! Rows as CSV: the same bytes for the same seed on every machine and with any number of threads.
//!
//! Format: fields separated by commas, text and times in double quotes, the bare word NULL for NULL, one line
//! feed at the end of a row. `LOAD DATA ... FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"'` reads it, and a
//! line is also the list of values of an INSERT, which is how the row-at-a-time loader uses the same files. No
//! text has a quote, a backslash or a line feed in it.
//!
//! How: a table is a number of units (mostly rows), cut into blocks; each block has a random generator of its own,
//! made from seed, table and number of the block, so threads fill blocks in any order and the file is still the
//! same. Threads fill buffers; the caller's thread writes them in order and hands them back.

pub mod fields;
mod files;
mod random;

pub use fields::Fields;
pub use files::{write_table, Written};
pub use random::Random;

/// A table that can be generated.
pub trait Source: Sync {
    /// Name of the table; its file is NAME.csv.
    fn name(&self) -> &str;
    /// How many units there are.
    fn units(&self) -> u64;
    /// Appends the rows of one unit. `random` goes on from unit to unit within a block.
    fn fill(&self, unit: u64, random: &mut Random, fields: &mut Fields);
    /// How many units make a block: some hundred kilobytes.
    fn block_units(&self) -> u64 {
        4096
    }
}

/// How LOAD DATA is to read these files.
pub const LOAD_FORMAT: &str =
    "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\n'";
