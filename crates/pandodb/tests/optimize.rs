//! OPTIMIZE TABLE gives space back.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

mod common;

use std::sync::Arc;

use common::{count, disk, fill, options, spec, Lines};
use pandodb::{Db, LockWait, Vfs};

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
    db.compact_table(&table).unwrap();
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
    db.compact_table(&table).unwrap();
    let after = used();
    assert!(after.iter().zip(&before).all(|(after, before)| *after < before / 2), "{before:?}, {after:?}");
    assert_eq!(count(&db, PATH).unwrap(), 5000);
}
