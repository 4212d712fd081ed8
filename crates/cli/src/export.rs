//! `pando export` and `pando salvage`: rows of a table without a server.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pando_export::frm::{Definition, FrmColumn, Generated};
use pando_export::names;
use pando_export::output::{notes, Format, Heading, RowWriter};
use pando_export::parquet::ParquetWriter;
use pando_export::rows::RowReader;
use pando_export::source::{Database, Loss, Places, Remains, TableName};
use pando_export::value::Cell;
use pandodb::KeyRing;

use crate::out::{self, NewFile};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Comma separated values with a header line, as RFC 4180 has them
    Csv,
    /// One JSON object a line
    Jsonl,
    /// INSERT statements of at most some 512 KiB
    Sql,
    /// A file of columns, compressed with zstd, for DuckDB, pandas, Spark
    Parquet,
}

/// Of both commands.
#[derive(Args)]
pub struct RowArguments {
    /// The table: DATABASE/TABLE or DATABASE.TABLE, names with dots or slashes in backquotes; of a partitioned table all partitions
    #[arg(long, value_name = "DATABASE/TABLE")]
    pub table: String,
    /// The server's data directory
    #[arg(long, value_name = "DIR", default_value = "/var/lib/mysql")]
    pub data_dir: PathBuf,
    /// The directory of catalog and log, if it is not DATADIR/.pando
    #[arg(long, value_name = "DIR")]
    pub engine_dir: Option<PathBuf>,
    /// What is written
    #[arg(long, value_enum, default_value = "csv")]
    pub format: FormatName,
    /// Only these columns, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub columns: Option<Vec<String>>,
    /// What CSV has for NULL; a text that is the same is quoted
    #[arg(long, default_value = "NULL", value_name = "TEXT")]
    pub null: String,
    /// The table that INSERT statements name, if it is not TABLE; names with dots in backquotes
    #[arg(long, value_name = "TABLE")]
    pub into: Option<String>,
    /// Where rows are written to; standard output if it is not said. It is there when all rows are in it; a file that
    /// is there is not touched
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Of `pando export`.
#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub rows: RowArguments,
}

/// Of `pando salvage`.
#[derive(Args)]
pub struct SalvageArguments {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub rows: RowArguments,
    /// Where the list of lost keys is written to, too. A file that is there is not touched
    #[arg(long, value_name = "FILE")]
    pub lost: Option<PathBuf>,
}

type Out = Box<dyn Write + Send>;

/// Who writes the rows.
enum Writer {
    Text(RowWriter<Out>),
    Columns(Box<ParquetWriter<Out>>),
}

impl Writer {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        match self {
            Writer::Text(writer) => writer.row(cells),
            Writer::Columns(writer) => writer.row(cells),
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Writer::Text(writer) => writer.end().map(drop),
            Writer::Columns(writer) => {
                writer.end()?.iter().for_each(|note| say(note));
                Ok(())
            }
        }
    }
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "pando: {text}");
}

impl RowArguments {
    fn places(&self) -> Places {
        let engine_dir = self.engine_dir.clone().unwrap_or_else(|| self.data_dir.join(".pando"));
        Places { data_dir: self.data_dir.clone(), engine_dir }
    }

    /// What is left out, and how the rest is given.
    fn prepare(&self, definition: &Definition, readers: &mut [RowReader]) -> Vec<FrmColumn> {
        let is_computed = |wanted: Generated| {
            let columns = definition.columns.iter().filter(|column| column.generated == wanted);
            columns.map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        if self.columns.is_none() {
            let virtuals = is_computed(Generated::Virtual);
            if !virtuals.is_empty() {
                say(&format!("left out, because they are not stored: {virtuals}"));
            }
            let stored = is_computed(Generated::Stored);
            if self.format == FormatName::Sql && !stored.is_empty() {
                say(&format!("left out, because the server computes them: {stored}"));
                readers.iter_mut().for_each(RowReader::without_generated);
            }
        }
        let columns: Vec<FrmColumn> =
            readers.first().map(|reader| reader.columns().cloned().collect()).unwrap_or_default();
        notes(&columns).iter().for_each(|note| say(note));
        if definition.is_versioned {
            say("the table keeps old versions of rows: they are among the rows");
        }
        columns
    }

    /// Who writes the rows of the table of this name to `out`.
    fn writer(
        &self,
        table: &str,
        definition: &Definition,
        columns: Vec<FrmColumn>,
        out: Out,
    ) -> Result<Writer> {
        let format = match self.format {
            FormatName::Csv => Format::Csv,
            FormatName::Jsonl => Format::Jsonl,
            FormatName::Sql => Format::Sql,
            FormatName::Parquet => return Ok(Writer::Columns(Box::new(ParquetWriter::new(out, &columns)?))),
        };
        let target = match &self.into {
            Some(into) => target(into)?,
            None => vec![table.to_owned()],
        };
        let (is_versioned, null) = (definition.is_versioned, self.null.as_str());
        let heading = Heading { target: &target, is_versioned, null };
        Ok(Writer::Text(RowWriter::new(out, format, columns, &heading)?))
    }
}

/// `TABLE` or `DATABASE.TABLE`; without quotes the first dot is the one between them.
fn target(into: &str) -> Result<Vec<String>> {
    let parts = match names::halves(into, &['.']).first() {
        Some((database, table)) => vec![names::unquoted(database), names::unquoted(table)],
        None => vec![names::unquoted(into)],
    };
    let parts: Option<Vec<String>> = parts.into_iter().collect();
    parts.ok_or_else(|| format!("--into {into}: not the name of a table, TABLE or DATABASE.TABLE").into())
}

/// Standard output, or a file that gets its name at the end.
fn created(path: Option<&PathBuf>) -> Result<(Out, Option<NewFile>)> {
    let file = path.map(|path| NewFile::begin(path)).transpose()?;
    let out: Out = match &file {
        None => Box::new(out::stdout()),
        Some(file) => Box::new(file.writer()?),
    };
    Ok((Box::new(BufWriter::with_capacity(1 << 16, out)), file))
}

fn finish(file: Option<NewFile>) -> Result<()> {
    file.map_or(Ok(()), NewFile::finish)
}

/// False if the log is damaged, so that commits may be missing.
///
/// # Errors
/// The rows cannot be read or written.
pub fn export(arguments: &ExportArguments, keys: &KeyRing) -> Result<bool> {
    let rows = &arguments.rows;
    let name = TableName::parse(&rows.table)?;
    let database = Database::open(&rows.places(), keys, say)?;
    let table = database.table(&name)?;
    let mut readers = table.readers(rows.columns.as_deref())?;
    let columns = rows.prepare(&table.definition, &mut readers);
    let (out, file) = created(rows.output.as_ref())?;
    let mut writer = rows.writer(&table.name, &table.definition, columns, out)?;
    let count = table.each(&readers, &mut |cells| Ok(writer.row(cells)?))?;
    writer.end()?;
    finish(file)?;
    say(&format!("{count} rows"));
    if database.log_damage.is_some() {
        say("the log is damaged: what was committed behind the damage is missing, unless the table's file has it");
    }
    Ok(database.log_damage.is_none())
}

/// False if something is lost.
///
/// # Errors
/// The request cannot be carried out.
pub fn salvage(arguments: &SalvageArguments, keys: &KeyRing) -> Result<bool> {
    let rows = &arguments.rows;
    let name = TableName::parse(&rows.table)?;
    let remains = Remains::open(&rows.places(), &name, keys)?;
    remains.notes().iter().for_each(|note| say(note));
    let mut readers = remains.readers(rows.columns.as_deref())?;
    let columns = rows.prepare(&remains.definition, &mut readers);
    let mut list = arguments.lost.as_ref().map(|path| created(Some(path))).transpose()?;
    let (out, file) = created(rows.output.as_ref())?;
    let mut writer = rows.writer(&remains.name, &remains.definition, columns, out)?;
    let report = remains.each(&readers, &mut |cells| Ok(writer.row(cells)?))?;
    writer.end()?;
    finish(file)?;
    for loss in &report.losses {
        let line = lost(loss);
        say(&line);
        if let Some((list, _)) = &mut list {
            writeln!(list, "{line}")?;
        }
    }
    if let Some((mut list, file)) = list {
        list.flush()?;
        finish(file)?;
    }
    say(&format!("{} rows as of the last checkpoint; the log was not looked at", report.rows));
    if report.older > 0 {
        say(&format!("{} of them may be older than the last commit, or deleted since", report.older));
    }
    if !report.losses.is_empty() {
        say(&format!("something is lost in {} ranges of keys", report.losses.len()));
    }
    Ok(report.losses.is_empty())
}

/// `missing|older LOW HIGH (COLUMNS) in DIRECTORY: CAUSE`; keys in hexadecimal, `-` for an end that is open.
fn lost(loss: &Loss) -> String {
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let low = if loss.range.low.is_empty() { "-".to_owned() } else { hex(&loss.range.low) };
    let high = loss.range.high.as_deref().map_or("-".to_owned(), hex);
    let kind = if loss.range.is_bottom { "missing" } else { "older" };
    let columns = match loss.low.is_empty() && loss.high.is_empty() {
        true => String::new(),
        false => format!(" ({} up to {})", or_end(&loss.low), or_end(&loss.high)),
    };
    format!("{kind} {low} {high}{columns} in {}: {}", loss.dir.display(), loss.range.cause)
}

fn or_end(text: &str) -> &str {
    match text {
        "" => "-",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_inserts_is_named_with_or_without_its_database() {
        for (into, parts) in [
            ("t", &["t"][..]),
            ("d.t", &["d", "t"]),
            ("d.t.u", &["d", "t.u"]),
            ("`d.t`", &["d.t"]),
            ("`d.t`.`u``v`", &["d.t", "u`v"]),
        ] {
            assert_eq!(target(into).unwrap(), parts, "{into}");
        }
        assert!(["", ".t", "d.", "`t"].iter().all(|into| target(into).is_err()));
    }
}
