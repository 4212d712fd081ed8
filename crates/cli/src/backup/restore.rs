//! Restoring a backup into an empty data directory. The backup itself stays as it is.
//!
//! 1. The files of the other engines are copied, and `mariadb-backup --prepare` makes them whole in their new place.
//! 2. PANDO's files are copied, those of increments over those of their base; every checksum is compared.
//! 3. The engine recovers: the log of the backup is replayed to its end. Tables that the backup does not have leave the
//!    catalog.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pandodb::{prepare_restored, EngineError, KeyRing, LogLevel, Restored};

use super::child::that_ends_with_us;
use super::manifest::{FileEntry, Manifest, PANDO_DIR, SERVER_DIR};
use super::progress::Progress;
use super::{at, copy, fail, Outcome};
use crate::out;

/// Arguments of `pando restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArguments {
    /// Directory of a backup
    #[arg(long)]
    pub from: PathBuf,
    /// Increments after it, in their order
    #[arg(long, value_delimiter = ',')]
    pub increments: Vec<PathBuf>,
    /// Data directory to make; it must not be there, or be empty
    #[arg(long)]
    pub datadir: PathBuf,
    /// The program that prepares the files of the other engines
    #[arg(long, default_value = "mariadb-backup")]
    pub mariadb_backup: PathBuf,
    /// An option for it, as --use-memory=4G; may be given several times
    #[arg(long, allow_hyphen_values = true)]
    pub backup_option: Vec<String>,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// The accounts: the server starts only where they are.
const PRIVILEGES: &str = "mysql/global_priv.frm";

/// A backup and its directory.
struct Part<'a> {
    dir: &'a Path,
    manifest: Manifest,
}

/// Restores a backup; false if there are tables that are not recovered, which is told. If it fails, the data directory is as it was.
pub fn run(arguments: &RestoreArguments, keys: &KeyRing) -> Outcome<bool> {
    let parts = read_parts(&arguments.from, &arguments.increments)?;
    let Some(last) = parts.last() else { return fail("no backup") };
    let datadir = &arguments.datadir;
    let made = make_empty(datadir)?;
    let error = match fill(arguments, &parts, &last.manifest, keys) {
        Ok(restored) => {
            tell(arguments, &last.manifest);
            return Ok(restored.not_recovered.is_empty());
        }
        Err(error) => error,
    };
    match clear(datadir, &made) {
        Ok(()) => fail(format!(
            "{error}\nnothing was restored: what had been written to {} is removed",
            datadir.display()
        )),
        Err(left) => fail(format!(
            "{error}\n{} has a part of the backup, which could not be removed ({left}): empty it before you try again",
            datadir.display()
        )),
    }
}

fn say(arguments: &RestoreArguments, text: &str) {
    if !arguments.quiet {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// The steps at the head of this file.
fn fill(
    arguments: &RestoreArguments,
    parts: &[Part<'_>],
    last: &Manifest,
    keys: &KeyRing,
) -> Outcome<Restored> {
    let total = parts.iter().flat_map(|part| &part.manifest.files).map(stored_bytes).sum();
    let mut progress = Progress::new(total, None, arguments.quiet);
    if parts.iter().all(|part| part.manifest.has_server_part) {
        restore_server(arguments, parts, &mut progress)?;
    }
    restore_pando(&arguments.datadir, parts, &mut progress)?;
    let (bytes, time) = progress.end();
    let (mib, seconds) = (bytes as f64 / 1_048_576.0, time.as_secs_f64());
    say(arguments, &format!("{mib:.1} MiB in {seconds:.1} s; recovery"));
    let (tables, expected) = (last.tables.clone(), last.tables.len() as u64);
    let log = Arc::new(|level: LogLevel, text: &str| {
        if level != LogLevel::Note {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    });
    let restored = prepare_restored(
        &arguments.datadir,
        move |path| tables.binary_search_by(|t| t.as_str().cmp(path)).is_ok(),
        keys.clone(),
        log,
    )?;
    if restored.tables != expected {
        return fail(format!(
            "{} tables of the backup are not in its catalog",
            expected.saturating_sub(restored.tables)
        ));
    }
    match restored.not_recovered.is_empty() {
        true => say(arguments, &format!("{} tables of PANDO are whole", restored.tables)),
        false => tell_not_recovered(&restored),
    }
    Ok(restored)
}

/// Which tables are not recovered, and what to do. An error, so it is said also where nothing else is.
fn tell_not_recovered(restored: &Restored) {
    let (without_key, others): (Vec<_>, Vec<_>) =
        restored.not_recovered.iter().partition(|(_, error)| matches!(error, EngineError::Key { .. }));
    let mut err = out::stderr();
    let mut line = |tables: &[&(String, EngineError)], why: &str, remedy: &str| {
        let names: Vec<&str> = tables.iter().map(|(path, _)| path.as_str()).collect();
        if !names.is_empty() {
            let (count, all, names) = (names.len(), restored.tables, names.join(", "));
            let _ = writeln!(err, "not recovered{why}: {count} of {all} tables of PANDO: {names}; {remedy}");
        }
    };
    line(
        &without_key,
        ", for want of their keys",
        "a server that is started with the right keys recovers them, and one without refuses them; \
         or empty the data directory, and restore again with --keys",
    );
    line(
        &others,
        "",
        "why is said above, and a server refuses them; it recovers them if it finds the cause gone when it starts, \
         else restore another backup",
    );
    let whole = restored.tables.saturating_sub(restored.not_recovered.len() as u64);
    let _ = writeln!(err, "{whole} of {} tables of PANDO are whole", restored.tables);
}

/// What the operator has to know of what was restored.
fn tell(arguments: &RestoreArguments, last: &Manifest) {
    let datadir = arguments.datadir.display();
    if !last.chosen.is_empty() {
        let chosen = last.chosen.join(", ");
        say(
            arguments,
            &format!("the backup has what was chosen ({chosen}), and not the server's other tables"),
        );
    }
    if let Some(binlog) = &last.binlog {
        let (file, position, gtid) = (&binlog.file, binlog.position, &binlog.gtid);
        say(arguments, &format!("the state is that of binary log {file} at {position}, GTID {gtid}"));
    }
    if !arguments.datadir.join(PRIVILEGES).exists() {
        // InnoDB's own files name system tables that are not there, so mariadb-install-db cannot make them.
        let remedy = match last.has_server_part {
            false => format!("make a new one there: mariadb-install-db --user=mysql --datadir={datadir}"),
            true => format!(
                "make a data directory elsewhere with mariadb-install-db, and move {datadir}/.pando and the databases there, InnoDB's tables by IMPORT TABLESPACE; see \"Restore\" in the handbook"
            ),
        };
        say(
            arguments,
            &format!("the backup has no database mysql, so no server can start with {datadir}: {remedy}"),
        );
    }
    say(
        arguments,
        &format!("give the files to the server's user before it starts: chown -R mysql: {datadir}"),
    );
}

fn read_parts<'a>(from: &'a Path, increments: &'a [PathBuf]) -> Outcome<Vec<Part<'a>>> {
    let mut parts = vec![Part { dir: from, manifest: Manifest::read(from)? }];
    for dir in increments {
        parts.push(Part { dir, manifest: Manifest::read(dir)? });
    }
    if let Some(base) = &parts[0].manifest.base {
        return fail(format!(
            "{} is an increment of backup {base}: restore that one with this in --increments",
            from.display()
        ));
    }
    for pair in parts.windows(2) {
        if pair[1].manifest.base.as_ref() != Some(&pair[0].manifest.id) {
            return fail(format!("{} is no increment of {}", pair[1].dir.display(), pair[0].dir.display()));
        }
    }
    Ok(parts)
}

/// Makes a directory, or finds an empty one. The directories that were made, each before the one that it is in.
fn make_empty(dir: &Path) -> Outcome<Vec<PathBuf>> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let made = dir.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    fs::create_dir_all(dir).map_err(at(dir))?;
    match fs::read_dir(dir).map_err(at(dir))?.next() {
        Some(_) => {
            fail(format!("{} is not empty: a backup is restored into an empty directory", dir.display()))
        }
        None => Ok(made),
    }
}

/// Removes what is in a directory that was empty before, and the directories that were made for it.
fn clear(dir: &Path, made: &[PathBuf]) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    made.iter().try_for_each(fs::remove_dir)
}

/// Bytes of a file that are in the backup itself.
pub(super) fn stored_bytes(entry: &FileEntry) -> u64 {
    match entry.dict {
        Some(_) => entry.extents.iter().filter(|extent| extent.3 == 1).map(|extent| extent.1).sum(),
        None => entry.bytes,
    }
}

fn is_of(entry: &FileEntry, dir: &str) -> bool {
    entry.path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// Without the name of the part.
fn within<'a>(entry: &'a FileEntry, dir: &str) -> &'a str {
    entry.path.get(dir.len() + 1..).unwrap_or_default()
}

fn restore_server(arguments: &RestoreArguments, parts: &[Part<'_>], progress: &mut Progress) -> Outcome<()> {
    let datadir = &arguments.datadir;
    let copy_part = |part: &Part<'_>, to: &Path, progress: &mut Progress| -> Outcome<()> {
        for entry in part.manifest.files.iter().filter(|entry| is_of(entry, SERVER_DIR)) {
            let from = Manifest::place(part.dir, entry)?;
            copy::check_plain(&from, entry, Some(&to.join(within(entry, SERVER_DIR))), progress)?;
        }
        Ok(())
    };
    copy_part(&parts[0], datadir, progress)?;
    prepare(arguments, None)?;
    for part in &parts[1..] {
        // mariadb-backup changes the directory of an increment, too.
        let own = datadir.with_extension("increment");
        make_empty(&own)?;
        let prepared = copy_part(part, &own, progress).and_then(|()| prepare(arguments, Some(&own)));
        fs::remove_dir_all(&own).map_err(at(&own))?;
        prepared?;
    }
    Ok(())
}

fn prepare(arguments: &RestoreArguments, increment: Option<&Path>) -> Outcome<()> {
    let mut command = that_ends_with_us(&arguments.mariadb_backup);
    command.arg("--prepare").arg(format!("--target-dir={}", arguments.datadir.display()));
    command.args(increment.map(|dir| format!("--incremental-dir={}", dir.display())));
    command.args(&arguments.backup_option);
    match command.output() {
        Err(error) => fail(format!(
            "cannot run {}: {error}; install the package mariadb-backup",
            arguments.mariadb_backup.display()
        )),
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stderr).into_owned();
            let lines: Vec<&str> = text.lines().rev().take(10).collect();
            let end = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
            fail(format!("mariadb-backup --prepare failed ({}):\n{end}", done.status))
        }
    }
}

fn restore_pando(datadir: &Path, parts: &[Part<'_>], progress: &mut Progress) -> Outcome<()> {
    let Some((last, before)) = parts.split_last() else { return Ok(()) };
    for entry in last.manifest.files.iter().filter(|entry| is_of(entry, PANDO_DIR)) {
        let from = Manifest::place(last.dir, entry)?;
        let to = datadir.join(within(entry, PANDO_DIR));
        let Some(dict) = entry.dict else {
            // A definition that mariadb-backup has, too, in an increment of the other.
            if !to.exists() {
                copy::check_plain(&from, entry, Some(&to), progress)?;
            }
            continue;
        };
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&to).map_err(at(&to))?;
        file.set_len(entry.bytes).map_err(at(&to))?;
        // What an increment refers to is in the ones before it, newer over older.
        for part in before {
            if let Some(older) = part.manifest.files.iter().find(|older| older.dict == Some(dict)) {
                let from = Manifest::place(part.dir, older)?;
                copy::check_tree(&from, older, Some((&to, &file)), progress)?;
            }
        }
        copy::check_tree(&from, entry, Some((&to, &file)), progress)?;
        file.set_len(entry.bytes).map_err(at(&to))?;
        if !before.is_empty() {
            check_whole(&to, entry, parts)?;
        }
        file.sync_all().map_err(at(&to))?;
    }
    Ok(())
}

/// Every extent that the last increment does not have is as one before it had it.
fn check_whole(to: &Path, entry: &FileEntry, parts: &[Part<'_>]) -> Outcome<()> {
    let mut newest: HashMap<u64, &str> = HashMap::new();
    let versions =
        parts.iter().flat_map(|part| part.manifest.files.iter().filter(|it| it.dict == entry.dict));
    for version in versions {
        newest.extend(
            version.extents.iter().filter(|extent| extent.3 == 1).map(|extent| (extent.0, extent.2.as_str())),
        );
    }
    match entry.extents.iter().find(|extent| newest.get(&extent.0) != Some(&extent.2.as_str())) {
        None => Ok(()),
        Some(extent) => fail(format!(
            "{}: the bytes at offset {} are in none of the backups that were given",
            to.display(),
            extent.0
        )),
    }
}
