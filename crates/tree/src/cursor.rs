//! Range reads: a cursor over the rows a snapshot sees, in both directions.
//!
//! The cursor holds one version of the tree (I4) and goes leaf by leaf. For the leaf it is in, its
//! sources are the memtables, the runs that still wait for the leaf in the buffers above, and the
//! leaf's own; they are merged by a heap of their positions, which costs nothing while a single
//! source is left in the range. Of each key the newest version the snapshot sees decides; a delete
//! hides the key. Forward, versions come newest first, so the row stays where it is in its source;
//! backward they come oldest first, so the row is copied while newer versions are looked for.
//!
//! At the end of a leaf's range each source stands on the first record beyond it; those that also
//! serve the next leaf go on from there without a seek.
//!
//! Dead records that runs make the cursor step over are counted per leaf; many of them file a hint,
//! so that the leaf is compacted (queues must not rot). Those in memtables are counted, too: where they are in everybody's
//! way, the memtable is sealed before it is full.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pando_base::{pause, DeletedRanges, Kind, RecordRef, Result, Seqno};
use pando_run::merge::MergeHeap;
use pando_run::Run;

use crate::deleted::hides_run;
use crate::node::{is_row, KeyRange};
use crate::source::{LeafView, Source, Target};
use crate::tree::Tree;
use crate::version::TreeVersion;

/// Dead records met in one leaf that are worth a hint, if they outnumber the rows.
const DEAD_HINT_MIN: u64 = 256;

/// Where the current row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// On no row.
    None,
    /// The value is under the source at the top of the heap.
    Source,
    /// The value was copied.
    Copied,
}

/// A slot of the merge.
#[derive(Debug)]
struct Input {
    source: Source,
    /// The source may go on beyond the leaf's range in the cursor's direction.
    reaches_beyond: bool,
}

/// A cursor over visible rows.
pub struct Cursor {
    tree: Arc<Tree>,
    version: Arc<TreeVersion>,
    snapshot: Seqno,
    range: KeyRange,
    /// Those that the snapshot sees in the range.
    deleted: DeletedRanges,
    inputs: Vec<Input>,
    /// Inputs with a record in the range, as a heap in the cursor's direction.
    heap: Vec<usize>,
    forward: bool,
    row: Row,
    /// Key of the row, or of the last one looked at.
    key: Vec<u8>,
    /// `key` is that of a record looked at since the last seek.
    has_key: bool,
    value: Vec<u8>,
    seqno: Seqno,
    /// The version that decided about `key` came from a run.
    decided_by_run: bool,
    dead: Dead,
    live: u64,
}

/// Records stepped over that hide behind a newer version or are no rows, by where that which decided about their key was.
#[derive(Debug, Default)]
struct Dead {
    in_runs: u64,
    in_memtables: u64,
}

impl Dead {
    #[inline]
    fn count(&mut self, decided_by_run: bool) {
        self.in_runs += u64::from(decided_by_run);
        self.in_memtables += u64::from(!decided_by_run);
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.leave_leaf();
    }
}

impl Tree {
    /// A cursor over what `snapshot` sees, on no row yet. It keeps what it reads alive, so it should
    /// not be kept for ever.
    pub fn cursor(self: &Arc<Self>, snapshot: Seqno) -> Cursor {
        Cursor {
            tree: self.clone(),
            version: self.version.load_full(),
            snapshot,
            range: KeyRange::default(),
            deleted: DeletedRanges::default(),
            inputs: Vec::new(),
            heap: Vec::new(),
            forward: true,
            row: Row::None,
            key: Vec::new(),
            has_key: false,
            value: Vec::new(),
            seqno: 0,
            decided_by_run: false,
            dead: Dead::default(),
            live: 0,
        }
    }
}

impl Cursor {
    /// Takes the tree as it is now, for a later (or the same) snapshot. On no row until a seek.
    pub fn refresh(&mut self, snapshot: Seqno) {
        self.leave_leaf();
        self.version = self.tree.version.load_full();
        self.snapshot = snapshot;
        self.inputs.clear();
        self.heap.clear();
        self.row = Row::None;
    }

    /// Whether it is on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.row != Row::None
    }

    /// Key of the row. Panics on no row.
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.valid(), "the cursor is on no row");
        &self.key
    }

    /// Value of the row. Panics on no row.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.row {
            Row::Source => self.inputs[self.heap[0]].source.record().value,
            Row::Copied => &self.value,
            Row::None => panic!("the cursor is on no row"),
        }
    }

    /// Commit that wrote the row. Panics on no row.
    #[inline]
    pub fn seqno(&self) -> Seqno {
        assert!(self.valid(), "the cursor is on no row");
        self.seqno
    }

    /// First row with key >= `key`. After an error, here and below, it is on no row.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.start(true);
        self.guarded(|cursor| {
            cursor.enter_forward(key, false)?;
            cursor.settle_forward()
        })
    }

    /// Last row with key < `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.start(false);
        self.guarded(|cursor| {
            cursor.enter_backward(Some(key), false)?;
            cursor.settle_backward()
        })
    }

    /// First row of all.
    pub fn seek_first(&mut self) -> Result<()> {
        self.seek(b"")
    }

    /// Last row of all.
    pub fn seek_last(&mut self) -> Result<()> {
        self.start(false);
        self.guarded(|cursor| {
            cursor.enter_backward(None, false)?;
            cursor.settle_backward()
        })
    }

    /// Next row; on none after the last. Does nothing on no row.
    #[expect(clippy::should_implement_trait, reason = "a cursor step, which may fail and gives no item")]
    pub fn next(&mut self) -> Result<()> {
        if !self.valid() {
            return Ok(());
        }
        if !self.forward {
            let mut after = std::mem::take(&mut self.key);
            after.push(0);
            return self.seek(&after);
        }
        self.row = Row::None;
        self.guarded(|cursor| {
            cursor.step_top()?;
            cursor.settle_forward()
        })
    }

    /// Row before; on none before the first. Does nothing on no row.
    pub fn prev(&mut self) -> Result<()> {
        if !self.valid() {
            return Ok(());
        }
        if self.forward {
            let here = std::mem::take(&mut self.key);
            return self.seek_before(&here);
        }
        self.row = Row::None;
        self.guarded(Cursor::settle_backward)
    }

    /// Gives rows from the current one on, going up, until `take` says that it has enough: then the cursor is at
    /// the row given last. Else it is on no row in the end. The same as `next` after each, but where many rows
    /// in a row come from one source, they cost next to nothing.
    pub fn visit(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        while self.valid() {
            if self.forward && self.row == Row::Source && self.deleted.is_empty() {
                if !self.stream(&mut take) {
                    return Ok(());
                }
                self.row = Row::None;
                self.guarded(|cursor| {
                    cursor.step_top()?;
                    cursor.settle_forward()
                })?;
            } else {
                if !take(self.key(), self.value()) {
                    return Ok(());
                }
                self.next()?;
            }
        }
        Ok(())
    }

    /// The part of `visit` up to the next record of another source, or to the end of a run's segment. False: `take` has
    /// had enough; else the cursor is at the last record looked at, which is given or not to be seen. Requires: it goes up
    /// and its row is under the source at the top.
    fn stream(&mut self, take: &mut impl FnMut(&[u8], &[u8]) -> bool) -> bool {
        let rival = match self.heap.len() {
            0 | 1 => None,
            2 => Some(self.heap[1]),
            _ => Some(self.heap[if self.is_before(1, 2) { 1 } else { 2 }]),
        };
        let (input, rival) = one_and_other(&mut self.inputs, self.heap[0], rival);
        let end = if input.reaches_beyond { self.range.hi() } else { None };
        let end = end.into_iter().chain(rival.map(|rival| rival.source.key())).min();
        let (key, snapshot) = (self.key.as_slice(), self.snapshot);
        match &mut input.source {
            Source::Run { cursor, .. } => {
                let passed = go_over(cursor.ahead(), key, snapshot, end, take);
                if let Some(record) = passed.decided {
                    set_key(&mut self.key, &mut self.seqno, &record);
                    self.decided_by_run = true;
                }
                self.dead.in_runs += passed.dead;
                self.live += passed.live;
                let (last, wants_more) = (passed.last, passed.wants_more);
                cursor.skip(last);
                wants_more
            }
            Source::Memtable(cursor) => {
                let passed = go_over(cursor.ahead(), key, snapshot, end, take);
                if let Some(record) = passed.decided {
                    set_key(&mut self.key, &mut self.seqno, &record);
                    self.decided_by_run = false;
                }
                self.dead.in_memtables += passed.dead;
                self.live += passed.live;
                let (last, wants_more) = (passed.last, passed.wants_more);
                cursor.skip(last, &self.key);
                wants_more
            }
        }
    }

    fn start(&mut self, forward: bool) {
        self.leave_leaf();
        self.row = Row::None;
        self.has_key = false;
        self.forward = forward;
    }

    /// After an error nothing is known of the sources.
    fn guarded(&mut self, act: impl FnOnce(&mut Cursor) -> Result<()>) -> Result<()> {
        let result = act(self);
        if result.is_err() {
            self.row = Row::None;
            self.heap.clear();
            self.inputs.clear();
        }
        result
    }

    /// Finds the row at or after the positions of the sources.
    fn settle_forward(&mut self) -> Result<()> {
        loop {
            let Some(&top) = self.heap.first() else {
                let Some(hi) = self.range.hi.clone() else { return Ok(()) };
                self.leave_leaf();
                self.enter_forward(&hi, true)?;
                continue;
            };
            let source = &self.inputs[top].source;
            let r = source.record();
            if self.has_key && self.key == r.key {
                self.dead.count(self.decided_by_run);
            } else if r.seqno <= self.snapshot {
                self.key.clear();
                self.key.extend_from_slice(r.key);
                self.has_key = true;
                self.decided_by_run = matches!(source, Source::Run { .. });
                if is_row(r.kind) && !self.deleted.hides(r.key, r.seqno) {
                    self.seqno = r.seqno;
                    self.row = Row::Source;
                    self.live += 1;
                    return Ok(());
                }
                self.dead.count(self.decided_by_run);
            }
            self.step_top()?;
        }
    }

    /// Finds the row at or before the positions of the sources.
    fn settle_backward(&mut self) -> Result<()> {
        let mut newest: Option<Kind> = None;
        loop {
            let top = self.heap.first().copied();
            let r = top.map(|top| self.inputs[top].source.record());
            if let Some(kind) = newest {
                if r.is_none_or(|r| r.key != self.key) {
                    if is_row(kind) && !self.deleted.hides(&self.key, self.seqno) {
                        self.row = Row::Copied;
                        self.live += 1;
                        return Ok(());
                    }
                    self.dead.count(self.decided_by_run);
                    newest = None;
                }
            }
            let (Some(top), Some(r)) = (top, r) else {
                let Some(lo) = self.range.lo.clone() else { return Ok(()) };
                self.leave_leaf();
                self.enter_backward(Some(&lo), true)?;
                continue;
            };
            if r.seqno <= self.snapshot {
                if newest.is_some() {
                    self.dead.count(self.decided_by_run);
                } else {
                    self.key.clear();
                    self.key.extend_from_slice(r.key);
                }
                self.value.clear();
                self.value.extend_from_slice(r.value);
                self.seqno = r.seqno;
                self.decided_by_run = matches!(self.inputs[top].source, Source::Run { .. });
                newest = Some(r.kind);
            }
            self.step_top()?;
        }
    }

    /// Moves the source at the top of the heap on.
    #[inline]
    fn step_top(&mut self) -> Result<()> {
        let top = self.heap[0];
        let input = &mut self.inputs[top];
        input.source.step(self.forward)?;
        if !input.source.valid()
            || (input.reaches_beyond && !in_range(&self.range, &input.source, self.forward))
        {
            self.heap.swap_remove(0);
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
        Ok(())
    }

    /// Makes the leaf that holds `key` the current one, sources on their first record >= `key`. With
    /// `go_on` the sources of the leaf before stand there already.
    fn enter_forward(&mut self, key: &[u8], go_on: bool) -> Result<()> {
        let view = LeafView::find(&self.version, Target::Holding(key));
        self.enter(view, go_on, |source| source.seek(key))
    }

    /// As [`Cursor::enter_forward`], sources on their last record < `key`.
    fn enter_backward(&mut self, key: Option<&[u8]>, go_on: bool) -> Result<()> {
        let view = LeafView::find(&self.version, Target::Before(key));
        self.enter(view, go_on, |source| source.seek_before(key))
    }

    fn enter(
        &mut self,
        view: LeafView,
        go_on: bool,
        mut place: impl FnMut(&mut Source) -> Result<()>,
    ) -> Result<()> {
        let mut old = std::mem::take(&mut self.inputs);
        self.heap.clear();
        self.range = view.range;
        self.deleted = self.version.deleted.seen_within(self.snapshot, self.range.low(), self.range.hi());
        let forward = self.forward;
        let mut memtables = Vec::new();
        if old.is_empty() {
            // What is empty now can only get records the snapshot does not see.
            let filled = self.version.memtables().filter(|memtable| !memtable.is_empty());
            memtables.extend(filled.map(|memtable| Source::memtable(memtable.clone(), self.snapshot)));
        }
        let mut fresh = |mut source: Source| -> Result<Source> {
            place(&mut source)?;
            Ok(source)
        };
        // Memtables reach over all leaves; they come first in `inputs`.
        for source in memtables {
            self.inputs.push(Input { source: fresh(source)?, reaches_beyond: true });
        }
        while old.first().is_some_and(|input| input.source.run_id().is_none()) {
            let mut input = old.remove(0);
            if !go_on {
                input.source = fresh(input.source)?;
            }
            self.inputs.push(input);
        }
        pause(64);
        // A run adopted by a later commit is of no interest, however large.
        let is_of_interest = |run: &Arc<Run>| {
            run.meta().min_seqno <= self.snapshot && !hides_run(&self.deleted, run, &self.range)
        };
        for run in view.runs.into_iter().filter(is_of_interest) {
            let id = Some(run.meta().id);
            let known = old.iter().position(|input| input.source.run_id() == id);
            let source = match known {
                Some(at) if go_on => old.swap_remove(at).source,
                Some(at) => fresh(old.swap_remove(at).source)?,
                None => fresh(Source::run(&run))?,
            };
            let reaches_beyond = if forward {
                self.range.hi().is_some_and(|hi| run.meta().max_key.as_slice() >= hi)
            } else {
                run.meta().min_key.as_slice() < self.range.low()
            };
            self.inputs.push(Input { source, reaches_beyond });
        }
        for (at, input) in self.inputs.iter().enumerate() {
            if input.source.valid() && in_range(&self.range, &input.source, forward) {
                self.heap.push(at);
            }
        }
        self.heapify();
        Ok(())
    }

    /// Files what was met in the leaf being left.
    fn leave_leaf(&mut self) {
        let dead = std::mem::take(&mut self.dead);
        if dead.in_runs > 0 {
            self.tree.dead_skipped.fetch_add(dead.in_runs, Ordering::Relaxed);
            if dead.in_runs >= DEAD_HINT_MIN && dead.in_runs > self.live {
                self.tree.try_hint(self.range.low());
            }
        }
        if dead.in_memtables > 0 {
            self.version.active.note_dead(dead.in_memtables);
        }
        self.live = 0;
    }
}

impl MergeHeap for Cursor {
    #[inline]
    fn heap_len(&self) -> usize {
        self.heap.len()
    }

    /// Whether the input at heap place `a` comes before that at `b` in the cursor's direction.
    /// The same version may be in several inputs (of a commit that adopted runs): the first of them has
    /// the newest, as inputs stand in the order of sources, memtables first.
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (first, second) = (self.heap[a], self.heap[b]);
        let a = &self.inputs[first].source;
        let b = &self.inputs[second].source;
        let order = a.key().cmp(b.key()).then_with(|| b.record().seqno.cmp(&a.record().seqno));
        let order = order.then(first.cmp(&second));
        if self.forward {
            order.is_lt()
        } else {
            order.is_gt()
        }
    }

    #[inline]
    fn swap_places(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
    }
}

/// What became of records that were gone over.
struct Passed<'a> {
    /// How many after the first.
    last: usize,
    wants_more: bool,
    /// What has decided last, if not the first.
    decided: Option<RecordRef<'a>>,
    /// Those after the first.
    live: u64,
    dead: u64,
}

/// Gives those of the records below `end` that are rows, until `take` has enough. The first one is a row, of this key.
#[inline]
fn go_over<'a>(
    records: impl Iterator<Item = RecordRef<'a>>,
    key: &[u8],
    snapshot: Seqno,
    end: Option<&[u8]>,
    take: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Passed<'a> {
    let mut passed = Passed { last: 0, wants_more: true, decided: None, live: 0, dead: 0 };
    for (at, record) in records.enumerate() {
        if at > 0 {
            if end.is_some_and(|end| record.key >= end) {
                break;
            }
            passed.last = at;
            if record.key == passed.decided.map_or(key, |decided| decided.key) {
                passed.dead += 1;
                continue;
            }
            if record.seqno > snapshot {
                continue;
            }
            passed.decided = Some(record);
            if !is_row(record.kind) {
                passed.dead += 1;
                continue;
            }
            passed.live += 1;
        }
        if !take(record.key, record.value) {
            passed.wants_more = false;
            break;
        }
    }
    passed
}

fn set_key(key: &mut Vec<u8>, seqno: &mut Seqno, record: &RecordRef<'_>) {
    key.clear();
    key.extend_from_slice(record.key);
    *seqno = record.seqno;
}

/// One to be changed, and another one to be looked at.
fn one_and_other<T>(all: &mut [T], one: usize, other: Option<usize>) -> (&mut T, Option<&T>) {
    match other {
        None => (&mut all[one], None),
        Some(other) if one < other => {
            let (before, from_other) = all.split_at_mut(other);
            (&mut before[one], from_other.first())
        }
        Some(other) => {
            let (before, from_one) = all.split_at_mut(one);
            (&mut from_one[0], before.get(other))
        }
    }
}

/// Whether the source's record has not passed the end of the range in the given direction.
#[inline]
fn in_range(range: &KeyRange, source: &Source, forward: bool) -> bool {
    if forward {
        range.hi().is_none_or(|hi| source.key() < hi)
    } else {
        source.key() >= range.low()
    }
}
