//! Rows of tables, without a server.
//!
//! 1. [`frm`] reads the server's definition of the table: names and types of columns. The engine's catalog keeps it
//!    (decision record 0015), or it is in the file beside the table's directory.
//! 2. [`rows`] and [`keys`] take a row apart, as the engine has it, in whatever layout it was written.
//! 3. [`value`] makes of the bytes of a column what people and servers read; [`charset`] makes UTF-8 of texts.
//! 4. [`output`] writes CSV, JSON lines or INSERT statements, [`parquet`] a file of columns.
//! 5. [`names`] says what the server calls the files of a table.
//! 6. [`source`] gives the rows: of a sound database, opened on a shadow of the disk that is only read (decision record 0034), or
//!    what is left of a damaged table's file (`pando_tree::salvage`).

pub mod charset;
pub mod frm;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod keys;
pub mod names;
pub mod output;
pub mod parquet;
pub mod rows;
pub mod source;
pub mod value;
