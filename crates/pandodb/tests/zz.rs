mod common;
use common::*;
use pandodb::*;
#[test]
fn x() {
    for room in [2u32] {
        let full = |short_max: u32| {
            let vfs = disk(1);
            let db = open(&vfs).unwrap();
            db.create_table(&spec("./db/a")).unwrap();
            fill(&db, "./db/a", 0..150).unwrap();
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            fill(&db, "./db/a", 150..300).unwrap();
            vfs.set_capacity(Some(vfs.used_bytes() + 10_000));
            let f = |bytes: usize, max: u32| {
                let table = db.open_table("./db/a").unwrap();
                for c in 0..max {
                    let mut txn = db.begin();
                    txn.put(&table, 0, b"00000000", &vec![b'x'; bytes], LockWait::NoWait).unwrap();
                    if txn.commit().is_err() { return c }
                }
                max
            };
            f(2000, u32::MAX);
            let n = f(5, short_max);
            (vfs, db, n)
        };
        let (_, _, most) = full(u32::MAX);
        let (vfs, db, _) = full(most - room);
        eprintln!("{:?}", db.drop_table("./db/a").map_err(|e| e.to_string()));
        vfs.set_capacity(None);
        eprintln!("{:?}", directories(&vfs));
        db.create_table(&spec("./db/a")).unwrap();
        fill(&db, "./db/a", 0..20).unwrap();
        eprintln!("{:?}", directories(&vfs));
        let l = Lines::default();
        db.close().unwrap(); drop(db);
        let db = open_logging(&vfs, &l).unwrap();
        eprintln!("{:?} {:?}", directories(&vfs), l);
        eprintln!("{:?}", count(&db, "./db/a"));
    }
}
