//! Taking a backup.
//!
//! 1. The session arms a backup in the engine.
//! 2. `mariadb-backup` copies the other engines. When it has stopped all commits, and written down the position in the
//!    binary log, the engine pins its state: both are the same moment. (With `--pando-only` this session does with BACKUP STAGE
//!    what `mariadb-backup` would, and copies the tables' definitions.)
//! 3. No lock is held any more. The log up to that moment is copied, then each file.
//! 4. The manifest is written, which makes the backup complete.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use pandodb::{adopted_by_log, Adopted, EngineError, PinnedCopy, RealVfs, Superblock, SuperblockText, Vfs};
use serde::Deserialize;

use super::child::that_ends_with_us;
use super::chosen::{file_name, names, Chosen};
use super::client::{Connect, Session};
use super::files::{dirs_below, files_below, has_tables, is_pando_table, is_within};
use super::manifest::{
    sync_dir, BinlogPosition, FileEntry, Manifest, MANIFEST, PANDO_DIR, SERVER_DIR, SERVER_LOG,
};
use super::progress::Progress;
use super::stream::Archive;
use super::{at, copy, fail, Outcome};

/// A table may be renamed just when its file is opened; then the engine is asked again.
const TRIES: u32 = 20;
/// How long the engine waits for the session, which waits for mariadb-backup.
const SESSION_SECONDS: u32 = 30 * 24 * 3600;

/// What mariadb-backup says when its copier of InnoDB's log has gone astray, which is a defect of it (MDEV-39468): it reads the end of the log
/// while the server writes there.
const LOST_THE_LOG: &str = "Was only able to copy log from";
const LOST_THE_LOG_HINT: &str =
    "\nmariadb-backup does so now and then while there are writes (MDEV-39468), whatever the size of the log: take the backup again";

/// How often mariadb-backup looks for more of InnoDB's log.
const LOG_COPY_INTERVAL_MS: u32 = 50;

/// Arguments of `pando backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArguments {
    /// The server
    #[command(flatten)]
    pub connect: Connect,
    /// Directory that the backup makes; it must not be there, or be empty, and not be in the server's data directory
    #[arg(long)]
    pub target: PathBuf,
    /// Write the backup to standard output as a tar archive. The files of other engines and PANDO's log wait in the target, which is
    /// removed at the end, and when the backup fails
    #[arg(long)]
    pub stream: bool,
    /// Compress the stream with zstd
    #[arg(long, requires = "stream")]
    pub compress: bool,
    /// Take PANDO's tables only, with their definitions, and not those of other engines by mariadb-backup
    #[arg(long)]
    pub pando_only: bool,
    /// Only these databases, with commas between them; each has to be there. A name with a comma is put into backquotes
    #[arg(long, value_name = "NAME,...")]
    pub databases: Vec<String>,
    /// Only these tables, as DATABASE.TABLE, with commas between them; each has to be there, and with --pando-only to be PANDO's. Names with
    /// commas or dots are put into backquotes: '`a.b`.`c`'
    #[arg(long, value_name = "DATABASE.TABLE,...")]
    pub tables: Vec<String>,
    /// Write only what has changed since the backup in this directory
    #[arg(long)]
    pub incremental_base: Option<PathBuf>,
    /// Bytes of PANDO's files to copy a second at most, in MiB; 0: as fast as it goes
    #[arg(long)]
    pub limit_rate: Option<u64>,
    /// The program that copies the other engines
    #[arg(long, default_value = "mariadb-backup")]
    pub mariadb_backup: PathBuf,
    /// An option for it; may be given several times
    #[arg(long, allow_hyphen_values = true)]
    pub backup_option: Vec<String>,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Deserialize)]
struct List {
    last_seqno: u64,
    pins: u64,
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    dict: u64,
    table: String,
    file: String,
    bytes: Option<u64>,
}

#[derive(Deserialize)]
struct LogFile {
    path: PathBuf,
    bytes: u64,
}

#[derive(Deserialize)]
struct Source {
    path: PathBuf,
    superblock: SuperblockText,
}

struct Backup<'a> {
    arguments: &'a BackupArguments,
    session: Session,
    data_dir: PathBuf,
    chosen: Chosen,
    manifest: Manifest,
    base: Option<Manifest>,
    files: Arc<dyn Vfs>,
    archive: Option<Archive>,
}

/// Takes a backup.
pub fn run(arguments: &BackupArguments) -> Outcome<()> {
    let base = arguments.incremental_base.as_deref().map(Manifest::read).transpose()?;
    is_free(&arguments.target)?;
    let mut session = Session::open(&arguments.connect)?;
    let server = session.value("SELECT @@version")?;
    let active = "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'PANDO' AND plugin_status = 'ACTIVE'";
    if session.value(active)? != "1" {
        return fail("the server has no PANDO engine");
    }
    let data_dir = PathBuf::from(session.value("SELECT @@datadir")?);
    if !data_dir.join(".pando").is_dir() {
        return fail(format!("{} is not on this machine, or may not be read", data_dir.display()));
    }
    if is_within(&arguments.target, &data_dir)? {
        return fail(format!(
            "{} is in the server's data directory, where it would be taken for a database",
            arguments.target.display()
        ));
    }
    let named = (&arguments.databases[..], &arguments.tables[..]);
    let chosen = Chosen::find(named, arguments.pando_only, &mut session, &data_dir)?;
    fs::create_dir_all(&arguments.target).map_err(at(&arguments.target))?;
    let began = seconds();
    let id = format!("{began:x}-{:x}", std::process::id());
    let mut manifest = Manifest::new(server, id, began);
    manifest.chosen =
        names(&arguments.databases).chain(names(&arguments.tables)).map(str::to_owned).collect();
    manifest.base = base.as_ref().map(|base| base.id.clone());
    let archive = arguments.stream.then(|| Archive::new(arguments.compress)).transpose()?;
    let files = RealVfs::new(false);
    let backup = Backup { arguments, session, data_dir, chosen, manifest, base, files, archive };
    let taken = backup.take();
    if arguments.stream && taken.is_err() {
        // What has waited there is of no use to anybody.
        let _ = fs::remove_dir_all(&arguments.target);
    }
    taken
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes a second of so many MiB; none: without a limit, which is also what 0 stands for.
fn rate_of(mib: Option<u64>) -> Option<u64> {
    mib.filter(|mib| *mib > 0).map(|mib| mib.saturating_mul(1 << 20))
}

/// Whether a backup may begin there.
fn is_free(target: &Path) -> Outcome<()> {
    if target.join(MANIFEST).exists() {
        return fail(format!("{} has a backup already", target.display()));
    }
    if !target.exists() {
        return Ok(());
    }
    match fs::read_dir(target).map_err(at(target))?.next() {
        Some(_) => fail(format!("{} is not empty", target.display())),
        None => Ok(()),
    }
}

impl Backup<'_> {
    /// The steps at the head of this file.
    fn take(mut self) -> Outcome<()> {
        self.warn_of_no_system_tables();
        self.session.ask(&format!("SET SESSION wait_timeout = {SESSION_SECONDS}"))?;
        self.session.engine("arm")?;
        if self.arguments.pando_only {
            self.pin_alone()?;
        } else {
            self.run_mariadb_backup()?;
        }
        self.copy_pando()?;
        self.session.engine("end")?;
        self.finish()
    }

    /// Without them no server starts with what is restored.
    fn warn_of_no_system_tables(&self) {
        if !self.arguments.pando_only && !self.chosen.has_database("mysql") {
            self.say("warning: the backup will have no database mysql (accounts, system tables), so no server can start with what is restored of it. Add mysql,sys to --databases, or see \"Restore\" in the handbook");
        }
    }

    fn say(&self, text: &str) {
        if !self.arguments.quiet {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Lets mariadb-backup do its work, which pins PANDO's state on the way.
    fn run_mariadb_backup(&mut self) -> Outcome<()> {
        let target = self.arguments.target.join(SERVER_DIR);
        let log_path = self.arguments.target.join(SERVER_LOG);
        let log = fs::File::create(&log_path).map_err(at(&log_path))?;
        let mut command = that_ends_with_us(&self.arguments.mariadb_backup);
        command.args(self.arguments.connect.arguments()).arg("--backup");
        command.arg(format!("--target-dir={}", target.display()));
        if let Some(password) = &self.arguments.connect.password {
            command.arg(format!("--password={password}"));
        }
        let patterns = self.chosen.patterns();
        if !patterns.is_empty() {
            command.arg(format!("--tables={}", patterns.join(",")));
        }
        if let (Some(dir), Some(base)) = (&self.arguments.incremental_base, &self.base) {
            if !base.has_server_part {
                return fail(format!("{} has PANDO's tables only: use --pando-only", dir.display()));
            }
            command.arg(format!("--incremental-basedir={}", dir.join(SERVER_DIR).display()));
        }
        // While commits wait, it waits for its copier of InnoDB's log, which by default looks once a second.
        command.arg(format!("--log-copy-interval={LOG_COPY_INTERVAL_MS}"));
        command.args(&self.arguments.backup_option);
        command.stderr(log.try_clone().map_err(at(&log_path))?).stdout(log);
        self.say("mariadb-backup copies the other engines");
        let status = match command.status() {
            Ok(status) => status,
            Err(error) => {
                return fail(format!(
                    "cannot run {}: {error}; install the package mariadb-backup, or take PANDO's tables alone with --pando-only",
                    self.arguments.mariadb_backup.display()
                ))
            }
        };
        if !status.success() {
            let text = fs::read_to_string(&log_path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(5).collect();
            let end = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
            let hint = if text.contains(LOST_THE_LOG) { LOST_THE_LOG_HINT } else { "" };
            let log = match self.arguments.stream {
                true => "what it said".into(),
                false => log_path.display().to_string(),
            };
            return fail(format!("mariadb-backup failed ({status}); {log} ends with\n{end}{hint}"));
        }
        self.manifest.has_server_part = true;
        self.manifest.binlog = ["mariadb_backup_binlog_info", "xtrabackup_binlog_info"]
            .iter()
            .find_map(|name| fs::read_to_string(target.join(name)).ok())
            .and_then(|text| position_of(&text));
        Ok(())
    }

    /// Does the backup stages itself, and copies the definitions of PANDO's tables.
    fn pin_alone(&mut self) -> Outcome<()> {
        for stage in ["START", "FLUSH", "BLOCK_DDL"] {
            self.session.ask(&format!("BACKUP STAGE {stage}"))?;
        }
        self.copy_definitions()?;
        // From here on commits wait.
        self.session.ask("BACKUP STAGE BLOCK_COMMIT")?;
        if self.session.value("SELECT @@log_bin")? == "1" {
            let status = self.session.value("SHOW MASTER STATUS")?;
            let gtid = self.session.value("SELECT @@gtid_binlog_pos")?;
            let mut columns = status.split('\t');
            let (file, position) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
            let position = position.parse().unwrap_or(0);
            self.manifest.binlog = Some(BinlogPosition { file: file.to_owned(), position, gtid });
        }
        // Pins.
        self.session.ask("BACKUP STAGE END")?;
        Ok(())
    }

    /// The server's files that belong to PANDO's tables: definitions, partitions, triggers and their names, and options of databases.
    fn copy_definitions(&mut self) -> Outcome<()> {
        let mut progress = Progress::new(0, None, true);
        let databases = fs::read_dir(&self.data_dir).map_err(at(&self.data_dir))?;
        for database in databases {
            let database = database.map_err(at(&self.data_dir))?.path();
            if !database.is_dir() || !has_tables(&database) {
                continue;
            }
            let name = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for entry in fs::read_dir(&database).map_err(at(&database))? {
                let path = entry.map_err(at(&database))?.path();
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
                let is_ours = match extension {
                    "frm" | "par" => is_pando_table(&path),
                    "TRG" => true,
                    "TRN" => self.leads_to_ours(&database, &path)?,
                    "opt" => true,
                    _ => false,
                };
                if !is_ours || !path.is_file() || file.starts_with("#sql") {
                    continue;
                }
                let table = file.split('.').next().unwrap_or_default();
                if !matches!(extension, "opt" | "TRN") && !self.chosen.has(&format!("{name}/{table}")) {
                    continue;
                }
                let relative = format!("{PANDO_DIR}/{name}/{file}");
                let to = self.arguments.target.join(&relative);
                self.manifest.files.push(copy::plain(&path, &to, &relative, &mut progress)?);
            }
        }
        Ok(())
    }

    /// Whether a file with the name of a trigger is of a table that the backup has.
    fn leads_to_ours(&mut self, database: &Path, path: &Path) -> Outcome<bool> {
        let text = fs::read_to_string(path).map_err(at(path))?;
        let Some(table) = table_of_trigger(&text) else { return Ok(false) };
        let table = file_name(&mut self.session, &table)?;
        let name = database.file_name().unwrap_or_default().to_string_lossy();
        Ok(is_pando_table(&database.join(format!("{table}.frm")))
            && self.chosen.has(&format!("{name}/{table}")))
    }

    fn copy_pando(&mut self) -> Outcome<()> {
        let list: List = serde_json::from_value(self.session.engine("list")?)?;
        if list.pins != 1 {
            return fail("another backup ran at the same time, so the state of PANDO is not that of the other engines; try again");
        }
        self.manifest.last_seqno = list.last_seqno;
        let sizes: HashMap<u64, u64> =
            list.files.iter().map(|file| (file.dict, self.size_of(file))).collect();
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            list.files.into_iter().partition(|file| file.table.is_empty() || self.chosen.has(&file.table));
        for file in &unwanted {
            self.session.engine(&format!("done {}", file.dict))?;
        }
        let total = wanted.iter().map(|file| sizes.get(&file.dict).copied().unwrap_or(0)).sum();
        let mut progress = Progress::new(total, rate_of(self.arguments.limit_rate), self.arguments.quiet);
        let engine_dir = self.copy_log(&mut progress)?;
        let adopted = adopted_by_log(&self.files, &engine_dir)?;
        let mut tables = BTreeSet::new();
        let base: HashMap<u64, FileEntry> = (self.base.iter().flat_map(|base| &base.files))
            .filter_map(|entry| Some((entry.dict?, entry.clone())))
            .collect();
        for file in &wanted {
            let expected = sizes.get(&file.dict).copied().unwrap_or(0);
            let entry = self.copy_tree(file, &adopted, base.get(&file.dict), (expected, &mut progress))?;
            self.manifest.files.push(entry);
            self.session.engine(&format!("done {}", file.dict))?;
            if !file.table.is_empty() {
                tables.insert(file.table.clone());
            }
        }
        self.manifest.tables = tables.into_iter().collect();
        let (bytes, time) = progress.end();
        self.say(&format!(
            "{} tables of PANDO, {:.1} MiB in {:.1} s",
            self.manifest.tables.len(),
            bytes as f64 / 1_048_576.0,
            time.as_secs_f64()
        ));
        Ok(())
    }

    /// About how much there is to copy of it.
    fn size_of(&self, file: &Listed) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let path = self.data_dir.join(format!("{}.pando", file.table)).join(&file.file);
        file.bytes.unwrap_or_else(|| fs::metadata(path).map_or(0, |data| data.blocks() * 512))
    }

    fn copy_log(&mut self, progress: &mut Progress) -> Outcome<PathBuf> {
        let relative = format!("{PANDO_DIR}/.pando");
        let dir = self.arguments.target.join(&relative);
        let files: Vec<LogFile> = serde_json::from_value(self.session.engine("log")?)?;
        for file in files {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let relative = format!("{relative}/{name}");
            let entry = copy::log(&file.path, &dir.join(&name), file.bytes, &relative, progress)?;
            self.manifest.files.push(entry);
        }
        self.session.engine("log done")?;
        Ok(dir)
    }

    fn copy_tree(
        &mut self,
        file: &Listed,
        adopted: &Adopted,
        base: Option<&FileEntry>,
        (expected, progress): (u64, &mut Progress),
    ) -> Outcome<FileEntry> {
        let relative = match file.table.is_empty() {
            true => format!("{PANDO_DIR}/.pando/{}", file.file),
            false => format!("{PANDO_DIR}/{}.pando/{}", file.table, file.file),
        };
        let command = format!("file {}", file.dict);
        for _ in 1..TRIES {
            let found: Source = serde_json::from_value(self.session.engine(&command)?)?;
            let superblock = Superblock::from(&found.superblock);
            let path = self.data_dir.join(&found.path);
            // It may have been renamed just now, and another may have its name.
            let Some(source) = copy::open_tree(&path, file.dict)? else { continue };
            let copy = match PinnedCopy::open(&self.files, &path, &superblock, adopted) {
                Ok(copy) => copy,
                Err(EngineError::NotFound { .. }) => continue,
                Err(_) if copy::open_tree(&path, file.dict)?.is_none() => continue,
                Err(error) => return Err(error.into()),
            };
            progress.correct_total(expected, copy.bytes());
            let tree =
                copy::Tree { path: &path, source, copy: &copy, name: &relative, dict: file.dict, base };
            return match &mut self.archive {
                Some(archive) => tree.into_stream(archive, progress),
                None => tree.into_file(&self.arguments.target.join(&relative), progress),
            };
        }
        fail(format!("the file of dictionary {} ({}) was renamed again and again", file.dict, file.table))
    }

    fn finish(mut self) -> Outcome<()> {
        let target = self.arguments.target.clone();
        if self.manifest.has_server_part {
            self.say("checksums of the files of the other engines");
            for path in files_below(&target.join(SERVER_DIR))? {
                let name = path.strip_prefix(&target).unwrap_or(&path).to_string_lossy().into_owned();
                let entry = copy::checksum(&path, &name)?;
                self.manifest.files.push(entry);
            }
        }
        self.manifest.ended = seconds();
        self.manifest.complete = true;
        match self.archive.take() {
            Some(archive) => self.end_stream(archive)?,
            None => {
                for dir in dirs_below(&target)? {
                    sync_dir(&dir)?;
                }
                self.manifest.write(&target)?;
                let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
                sync_dir(parent.unwrap_or(Path::new(".")))?;
            }
        }
        if let Some(binlog) = &self.manifest.binlog {
            self.say(&format!("binary log {} at {}, GTID {}", binlog.file, binlog.position, binlog.gtid));
        }
        match self.arguments.stream {
            true => self.say("complete"),
            false => self.say(&format!("complete: {}", target.display())),
        }
        Ok(())
    }

    /// What has waited in the target, and the manifest as the last.
    fn end_stream(&mut self, mut archive: Archive) -> Outcome<()> {
        let target = &self.arguments.target;
        for path in files_below(target)? {
            let name = path.strip_prefix(target).unwrap_or(&path).to_string_lossy().into_owned();
            archive.add(&path, &name)?;
        }
        self.manifest.write(target)?;
        archive.add(&target.join(MANIFEST), MANIFEST)?;
        archive.finish()?;
        fs::remove_dir_all(target).map_err(at(target))
    }
}

/// The table that the text of a `.TRN` file names; the server puts `\\` before some characters.
fn table_of_trigger(text: &str) -> Option<String> {
    let written = text.lines().find_map(|line| line.strip_prefix("trigger_table="))?;
    let (mut name, mut characters) = (String::new(), written.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.push(match characters.next()? {
                'n' => '\n',
                'z' => '\x1a',
                other => other,
            }),
            other => name.push(other),
        }
    }
    Some(name)
}

/// `file <tab> position <tab> GTID`.
fn position_of(text: &str) -> Option<BinlogPosition> {
    let mut words = text.split_whitespace();
    let (file, position) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    Some(BinlogPosition { file, position, gtid: words.next().unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_with_and_without_a_gtid() {
        let position = position_of("binlog.000003\t4711\t0-1-9\n").unwrap();
        assert_eq!(
            (position.file.as_str(), position.position, position.gtid.as_str()),
            ("binlog.000003", 4711, "0-1-9")
        );
        assert_eq!(position_of("binlog.000003 328").unwrap().gtid, "");
        assert!(position_of("").is_none());
    }

    #[test]
    fn the_file_of_a_trigger_names_its_table() {
        let text = "TYPE=TRIGGERNAME\ntrigger_table=q\\'\\\\ düb\n";
        assert_eq!(table_of_trigger(text).unwrap(), "q'\\ düb");
        assert_eq!(table_of_trigger("TYPE=TRIGGERNAME\n"), None);
    }

    #[test]
    fn no_rate_and_a_rate_of_zero_are_no_limit() {
        assert_eq!([None, Some(0)].map(rate_of), [None, None]);
        assert_eq!([Some(50), Some(u64::MAX)].map(rate_of), [Some(50 << 20), Some(u64::MAX)]);
    }
}
