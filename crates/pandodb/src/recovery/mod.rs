//! Opening a database: what the files hold plus what the log adds.
//!
//! 1. open the log and the catalog's tree (newest valid superblock);
//! 2. first pass over the log: replay the catalog's own records, so that it names the tables as
//!    they were at the end, and note which dictionaries the log is about, and which private runs it
//!    has them adopt: a file's space is not given out before what they take is known;
//! 3. finish interrupted renames of directories, so that files are where the catalog says;
//! 4. second pass: each record above its dictionary's `durable_seqno` goes into a memtable; only the
//!    dictionaries that the log names are opened, so time follows the log, not the data. If they are
//!    more than may be open, a pass for each so many, which are checkpointed and closed before the next;
//! 5. publish the last seqno, start a new log file.
//!
//! A dictionary whose file is damaged does not stop recovery (I8): its records stay in the log
//! (`held_log`), and whoever opens its table gets the error until a later start has replayed them.
//! The log and the files must belong together: a catalog without a log, a log without a catalog and
//! a dictionary that holds commits from behind the log's end are damage, too.

mod open;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{limits, DictId, Error, Metrics, Result, Seqno};
use pando_run::{BlockCache, Run, RunContext, RunMeta};
use pando_storage::vfs::Vfs;
use pando_storage::TreeFile;
use pando_tree::{Tree, TreeConfig};
use pando_txn::Snapshots;
use pando_wal::{BatchKind, BatchReader, Entry, Replay, Wal, WalOptions};

use crate::catalog::descriptor::{table_dir, Intent, CATALOG};
use crate::catalog::file_ages::FileAges;
use crate::catalog::{Catalog, Content};
use crate::db::options::{LogLevel, LogSink, Options};
use crate::db::prepared::{PrivateRuns, Unresolved};
use crate::db::{Db, Parts, Unrecovered};
use crate::ddl::encryption::check_encryption;
use crate::runtime::files::{check_durable, sync_parent};
use crate::runtime::horizon::EngineHorizon;
use crate::runtime::threads::on_each;
use crate::table::Dict;

/// Batches between two lines of progress in the operator's log.
const PROGRESS_BATCHES: u64 = 1_000_000;

/// Instead of the commit that adopts a run: there is none yet.
const UNRESOLVED: Seqno = Seqno::MAX;

/// Where a dictionary is, for opening it when the log names it.
struct Known {
    path: PathBuf,
    config: TreeConfig,
    is_index: bool,
    encryption_key_id: Option<u32>,
}

struct Recovery<'a> {
    options: &'a Options,
    vfs: Arc<dyn Vfs>,
    cache: Arc<BlockCache>,
    metrics: Arc<Metrics>,
    horizon: Arc<EngineHorizon>,
    known: HashMap<DictId, Known>,
    /// How old files may be.
    ages: FileAges,
    dicts: BTreeMap<DictId, Opened>,
    held_log: HashMap<DictId, Unrecovered>,
    /// Indexes that cannot be opened, or are not as the log has them.
    damaged_keys: HashMap<DictId, Unrecovered>,
    /// Runs that the log has dictionaries adopt, and the commits that do.
    adoptions: HashMap<DictId, Vec<(Seqno, RunMeta)>>,
    /// Of the first pass: runs of prepared batches, by their seqno.
    prepared_runs: BTreeMap<Seqno, Vec<(DictId, RunMeta)>>,
    /// Prepared and not resolved, so far in this pass, by seqno.
    prepared: BTreeMap<Seqno, Unresolved>,
    batches: u64,
    records: u64,
}

struct Opened {
    dict: Arc<Dict>,
    durable_seqno: Seqno,
    /// Runs still to be adopted, in the order of the log.
    private: VecDeque<Arc<Run>>,
    /// The commit that adopted last.
    adopted_at: Seqno,
    /// A job has failed: its memtables stay in memory for the background to write.
    is_stuck: bool,
}

/// Recovers the database that the options name.
pub(crate) fn recover(options: &Options, vfs: Arc<dyn Vfs>, log_vfs: Arc<dyn Vfs>) -> Result<Parts> {
    let metrics = Arc::new(Metrics::default());
    vfs.create_dir_all(&options.engine_dir)?;
    sync_parent(&*vfs, &options.engine_dir)?;
    let lock = vfs.lock(&options.engine_dir.join("lock"))?;
    let started = vfs.now_micros();
    let keys = options.keys.clone();
    let ends_at_damage = options.despite_damage;
    let wal_options =
        WalOptions { file_bytes: options.log_file_bytes, keys, ends_at_damage, ..WalOptions::default() };
    let (wal, mut replay) = Wal::create_or_open(log_vfs, &options.engine_dir, wal_options, metrics.clone())?;
    let mut recovery = Recovery {
        options,
        cache: BlockCache::new(options.cache_bytes.max(limits::CACHE_BYTES_MIN), metrics.clone()),
        metrics: metrics.clone(),
        horizon: Arc::new(EngineHorizon::default()),
        vfs: vfs.clone(),
        known: HashMap::new(),
        ages: FileAges::default(),
        dicts: BTreeMap::new(),
        held_log: HashMap::new(),
        damaged_keys: HashMap::new(),
        adoptions: HashMap::new(),
        prepared_runs: BTreeMap::new(),
        prepared: BTreeMap::new(),
        batches: 0,
        records: 0,
    };
    let catalog = recovery.open_catalog(&replay)?;
    let (mut last_seqno, named) = recovery.replay_catalog(&mut replay)?;
    let unresolved: Vec<Unresolved> = recovery.prepared.values().cloned().collect();
    let mut content = Content::load(&catalog)?;
    if !options.despite_damage {
        recovery.ages = std::mem::take(&mut content.ages);
    }
    recovery.finish_renames(&content, &wal)?;
    recovery.know_tables(&content);
    if options.despite_damage {
        last_seqno = recovery.newest_file(last_seqno);
    }
    recovery.replay_tables(&mut replay, &wal, &named, last_seqno)?;
    recovery.check_durable(last_seqno)?;
    wal.encrypt_all(options.encrypt_log)?;
    wal.start(last_seqno + 1)?;
    let snapshots = Snapshots::new(last_seqno);
    recovery.horizon.open_for(snapshots.clone());
    if recovery.batches > 0 {
        let ms = vfs.now_micros().saturating_sub(started) / 1000;
        let (batches, records) = (recovery.batches, recovery.records);
        say(
            &options.log,
            &format!("recovery replayed {records} records of {batches} transactions in {ms} ms"),
        );
    }
    let Recovery { cache, horizon, dicts, held_log, damaged_keys, ages, .. } = recovery;
    content.ages = ages;
    Ok(Parts {
        vfs,
        metrics,
        cache,
        wal,
        snapshots,
        horizon,
        catalog: Catalog::new(catalog, content),
        private: private_of(&dicts),
        dicts: dicts.into_iter().map(|(id, opened)| (id, opened.dict)).collect(),
        held_log,
        damaged_keys,
        unresolved,
        lock,
    })
}

/// The runs that were not adopted: those of unresolved transactions.
fn private_of(dicts: &BTreeMap<DictId, Opened>) -> PrivateRuns {
    let left = dicts.iter().filter(|(_, opened)| !opened.private.is_empty());
    left.map(|(id, opened)| (*id, opened.private.clone())).collect()
}

fn say(log: &LogSink, text: &str) {
    log(LogLevel::Note, text);
}

impl Recovery<'_> {
    /// The catalog's dictionary, made new in a new database.
    fn open_catalog(&mut self, replay: &Replay) -> Result<Arc<Dict>> {
        let path = Db::catalog_path(&self.options.engine_dir);
        // The first log file is begun when the catalog is durable.
        let has_log = replay.oldest_seqno().is_some();
        if !self.vfs.exists(&path)? {
            if has_log || self.options.despite_damage {
                let found = "log files without it";
                return Err(Error::corruption(&path, 0, "catalog", "the file", found));
            }
            self.check_no_tables(&path)?;
            // Renamed into place when whole, so that a crash leaves no half-made catalog.
            let new = path.with_extension("new");
            if self.vfs.exists(&new)? {
                self.vfs.remove_file(&new)?;
            }
            TreeFile::create(&self.vfs, &new, CATALOG)?;
            self.vfs.rename(&new, &path)?;
            self.vfs.sync_dir(&self.options.engine_dir)?;
        }
        let opened = self.open_dict(CATALOG, &path, self.options.tree)?;
        if opened.durable_seqno > 0 && !has_log && !self.options.despite_damage {
            let expected = format!("files with the commits up to {} at least", opened.durable_seqno);
            return Err(Error::corruption(&self.options.engine_dir, 0, "log", expected, "no log file"));
        }
        let dict = opened.dict.clone();
        self.dicts.insert(CATALOG, opened);
        Ok(dict)
    }

    /// A new catalog is for a new database. Tables without a catalog mean that its directory was forgotten in a copy, or is
    /// not mounted: with a new one beside them they could not come back.
    fn check_no_tables(&self, catalog: &Path) -> Result<()> {
        let base = &self.options.base_dir;
        if !self.vfs.exists(base)? {
            return Ok(());
        }
        for database in self.vfs.read_dir(base)?.into_iter().filter(|entry| entry.is_dir) {
            let dir = base.join(database.name);
            if dir == self.options.engine_dir {
                continue;
            }
            for table in self.vfs.read_dir(&dir)?.into_iter().filter(|entry| entry.is_dir) {
                let dir = dir.join(&table.name);
                if table.name.ends_with(".pando") && self.vfs.exists(&dir.join("main.pando"))? {
                    let found = format!(
                        "none, but tables, as {}; put the directory {} of these tables back",
                        dir.display(),
                        self.options.engine_dir.display()
                    );
                    return Err(Error::corruption(catalog, 0, "catalog", "the file", found));
                }
            }
        }
        Ok(())
    }

    fn open_dict(&self, id: DictId, path: &Path, config: TreeConfig) -> Result<Opened> {
        let (file, superblock) = TreeFile::open_with(&self.vfs, path, id, &self.options.keys)?;
        let context =
            RunContext { file: file.clone(), cache: self.cache.clone(), metrics: self.metrics.clone() };
        // What the checkpoint has is in its nodes.
        let adoptions = self.adoptions.get(&id).map_or(&[][..], Vec::as_slice);
        let missing = adoptions.iter().filter(|(seqno, _)| *seqno > superblock.durable_seqno);
        let missing: Vec<RunMeta> = missing.map(|(_, meta)| meta.clone()).collect();
        let horizon = self.horizon.clone();
        let (tree, private) = Tree::open_with_private(context, &superblock, config, horizon, &missing)?;
        let dict = Arc::new(Dict::new(id, tree, file, superblock.auto_increment));
        // Checked by the first tick: a start has no time to sync thousands of files.
        dict.is_secure.store(false, Ordering::Relaxed);
        Ok(Opened {
            dict,
            durable_seqno: superblock.durable_seqno,
            private: private.into(),
            adopted_at: 0,
            is_stuck: false,
        })
    }

    /// The last commit that the log or a file has, where the log may have lost its end: files show what they have.
    fn newest_file(&self, last_seqno: Seqno) -> Seqno {
        let open = |id: &DictId, known: &Known| TreeFile::open(&self.vfs, &known.path, *id);
        let files = self.known.iter().filter_map(|(id, known)| open(id, known).ok());
        let catalog = self.dicts.values().map(|opened| opened.durable_seqno);
        files.map(|(_, superblock)| superblock.durable_seqno).chain(catalog).fold(last_seqno, Seqno::max)
    }

    /// No file holds commits that the log does not know (I7). If one does, the log has lost its end or
    /// is another one: seqnos would be given again that the file has already.
    fn check_durable(&mut self, last_seqno: Seqno) -> Result<()> {
        let newer: Vec<(DictId, Error)> = (self.dicts.iter())
            .filter_map(|(id, opened)| {
                let checked = check_durable(&opened.dict.file.path(), opened.durable_seqno, last_seqno);
                Some((*id, checked.err()?))
            })
            .collect();
        for (id, error) in newer {
            if id == CATALOG {
                return Err(error);
            }
            self.dicts.remove(&id);
            self.hold_log(id, last_seqno + 1, error);
        }
        Ok(())
    }

    /// The first pass. Gives the log's last seqno, and the dictionaries it names.
    fn replay_catalog(&mut self, replay: &mut Replay) -> Result<(Seqno, BTreeSet<DictId>)> {
        let mut named = BTreeSet::new();
        let mut recent = CATALOG;
        self.prepared.clear();
        let end = replay.for_each(|seqno, batch| {
            self.note_adoptions(seqno, batch)?;
            self.replay_batch(seqno, batch, |id| {
                if id != recent {
                    named.insert(id);
                    recent = id;
                }
                id == CATALOG
            })
        })?;
        self.batches = end.batches;
        if let Some(damage) = end.damage {
            let text = format!("the log is read up to its first damage: {damage}");
            (self.options.log)(LogLevel::Error, &text);
        }
        named.extend(self.note_unresolved());
        Ok((end.last_seqno, named))
    }

    /// Notes which runs the batch has dictionaries adopt, or would once it is resolved.
    fn note_adoptions(&mut self, seqno: Seqno, batch: BatchReader<'_>) -> Result<()> {
        match batch.kind() {
            BatchKind::Commit => {
                let runs = self.runs_of(seqno, batch)?;
                self.note_adopted(seqno, runs);
            }
            BatchKind::Prepare { .. } => {
                let runs = self.runs_of(seqno, batch)?;
                self.prepared_runs.insert(seqno, runs);
            }
            BatchKind::PrepareAnew { previous, .. } => {
                let runs = self.runs_of(seqno, batch)?;
                self.prepared_runs.remove(&previous);
                self.prepared_runs.insert(seqno, runs);
            }
            BatchKind::CommitPrepared { prepare } => {
                let runs = self.prepared_runs.remove(&prepare).unwrap_or_default();
                self.note_adopted(seqno, runs);
            }
            BatchKind::RollbackPrepared { prepare } => _ = self.prepared_runs.remove(&prepare),
        }
        Ok(())
    }

    fn note_adopted(&mut self, seqno: Seqno, runs: Vec<(DictId, RunMeta)>) {
        for (dict, meta) in runs {
            self.adoptions.entry(dict).or_default().push((seqno, meta));
        }
    }

    fn runs_of(&self, seqno: Seqno, batch: BatchReader<'_>) -> Result<Vec<(DictId, RunMeta)>> {
        let mut runs = Vec::new();
        for entry in batch {
            let Entry::Adopt { dict, run } = entry? else { continue };
            let meta = RunMeta::decode(&mut &run[..])
                .map_err(|error| error.at(&self.options.engine_dir.join("log"), seqno))?;
            runs.push((dict, meta));
        }
        Ok(runs)
    }

    /// The end of the first pass: what is prepared and not resolved keeps its runs, whatever the checkpoints
    /// have. Gives their dictionaries.
    fn note_unresolved(&mut self) -> Vec<DictId> {
        let runs: Vec<_> = std::mem::take(&mut self.prepared_runs).into_values().flatten().collect();
        let dicts = runs.iter().map(|(dict, _)| *dict).collect();
        self.note_adopted(UNRESOLVED, runs);
        dicts
    }

    /// Opens the dictionaries of a group that hold runs of unresolved transactions, if no record had them
    /// opened: nothing may take the runs' space.
    fn open_unresolved(&mut self, group: &RangeInclusive<DictId>) {
        let is_waiting = |runs: &Vec<(Seqno, RunMeta)>| runs.iter().any(|(seqno, _)| *seqno == UNRESOLVED);
        let mut waiting: Vec<DictId> =
            self.adoptions.iter().filter(|(_, runs)| is_waiting(runs)).map(|(id, _)| *id).collect();
        waiting.retain(|id| group.contains(id) && !self.dicts.contains_key(id));
        waiting.sort();
        let first = self.prepared.first_key_value().map_or(0, |(seqno, _)| *seqno);
        for id in waiting {
            self.open_known(first, id);
        }
    }

    /// Moves directories whose rename the catalog recorded but a crash prevented. One that cannot be
    /// moved is the trouble of its table.
    fn finish_renames(&self, content: &Content, wal: &Wal) -> Result<()> {
        let mut is_secure = false;
        for (_, intent) in &content.intents {
            let Intent::Rename { from, to } = intent else { continue };
            // Only if the table still has the name: it may have been dropped or renamed again.
            if !content.tables.contains_key(to) || content.tables.contains_key(from) {
                continue;
            }
            if !is_secure {
                // What the catalog says may come from a log that is not durable yet.
                wal.secure()?;
                is_secure = true;
            }
            let (old, new) = (table_dir(&self.options.base_dir, from), table_dir(&self.options.base_dir, to));
            if let Err(error) = self.move_dir(&old, &new) {
                let text = format!("cannot move {} to {} now: {error}", old.display(), new.display());
                (self.options.log)(LogLevel::Error, &text);
            }
        }
        Ok(())
    }

    fn move_dir(&self, old: &Path, new: &Path) -> Result<()> {
        if self.vfs.exists(old)? && !self.vfs.exists(new)? {
            self.vfs.rename(old, new)?;
        }
        // Also when it was moved before: perhaps by a process that came no further.
        sync_parent(&*self.vfs, new)?;
        sync_parent(&*self.vfs, old)
    }

    fn know_tables(&mut self, content: &Content) {
        for table in content.tables.values().filter(|table| !table.temporary) {
            let dir = table_dir(&self.options.base_dir, &table.path);
            for (position, dictionary) in table.all_dictionaries().enumerate() {
                if dictionary.unusable.is_some() {
                    continue;
                }
                let config = dictionary.tree_config(&self.options.tree, table.compression());
                let is_index = (1..table.dictionaries.len()).contains(&position);
                let path = dir.join(&dictionary.file);
                let known = Known { path, config, is_index, encryption_key_id: table.encryption_key_id };
                self.known.insert(DictId(dictionary.id), known);
            }
        }
    }

    /// The other passes, each for as many dictionaries as may be open.
    fn replay_tables(
        &mut self,
        replay: &mut Replay,
        wal: &Wal,
        named: &BTreeSet<DictId>,
        last_seqno: Seqno,
    ) -> Result<()> {
        let wanted: Vec<DictId> = named.iter().filter(|id| self.known.contains_key(id)).copied().collect();
        let mut groups = wanted.chunks(self.options.files_open_max.max(1)).peekable();
        while let Some(group) = groups.next() {
            let group = group[0]..=group[group.len() - 1];
            self.replay_group(replay, &group)?;
            if groups.peek().is_some() {
                self.check_durable(last_seqno)?;
                wal.secure()?;
                self.close_group(&group, last_seqno);
            }
        }
        Ok(())
    }

    fn replay_group(&mut self, replay: &mut Replay, group: &RangeInclusive<DictId>) -> Result<()> {
        let mut batches = 0u64;
        self.prepared.clear();
        replay.for_each(|seqno, batch| {
            batches += 1;
            if batches % PROGRESS_BATCHES == 0 {
                let text = format!("recovery has replayed {batches} transactions of {}", self.batches);
                say(&self.options.log, &text);
            }
            self.replay_batch(seqno, batch, |id| group.contains(&id))
        })?;
        self.open_unresolved(group);
        Ok(())
    }

    /// Makes durable what a pass has brought back, and closes the files. What cannot be written stays
    /// open.
    fn close_group(&mut self, group: &RangeInclusive<DictId>, last_seqno: Seqno) {
        // The runs that others keep are for transactions that come back at the end.
        let opened = self.dicts.range(group.clone()).filter(|(_, opened)| opened.private.is_empty());
        let dicts: Vec<Arc<Dict>> = opened.map(|(_, opened)| opened.dict.clone()).collect();
        let checkpoint = |dict: &Arc<Dict>| {
            let counter = || dict.auto_increment.load(Ordering::Relaxed);
            // The log is durable up to there.
            let checkpoint = dict.tree.checkpoint(|| last_seqno, |_| Ok(()), counter);
            (dict.id, checkpoint.and_then(|_| dict.secure()).map(|_| dict.file.epoch()))
        };
        let results = on_each(self.options.files_at_once(), &dicts, checkpoint);
        drop(dicts);
        for (id, result) in results {
            match result {
                Ok(epoch) => {
                    self.ages.made(id, epoch);
                    self.dicts.remove(&id);
                }
                Err(error) => {
                    let text = format!("checkpoint during recovery failed: {error}");
                    (self.options.log)(LogLevel::Error, &text);
                }
            }
        }
    }

    /// Replays a commit, or keeps what is prepared until its resolution comes. (A resolution whose
    /// prepare was trimmed is that of a transaction that is durable in the trees, or was rolled back.)
    fn replay_batch(
        &mut self,
        seqno: Seqno,
        batch: BatchReader<'_>,
        selected: impl FnMut(DictId) -> bool,
    ) -> Result<()> {
        self.horizon.replayed(seqno);
        match batch.kind() {
            BatchKind::Commit => self.replay_commit(seqno, seqno, batch, selected),
            BatchKind::Prepare { xid } => {
                self.keep_prepared(seqno, xid, batch);
                Ok(())
            }
            BatchKind::PrepareAnew { xid, previous } => {
                self.prepared.remove(&previous);
                self.keep_prepared(seqno, xid, batch);
                Ok(())
            }
            BatchKind::CommitPrepared { prepare } => match self.prepared.remove(&prepare) {
                Some(found) => self.replay_commit(seqno, prepare, found.batch.entries(), selected),
                None => Ok(()),
            },
            BatchKind::RollbackPrepared { prepare } => {
                self.prepared.remove(&prepare);
                Ok(())
            }
        }
    }

    fn keep_prepared(&mut self, seqno: Seqno, xid: &[u8], batch: BatchReader<'_>) {
        let unresolved = Unresolved { seqno, xid: xid.to_vec(), batch: batch.to_batch() };
        self.prepared.insert(seqno, unresolved);
    }

    /// `logged_from` is the seqno under which the log has the entries.
    fn replay_commit(
        &mut self,
        seqno: Seqno,
        logged_from: Seqno,
        batch: BatchReader<'_>,
        mut selected: impl FnMut(DictId) -> bool,
    ) -> Result<()> {
        let mut touched = Vec::new();
        for entry in batch {
            let entry = entry?;
            let id = entry.dict();
            if selected(id) {
                self.replay_entry(seqno, logged_from, id, entry)?;
                if touched.last() != Some(&id) {
                    touched.push(id);
                }
            }
        }
        self.make_room(seqno, &touched);
        Ok(())
    }

    /// Seals and writes memtables that are full: only between batches, because a sealed memtable
    /// claims to hold whole commits. What cannot be written (a full disk, a damaged block in the way)
    /// stays in memory: no more than the log has.
    fn make_room(&mut self, seqno: Seqno, touched: &[DictId]) {
        for id in touched {
            let Some(opened) = self.dicts.get_mut(id) else { continue };
            let is_sealed = opened.dict.tree.seal_if_full(|| seqno);
            while is_sealed && !opened.is_stuck {
                match opened.dict.tree.run_job() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        opened.is_stuck = true;
                        let text = format!("background job during recovery failed: {error}");
                        (self.options.log)(LogLevel::Error, &text);
                    }
                }
            }
        }
    }

    fn replay_entry(&mut self, seqno: Seqno, logged_from: Seqno, id: DictId, entry: Entry<'_>) -> Result<()> {
        if !self.dicts.contains_key(&id) && !self.open_known(logged_from, id) {
            return Ok(());
        }
        let Some(opened) = self.dicts.get_mut(&id) else { return Ok(()) };
        let durable_seqno = opened.durable_seqno + u64::from(is_planted(Bug::ReplaySkipsFirst));
        if seqno <= durable_seqno {
            return Ok(());
        }
        let dict = &opened.dict;
        // As old as can be: among the first to be checkpointed.
        dict.dirty_since.store(1, Ordering::Relaxed);
        match entry {
            Entry::Record { kind, key, value, .. } => {
                // Booked as when it was committed: the log is needed from the prepare on.
                dict.tree.defer(logged_from).1.insert(key, seqno, kind, value);
                self.records += 1;
            }
            Entry::Adopt { .. } => {
                let Some(run) = opened.private.pop_front() else {
                    let (expected, found) = ("a run noted in the first pass", format!("one at {seqno}"));
                    return Err(Error::corruption(&dict.file.path(), 0, "adoption", expected, found));
                };
                if opened.adopted_at != seqno {
                    // Its keys' older versions must not be in the memtable that adopts.
                    dict.tree.seal_before_adoption(|| seqno - 1);
                    opened.adopted_at = seqno;
                }
                dict.tree.defer(logged_from).1.adopt(&run, seqno);
                self.records += run.meta().rows;
            }
            Entry::Truncate { .. } => {
                dict.tree.truncate(seqno);
                dict.auto_increment.store(0, Ordering::Relaxed);
            }
            Entry::AutoIncrement { next, .. } => {
                dict.auto_increment.fetch_max(next, Ordering::Relaxed);
                // Should the checkpoint of the recovery fail.
                drop(dict.tree.defer(logged_from));
            }
        }
        Ok(())
    }

    /// Opens a dictionary that the log names. False: it was dropped, or its file is damaged.
    fn open_known(&mut self, needs_from: Seqno, id: DictId) -> bool {
        if self.held_log.contains_key(&id) || self.damaged_keys.contains_key(&id) {
            return false;
        }
        let Some(known) = self.known.get(&id) else { return false };
        let open = || -> Result<Opened> {
            let opened = self.open_dict(id, &known.path, known.config)?;
            opened.dict.file.check_key()?;
            check_encryption(&opened.dict.file, known.encryption_key_id)?;
            self.ages.check(&known.path, id, opened.dict.file.epoch())?;
            Ok(opened)
        };
        // A key is given up for damage: it may be the reading that was bad.
        match open().or_else(|error| if known.is_index && error.is_damage() { open() } else { Err(error) }) {
            Ok(opened) => {
                self.dicts.insert(id, opened);
                true
            }
            Err(error) => {
                self.hold_log(id, needs_from, error);
                false
            }
        }
    }

    fn hold_log(&mut self, id: DictId, needs_from: Seqno, error: Error) {
        if error.is_damage() && self.known.get(&id).is_some_and(|known| known.is_index) {
            self.damaged_keys.insert(id, Unrecovered { needs_from, error });
            return;
        }
        let text = format!("a table cannot be recovered; its part of the log is kept: {error}");
        (self.options.log)(LogLevel::Error, &text);
        self.held_log.insert(id, Unrecovered { needs_from, error });
    }
}
