//! Opening a database: what the files hold plus what the log adds.
//!
//! 1. open the log and the catalog's tree (newest valid superblock);
//! 2. first pass over the log: replay the catalog's own records, so that it names the tables as
//!    they were at the end, and note which dictionaries the log is about, and which private runs it
//!    has them adopt (`survey`): a file's space is not given out before what they take is known;
//! 3. finish interrupted renames of directories, so that files are where the catalog says;
//! 4. the other passes: each record above its dictionary's `durable_seqno` goes into a memtable. The dictionaries
//!    that the log names are divided among lanes, each with a thread and a pass of its own (`lane`, `lanes`, decision 0037). Only
//!    these dictionaries are opened, so time follows the log, not the data. If they are more than may be open, a
//!    group at a time is replayed, checkpointed and closed;
//! 5. publish the last seqno, start a new log file.
//!
//! A dictionary whose file is damaged does not stop recovery (I8): its records stay in the log
//! (`held_log`), and whoever opens its table gets the error until a later start has replayed them.
//! The log and the files must belong together: a catalog without a log, a log without a catalog and
//! a dictionary that holds commits from behind the log's end are damage, too.

mod lane;
mod lanes;
mod open;
mod opening;
mod survey;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{limits, DictId, Error, Metrics, Result, Seqno};
use pando_run::BlockCache;
use pando_storage::vfs::Vfs;
use pando_txn::Snapshots;
use pando_wal::{Replay, ReplayEnd, Wal, WalOptions};

use self::lane::{Lane, Slot};
use self::lanes::{divide, Progress, ReplayMemory};
use self::opening::{Adoptions, Opened, Opening, Part};
use self::survey::Survey;
use crate::catalog::descriptor::{table_dir, Intent, CATALOG};
use crate::catalog::file_ages::FileAges;
use crate::catalog::{Catalog, Content};
use crate::db::options::{LogLevel, LogSink, Options};
use crate::db::prepared::{PrivateRuns, Unresolved};
use crate::db::{Parts, Unrecovered};
use crate::runtime::files::{check_durable, sync_parent};
use crate::runtime::horizon::EngineHorizon;
use crate::runtime::threads::on_each;
use crate::table::Dict;

struct Recovery<'a> {
    opening: Opening<'a>,
    dicts: BTreeMap<DictId, Opened>,
    held_log: HashMap<DictId, Unrecovered>,
    /// Indexes that cannot be opened, or are not as the log has them.
    damaged_keys: HashMap<DictId, Unrecovered>,
    /// Records brought back.
    records: u64,
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
    let opening = Opening {
        options,
        cache: BlockCache::new(options.cache_bytes.max(limits::CACHE_BYTES_MIN), metrics.clone()),
        metrics: metrics.clone(),
        horizon: Arc::new(EngineHorizon::default()),
        vfs: vfs.clone(),
        known: HashMap::new(),
        ages: FileAges::default(),
        adoptions: Adoptions::new(),
    };
    let (mut recovery, survey, end) = Recovery::begin(opening, &mut replay)?;
    let catalog = recovery.dicts[&CATALOG].dict.clone();
    let unresolved: Vec<Unresolved> = survey.unresolved.into_values().collect();
    let mut content = Content::load(&catalog)?;
    recovery.opening.adoptions = survey.adoptions;
    if !options.despite_damage {
        recovery.opening.ages = std::mem::take(&mut content.ages);
    }
    recovery.finish_renames(&content, &wal)?;
    recovery.opening.know_tables(&content);
    let mut last_seqno = end.last_seqno;
    if options.despite_damage {
        let of_catalog = recovery.dicts[&CATALOG].durable_seqno;
        last_seqno = recovery.opening.newest_file(last_seqno.max(of_catalog));
    }
    // Nobody reads before all is there.
    recovery.opening.horizon.replayed(last_seqno);
    recovery.replay_tables(&replay, &wal, survey.named, &ReplayEnd { last_seqno, ..end.clone() })?;
    recovery.check_durable(last_seqno)?;
    wal.encrypt_all(options.encrypt_log)?;
    wal.start(last_seqno + 1)?;
    let snapshots = Snapshots::new(last_seqno);
    let Recovery { opening, dicts, held_log, damaged_keys, records } = recovery;
    let Opening { cache, horizon, ages, .. } = opening;
    horizon.open_for(snapshots.clone());
    if end.batches > 0 {
        let ms = vfs.now_micros().saturating_sub(started) / 1000;
        let text = format!("recovery replayed {records} records of {} transactions in {ms} ms", end.batches);
        say(&options.log, &text);
    }
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

impl<'a> Recovery<'a> {
    /// The first pass: brings the catalog back, and tells what the log is about.
    fn begin(opening: Opening<'a>, replay: &mut Replay) -> Result<(Recovery<'a>, Survey, ReplayEnd)> {
        let mut survey = Survey::new(opening.options.engine_dir.join("log"));
        let memory = ReplayMemory::new(opening.options.replay_memory_bytes);
        let opened = opening.open_catalog(replay.oldest_seqno().is_some())?;
        let mut lane = Lane::of(&opening, &memory, CATALOG, opened);
        let end = replay.for_each(|seqno, batch| {
            opening.horizon.replayed(seqno);
            survey.batch(seqno, batch)?;
            lane.batch(seqno, batch)
        })?;
        survey.end()?;
        if let Some(damage) = &end.damage {
            let text = format!("the log is read up to its first damage: {damage}");
            (opening.options.log)(LogLevel::Error, &text);
        }
        let records = lane.records;
        let slots: Vec<(DictId, Slot)> = lane.into_slots().collect();
        let mut recovery = Recovery {
            opening,
            dicts: BTreeMap::new(),
            held_log: HashMap::new(),
            damaged_keys: HashMap::new(),
            records,
        };
        recovery.take(slots);
        Ok((recovery, survey, end))
    }

    /// Takes over what a lane has made of its dictionaries.
    fn take(&mut self, slots: impl IntoIterator<Item = (DictId, Slot)>) {
        for (id, slot) in slots {
            match slot {
                Slot::Unopened => {}
                Slot::Replaying(replaying) => _ = self.dicts.insert(id, replaying.opened),
                Slot::Refused(Unrecovered { needs_from, error }) => self.hold_log(id, needs_from, error),
            }
        }
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
            let (old, new) = (
                table_dir(&self.opening.options.base_dir, from),
                table_dir(&self.opening.options.base_dir, to),
            );
            if let Err(error) = self.move_dir(&old, &new) {
                let text = format!("cannot move {} to {} now: {error}", old.display(), new.display());
                (self.opening.options.log)(LogLevel::Error, &text);
            }
        }
        Ok(())
    }

    fn move_dir(&self, old: &Path, new: &Path) -> Result<()> {
        if self.opening.vfs.exists(old)? && !self.opening.vfs.exists(new)? {
            self.opening.vfs.rename(old, new)?;
        }
        // Also when it was moved before: perhaps by a process that came no further.
        sync_parent(&*self.opening.vfs, new)?;
        sync_parent(&*self.opening.vfs, old)
    }

    /// The other passes: a group of as many dictionaries as may be open, divided among lanes, then the next group.
    fn replay_tables(
        &mut self,
        replay: &Replay,
        wal: &Wal,
        mut costs: BTreeMap<DictId, u64>,
        end: &ReplayEnd,
    ) -> Result<()> {
        let options = self.opening.options;
        costs.retain(|id, _| self.opening.known.contains_key(id));
        let costs: Vec<(DictId, u64)> = costs.into_iter().collect();
        let groups = costs.chunks(options.files_open_max.max(1)).map(|group| {
            let costs = group.iter().copied().collect();
            divide(&costs, options.background_threads)
        });
        let groups: Vec<Vec<Vec<DictId>>> = groups.collect();
        let passes = groups.iter().map(Vec::len).sum();
        let vfs = self.opening.vfs.clone();
        let progress = Progress::new(&options.log, &*vfs, end.bytes, passes);
        let mut groups = groups.into_iter().peekable();
        while let Some(lanes) = groups.next() {
            self.replay_group(replay, &lanes, &progress)?;
            if groups.peek().is_some() {
                self.check_durable(end.last_seqno)?;
                wal.secure()?;
                self.close_group(&lanes.concat(), end.last_seqno);
            }
        }
        Ok(())
    }

    fn replay_group(
        &mut self,
        replay: &Replay,
        lanes: &[Vec<DictId>],
        progress: &Progress<'_>,
    ) -> Result<()> {
        let opening = &self.opening;
        let memory = ReplayMemory::new(opening.options.replay_memory_bytes);
        let run = |ids: &Vec<DictId>| -> Result<(u64, Vec<(DictId, Slot)>)> {
            let mut lane = Lane::new(opening, &memory, ids.clone());
            let mut unsaid = 0;
            replay.clone().for_each(|seqno, batch| {
                progress.batch(batch.bytes_left(), &mut unsaid);
                lane.batch(seqno, batch)
            })?;
            lane.end();
            Ok((lane.records, lane.into_slots().collect()))
        };
        // What fails with one lane fails as a whole: the log is damaged, or not to be read.
        let replayed: Result<Vec<_>> = on_each(lanes.len(), lanes, run).into_iter().collect();
        for (records, slots) in replayed? {
            self.records += records;
            self.take(slots);
        }
        Ok(())
    }

    /// Makes durable what a group's passes have brought back, and closes the files. What cannot be written stays
    /// open.
    fn close_group(&mut self, group: &[DictId], last_seqno: Seqno) {
        let opened = group.iter().filter_map(|id| self.dicts.get(id));
        // The runs that others keep are for transactions that come back at the end.
        let dicts: Vec<Arc<Dict>> =
            opened.filter(|opened| opened.private.is_empty()).map(|opened| opened.dict.clone()).collect();
        let checkpoint = |dict: &Arc<Dict>| {
            let counter = || dict.auto_increment.load(Ordering::Relaxed);
            // The log is durable up to there.
            let checkpoint = dict.tree.checkpoint(|| last_seqno, |_| Ok(()), counter);
            (dict.id, checkpoint.and_then(|_| dict.secure()).map(|_| dict.file.epoch()))
        };
        let results = on_each(self.opening.options.files_at_once(), &dicts, checkpoint);
        drop(dicts);
        for (id, result) in results {
            match result {
                Ok(epoch) => {
                    self.opening.ages.made(id, epoch);
                    self.dicts.remove(&id);
                }
                Err(error) => {
                    let text = format!("checkpoint during recovery failed: {error}");
                    (self.opening.options.log)(LogLevel::Error, &text);
                }
            }
        }
    }

    fn hold_log(&mut self, id: DictId, needs_from: Seqno, error: Error) {
        let part = self.opening.part(id);
        if error.is_damage() && part == Some(Part::Index) {
            self.damaged_keys.insert(id, Unrecovered { needs_from, error });
            return;
        }
        let text = match part {
            Some(Part::LargeValues) => format!(
                "the large values of a table cannot be recovered; their part of the log is kept: {error}"
            ),
            _ => format!("a table cannot be recovered; its part of the log is kept: {error}"),
        };
        (self.opening.options.log)(LogLevel::Error, &text);
        self.held_log.insert(id, Unrecovered { needs_from, error });
    }
}
