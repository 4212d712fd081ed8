//! A dictionary's sorter: batches of entries in any key order become private runs that lie apart.
//!
//! Life of an entry:
//! 1. It arrives in a numbered batch, from any thread; batches are taken in the order of their numbers and
//!    collected into groups.
//! 2. As long as keys ascend over all batches, a group is written as a run of a leaf at once. The first key
//!    that does not ends that for good: from there on each group is sorted into a **chunk**, which stays in
//!    memory within the budget and is spilled beyond it (`chunk`). Where memory is short, groups are handed on before they are full
//!    (`memory_budget`); runs that are too small for leaves because of that are merged with those behind them in the end.
//! 3. While there are more chunks than can be read at once within the memory, groups of them are merged into one each (`narrow`).
//!    Then [`finish`] merges chunks, and runs whose keys they overlap, in parallel over dictionaries and ranges of
//!    keys, into runs of leaves (`merge`); and syncs the files.
//!
//! What holds:
//! * Equal keys are found in the merge. Of all rows with a key that an earlier row has, the first one in the
//!   order of the input is reported, as if rows were inserted one by one.
//! * An error, a cancellation or a drop leaves nothing in the file: runs and chunks give their space back.
//! * Tasks wait for nobody; a sorter's mutex is held for moments, with nothing called but the pool.
//! * Who gives a load up waits only for tasks that are running. It ends the others itself, and those that are running look every megabyte or
//!   so whether they are to end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pando_base::locks::{Condvar, Mutex, MutexGuard};
use pando_base::{Kind, Result};
use pando_run::Run;
use pando_tree::Tree;

use crate::chunk::Chunk;
use crate::entries::Entries;
use crate::executor::{Task, Workers};
use crate::memory_budget::{Held, Memory};
use crate::merge::{merge, Merged, Range, Source};
use crate::narrow::{bytes_of_one, groups, merge_chunks};
use crate::stage_times::{Stage, Stages};

/// Smallest and largest groups that are sorted at once.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = (256 << 10)..=(16 << 20);

/// Merges of less than this are not divided; larger pieces than that keep a thread from other loads for too long.
const PIECE_BYTES: std::ops::RangeInclusive<u64> = (16 << 20)..=(64 << 20);

/// Runs of what came in order that have less than this part of a leaf are merged once more.
const SMALL_PART: u64 = 2;

/// What an entry may have beside the bytes of its row: the key of another dictionary, lengths.
const ENTRY_BYTES_BESIDE: usize = 64;

/// How often a waiting [`finish`] looks around.
const LOOK: Duration = Duration::from_millis(50);

/// Two rows with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of the row that has the key of an earlier one: its place in the input, from 0.
    pub ordinal: u64,
    /// The key.
    pub key: Vec<u8>,
    /// What that row has under the key.
    pub value: Vec<u8>,
    /// What the earlier row has.
    pub existing: Vec<u8>,
}

/// What loads have in common: who works, with how much memory, and when to stop.
#[derive(Clone)]
pub struct Setting {
    /// Who does the work.
    pub workers: Arc<dyn Workers>,
    /// What sorted chunks may keep.
    pub memory: Arc<Memory>,
    /// Raised when the load is given up: tasks end soon.
    pub cancelled: Arc<AtomicBool>,
    /// Where times are counted.
    pub stages: Arc<Stages>,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// See the head of this file.
#[derive(Debug)]
pub struct Sorter {
    tree: Arc<Tree>,
    setting: Setting,
    /// Entries can be equal: their order is kept.
    may_repeat: bool,
    chunk_bytes: u64,
    state: Mutex<State>,
    /// A task has ended.
    ended: Condvar,
    merged_bytes: AtomicU64,
    /// Memory of the group that is being collected.
    collected: AtomicU64,
    /// Of keys and values in the batch before, a little more for each row: what the next one will need.
    row_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Batches that came before their turn.
    early: BTreeMap<u64, Batch>,
    next_batch: u64,
    group: Vec<Batch>,
    group_bytes: u64,
    /// Last key of what came in order.
    last_key: Option<Vec<u8>>,
    /// A key did not ascend: groups are sorted.
    disordered: bool,
    /// Entries in groups already handed on.
    taken: u64,
    raw_bytes: u64,
    groups: u64,
    /// Runs of what came in order, by group.
    ordered: BTreeMap<u64, Ordered>,
    chunks: Vec<Arc<Chunk>>,
    /// Runs that the merge made, by piece.
    pieces: BTreeMap<usize, Vec<Arc<Run>>>,
    duplicate: Option<Duplicate>,
    tasks: usize,
    error: Option<pando_base::Error>,
    was_cancelled: bool,
}

/// What [`finish`] gives.
#[derive(Debug)]
pub enum Finished {
    /// For each sorter its runs: private, ascending, apart from each other, synced.
    Runs(Vec<Vec<Arc<Run>>>),
    /// A key came twice: in this sorter, and nothing is left.
    Duplicate(usize, Duplicate),
    /// It was given up.
    Cancelled,
}

impl Sorter {
    /// A sorter for a dictionary. `may_repeat`: keys can come more than once, and the caller wants to know of
    /// the first. `share` is about which part of the memory this dictionary needs, among all of the load.
    pub fn new(tree: &Arc<Tree>, setting: &Setting, may_repeat: bool, share: u64) -> Arc<Sorter> {
        let chunk_bytes = setting.memory.group_bytes(share);
        let sorter = Arc::new(Sorter {
            tree: tree.clone(),
            setting: setting.clone(),
            may_repeat,
            chunk_bytes: chunk_bytes.clamp(*CHUNK_BYTES.start(), *CHUNK_BYTES.end()),
            state: Mutex::default(),
            ended: Condvar::new(),
            merged_bytes: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            row_bytes: AtomicUsize::new(0),
        });
        setting.memory.join(&sorter);
        sorter
    }

    /// A batch to be filled with the entries of so many rows, which have so many bytes. There is room for what rows had before, but for no more
    /// than these can have: one large value says nothing of the rows after it.
    pub fn new_batch(&self, rows: usize, bytes: u64) -> Entries {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(rows * ENTRY_BYTES_BESIDE);
        let expected = rows.saturating_mul(self.row_bytes.load(Ordering::Relaxed));
        Entries::with_capacity(rows, expected.min(most))
    }

    /// Takes batch `number` (they count from 0 without gaps), from any thread. Errors come out of [`finish`].
    pub fn add(self: &Arc<Self>, number: u64, mut entries: Entries) {
        let mut due = Vec::new();
        let too_long = entries.take_error();
        if !entries.is_empty() {
            self.row_bytes.store(entries.bytes() / entries.len() + 1, Ordering::Relaxed);
        }
        let batch = Batch { _held: Held::new(&self.setting.memory, entries.memory_bytes() as u64), entries };
        let mut state = self.state.lock();
        if let Some(error) = too_long {
            self.fail(&mut state, error);
        }
        state.early.insert(number, batch);
        while let Some(batch) = {
            let next = state.next_batch;
            state.early.remove(&next)
        } {
            state.next_batch += 1;
            self.collect(&mut state, batch, &mut due);
        }
        drop(state);
        self.start(due);
        self.setting.memory.relieve();
    }

    /// Memory of what it has collected.
    pub(crate) fn collected_bytes(&self) -> u64 {
        self.collected.load(Ordering::Relaxed)
    }

    /// Hands on what it has collected, however little that is.
    pub(crate) fn hand_on(self: &Arc<Self>) {
        let due = self.take_group(&mut self.state.lock());
        self.start(due.into_iter().collect());
    }

    /// Puts a batch into the group; full ones are `due`.
    fn collect(&self, state: &mut State, batch: Batch, due: &mut Vec<Group>) {
        let entries = &batch.entries;
        let (Some(first), Some(last)) = (entries.first_key(), entries.last_key()) else { return };
        if !state.disordered {
            let ascends = entries.ascends() && state.last_key.as_deref().is_none_or(|last| last < first);
            if ascends {
                state.last_key = Some(last.to_vec());
            } else {
                // What of the group is in order is still a run.
                due.extend(self.take_group(state));
                state.disordered = true;
            }
        }
        state.raw_bytes += entries.raw_bytes();
        state.group_bytes += entries.raw_bytes();
        let memory = entries.memory_bytes() as u64;
        self.collected.fetch_add(memory, Ordering::Relaxed);
        self.setting.memory.collect(memory);
        state.group.push(batch);
        let full = if state.disordered { self.chunk_bytes } else { self.tree.leaf_raw_bytes() };
        if state.group_bytes >= full {
            due.extend(self.take_group(state));
        }
    }

    fn take_group(&self, state: &mut State) -> Option<Group> {
        let memory = self.collected.swap(0, Ordering::Relaxed);
        self.setting.memory.hand_on(memory);
        state.take_group()
    }

    fn start(self: &Arc<Self>, due: Vec<Group>) {
        for group in due {
            let sorter = self.clone();
            // The group is let go of before the task has ended.
            let take_in = move || sorter.take_in(group);
            let sorter = self.clone();
            self.setting.workers.run(self.task(move || sorter.work(take_in)));
        }
    }

    /// For who makes batches, before the next one: waits while groups of this sorter are to be sorted, and those of all loads take all
    /// that they may. `goes_on` is asked now and then; false: it said so, or the load is given up.
    pub fn wait_for_room(&self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let mut state = self.state.lock();
        while state.tasks > 0 && !self.setting.memory.has_room() {
            if self.is_cancelled() || !MutexGuard::unlocked(&mut state, &mut *goes_on) {
                return false;
            }
            // It may have changed meanwhile.
            if state.tasks > 0 {
                self.ended.wait_for(&mut state, LOOK);
            }
        }
        !self.is_cancelled()
    }

    fn task(&self, work: impl FnOnce() + Send + 'static) -> Task {
        Task::new(&self.setting.cancelled, work)
    }

    /// Runs a piece of work whose task is counted already.
    fn work(&self, work: impl FnOnce() -> Result<()>) {
        let result = match self.is_cancelled() {
            false => work(),
            true => {
                // What it has is let go of before the task has ended.
                drop(work);
                Ok(())
            }
        };
        let mut state = self.state.lock();
        if let Err(error) = result {
            self.fail(&mut state, error);
        }
        state.tasks -= 1;
        drop(state);
        self.ended.notify_all();
    }

    /// The load will fail: the rest need not be done.
    fn fail(&self, state: &mut State, error: pando_base::Error) {
        state.error.get_or_insert(error);
        self.setting.cancelled.store(true, Ordering::Release);
    }

    fn is_cancelled(&self) -> bool {
        self.setting.cancelled.load(Ordering::Acquire)
    }

    /// Writes a group that came in order, or sorts it.
    fn take_in(&self, group: Group) -> Result<()> {
        let stages = &self.setting.stages;
        let Group { number, batches, first_ordinal, ascends } = group;
        // Counted as long as they are there, and no longer.
        let (batches, held): (Vec<Entries>, Vec<Held>) =
            batches.into_iter().map(|batch| (batch.entries, batch._held)).unzip();
        if ascends {
            let raw: u64 = batches.iter().map(Entries::raw_bytes).sum();
            let runs = stages.time(Stage::Write, || self.write_ordered(&batches, raw))?;
            let is_small = raw < self.tree.leaf_raw_bytes() / SMALL_PART;
            self.state.lock().ordered.insert(number, Ordered { runs, is_small });
            return Ok(());
        }
        let file = self.tree.file();
        let sort = || Chunk::sort(file, &batches, first_ordinal, self.may_repeat);
        let mut chunk = stages.time(Stage::Sort, sort);
        drop((batches, held));
        let spilled = stages.time(Stage::Spill, || chunk.settle(&self.setting.memory))?;
        stages.add_spilled(spilled);
        self.state.lock().chunks.push(Arc::new(chunk));
        Ok(())
    }

    fn write_ordered(&self, batches: &[Entries], raw: u64) -> Result<Vec<Arc<Run>>> {
        let mut writer = self.tree.private_writer_of(raw);
        for batch in batches {
            for index in 0..batch.len() {
                writer.add(batch.key(index), Kind::Put, batch.value(index))?;
            }
        }
        writer.finish()
    }

    /// Hands on what has been collected. Requires: all batches were added.
    fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        assert!(state.early.is_empty(), "a batch is missing: {}", state.next_batch);
        let due = self.take_group(&mut state);
        drop(state);
        self.start(due.into_iter().collect());
    }

    /// Waits until no task is left; `watch` is called now and then. If the load is given up, only those that are running are
    /// waited for.
    fn wait(&self, watch: &mut dyn FnMut()) {
        let mut state = self.state.lock();
        while state.tasks > 0 {
            if self.is_cancelled() {
                MutexGuard::unlocked(&mut state, || self.setting.workers.end_given_up());
            }
            if state.tasks > 0 {
                self.ended.wait_for(&mut state, LOOK);
            }
            MutexGuard::unlocked(&mut state, &mut *watch);
        }
    }

    /// The load is given up: ends its tasks, waits for those that are running, and lets go of everything.
    ///
    /// Requires: `cancelled` is raised, and no batch comes any more.
    pub fn give_up(&self) {
        debug_assert!(self.is_cancelled(), "given up");
        self.wait(&mut || {});
        self.discard();
    }

    /// Gives back what it has, in memory and in the file. Requires: no task is left.
    fn discard(&self) {
        let mut state = self.state.lock();
        let early = std::mem::take(&mut state.early);
        let group = std::mem::take(&mut state.group);
        self.setting.memory.hand_on(self.collected.swap(0, Ordering::Relaxed));
        let chunks = std::mem::take(&mut state.chunks);
        let runs = (std::mem::take(&mut state.ordered), std::mem::take(&mut state.pieces));
        drop(state);
        drop((early, group, chunks, runs));
    }

    /// Starts what merges groups of chunks, if there are too many of them to be merged at once. Requires: no task is running.
    fn start_narrowing(self: &Arc<Self>, threads: usize) -> bool {
        let bytes = bytes_of_one(self.setting.memory.reading(), threads);
        let mut state = self.state.lock();
        if state.error.is_some() {
            return false;
        }
        let groups = groups(&mut state.chunks, bytes);
        if groups.is_empty() {
            return false;
        }
        state.tasks += groups.len();
        drop(state);
        for group in groups {
            let sorter = self.clone();
            let narrow = {
                let sorter = self.clone();
                move || sorter.narrow(group)
            };
            self.setting.workers.run_long(self.task(move || sorter.work(narrow)));
        }
        true
    }

    /// The chunks are gone when it returns.
    fn narrow(&self, group: Vec<Arc<Chunk>>) -> Result<()> {
        let stages = &self.setting.stages;
        let merged =
            stages.time(Stage::Merge, || merge_chunks(self.tree.file(), &group, || self.is_cancelled()));
        drop(group);
        let Some(chunk) = merged? else {
            self.state.lock().was_cancelled = true;
            return Ok(());
        };
        stages.add_spilled(chunk.raw_bytes());
        self.state.lock().chunks.push(Arc::new(chunk));
        Ok(())
    }

    /// Starts what makes one sequence of runs of all parts. Requires: no task is running.
    fn start_merge(self: &Arc<Self>, threads: usize) {
        let mut state = self.state.lock();
        if state.error.is_some() {
            return;
        }
        // Of what came in order, all from the first runs on that are too small for leaves; the last ones may be.
        let last = state.ordered.last_key_value().map(|(number, _)| *number);
        let is_small = |(number, ordered): (&u64, &Ordered)| {
            (ordered.is_small && Some(*number) != last).then_some(*number)
        };
        let small = state.ordered.iter().find_map(is_small);
        if state.chunks.is_empty() && small.is_none() {
            return;
        }
        let least = state.chunks.iter().filter_map(|chunk| chunk.blocks.first().map(|b| &b.first_key)).min();
        let least = least.cloned();
        let mut sources: Vec<Source> = state.chunks.drain(..).map(Source::Chunk).collect();
        let in_runs = state.ordered.values().flat_map(|ordered| &ordered.runs);
        // What is in chunks, as runs count it.
        let mut raw = state.raw_bytes.saturating_sub(in_runs.map(|run| run.meta().raw_bytes).sum());
        let mut in_order: Vec<Arc<Run>> = Vec::new();
        // Runs whose keys nothing else has are leaves already.
        for (number, Ordered { runs, .. }) in &mut state.ordered {
            let is_merged = |run: &Arc<Run>| {
                small.is_some_and(|small| small <= *number)
                    || least.as_ref().is_some_and(|least| run.meta().max_key >= *least)
            };
            let (merged, kept) = runs.drain(..).partition(is_merged);
            *runs = kept;
            raw += merged.iter().map(|run: &Arc<Run>| run.meta().raw_bytes).sum::<u64>();
            in_order.extend(merged);
        }
        if !in_order.is_empty() {
            sources.push(Source::Runs(in_order.into()));
        }
        let ranges = divide(&sources, raw, threads);
        let piece_bytes = raw / ranges.len() as u64;
        state.tasks += ranges.len();
        drop(state);
        let sources = Arc::new(sources);
        for (piece, range) in ranges.into_iter().enumerate() {
            let merge = {
                let (sorter, sources) = (self.clone(), sources.clone());
                // The sources are let go of before the task has ended.
                move || sorter.merge_piece(piece, &sources, &range, piece_bytes)
            };
            let sorter = self.clone();
            let task = self.task(move || sorter.work(merge));
            // A small load's merge does not stand behind the pieces of a large one.
            match piece_bytes < *PIECE_BYTES.start() {
                true => self.setting.workers.run(task),
                false => self.setting.workers.run_long(task),
            }
        }
    }

    fn merge_piece(&self, piece: usize, sources: &[Source], range: &Range, bytes: u64) -> Result<()> {
        let merged = self.setting.stages.time(Stage::Merge, || {
            merge(&self.tree, sources, range, bytes, self.may_repeat, || self.is_cancelled())
        })?;
        let mut state = self.state.lock();
        match merged {
            Merged::Runs(runs) => {
                state.pieces.insert(piece, runs);
            }
            Merged::Duplicate(new) => {
                if state.duplicate.as_ref().is_none_or(|first| new.ordinal < first.ordinal) {
                    state.duplicate = Some(new);
                }
            }
            Merged::Cancelled => state.was_cancelled = true,
        }
        self.merged_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn start_sync(self: &Arc<Self>) {
        let mut state = self.state.lock();
        // Of many partitions and their keys, many have got nothing.
        if state.error.is_some() || state.duplicate.is_some() || state.raw_bytes == 0 {
            return;
        }
        state.tasks += 1;
        drop(state);
        let sorter = self.clone();
        let sync = move || {
            sorter.work(|| sorter.setting.stages.time(Stage::Sync, || sorter.tree.file().sync()));
        };
        self.setting.workers.run(self.task(sync));
    }

    /// Bytes of all batches.
    pub fn raw_bytes(&self) -> u64 {
        self.state.lock().raw_bytes
    }

    /// Its runs, ascending. Requires: everything is done.
    fn take_runs(&self) -> Vec<Arc<Run>> {
        let mut state = self.state.lock();
        let ordered = std::mem::take(&mut state.ordered).into_values().flat_map(|ordered| ordered.runs);
        ordered.chain(std::mem::take(&mut state.pieces).into_values().flatten()).collect()
    }
}

/// A batch, counted as long as it is there.
#[derive(Debug)]
struct Batch {
    entries: Entries,
    _held: Held,
}

/// Runs of a group that came in order.
#[derive(Debug)]
struct Ordered {
    runs: Vec<Arc<Run>>,
    /// It was handed on early, because memory was short.
    is_small: bool,
}

/// Batches that are handed on together.
#[derive(Debug)]
struct Group {
    number: u64,
    batches: Vec<Batch>,
    first_ordinal: u64,
    ascends: bool,
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.setting.memory.hand_on(self.collected.swap(0, Ordering::Relaxed));
        self.setting.memory.forget_gone();
    }
}

impl State {
    /// The group, counted as a task.
    fn take_group(&mut self) -> Option<Group> {
        if self.group.is_empty() {
            return None;
        }
        let batches = std::mem::take(&mut self.group);
        let rows: usize = batches.iter().map(|batch| batch.entries.len()).sum();
        let group =
            Group { number: self.groups, batches, first_ordinal: self.taken, ascends: !self.disordered };
        self.groups += 1;
        self.group_bytes = 0;
        self.taken += rows as u64;
        self.tasks += 1;
        Some(group)
    }
}

/// Cuts all keys into ranges of about the same bytes, at the first keys of blocks.
fn divide(sources: &[Source], raw: u64, threads: usize) -> Vec<Range> {
    let parts =
        (raw / PIECE_BYTES.start()).clamp(1, (raw / PIECE_BYTES.end()).max(2 * threads as u64)) as usize;
    let mut keys: Vec<(&[u8], u64)> = Vec::new();
    for source in sources {
        match source {
            Source::Chunk(chunk) => {
                keys.extend(chunk.blocks.iter().map(|block| (block.first_key.as_slice(), block.raw_bytes)));
            }
            Source::Runs(runs) => {
                keys.extend(runs.iter().map(|run| (run.meta().min_key.as_slice(), run.meta().raw_bytes)));
            }
        }
    }
    keys.sort_unstable();
    let total: u64 = keys.iter().map(|(_, bytes)| bytes).sum();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut sum = 0;
    for (key, bytes) in keys {
        let due = cuts.len() + 1 < parts && sum >= total / parts as u64 * (cuts.len() as u64 + 1);
        if due && cuts.last().is_none_or(|last| last.as_slice() < key) {
            cuts.push(key.to_vec());
        }
        sum += bytes;
    }
    let mut ranges = Vec::with_capacity(cuts.len() + 1);
    let mut lo = None;
    for cut in cuts {
        ranges.push(Range { lo: lo.replace(cut.clone()), hi: Some(cut) });
    }
    ranges.push(Range { lo, hi: None });
    ranges
}

/// Ends several sorters of one load: merges, syncs, and gives their runs. `watch` is called every few
/// milliseconds with the part that is done; it may raise `cancelled`.
///
/// Of duplicates in several sorters the one whose row comes first is told, of one row the first sorter's.
///
/// # Errors
/// Those of reading and writing. Nothing is left in the files then.
pub fn finish(sorters: &[Arc<Sorter>], setting: &Setting, watch: &mut dyn FnMut(f64)) -> Result<Finished> {
    let total: u64 = sorters.iter().map(|sorter| sorter.raw_bytes()).sum::<u64>().max(1);
    let merged = || sorters.iter().map(|s| s.merged_bytes.load(Ordering::Relaxed)).sum::<u64>();
    let mut look = || watch((merged() as f64 / total as f64).min(1.0));
    sorters.iter().for_each(Sorter::close);
    sorters.iter().for_each(|sorter| sorter.wait(&mut look));
    let threads = setting.workers.parallelism();
    // The largest first, so that no long piece is left for the end.
    let mut by_size: Vec<&Arc<Sorter>> = sorters.iter().collect();
    by_size.sort_by_key(|sorter| std::cmp::Reverse(sorter.raw_bytes()));
    let is_cancelled = || setting.cancelled.load(Ordering::Acquire);
    // All of them: a sorter must not be passed by because another one has work.
    let narrowing = || by_size.iter().filter(|sorter| sorter.start_narrowing(threads)).count();
    while !is_cancelled() && narrowing() > 0 {
        sorters.iter().for_each(|sorter| sorter.wait(&mut look));
    }
    if !is_cancelled() {
        by_size.iter().for_each(|sorter| sorter.start_merge(threads));
    }
    sorters.iter().for_each(|sorter| sorter.wait(&mut look));
    if !setting.cancelled.load(Ordering::Acquire)
        && sorters.iter().all(|s| s.state.lock().duplicate.is_none())
    {
        sorters.iter().for_each(Sorter::start_sync);
        sorters.iter().for_each(|sorter| sorter.wait(&mut look));
    }
    conclude(sorters, setting)
}

fn conclude(sorters: &[Arc<Sorter>], setting: &Setting) -> Result<Finished> {
    let ended = how_it_ended(sorters, setting);
    if !matches!(ended, Ok(None)) {
        sorters.iter().for_each(|sorter| sorter.discard());
    }
    let take_all = || Finished::Runs(sorters.iter().map(|sorter| sorter.take_runs()).collect());
    Ok(ended?.unwrap_or_else(take_all))
}

/// `None`: well.
fn how_it_ended(sorters: &[Arc<Sorter>], setting: &Setting) -> Result<Option<Finished>> {
    let mut first: Option<(usize, Duplicate)> = None;
    for (number, sorter) in sorters.iter().enumerate() {
        let mut state = sorter.state.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if let Some(new) = state.duplicate.take() {
            if first.as_ref().is_none_or(|(_, first)| new.ordinal < first.ordinal) {
                first = Some((number, new));
            }
        }
    }
    if setting.cancelled.load(Ordering::Acquire) {
        return Ok(Some(Finished::Cancelled));
    }
    Ok(first.map(|(number, duplicate)| Finished::Duplicate(number, duplicate)))
}
