//! A tree on a simulated disk, with a log and a model beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{DictId, Kind, Metrics, Result, Seqno};
use pando_run::{BlockCache, Compression, RunContext, RunMeta, RunOptions};
use pando_storage::vfs::{SimVfs, Vfs};
use pando_storage::{Superblock, TreeFile};

use super::model::Model;
use crate::{CheckpointStats, Horizon, Tree, TreeConfig};

pub(crate) const DICT: DictId = DictId(7);
pub(crate) const PATH: &str = "/t/main.pando";

#[derive(Debug, Default)]
pub(crate) struct TestHorizon {
    pub visible: AtomicU64,
    pub live: Mutex<BTreeMap<Seqno, usize>>,
}

impl TestHorizon {
    pub(crate) fn take(&self) -> Seqno {
        let mut live = self.live.lock();
        let seqno = self.visible.load(Ordering::SeqCst);
        *live.entry(seqno).or_insert(0) += 1;
        seqno
    }

    pub(crate) fn release(&self, seqno: Seqno) {
        let mut live = self.live.lock();
        let count = live.get_mut(&seqno).expect("the snapshot is live");
        *count -= 1;
        if *count == 0 {
            live.remove(&seqno);
        }
    }
}

impl Horizon for TestHorizon {
    fn snapshots(&self) -> Vec<Seqno> {
        let live = self.live.lock();
        let visible = self.visible.load(Ordering::SeqCst);
        let mut all: Vec<Seqno> = live.keys().copied().filter(|seqno| *seqno < visible).collect();
        all.push(visible);
        all
    }
}

pub(crate) type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The last write of each key, in order.
fn distinct(writes: Writes) -> Writes {
    writes.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// What a commit that adopts runs with `parts` writes in all.
pub(crate) fn all_writes<'a>(parts: impl Iterator<Item = &'a Writes>, rest: &'a Writes) -> Writes {
    distinct(parts.flatten().chain(rest).cloned().collect())
}

/// Tiny sizes, so that a few thousand rows make a deep tree.
pub(crate) fn tiny() -> TreeConfig {
    TreeConfig {
        memtable_bytes: 2048,
        leaf_raw_bytes: 4096,
        fanout_max: 4,
        buffer_runs_max: 4,
        run: RunOptions { compression: Compression::Lz4, segment_raw_bytes: 256, filter: true },
        buffer_compression: Compression::None,
    }
}

#[derive(Clone, Debug)]
pub(crate) enum LogEntry {
    Write(Writes),
    /// Private runs, oldest first; what was written into them; then records.
    Adopt(Vec<RunMeta>, Vec<Writes>, Writes),
    DeleteRange(Vec<u8>, Option<Vec<u8>>),
    Truncate,
}

pub(crate) struct World {
    pub vfs: Arc<SimVfs>,
    pub metrics: Arc<Metrics>,
    pub file: Arc<TreeFile>,
    pub tree: Arc<Tree>,
    pub config: TreeConfig,
    pub horizon: Arc<TestHorizon>,
    pub model: Model,
    /// The durable log, trimmed as far as the tree allows.
    pub log: Vec<(Seqno, LogEntry)>,
    pub last: Seqno,
    pub snapshots: Vec<Seqno>,
    pub auto_increment: u64,
}

pub(crate) fn context(file: &Arc<TreeFile>, metrics: &Arc<Metrics>) -> RunContext {
    let cache = BlockCache::new(1 << 20, metrics.clone());
    RunContext { file: file.clone(), cache, metrics: metrics.clone() }
}

impl World {
    pub(crate) fn new(seed: u64, config: TreeConfig) -> World {
        World::on(SimVfs::new(seed), config)
    }

    pub(crate) fn on(vfs: Arc<SimVfs>, config: TreeConfig) -> World {
        let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
        vfs.create_dir_all(Path::new("/t")).unwrap();
        let file = TreeFile::create(&dyn_vfs, Path::new(PATH), DICT).unwrap();
        vfs.sync_dir(Path::new("/t")).unwrap();
        vfs.sync_dir(Path::new("/")).unwrap();
        let metrics = Arc::new(Metrics::default());
        let horizon = Arc::new(TestHorizon::default());
        let tree = Tree::create(context(&file, &metrics), config, horizon.clone());
        World {
            vfs,
            metrics,
            file,
            tree,
            config,
            horizon,
            model: Model::default(),
            log: Vec::new(),
            last: 0,
            snapshots: Vec::new(),
            auto_increment: 0,
        }
    }

    /// One commit.
    pub(crate) fn commit(&mut self, writes: Writes) {
        let gate = self.tree.gate();
        self.last += 1;
        let distinct = distinct(writes);
        for (key, value) in &distinct {
            insert(&gate, key, self.last, value.as_deref());
            self.model.write(key, self.last, value.as_deref());
        }
        drop(gate);
        self.log.push((self.last, LogEntry::Write(distinct)));
        self.horizon.visible.store(self.last, Ordering::SeqCst);
    }

    /// One commit that adopts a private run for each of `parts`, oldest first, and then writes `rest`.
    /// An error, before the commit, leaves nothing.
    pub(crate) fn commit_adopting(&mut self, parts: Vec<Writes>, rest: Writes) -> Result<()> {
        let (mut runs, mut written) = (Vec::new(), Vec::new());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (mut writer, part) = (self.tree.private_writer(), distinct(part));
            for (key, value) in &part {
                let (kind, value) = value.as_deref().map_or((Kind::Delete, &b""[..]), |v| (Kind::Put, v));
                writer.add(key, kind, value)?;
            }
            runs.extend(writer.finish()?);
            written.push(part);
        }
        self.file.sync()?;
        self.tree.seal_before_adoption(|| self.last);
        let (gate, rest) = (self.tree.gate(), distinct(rest));
        self.last += 1;
        for run in &runs {
            gate.adopt(run, self.last);
        }
        for (key, value) in &rest {
            insert(&gate, key, self.last, value.as_deref());
        }
        drop(gate);
        for (key, value) in all_writes(written.iter(), &rest) {
            self.model.write(&key, self.last, value.as_deref());
        }
        let runs = runs.iter().map(|run| run.meta().clone()).collect();
        self.log.push((self.last, LogEntry::Adopt(runs, written, rest)));
        self.horizon.visible.store(self.last, Ordering::SeqCst);
        Ok(())
    }

    /// One commit that deletes a range; false: there are too many.
    pub(crate) fn delete_range(&mut self, lo: &[u8], hi: Option<&[u8]>) -> bool {
        let Some(_place) = self.tree.reserve_range(lo, hi) else { return false };
        let gate = self.tree.gate();
        self.last += 1;
        gate.delete_range(lo, hi, self.last);
        drop(gate);
        self.model.delete_range(lo, hi, self.last);
        self.log.push((self.last, LogEntry::DeleteRange(lo.to_vec(), hi.map(<[u8]>::to_vec))));
        self.horizon.visible.store(self.last, Ordering::SeqCst);
        true
    }

    pub(crate) fn put(&mut self, key: &str, value: &str) {
        self.commit(vec![(key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))]);
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.commit(vec![(key.as_bytes().to_vec(), None)]);
    }

    pub(crate) fn seal(&self) -> bool {
        self.tree.seal(|| self.last)
    }

    pub(crate) fn run_jobs(&self) {
        while self.tree.run_job().unwrap() {}
        assert!(!self.tree.has_work());
    }

    pub(crate) fn checkpoint(&mut self) -> Result<CheckpointStats> {
        let last = self.last;
        let stats = self.tree.checkpoint(
            || last,
            |seqno| {
                assert!(seqno <= last);
                Ok(())
            },
            || self.auto_increment,
        )?;
        // All of the log that the tree does not ask for goes.
        let keep = self.tree.oldest_unwritten().unwrap_or(Seqno::MAX);
        self.log.retain(|(seqno, _)| *seqno >= keep);
        Ok(stats)
    }

    pub(crate) fn truncate(&mut self) {
        self.release_all();
        let gate = self.tree.close_gate();
        self.last += 1;
        gate.truncate(self.last);
        self.model = Model::default();
        self.log.push((self.last, LogEntry::Truncate));
        self.horizon.visible.store(self.last, Ordering::SeqCst);
    }

    pub(crate) fn release_all(&mut self) {
        for snapshot in self.snapshots.drain(..) {
            self.horizon.release(snapshot);
        }
    }

    /// Opens what is on `vfs` and replays the log, which is durable.
    pub(crate) fn reopen_on(&mut self, vfs: Arc<SimVfs>) -> Result<Superblock> {
        self.release_all();
        let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
        let (file, sb) = TreeFile::open(&dyn_vfs, Path::new(PATH), DICT)?;
        // As after a restart: the horizon knows what was replayed.
        let needed = self.log.iter().filter(|(seqno, _)| *seqno > sb.durable_seqno);
        let private: Vec<RunMeta> = needed
            .flat_map(|(_, entry)| match entry {
                LogEntry::Adopt(runs, ..) => runs.clone(),
                _ => Vec::new(),
            })
            .collect();
        let ctx = context(&file, &self.metrics);
        let (tree, runs) = Tree::open_with_private(ctx, &sb, self.config, self.horizon.clone(), &private)?;
        let mut runs = runs.into_iter();
        self.vfs = vfs;
        self.file = file;
        self.tree = tree;
        for (seqno, entry) in &self.log {
            if *seqno <= sb.durable_seqno {
                continue;
            }
            match entry {
                LogEntry::Write(writes) => {
                    let gate = self.tree.gate();
                    for (key, value) in writes {
                        insert(&gate, key, *seqno, value.as_deref());
                    }
                }
                LogEntry::Adopt(metas, _, rest) => {
                    self.tree.seal_before_adoption(|| seqno - 1);
                    let gate = self.tree.gate();
                    for run in runs.by_ref().take(metas.len()) {
                        gate.adopt(&run, *seqno);
                    }
                    for (key, value) in rest {
                        insert(&gate, key, *seqno, value.as_deref());
                    }
                }
                LogEntry::DeleteRange(lo, hi) => self.tree.gate().delete_range(lo, hi.as_deref(), *seqno),
                LogEntry::Truncate => self.tree.close_gate().truncate(*seqno),
            }
        }
        Ok(sb)
    }

    pub(crate) fn crash(&mut self) -> Superblock {
        let vfs = self.vfs.crash();
        self.reopen_on(vfs).unwrap()
    }

    /// The tree equals the model at `snapshot`, forwards and backwards.
    pub(crate) fn check_scan(&self, snapshot: Seqno) {
        let rows = self.model.rows(snapshot);
        assert_eq!(scan(&self.tree, snapshot), rows, "forward at {snapshot}\n{}", self.tree.shape());
        assert_eq!(visit_all(&self.tree, snapshot), rows, "visits at {snapshot}\n{}", self.tree.shape());
        let mut back = scan_back(&self.tree, snapshot);
        back.reverse();
        assert_eq!(back, rows, "backward at {snapshot}\n{}", self.tree.shape());
        self.check_pieces(snapshot, b"", None);
    }

    /// Pieces of the range cover it without a gap, and the records of those that are plain are the rows there; also where they are given by
    /// spans, and some of these segment by segment after all. Gives how many rows were in plain ones.
    pub(crate) fn check_pieces(&self, snapshot: Seqno, begin: &[u8], end: Option<&[u8]>) -> usize {
        let plain = self.pieces_checked(snapshot, begin, end, None);
        let one_by_one = 1 + snapshot as usize % 2;
        assert_eq!(self.pieces_checked(snapshot, begin, end, Some(one_by_one)), plain, "rows by spans");
        plain
    }

    /// By spans, of which every so many one is given segment by segment; or without spans.
    fn pieces_checked(
        &self,
        snapshot: Seqno,
        begin: &[u8],
        end: Option<&[u8]>,
        one_by_one: Option<usize>,
    ) -> usize {
        let in_range = |key: &[u8], lo: &[u8], hi: Option<&[u8]>| lo <= key && hi.is_none_or(|hi| key < hi);
        let rows = self.model.rows(snapshot);
        let mut rows = rows.iter().filter(|(key, _)| in_range(key, begin, end)).peekable();
        let mut pieces = self.tree.pieces(snapshot, begin, end);
        let (mut at, mut is_over) = (begin.to_vec(), end.is_some_and(|end| end <= begin));
        let (mut plain, mut spans) = (0, 0);
        if one_by_one.is_some() {
            pieces.by_spans();
        }
        while let Some(mut piece) = pieces.next().unwrap() {
            if piece.segments > 1 {
                spans += 1;
                if one_by_one.is_some_and(|each| spans % each == 0) {
                    piece = pieces.first_of_span().unwrap();
                    assert_eq!(piece.segments, 1);
                }
            }
            assert!(!is_over && piece.begin == at, "{piece:?} after {at:?} of {begin:?}..{end:?}");
            let hi = piece.end.as_deref();
            let mut own = Vec::new();
            while let Some(row) = rows.next_if(|(key, _)| in_range(key, &piece.begin, hi)) {
                own.push(row.clone());
            }
            if piece.segments > 1 {
                assert!(one_by_one.is_some() && piece.segments == pieces.segments());
                assert_eq!(piece.plain_rows, Some(own.len()), "{piece:?} at {snapshot}");
                assert_eq!((0..piece.segments).map(|nth| pieces.rows(nth)).sum::<usize>(), own.len());
                let bounds =
                    (pieces.key_bounds(0).unwrap().0, pieces.key_bounds(piece.segments - 1).unwrap().1);
                assert!(own.iter().all(|(key, _)| bounds.0 <= &key[..] && &key[..] <= bounds.1));
                plain += own.len();
            } else if let Some(count) = piece.plain_rows {
                let segment = if count == 0 { None } else { pieces.segment(true).unwrap() };
                let row = |segment: &pando_column::Segment, at: usize| {
                    (segment.key(at).to_vec(), segment.value(at).to_vec())
                };
                let found: Vec<_> =
                    segment.iter().flat_map(|of| (0..of.rows()).map(|at| row(of, at))).collect();
                assert_eq!(found, own, "{piece:?} at {snapshot}\n{}", self.tree.shape());
                assert_eq!(count, own.len());
                plain += count;
            }
            is_over = piece.end.as_deref() == end;
            at = piece.end.unwrap_or_default();
        }
        assert!(is_over && rows.next().is_none(), "pieces of {begin:?}..{end:?} end at {at:?}");
        plain
    }

    /// Everything, thoroughly; nobody else is at work.
    pub(crate) fn check_all(&self) {
        self.tree.verify().unwrap();
        self.check_scan(self.last);
        for snapshot in &self.snapshots {
            self.check_scan(*snapshot);
        }
    }

    /// The file's used space is what the tree's nodes and runs take, no more.
    pub(crate) fn check_space(&self) {
        assert_eq!(self.file.used_bytes(), self.tree.stats().disk_bytes, "{}", self.tree.shape());
    }
}

fn insert(gate: &crate::WriteGuard<'_>, key: &[u8], seqno: Seqno, value: Option<&[u8]>) {
    match value {
        Some(value) => gate.insert(key, seqno, Kind::Put, value),
        None => gate.insert(key, seqno, Kind::Delete, b""),
    }
}

pub(crate) fn scan(tree: &Arc<Tree>, snapshot: Seqno) -> super::model::Rows {
    let mut rows = Vec::new();
    let mut cursor = tree.cursor(snapshot);
    cursor.seek_first().unwrap();
    while cursor.valid() {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next().unwrap();
    }
    rows
}

/// In visits of 1, 2, 3... rows, then to the end.
pub(crate) fn visit_all(tree: &Arc<Tree>, snapshot: Seqno) -> super::model::Rows {
    let mut rows = Vec::new();
    let mut cursor = tree.cursor(snapshot);
    cursor.seek_first().unwrap();
    for size in 1.. {
        let until = if size < 30 { rows.len() + size } else { usize::MAX };
        cursor
            .visit(|key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                rows.len() < until
            })
            .unwrap();
        if !cursor.valid() {
            break;
        }
        assert_eq!(cursor.key(), rows.last().unwrap().0);
        cursor.next().unwrap();
    }
    rows
}

pub(crate) fn scan_back(tree: &Arc<Tree>, snapshot: Seqno) -> super::model::Rows {
    let mut rows = Vec::new();
    let mut cursor = tree.cursor(snapshot);
    cursor.seek_last().unwrap();
    while cursor.valid() {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.prev().unwrap();
    }
    rows
}
