//! Sorters against a model: any order, any budget, any number of threads, duplicates, errors.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex};

use pando_base::{DictId, Metrics, Seqno};
use pando_load::{
    finish, Duplicate, Entries, Finished, Inline, Memory, Setting, Sorter, Stages, Task, Workers,
};
use pando_run::{BlockCache, Compression, Run, RunContext, RunOptions};
use pando_storage::vfs::{FaultKind, SimVfs, Vfs};
use pando_storage::TreeFile;
use pando_tree::{Horizon, Tree, TreeConfig};
use proptest::prelude::*;

struct Nobody;

impl Horizon for Nobody {
    fn snapshots(&self) -> Vec<Seqno> {
        vec![1]
    }
}

/// Real threads.
struct Threads {
    tasks: mpsc::Sender<Task>,
    count: usize,
}

impl Threads {
    #[expect(clippy::disallowed_methods, reason = "a test of threads")]
    fn new(count: usize) -> Threads {
        let (tasks, todo) = mpsc::channel::<Task>();
        let todo = Arc::new(Mutex::new(todo));
        for _ in 0..count {
            let todo = todo.clone();
            std::thread::spawn(move || loop {
                let task = todo.lock().unwrap().recv();
                let Ok(task) = task else { return };
                task.run();
            });
        }
        Threads { tasks, count }
    }
}

impl Workers for Threads {
    fn run(&self, task: Task) {
        self.tasks.send(task).unwrap();
    }
    fn parallelism(&self) -> usize {
        self.count
    }
}

/// Nobody, until somebody asks: tasks wait.
#[derive(Default)]
struct Later(Mutex<Vec<Task>>);

impl Later {
    fn run_all(&self) {
        let tasks = std::mem::take(&mut *self.0.lock().unwrap());
        tasks.into_iter().for_each(Task::run);
    }
}

impl Workers for Later {
    fn run(&self, task: Task) {
        self.0.lock().unwrap().push(task);
    }
    fn take_given_up(&self) -> Vec<Task> {
        let mut tasks = self.0.lock().unwrap();
        let (given_up, kept) = std::mem::take(&mut *tasks).into_iter().partition(Task::is_given_up);
        *tasks = kept;
        given_up
    }
    fn parallelism(&self) -> usize {
        1
    }
}

struct Bed {
    vfs: Arc<SimVfs>,
    file: Arc<TreeFile>,
    tree: Arc<Tree>,
}

fn bed() -> Bed {
    let vfs = SimVfs::new(1);
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    vfs.create_dir_all(Path::new("/t")).unwrap();
    let file = TreeFile::create(&dyn_vfs, Path::new("/t/main.pando"), DictId(7)).unwrap();
    let metrics = Arc::new(Metrics::default());
    let cache = BlockCache::new(1 << 20, metrics.clone());
    let ctx = RunContext { file: file.clone(), cache, metrics };
    let config = TreeConfig {
        memtable_bytes: 2048,
        leaf_raw_bytes: 4096,
        fanout_max: 4,
        buffer_runs_max: 4,
        run: RunOptions { compression: Compression::Lz4, segment_raw_bytes: 256, filter: true },
        buffer_compression: Compression::None,
    };
    let tree = Tree::create(ctx, config, Arc::new(Nobody));
    Bed { vfs, file, tree }
}

fn setting(memory: u64, threads: usize) -> Setting {
    let workers: Arc<dyn Workers> = match threads {
        0 => Arc::new(Inline),
        count => Arc::new(Threads::new(count)),
    };
    Setting {
        workers,
        memory: Memory::new(memory),
        cancelled: Arc::new(AtomicBool::new(false)),
        stages: Arc::new(Stages::default()),
    }
}

type Row = (Vec<u8>, Vec<u8>);

/// Gives the rows in batches of `batch` to a sorter, in a shuffled order of batches.
fn feed(sorter: &Arc<Sorter>, rows: &[Row], batch: usize) {
    let mut batches: Vec<(u64, Entries)> = Vec::new();
    for (number, rows) in rows.chunks(batch.max(1)).enumerate() {
        let mut entries = Entries::with_capacity(rows.len(), 0);
        rows.iter().for_each(|(key, value)| entries.push(key, value));
        batches.push((number as u64, entries));
    }
    // Neighbours come in the wrong order.
    for pair in batches.chunks_mut(2) {
        pair.reverse();
    }
    batches.into_iter().for_each(|(number, entries)| sorter.add(number, entries));
}

fn read(runs: &[Arc<Run>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in runs {
        let mut cursor = run.cursor();
        cursor.seek_first().unwrap();
        while cursor.valid() {
            rows.push((cursor.key().to_vec(), cursor.record().value.to_vec()));
            cursor.next().unwrap();
        }
    }
    rows
}

/// What inserting one by one would have said.
fn expected(rows: &[Row]) -> Result<Vec<Row>, Duplicate> {
    let mut there: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (ordinal, (key, value)) in rows.iter().enumerate() {
        if let Some(existing) = there.insert(key.clone(), value.clone()) {
            let (key, value) = (key.clone(), value.clone());
            return Err(Duplicate { ordinal: ordinal as u64, key, value, existing });
        }
    }
    Ok(there.into_iter().collect())
}

fn check(rows: &[Row], batch: usize, memory: u64, threads: usize) {
    let bed = bed();
    let setting = setting(memory, threads);
    let sorter = Sorter::new(&bed.tree, &setting, true, 1);
    feed(&sorter, rows, batch);
    let finished = finish(std::slice::from_ref(&sorter), &setting, &mut |_| {}).unwrap();
    drop(sorter);
    match (finished, expected(rows)) {
        (Finished::Runs(runs), Ok(expected)) => {
            assert_eq!(read(&runs[0]), expected);
            let bytes: u64 = runs[0].iter().map(|run| run.meta().disk_bytes).sum();
            assert_eq!(bed.file.used_bytes(), bytes, "only the runs are left in the file");
            if threads == 0 {
                let small = runs[0].iter().filter(|run| run.meta().raw_bytes < 2048).count();
                assert!(small <= 2, "runs are good leaves: {small} small of {}", runs[0].len());
            }
        }
        (Finished::Duplicate(0, found), Err(first)) => assert_eq!(found, first),
        (found, expected) => panic!("{found:?} but {expected:?}"),
    }
    // Tasks may still be letting go of the sorter.
    while threads > 0 && bed.file.used_bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(bed.file.used_bytes(), 0, "nothing is left");
}

fn row(n: u64, width: usize) -> Row {
    (n.to_be_bytes().to_vec(), vec![n as u8; width])
}

#[test]
fn rows_in_key_order_become_leaves_without_a_merge() {
    let bed = bed();
    let setting = setting(1 << 20, 0);
    let rows: Vec<Row> = (0..5000).map(|n| row(n, 20)).collect();
    let sorter = Sorter::new(&bed.tree, &setting, true, 1);
    feed(&sorter, &rows, 16);
    let Finished::Runs(runs) = finish(&[sorter], &setting, &mut |_| {}).unwrap() else { panic!("sorted") };
    assert_eq!(read(&runs[0]), rows);
    assert_eq!(setting.stages.nanos(pando_load::Stage::Merge), 0, "nothing was merged");
}

#[test]
fn order_that_ends_late_keeps_what_lies_before() {
    for late in [0, 2500, 4999] {
        let mut rows: Vec<Row> = (0..5000).map(|n| row(n * 2, 20)).collect();
        rows.push(row(late * 2 + 1, 5));
        for memory in [0, 1 << 20] {
            check(&rows, 16, memory, 0);
        }
    }
}

#[test]
fn groups_that_nobody_has_sorted_yet_are_counted_and_waited_for() {
    let bed = bed();
    let later = Arc::new(Later::default());
    let setting = Setting { workers: later.clone(), ..setting(4 << 20, 0) };
    let sorter = Sorter::new(&bed.tree, &setting, true, 1);
    let rows: Vec<Row> = (0..30_000u64).map(|n| row(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 30)).collect();
    // There is nothing to wait for.
    assert!(sorter.wait_for_room(&mut || true));
    feed(&sorter, &rows, 100);
    let queued = setting.memory.used();
    assert!(queued > 500 << 10, "{queued} bytes");
    // So many more, from elsewhere, that there is no room.
    setting.memory.hold_in_any_case(4 << 20);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| sorter.wait_for_room(&mut || true));
        later.run_all();
        assert!(waiter.join().unwrap());
    });
    let chunks = setting.memory.used() - (4 << 20);
    assert!(chunks > 0 && later.0.lock().unwrap().is_empty());
    setting.memory.let_go(4 << 20);
    setting.cancelled.store(true, Ordering::Release);
    let workers = Arc::new(Inline);
    let finished =
        finish(&[sorter], &Setting { workers, ..setting.clone() }, &mut |_| later.run_all()).unwrap();
    assert!(matches!(finished, Finished::Cancelled));
    assert_eq!(setting.memory.used(), 0);
}

/// Rows in no order.
fn scattered(rows: u64) -> Vec<Row> {
    (0..rows).map(|n| row(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 30)).collect()
}

#[test]
fn who_gives_a_load_up_waits_for_none_of_its_tasks_that_nobody_has_begun() {
    let (bed, other) = (bed(), bed());
    let later = Arc::new(Later::default());
    let setting = Setting { workers: later.clone(), ..setting(8 << 20, 0) };
    let theirs = Setting { cancelled: Arc::default(), ..setting.clone() };
    let sorter = Sorter::new(&bed.tree, &setting, true, 1);
    let others = Sorter::new(&other.tree, &theirs, true, 1);
    feed(&sorter, &scattered(100_000), 100);
    feed(&others, &scattered(60_000), 100);
    let all = later.0.lock().unwrap().len();
    setting.cancelled.store(true, Ordering::Release);
    // Nobody runs tasks.
    let finished = finish(std::slice::from_ref(&sorter), &setting, &mut |_| {}).unwrap();
    assert!(matches!(finished, Finished::Cancelled));
    let left = later.0.lock().unwrap().len();
    assert!(0 < left && left < all, "{left} of {all} tasks");
    theirs.cancelled.store(true, Ordering::Release);
    others.give_up();
    assert!(later.0.lock().unwrap().is_empty());
    assert_eq!((setting.memory.used(), bed.file.used_bytes(), other.file.used_bytes()), (0, 0, 0));
}

#[test]
fn who_waits_for_room_goes_when_the_statement_is_killed() {
    let bed = bed();
    let later = Arc::new(Later::default());
    let setting = Setting { workers: later, ..setting(2 << 20, 0) };
    let sorter = Sorter::new(&bed.tree, &setting, true, 1);
    feed(&sorter, &scattered(30_000), 100);
    let mut looks = 0;
    let goes_on = sorter.wait_for_room(&mut || {
        looks += 1;
        looks < 3
    });
    assert_eq!((goes_on, looks), (false, 3));
    setting.cancelled.store(true, Ordering::Release);
    assert!(!sorter.wait_for_room(&mut || true));
    sorter.give_up();
}

#[test]
fn a_load_that_waits_for_rows_hands_on_what_it_has_where_memory_is_short() {
    let (idle, busy) = (bed(), bed());
    let setting = setting(1 << 20, 0);
    // Three eighths are for rows that nobody has sorted, half of it for groups that are being collected.
    let (most, half) = (384 << 10, 192 << 10);
    let waits = Sorter::new(&idle.tree, &setting, true, 1);
    feed(&waits, &scattered(2500), 100);
    let held = setting.memory.used();
    assert!(held > half / 2 && held < half, "{held} bytes");
    let works = Sorter::new(&busy.tree, &setting, true, 1);
    let rows = scattered(20_000);
    for (number, rows) in rows.chunks(50).enumerate() {
        let mut entries = Entries::with_capacity(rows.len(), 3000);
        rows.iter().for_each(|(key, value)| entries.push(key, value));
        works.add(number as u64, entries);
        // Chunks have their own part.
        assert!(setting.memory.used() <= most / 2 + (512 << 10), "{}", setting.memory.used());
    }
    for (sorter, rows) in [(&waits, 2500), (&works, 20_000)] {
        let finished = finish(std::slice::from_ref(sorter), &setting, &mut |_| {}).unwrap();
        let Finished::Runs(runs) = finished else { panic!("sorted") };
        assert_eq!(read(&runs[0]).len(), rows);
    }
    drop((waits, works));
    assert_eq!(setting.memory.used(), 0);
}

#[test]
fn what_comes_in_order_while_memory_is_short_is_good_leaves_in_the_end() {
    // Groups are handed on with less than half of a leaf.
    let rows: Vec<Row> = (0..3000).map(|n| row(n, 20)).collect();
    for batch in [1, 3, 7] {
        check(&rows, batch, 1 << 10, 0);
        check(&rows, batch, 1 << 10, 3);
    }
    let mut late = rows.clone();
    late.push(row(1500, 7));
    late.push(row(9, 5));
    check(&late, 3, 1 << 10, 0);
    late.truncate(rows.len());
    late.push(row(10_000, 7));
    late.swap(2000, 3000);
    check(&late, 3, 1 << 10, 0);
}

#[test]
fn one_large_value_does_not_make_the_batches_after_it_large() {
    let bed = bed();
    let sorter = Sorter::new(&bed.tree, &setting(1 << 20, 0), true, 1);
    let mut entries = sorter.new_batch(1, 3 << 20);
    entries.push(b"k", &vec![1; 3 << 20]);
    sorter.add(0, entries);
    let (rows, bytes) = (10_000, 512 << 10);
    let held = sorter.new_batch(rows, bytes).memory_bytes() as u64;
    assert!(held < 4 * bytes, "{held} bytes for a batch of {bytes}");
}

#[test]
fn threads_and_spills_give_the_same_rows() {
    let rows: Vec<Row> = (0..60_000u64).map(|n| row(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 30)).collect();
    for threads in [0, 1, 4] {
        check(&rows, 100, 300 << 10, threads);
    }
}

#[test]
fn many_chunks_are_merged_in_several_passes() {
    // Some twenty chunks, of which eight may be read at once; rows in order before them.
    let scattered = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    let mut rows: Vec<Row> = (0..1000u64).map(|n| row(n << 50, 30)).collect();
    rows.extend((0..120_000u64).map(|n| row(scattered(n) | 1, 32)));
    for threads in [0, 3] {
        check(&rows, 500, 300 << 10, threads);
    }
    // What several passes write, in parts of what there is: more than where one pass is enough.
    let spilled = |rows: &[Row]| {
        let bed = bed();
        let setting = setting(300 << 10, 0);
        let sorter = Sorter::new(&bed.tree, &setting, true, 1);
        feed(&sorter, rows, 500);
        let raw = sorter.raw_bytes();
        let Finished::Runs(_) = finish(&[sorter], &setting, &mut |_| {}).unwrap() else { panic!("sorted") };
        setting.stages.spilled_bytes() as f64 / raw as f64
    };
    let (once, again) = (spilled(&rows[..30_000]), spilled(&rows));
    assert!(once > 0.0 && again > 1.3 * once, "{once} and {again} of the bytes");
    // Rows with the same key meet in the first pass, in the last, or in none.
    for (first, second, last) in [(60_000, 60_100, 119_000), (5_000, 110_000, 115_000)] {
        let mut rows = rows.clone();
        rows[second] = (rows[first].0.clone(), b"second".to_vec());
        rows[last] = (rows[first + 1].0.clone(), b"third".to_vec());
        check(&rows, 500, 300 << 10, 0);
    }
}

#[test]
fn a_failed_pass_leaves_nothing() {
    for n in [1, 40, 90] {
        let bed = bed();
        let setting = setting(0, 0);
        let sorter = Sorter::new(&bed.tree, &setting, true, 1);
        let rows: Vec<Row> =
            (0..120_000u64).map(|n| row(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 32)).collect();
        feed(&sorter, &rows, 500);
        bed.vfs.fail_io_after(n, pando_storage::vfs::FaultKind::Sticky);
        assert!(finish(std::slice::from_ref(&sorter), &setting, &mut |_| {}).is_err(), "at I/O {n}");
        drop(sorter);
        assert_eq!(bed.file.used_bytes(), 0, "nothing is left");
    }
}

#[test]
fn the_first_duplicate_in_the_order_of_the_input_is_told() {
    let mut rows: Vec<Row> = (0..3000u64).map(|n| row(n * 7919 % 3001, 10)).collect();
    rows.insert(2000, (rows[1500].0.clone(), b"second".to_vec()));
    rows.push((rows[10].0.clone(), b"third".to_vec()));
    rows.push((rows[1500].0.clone(), b"again".to_vec()));
    for memory in [0, 1 << 20] {
        check(&rows, 50, memory, 0);
        check(&rows, 50, memory, 3);
    }
}

#[test]
fn of_duplicates_in_two_dictionaries_the_earlier_row_counts() {
    let (first, second) = (bed(), bed());
    let setting = setting(1 << 20, 0);
    let sorters = [Sorter::new(&first.tree, &setting, true, 2), Sorter::new(&second.tree, &setting, true, 2)];
    let rows: Vec<Row> = [3, 1, 2, 4, 1].into_iter().map(|n| row(n, 3)).collect();
    feed(&sorters[0], &rows, 2);
    let rows: Vec<Row> = [3, 1, 2, 3, 9].into_iter().map(|n| row(n, 3)).collect();
    feed(&sorters[1], &rows, 2);
    let finished = finish(&sorters, &setting, &mut |_| {}).unwrap();
    assert!(matches!(finished, Finished::Duplicate(1, Duplicate { ordinal: 3, .. })), "{finished:?}");
}

#[test]
fn a_cancelled_or_failed_load_leaves_nothing() {
    let rows: Vec<Row> = (0..20_000u64).map(|n| row(n * 7919 % 20_011, 30)).collect();
    let bed1 = bed();
    let setting1 = setting(100 << 10, 0);
    let sorter = Sorter::new(&bed1.tree, &setting1, true, 1);
    feed(&sorter, &rows, 64);
    setting1.cancelled.store(true, Ordering::Release);
    let finished = finish(&[sorter], &setting1, &mut |_| {}).unwrap();
    assert!(matches!(finished, Finished::Cancelled));
    assert_eq!(bed1.file.used_bytes(), 0);

    let mut failures = 0;
    for n in 0.. {
        let bed = bed();
        let setting = setting(100 << 10, 0);
        bed.vfs.fail_io_after(n * 3, FaultKind::Error);
        let sorter = Sorter::new(&bed.tree, &setting, true, 1);
        feed(&sorter, &rows, 64);
        let finished = finish(&[sorter], &setting, &mut |_| {});
        bed.vfs.clear_faults();
        if let Ok(Finished::Runs(runs)) = finished {
            assert_eq!(read(&runs[0]).len(), rows.len());
            break;
        }
        failures += 1;
        assert_eq!(bed.file.used_bytes(), 0, "after the failure of operation {}", n * 3);
    }
    assert!(failures > 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_rows_come_out_as_if_inserted_one_by_one(
        keys in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..7), 0..400),
        batch in 1usize..50,
        memory in prop_oneof![Just(0u64), Just(1 << 20)],
        width in 0usize..300,
    ) {
        let rows: Vec<Row> =
            keys.into_iter().enumerate().map(|(n, key)| (key, vec![n as u8; width])).collect();
        check(&rows, batch, memory, 0);
    }

    #[test]
    fn distinct_rows_too(
        keys in proptest::collection::hash_set(any::<u32>(), 0..3000),
        batch in 1usize..200,
        memory in prop_oneof![Just(0u64), Just(200 << 10), Just(1 << 20)],
    ) {
        let rows: Vec<Row> = keys.into_iter().map(|n| row(u64::from(n), 12)).collect();
        check(&rows, batch, memory, 0);
    }
}
