//! Chunks: stretches between two marks of memtables in which one memtable alone has records. Columns of their rows are kept
//! in the block cache, as those of segments are, so that a query which comes again does not go over the records again.
//!
//! A chunk is of use as long as nobody inserts into its range. What it has is then what every snapshot sees that is not older
//! than its newest record:
//! 1. The reader announces it, and then goes over the records. If the snapshot does not see all of them, it is dropped.
//! 2. A writer inserts some records, and then looks whether one is in an announced chunk, which it drops. Between the two steps both
//!    have a fence, so either the writer finds the announcement, or the reader finds the record, which the snapshot does not
//!    see.
//! 3. A commit is visible after its inserts: who sees it does not find the chunk any more. Others may still use it.
//!
//! Inserts in the order of keys lie behind all chunks: that is one comparison of the first eight bytes for the writer. The others,
//! and those whose keys have these bytes in common, take the memtable's lock while there are chunks.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pando_base::locks::Mutex;
use pando_base::{key_head, pause, RecordRef, Seqno};
use pando_column::vector::Vector;
use pando_column::Pick;
use pando_run::{LooseColumns, RunContext};

use crate::memtable::Memtable;
use crate::node::is_row;

/// The announced chunks of a memtable.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// No chunk has keys whose first bytes are a greater number.
    reach: AtomicU64,
    /// By their first key.
    announced: Mutex<BTreeMap<Box<[u8]>, Arc<Kept>>>,
}

/// What is known of a chunk.
#[derive(Debug)]
struct Kept {
    hi: Box<[u8]>,
    /// Once its records have been gone over.
    content: OnceLock<Content>,
    columns: LooseColumns,
}

#[derive(Clone, Copy, Debug)]
struct Content {
    rows: usize,
    newest: Seqno,
}

impl Chunks {
    /// After these records were inserted.
    pub(crate) fn inserted(&self, records: &[RecordRef<'_>]) {
        pause(64);
        // 2.
        fence(Ordering::SeqCst);
        let reach = self.reach.load(Ordering::Relaxed);
        records.iter().filter(|r| key_head(r.key) <= reach).for_each(|r| self.drop_with(r.key));
    }

    #[cold]
    fn drop_with(&self, key: &[u8]) {
        let mut gone = Vec::new();
        let mut announced = self.announced.lock();
        announced.retain(|lo, kept| {
            let stays = key < lo || &*kept.hi <= key;
            if !stays {
                gone.push(kept.clone());
            }
            stays
        });
        if announced.is_empty() {
            // Whoever announces one after this raises it after that.
            self.reach.store(0, Ordering::Relaxed);
        }
        drop(announced);
        // What they have in the cache goes without the lock.
        drop(gone);
    }

    fn find(&self, lo: &[u8], hi: &[u8]) -> Option<Arc<Kept>> {
        self.announced.lock().get(lo).filter(|kept| *kept.hi == *hi).cloned()
    }

    /// `None`: somebody else has announced it, or another one that begins there.
    fn announce(&self, lo: &[u8], hi: &[u8], context: &RunContext) -> Option<Arc<Kept>> {
        let mut announced = self.announced.lock();
        if announced.get(lo).is_some_and(|kept| *kept.hi == *hi) {
            return None;
        }
        let columns = LooseColumns::new(context);
        let kept = Arc::new(Kept { hi: hi.into(), content: OnceLock::new(), columns });
        announced.insert(lo.into(), kept.clone());
        drop(announced);
        pause(16);
        self.reach.fetch_max(key_head(hi), Ordering::Relaxed);
        // 1.
        fence(Ordering::SeqCst);
        Some(kept)
    }

    fn withdraw(&self, lo: &[u8], kept: &Arc<Kept>) {
        let mut announced = self.announced.lock();
        if announced.get(lo).is_some_and(|now| Arc::ptr_eq(now, kept)) {
            announced.remove(lo);
        }
    }
}

/// The chunk that a piece is, for one snapshot.
#[derive(Debug)]
pub struct Chunk {
    memtable: Arc<Memtable>,
    snapshot: Seqno,
    lo: Vec<u8>,
    hi: Vec<u8>,
    context: RunContext,
    /// Where columns of the rows that were read can be kept.
    kept: Option<Arc<Kept>>,
}

impl Chunk {
    pub(crate) fn new(
        memtable: Arc<Memtable>,
        snapshot: Seqno,
        lo: Vec<u8>,
        hi: Vec<u8>,
        context: RunContext,
    ) -> Chunk {
        Chunk { memtable, snapshot, lo, hi, context, kept: None }
    }

    /// How many rows there are, and for each pick their column in the form of the layout with this version; `None`: they have
    /// to be read.
    pub fn columns(&self, version: u32, picks: &[Pick]) -> Option<(usize, Vec<Arc<Vector>>)> {
        let kept = self.memtable.chunks.find(&self.lo, &self.hi)?;
        let content = *kept.content.get()?;
        let vectors =
            if content.newest <= self.snapshot { kept.columns.get(version, picks)? } else { return None };
        self.context.metrics.rows_aggregated_in_columns.add(content.rows as u64);
        Some((content.rows, vectors))
    }

    /// Gives all rows, unless `take` says that it wants no more.
    pub fn read(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> bool) {
        let chunks = &self.memtable.chunks;
        let is_known =
            |kept: &Arc<Kept>| kept.content.get().is_some_and(|content| content.newest <= self.snapshot);
        self.kept = chunks.find(&self.lo, &self.hi).filter(is_known);
        let announced = match self.kept {
            Some(_) => None,
            None => chunks.announce(&self.lo, &self.hi, &self.context),
        };
        pause(16);
        let (mut rows, mut newest, mut sees_all) = (0, 0, true);
        let mut last: Option<&[u8]> = None;
        for record in self.memtable.starting_at(Bound::Included(&self.lo)) {
            if record.key >= self.hi.as_slice() {
                break;
            }
            newest = newest.max(record.seqno);
            if record.seqno > self.snapshot {
                sees_all = false;
                continue;
            }
            // Of one key the newest that is seen counts.
            if last.replace(record.key) == Some(record.key) || !is_row(record.kind) {
                continue;
            }
            if !take(record.key, record.value) {
                sees_all = false;
                break;
            }
            rows += 1;
        }
        pause(16);
        let Some(kept) = announced else { return };
        if sees_all {
            // Nobody else sets it: it was announced by this.
            _ = kept.content.set(Content { rows, newest });
            self.kept = Some(kept);
        } else {
            chunks.withdraw(&self.lo, &kept);
        }
    }

    /// Keeps columns of the rows that were read: for each pick one, in the form of the layout with this version.
    pub fn keep(&self, version: u32, picks: &[Pick], vectors: &[Arc<Vector>]) {
        if let Some(kept) = &self.kept {
            kept.columns.keep(version, picks, vectors);
        }
    }
}
