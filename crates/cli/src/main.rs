//! `pando`: looks into the files of a Pando database without a server.
//!
//! Exit status: 0 all is well, 1 damage, a difference or a missing key was found, 2 the request could not be carried out, 141 nobody reads the output.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use pando_cli::dump::Conversion;
use pando_cli::{backup, export, keys, out, Arguments, Command};
use pandodb::offline::{
    self, open_directory, print_log, rebuild_catalog, verify_file, Described, OfflineDict, Verified,
};
use pandodb::KeyRing;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = keys::read(arguments.keys.as_deref()).and_then(|keys| run(&arguments.command, &keys));
    // What is in its buffer would be lost without a word.
    match outcome.and_then(|is_well| Ok(out::stdout().flush().map(|()| is_well)?)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(_) if out::reader_is_gone() => ExitCode::from(out::STATUS_OF_SIGPIPE),
        Err(error) => {
            let _ = writeln!(io::stderr(), "pando: {error}");
            ExitCode::from(2)
        }
    }
}

type Outcome = Result<bool, Box<dyn std::error::Error>>;

fn run(command: &Command, keys: &KeyRing) -> Outcome {
    match command {
        Command::Inspect { table, shape, engine_dir } => inspect(table, engine_dir.as_deref(), *shape, keys),
        Command::Verify { tables, engine_dir } => {
            let mut sound = true;
            for table in tables {
                sound &= match backup::verify::kind_of(table)? {
                    backup::verify::Kind::Backup => backup::verify::run(table, keys)?,
                    backup::verify::Kind::Table => verify(table, engine_dir.as_deref(), keys)?,
                };
            }
            Ok(sound)
        }
        Command::Backup(arguments) => backup::take::run(arguments).map(|()| true),
        Command::Restore(arguments) => backup::restore::run(arguments, keys),
        Command::RebuildCatalog { data_dir, engine_dir } => {
            let engine_dir = engine_dir.clone().unwrap_or_else(|| data_dir.join(".pando"));
            rebuild(data_dir, &engine_dir)
        }
        Command::ConvertDump { from, to } => {
            let conversion = Conversion { from: from.clone(), to: to.clone(), notes_all: false };
            let out = io::BufWriter::with_capacity(1 << 16, out::stdout());
            let report = conversion.run(io::BufReader::with_capacity(1 << 16, io::stdin().lock()), out)?;
            let mut notes = out::stderr();
            for note in &report.notes {
                writeln!(notes, "{note}")?;
            }
            writeln!(notes, "{} tables have another engine now", report.tables)?;
            Ok(true)
        }
        Command::CheckMigration { from } => {
            let conversion = Conversion { from: from.clone(), to: "PANDO".into(), notes_all: true };
            let input = io::BufReader::with_capacity(1 << 16, io::stdin().lock());
            let report = conversion.run(input, io::sink())?;
            let mut out = out::stdout();
            for note in &report.notes {
                writeln!(out, "{note}")?;
            }
            writeln!(out, "{} tables can become PANDO tables, {} notes", report.tables, report.notes.len())?;
            Ok(report.notes.is_empty())
        }
        Command::Export(arguments) => export::export(arguments, keys),
        Command::Salvage(arguments) => export::salvage(arguments, keys),
        Command::Log { file } => {
            let mut text = String::new();
            print_log(file, keys, &mut text)??;
            out::stdout().write_all(text.as_bytes())?;
            Ok(true)
        }
    }
}

/// False if there are directories of tables that could not be taken in.
fn rebuild(data_dir: &Path, engine_dir: &Path) -> Outcome {
    let rebuilt = rebuild_catalog(data_dir, engine_dir)?;
    let mut out = out::stdout();
    for table in &rebuilt.tables {
        writeln!(out, "{table}")?;
    }
    writeln!(out, "{} tables are in the new catalog", rebuilt.tables.len())?;
    if let Some(old) = &rebuilt.old {
        writeln!(out, "the old one is {}", old.display())?;
    }
    for (dir, error) in &rebuilt.left_out {
        writeln!(out, "left out: {}: {error}", dir.display())?;
    }
    Ok(rebuilt.left_out.is_empty())
}

/// What the table in this directory consists of. A note says where from, if not from beside its files.
fn described(
    table: &Path,
    engine_dir: Option<&Path>,
    keys: &KeyRing,
) -> Result<Described, Box<dyn std::error::Error>> {
    // The names of table and database are in it.
    let dir = table.canonicalize().map_err(|error| format!("{}: {error}", table.display()))?;
    let beside = || dir.ancestors().nth(2).unwrap_or(&dir).join(".pando");
    let described = offline::describe(&dir, &engine_dir.map_or_else(beside, Path::to_owned), keys)?;
    if let Some(note) = &described.note {
        let _ = writeln!(io::stderr(), "pando: {note}");
    }
    Ok(described)
}

fn inspect(table: &Path, engine_dir: Option<&Path>, shape: bool, keys: &KeyRing) -> Outcome {
    let mut sound = true;
    let mut out = out::stdout();
    for (file, opened) in open_directory(table, &described(table, engine_dir, keys)?, keys) {
        match opened {
            Ok(dict) => sound &= describe(&mut out, &file, &dict, shape)?,
            Err(error) => {
                sound = false;
                writeln!(out, "{file}: {error}")?;
            }
        }
    }
    Ok(sound)
}

/// False if it could not read all that it tells.
fn describe(out: &mut impl io::Write, file: &str, dict: &OfflineDict, shape: bool) -> io::Result<bool> {
    let (sb, stats) = (&dict.superblock, dict.tree.stats());
    let kind = if dict.is_clustering { ", clustering" } else { "" };
    writeln!(out, "{file}: dictionary {} ({}{kind})", sb.dict, dict.name)?;
    writeln!(out, "  checkpoint      epoch {}, durable up to seqno {}", sb.epoch, sb.durable_seqno)?;
    writeln!(out, "  auto-increment  {}", sb.auto_increment)?;
    writeln!(
        out,
        "  records         {} ({} tombstones), {} bytes raw",
        stats.rows, stats.tombstones, stats.raw_bytes
    )?;
    writeln!(
        out,
        "  tree            {} nodes, {} leaves, {} runs, height {}",
        stats.nodes, stats.leaves, stats.runs, stats.height
    )?;
    let is_sound = match dict.tree.run_forms() {
        Ok(forms) => {
            let (columns, common, rows) = (forms.by_columns, forms.with_common, forms.by_rows);
            writeln!(
                out,
                "  stored          {columns} runs by columns ({common} with bytes in common), {rows} by rows"
            )?;
            true
        }
        Err(error) => {
            writeln!(out, "  stored          {error}")?;
            false
        }
    };
    writeln!(out, "  in buffers      {} bytes raw", stats.buffered_bytes)?;
    writeln!(out, "  on disk         {} bytes in use, {} in the file", stats.disk_bytes, sb.file_bytes)?;
    if shape {
        writeln!(out, "{}", dict.tree.shape())?;
    }
    Ok(is_sound)
}

fn verify(table: &Path, engine_dir: Option<&Path>, keys: &KeyRing) -> Outcome {
    let described = described(table, engine_dir, keys)?;
    // Something is damaged, though it was found out what the table has.
    let mut sound = described.note.is_none();
    let mut out = out::stdout();
    for (file, dict) in described.files() {
        let path = table.join(&file);
        match verify_file(&path, dict, keys) {
            Ok(Verified::Whole) => writeln!(out, "{}: ok", path.display())?,
            Ok(Verified::WithoutKey(found)) => writeln!(out, "{}: {}", path.display(), keys::told(&found))?,
            Err(error) => {
                sound = false;
                writeln!(out, "{}: {error}", path.display())?;
            }
        }
    }
    Ok(sound)
}
