//! OPTIMIZE TABLE gives space back.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{count, disk, fill, options, spec, Lines};
use pandodb::{Db, Error, LockWait, Vfs};

const PATH: &str = "./db/t";

#[test]
fn a_table_that_has_lost_three_quarters_of_its_rows_shrinks() {
    let vfs = disk(1);
    // Leaves of many pages: extents are whole pages.
    let mut options = options(&Lines::default());
    options.tree.memtable_bytes = 64 << 10;
    options.tree.leaf_raw_bytes = 128 << 10;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    db.create_table(&spec(PATH)).unwrap();
    fill(&db, PATH, 0..20_000).unwrap();
    let table = db.open_table(PATH).unwrap();
    db.compact_table(&table, &mut |_| true).unwrap();
    let mut parts = Vec::new();
    let mut note = |part| {
        parts.push(part);
        true
    };
    db.compact_table(&table, &mut note).unwrap();
    assert!(
        parts.len() > 8 && parts[0] == 0.0 && parts.windows(2).all(|pair| pair[0] <= pair[1]),
        "{parts:?}"
    );
    assert!(parts.iter().any(|part| (0.3..0.8).contains(part)) && parts.iter().all(|part| *part <= 1.0));
    // Holes as small as those of this table stay with the file; but nothing uses them.
    let used = || table.dicts().iter().map(|dict| dict.used_bytes()).collect::<Vec<_>>();
    let before = used();
    let mut txn = db.begin();
    for n in (0..20_000).filter(|n| n % 4 != 0) {
        for dict in 0..2 {
            txn.delete(&table, dict, format!("{n:08}").as_bytes(), LockWait::NoWait).unwrap();
        }
    }
    txn.commit().unwrap();
    // Given up after some leaves: what was done stays, and nothing is lost.
    let mut left = 3;
    let given_up = db.compact_table(&table, &mut |_| {
        left -= 1;
        left > 0
    });
    assert!(matches!(given_up, Err(Error::Killed)), "{given_up:?}");
    assert_eq!(count(&db, PATH).unwrap(), 5000);
    db.compact_table(&table, &mut |_| true).unwrap();
    let after = used();
    assert!(after.iter().zip(&before).all(|(after, before)| *after < before / 2), "{before:?}, {after:?}");
    assert_eq!(count(&db, PATH).unwrap(), 5000);
}

#[test]
fn a_rate_holds_it_back_and_a_kill_ends_it_meanwhile() {
    let vfs = disk(1);
    let mut options = options(&Lines::default());
    options.tree.memtable_bytes = 64 << 10;
    options.tree.leaf_raw_bytes = 128 << 10;
    let files: Arc<dyn Vfs> = vfs.clone();
    let db = Db::open_with_vfs(options, files.clone(), files).unwrap();
    db.create_table(&spec(PATH)).unwrap();
    fill(&db, PATH, 0..20_000).unwrap();
    let table = db.open_table(PATH).unwrap();
    db.compact_table(&table, &mut |_| true).unwrap();
    // At a byte a second the second leaf would have to wait for hours.
    db.set_optimize_rate(1);
    let mut looks = 0;
    let killed = db.compact_table(&table, &mut |_| {
        looks += 1;
        looks < 10
    });
    assert!(matches!(killed, Err(Error::Killed)), "{killed:?}");
    // Whoever waits goes on when the rate is lifted.
    let mut looks = 0;
    let mut lift = |_| {
        looks += 1;
        if looks == 5 {
            db.set_optimize_rate(0);
        }
        true
    };
    db.compact_table(&table, &mut lift).unwrap();
    assert!(looks > 5);
    assert_eq!(count(&db, PATH).unwrap(), 20_000);
}
