//! How a simulated database is opened: tiny sizes, drawn anew at each start, so that a few hundred
//! operations make deep trees, switch log files and close tables, and so that what one set of options
//! has written is read with another.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pandodb::{Db, FlushMode, Options, SimVfs, TreeConfig, Vfs};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Lines that the engine logs for the operator.
pub(crate) type Lines = Arc<Mutex<Vec<String>>>;

/// Size of the disk: tens of times what a run needs.
pub(crate) const DISK_BYTES: u64 = 64 << 20;

/// I/Os of a machine from one start to the next: tens of times what a run needs.
const IO_COUNT_MAX: u64 = 50_000;

/// An empty disk with the server's directories.
pub(crate) fn disk(seed: u64) -> Arc<SimVfs> {
    let disk = SimVfs::new(seed);
    disk.create_dir_all(Path::new("/data/db"))
        .and_then(|()| disk.sync_dir(Path::new("/data")))
        .and_then(|()| disk.sync_dir(Path::new("/")))
        .expect("a new disk works");
    disk.set_io_count_max(IO_COUNT_MAX);
    disk.set_capacity(Some(DISK_BYTES));
    disk
}

fn tree_config(rng: &mut ChaCha8Rng) -> TreeConfig {
    let mut config = TreeConfig {
        memtable_bytes: rng.random_range(1..6) * 1024,
        leaf_raw_bytes: rng.random_range(1..6) * 1024,
        fanout_max: rng.random_range(2..6),
        buffer_runs_max: rng.random_range(2..8),
        ..TreeConfig::default()
    };
    config.run.segment_raw_bytes = rng.random_range(128..1024);
    config
}

/// Opens the database with options of its own; `mode` is when commits reach the disk.
pub(crate) fn open(
    disk: &Arc<SimVfs>,
    rng: &mut ChaCha8Rng,
    mode: FlushMode,
    lines: &Lines,
) -> pandodb::Result<Arc<Db>> {
    let mut options = Options::new("/data");
    options.background_threads = 0;
    options.cache_bytes = 8 << 20;
    options.log_file_bytes = rng.random_range(16..48) << 10;
    options.log_kept_bytes_max = rng.random_range(48..256) << 10;
    options.files_open_max = if rng.random_ratio(1, 3) { rng.random_range(2..8) } else { 64 };
    options.checkpoint_period_s = if rng.random() { 3 } else { 1_000_000 };
    options.flush_mode = mode;
    // Without a draw, so that seeds stay what they were.
    if options.log_file_bytes >> 10 & 1 == 0 {
        options.ordered_at_once_ops = 0;
    }
    options.replay_memory_bytes = [0, 4 << 10, 1 << 30][(options.log_file_bytes >> 10) as usize % 3];
    // So little that what is prepared is logged anew within a run.
    if options.log_kept_bytes_max >> 10 & 1 == 0 {
        options.log_kept_bytes_max = 8 << 10;
        options.log_file_bytes = 16 << 10;
    }
    if rng.random_ratio(2, 3) {
        options.write_set_bytes = rng.random_range(1..6000);
    }
    if rng.random() {
        options.lock_budget = rng.random_range(16..60);
    }
    options.tree = tree_config(rng);
    let sink = lines.clone();
    options.log = Arc::new(move |level, text| {
        sink.lock().expect("nobody panics with it").push(format!("{level:?}: {text}"))
    });
    let files: Arc<dyn Vfs> = disk.clone();
    Db::open_with_vfs(options, files.clone(), files)
}
