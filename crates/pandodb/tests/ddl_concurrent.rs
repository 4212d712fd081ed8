//! Tables are made, filled, emptied, renamed and dropped by several threads at once, under the feet of
//! jobs, checkpoints, log trims and the closing of idle tables.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{count, disk, fill, open, options, spec, Lines};
use pandodb::{Db, LogLevel, Vfs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const THREADS: u64 = 4;
const STEPS: u32 = 2000;

/// Names of tables and their rows, of one thread.
type Tables = BTreeMap<String, u32>;

fn work(db: &Arc<Db>, thread: u64) -> Tables {
    let mut rng = ChaCha8Rng::seed_from_u64(thread);
    let mut tables = Tables::new();
    for _ in 0..STEPS {
        let name = format!("./db/t{thread}-{}", rng.random_range(0..3));
        let other = format!("./db/t{thread}-{}", rng.random_range(0..3));
        match (tables.get(&name).copied(), rng.random_range(0..10)) {
            (None, _) => {
                db.create_table(&spec(&name)).unwrap();
                tables.insert(name, 0);
            }
            (Some(rows), 0..=4) => {
                let end = rows + rng.random_range(1..60);
                fill(db, &name, rows..end).unwrap();
                tables.insert(name, end);
            }
            (Some(rows), 5) => assert_eq!(count(db, &name).unwrap(), rows, "{name}"),
            (Some(_), 6) => {
                db.truncate_table(&name).unwrap();
                tables.insert(name, 0);
            }
            (Some(rows), 7..=8) => {
                if !tables.contains_key(&other) {
                    db.rename_table(&name, &other).unwrap();
                    tables.remove(&name);
                    tables.insert(other, rows);
                }
            }
            (Some(_), _) => {
                db.drop_table(&name).unwrap();
                tables.remove(&name);
            }
        }
    }
    tables
}

#[test]
fn ddl_of_many_threads_and_background_work_do_not_meet_badly() {
    let (vfs, lines) = (disk(1), Lines::default());
    let mut options = options(&lines);
    options.background_threads = 2;
    options.checkpoint_period_s = 0;
    options.files_open_max = 8;
    options.log_kept_bytes_max = 100_000;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    let mut tables = Tables::new();
    std::thread::scope(|scope| {
        let db = &db;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(db, thread))).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            db.tick();
        }
        threads.into_iter().for_each(|thread| tables.append(&mut thread.join().unwrap()));
    });
    for (name, rows) in &tables {
        assert_eq!(count(&db, name).unwrap(), *rows, "{name}");
    }
    let trouble: Vec<_> =
        lines.lock().unwrap().iter().filter(|(level, _)| *level != LogLevel::Note).cloned().collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    db.abandon();
    drop(db);
    let db = open(&vfs.crash()).unwrap();
    for (name, rows) in &tables {
        assert_eq!(count(&db, name).unwrap(), *rows, "{name} after a power cut");
    }
}
