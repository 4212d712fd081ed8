//! Rows as text: CSV as RFC 4180 has it, JSON lines, INSERT statements.

use std::fmt::Write as _;
use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;

use crate::frm::{types, FrmColumn};
use crate::value::Cell;

/// A statement is ended when it has so many bytes.
const STATEMENT_BYTES: usize = 512 << 10;
/// And so many rows.
const STATEMENT_ROWS: usize = 5000;

/// What rows are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180, with a header.
    Csv,
    /// An object a line.
    Jsonl,
    /// INSERT statements.
    Sql,
}

/// Writes the rows of a table.
pub struct RowWriter<W: Write> {
    out: W,
    format: Format,
    null: String,
    columns: Vec<FrmColumn>,
    /// INSERT, up to VALUES.
    head: String,
    line: String,
    /// Of the statement that is being written.
    rows: usize,
    bytes: usize,
}

/// What is said once.
pub struct Heading<'a> {
    /// The table that rows are inserted into: its name, or that of its database and its own.
    pub target: &'a [String],
    /// It has columns with the period of versions.
    pub is_versioned: bool,
    /// What CSV has for NULL.
    pub null: &'a str,
}

/// Bytes as `0x00ff`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl<W: Write> RowWriter<W> {
    /// Writes what comes before the rows.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(
        mut out: W,
        format: Format,
        columns: Vec<FrmColumn>,
        heading: &Heading<'_>,
    ) -> io::Result<RowWriter<W>> {
        let names = |quote: &dyn Fn(&str) -> String| {
            columns.iter().map(|column| quote(&column.name)).collect::<Vec<_>>().join(",")
        };
        let mut head = String::new();
        match format {
            Format::Csv => write!(out, "{}\r\n", names(&|name| csv_text(name, heading.null)))?,
            Format::Jsonl => {}
            Format::Sql => {
                let target: Vec<String> = heading.target.iter().map(|name| quoted_name(name)).collect();
                head = format!(
                    "INSERT INTO {} ({}) VALUES\n",
                    target.join("."),
                    names(&|name| quoted_name(name))
                );
                out.write_all(
                    b"SET NAMES utf8mb4;\nSET time_zone='+00:00';\nSET sql_mode='NO_AUTO_VALUE_ON_ZERO';\n\
                      SET foreign_key_checks=0;\nSET check_constraint_checks=0;\n",
                )?;
                if heading.is_versioned {
                    out.write_all(b"/*M!101100 SET system_versioning_insert_history=1 */;\n")?;
                }
            }
        }
        let null = heading.null.to_owned();
        Ok(RowWriter { out, format, null, columns, head, line: String::new(), rows: 0, bytes: 0 })
    }

    /// Writes a row: a value for each column.
    ///
    /// # Errors
    /// Those of writing.
    pub fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        match self.format {
            Format::Csv => self.csv(cells, &mut line),
            Format::Jsonl => self.json(cells, &mut line),
            Format::Sql => {
                sql(cells, &mut line);
                self.separate(line.len())?;
            }
        }
        self.out.write_all(line.as_bytes())?;
        self.line = line;
        Ok(())
    }

    /// Ends what is begun and gives back where it was written to.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.out.write_all(b";\n")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// What stands before a row of an INSERT.
    fn separate(&mut self, bytes: usize) -> io::Result<()> {
        let is_full = self.bytes + bytes > STATEMENT_BYTES || self.rows == STATEMENT_ROWS;
        if self.rows > 0 && is_full {
            self.out.write_all(b";\n")?;
            (self.rows, self.bytes) = (0, 0);
        }
        match self.rows {
            0 => self.out.write_all(self.head.as_bytes())?,
            _ => self.out.write_all(b",\n")?,
        }
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    fn csv(&self, cells: &[Cell], line: &mut String) {
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            match cell {
                Cell::Null => line.push_str(&self.null),
                Cell::Text(text) => line.push_str(&csv_text(text, &self.null)),
                Cell::Bytes(bytes) if bytes.is_empty() => line.push_str("\"\""),
                Cell::Bytes(bytes) => line.push_str(&hex(bytes)),
                other => number(other, line),
            }
        }
        line.push_str("\r\n");
    }

    fn json(&self, cells: &[Cell], line: &mut String) {
        line.push('{');
        for (at, (cell, column)) in cells.iter().zip(&self.columns).enumerate() {
            if at > 0 {
                line.push(',');
            }
            json_text(&column.name, line);
            line.push(':');
            match cell {
                Cell::Null => line.push_str("null"),
                Cell::Text(text) => json_text(text, line),
                Cell::Decimal(text) => json_text(text, line),
                Cell::Bytes(bytes) => json_text(&STANDARD.encode(bytes), line),
                Cell::Double(number) if !number.is_finite() => json_text(&number.to_string(), line),
                Cell::Float(number) if !number.is_finite() => json_text(&number.to_string(), line),
                other => number(other, line),
            }
        }
        line.push_str("}\n");
    }
}

fn csv_text(text: &str, null: &str) -> String {
    let is_plain = !text.is_empty()
        && text != null
        && text != "NULL"
        && !text.starts_with([' ', '\t'])
        && !text.ends_with([' ', '\t'])
        && !text.contains([',', '"', '\r', '\n']);
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    }
}

fn json_text(text: &str, line: &mut String) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(line, "\\u{:04x}", c as u32);
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

/// The shortest number that is read as the same.
fn real(plain: String, scientific: String, line: &mut String) {
    line.push_str(if plain.len() <= 20 && plain != "-0" { &plain } else { &scientific });
}

fn number(cell: &Cell, line: &mut String) {
    match cell {
        Cell::Integer(number) => _ = write!(line, "{number}"),
        Cell::Decimal(text) => line.push_str(text),
        Cell::Float(number) => real(number.to_string(), format!("{number:e}"), line),
        Cell::Double(number) => real(number.to_string(), format!("{number:e}"), line),
        Cell::Null | Cell::Text(_) | Cell::Bytes(_) => {}
    }
}

fn sql(cells: &[Cell], line: &mut String) {
    line.push('(');
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        match cell {
            Cell::Null => line.push_str("NULL"),
            Cell::Text(text) => sql_text(text, line),
            Cell::Bytes(bytes) if bytes.is_empty() => line.push_str("''"),
            Cell::Bytes(bytes) => line.push_str(&hex(bytes)),
            other => number(other, line),
        }
    }
    line.push(')');
}

fn sql_text(text: &str, line: &mut String) {
    line.push('\'');
    for c in text.chars() {
        match c {
            '\'' => line.push_str("\\'"),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\0' => line.push_str("\\0"),
            '\x1a' => line.push_str("\\Z"),
            c => line.push(c),
        }
    }
    line.push('\'');
}

/// What is to be said of columns whose values do not come out as the server shows them.
pub fn notes(columns: &[FrmColumn]) -> Vec<String> {
    let mut notes = Vec::new();
    for column in columns {
        let name = &column.name;
        match column.ty {
            types::TIMESTAMP | types::TIMESTAMP2 => notes.push(format!("column {name} is in UTC")),
            _ if !crate::value::is_readable(column) => {
                let text =
                    format!("column {name} is given as bytes: its type or character set is not known here");
                notes.push(text);
            }
            _ => {}
        }
    }
    notes
}
