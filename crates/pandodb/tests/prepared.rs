//! Prepared transactions: two-phase commit, through crashes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use common::prepared::{is_locked, put, read, world, T};
use common::{count, disk, fill, open, open_logging, options, spec, Lines};
use pando_storage::vfs::FaultKind;
use pandodb::{Db, EngineError, Error, FlushMode, LockWait, SimVfs, TableSpec, Txn, Vfs};

#[test]
fn a_prepared_transaction_is_unseen_and_locked_until_it_commits() {
    let (_, db, table) = world();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"x").unwrap();
    assert!(txn.is_prepared());
    assert_eq!(read(&db, "a"), None);
    assert!(is_locked(&db, 0, "a"));
    txn.commit().unwrap();
    assert_eq!(read(&db, "a").as_deref(), Some("1"));
    assert!(!is_locked(&db, 0, "a"));
    // The object serves the next one.
    put(&mut txn, &table, "b", "2");
    txn.commit().unwrap();
    assert_eq!(count(&db, T).unwrap(), 2);
}

#[test]
fn a_prepared_transaction_without_writes_leaves_no_trace() {
    let (vfs, db, _) = world();
    let before = db.metrics().log_written_bytes.get();
    let mut txn = db.begin();
    txn.prepare(b"x").unwrap();
    assert!(!txn.is_prepared());
    txn.commit_ordered(true);
    txn.commit().unwrap();
    assert_eq!(db.metrics().log_written_bytes.get(), before);
    drop((txn, db));
    assert!(open(&vfs.crash()).unwrap().report_prepared(9).is_empty());
}

#[test]
fn the_order_of_commits_is_that_of_commit_ordered_whoever_comes_first() {
    let (_, db, table) = world();
    let mut first = db.begin();
    let mut second = db.begin();
    put(&mut first, &table, "a", "1");
    put(&mut second, &table, "b", "2");
    second.prepare(b"2").unwrap();
    first.prepare(b"1").unwrap();
    // One thread orders all.
    first.commit_ordered(true);
    second.commit_ordered(true);
    let mut reader = db.begin();
    reader.open_snapshot();
    std::thread::scope(|scope| {
        // The later one has to wait for the earlier one to become visible.
        let second = scope.spawn(move || second.commit().unwrap());
        assert_eq!((read(&db, "a"), read(&db, "b")), (None, None));
        first.commit().unwrap();
        second.join().unwrap();
    });
    assert_eq!((read(&db, "a").as_deref(), read(&db, "b").as_deref()), (Some("1"), Some("2")));
    assert_eq!(reader.get(&table, 0, b"a").unwrap(), None, "an old snapshot stays old");
}

#[test]
fn an_ordered_snapshot_has_what_is_on_its_way() {
    let (_, db, table) = world();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    let mut before = db.begin();
    before.open_ordered_snapshot();
    txn.commit_ordered(true);
    let (mut plain, mut ordered) = (db.begin(), db.begin());
    plain.open_snapshot();
    ordered.open_ordered_snapshot();
    txn.commit().unwrap();
    fill(&db, T, 0..500).unwrap();
    put(&mut txn, &table, "a", "2");
    txn.commit().unwrap();
    db.run_jobs().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(before.get(&table, 0, b"a").unwrap(), None);
    assert_eq!(plain.get(&table, 0, b"a").unwrap(), None);
    assert_eq!(ordered.get(&table, 0, b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(count(&db, T).unwrap(), 501);
}

#[test]
fn seals_jobs_and_checkpoints_between_order_and_commit_lose_nothing() {
    // The power fails before any of them, then after some of them, is committed.
    for committed in 0..=3 {
        let (vfs, db, table) = world();
        fill(&db, T, 0..50).unwrap();
        // Each is booked in a memtable that a checkpoint seals before its records come.
        let mut late: Vec<Txn> = (0..3).map(|_| db.begin()).collect();
        for (n, txn) in late.iter_mut().enumerate() {
            put(txn, &table, &format!("z{n}"), "late");
            txn.prepare(b"1").unwrap();
            txn.commit_ordered(true);
            db.checkpoint().unwrap();
        }
        db.run_jobs().unwrap();
        db.checkpoint().unwrap();
        db.tick();
        assert_eq!(read(&db, "z0"), None);
        db.flush_logs().unwrap();
        for (n, txn) in late.iter_mut().enumerate().take(committed) {
            txn.commit().unwrap();
            assert_eq!(read(&db, &format!("z{n}")).as_deref(), Some("late"));
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            db.tick();
            db.check_table(&table, &mut |_| true).unwrap();
        }
        if committed == 3 {
            fill(&db, T, 50..400).unwrap();
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            db.tick();
            db.check_table(&table, &mut |_| true).unwrap();
        }
        let crashed = vfs.crash();
        drop((late, table, db));
        let db = open(&crashed).unwrap();
        assert!(db.report_prepared(9).is_empty());
        for n in 0..3 {
            assert_eq!(read(&db, &format!("z{n}")).as_deref(), Some("late"), "{committed} committed");
        }
        db.check_table(&db.open_table(T).unwrap(), &mut |_| true).unwrap();
    }
}

#[test]
fn what_is_prepared_survives_restarts_with_its_locks_and_can_be_resolved_then() {
    for commit in [true, false] {
        let (vfs, db, table) = world();
        fill(&db, T, 0..10).unwrap();
        let mut txn = db.begin();
        put(&mut txn, &table, "a", "1");
        txn.delete(&table, 0, b"00000003", LockWait::NoWait).unwrap();
        txn.delete(&table, 1, b"00000003", LockWait::NoWait).unwrap();
        txn.raise_auto_increment(&table, 77).unwrap();
        txn.prepare(b"the xid").unwrap();
        drop((txn, table, db));
        let mut vfs = vfs.crash();
        for _ in 0..3 {
            let db = open(&vfs).unwrap();
            assert_eq!(db.report_prepared(9), [b"the xid"]);
            assert!(is_locked(&db, 0, "a") && is_locked(&db, 1, "a") && is_locked(&db, 0, "00000003"));
            assert!(!is_locked(&db, 0, "00000004"));
            assert_eq!(read(&db, "a"), None);
            assert_eq!(count(&db, T).unwrap(), 10);
            // Work in between: the log is trimmed as far as can be.
            fill(&db, T, 100..600).unwrap();
            db.run_jobs().unwrap();
            db.checkpoint().unwrap();
            let table = db.open_table(T).unwrap();
            let mut txn = db.begin();
            for n in 100..600u32 {
                for dict in 0..2 {
                    txn.delete(&table, dict, format!("{n:08}").as_bytes(), LockWait::NoWait).unwrap();
                }
            }
            txn.commit().unwrap();
            drop((txn, table, db));
            vfs = vfs.crash();
        }
        let db = open(&vfs).unwrap();
        assert!(!db.commit_by_xid(b"another").unwrap());
        let done = if commit { db.commit_by_xid(b"the xid") } else { db.rollback_by_xid(b"the xid") };
        assert!(done.unwrap());
        assert!(!db.rollback_by_xid(b"the xid").unwrap(), "once");
        let check = |db: &Arc<Db>| {
            assert!(db.report_prepared(9).is_empty());
            assert!(!is_locked(db, 0, "a") && !is_locked(db, 0, "00000003"));
            assert_eq!(read(db, "a").is_some(), commit);
            assert_eq!(read(db, "00000003").is_none(), commit);
            assert_eq!(count(db, T).unwrap(), 10);
            if commit {
                assert!(db.open_table(T).unwrap().auto_increment() >= 77);
            }
        };
        check(&db);
        drop(db);
        let vfs = vfs.crash();
        check(&open(&vfs).unwrap());
        let db = open(&vfs).unwrap();
        db.close().unwrap();
        drop(db);
        check(&open(&vfs.crash()).unwrap());
    }
}

#[test]
fn the_log_is_kept_for_what_is_prepared_and_for_what_was_until_it_is_in_the_trees() {
    const OTHER: &str = "./db/other";
    /// Fills log files with what is in the trees at once.
    fn work_elsewhere(db: &Arc<Db>, from: u32) {
        fill(db, OTHER, from..from + 2000).unwrap();
        db.run_jobs().unwrap();
        db.tick();
    }
    let (vfs, db, table) = world();
    db.create_table(&spec(OTHER)).unwrap();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    work_elsewhere(&db, 0);
    db.checkpoint().unwrap();
    db.tick();
    txn.commit_ordered(true);
    txn.commit().unwrap();
    // Committed, and in a memtable alone: a crash now needs the prepare's frame, and so does one after
    // the recovery, which has it in a memtable again.
    let mut vfs = vfs;
    let mut owner = Some((txn, table, db));
    for n in 1..4 {
        let db = match &owner {
            Some((_, _, db)) => db.clone(),
            None => open(&vfs).unwrap(),
        };
        work_elsewhere(&db, n * 2000);
        let crashed = vfs.crash();
        owner = None;
        drop(db);
        vfs = crashed;
        let db = open(&vfs).unwrap();
        assert_eq!(read(&db, "a").as_deref(), Some("1"), "after restart {n}");
        assert!(db.report_prepared(9).is_empty());
    }
    assert!(owner.is_none());
    let db = open(&vfs).unwrap();
    work_elsewhere(&db, 9000);
    db.checkpoint().unwrap();
    db.tick();
    let kept = db.metrics().log_kept_bytes.get();
    assert!(kept < 200_000, "once it is in the trees the log goes: {kept}");
    drop(db);
    assert_eq!(read(&open(&vfs.crash()).unwrap(), "a").as_deref(), Some("1"));
}

#[test]
fn names_are_reported_in_pieces_each_once() {
    let (_, db, table) = world();
    for n in 0..5u8 {
        let mut txn = db.begin();
        put(&mut txn, &table, &n.to_string(), "v");
        txn.prepare(&[n]).unwrap();
    }
    let name = |n: u8| vec![n];
    assert_eq!(db.report_prepared(2), [name(0), name(1)]);
    // The server resolves between two calls.
    assert!(db.rollback_by_xid(&[0]).unwrap());
    assert_eq!(db.report_prepared(2), [name(2), name(3)]);
    assert_eq!(db.report_prepared(2), [name(4)]);
    assert_eq!(db.report_prepared(9).len(), 4);
}

#[test]
fn a_full_disk_refuses_a_prepare_but_never_a_resolution() {
    let (vfs, db, table) = world();
    let name = |number: usize| format!("x{number}").into_bytes();
    let mut prepared = Vec::new();
    let mut next = || {
        let mut txn = db.begin();
        put(&mut txn, &table, &format!("{:04}", prepared.len()), &"v".repeat(500));
        txn.prepare(&name(prepared.len()))?;
        prepared.push(txn);
        Ok(())
    };
    vfs.set_capacity(Some(vfs.used_bytes() + 100_000));
    let error: Error = loop {
        if let Err(error) = next() {
            break error;
        }
    };
    assert!(matches!(error, Error::Engine(EngineError::DiskFull { .. })), "{error}");
    // The name of the one that failed is free.
    let again = next();
    assert!(matches!(again, Err(Error::Engine(EngineError::DiskFull { .. }))), "{again:?}");
    assert!(prepared.len() > 20);
    let committed = prepared.len() / 2;
    for (at, txn) in prepared.split_off(committed).into_iter().enumerate() {
        drop(txn);
        assert!(db.rollback_by_xid(&name(committed + at)).unwrap());
    }
    for mut txn in prepared {
        txn.commit_ordered(true);
        txn.commit().unwrap();
    }
    assert_eq!(count(&db, T).unwrap(), committed as u32);
}

#[test]
fn a_latched_log_leaves_a_prepared_transaction_to_the_next_start() {
    let (vfs, db, table) = world();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    let mut other = db.begin();
    put(&mut other, &table, "b", "1");
    assert!(other.commit().is_err());
    txn.commit_ordered(true);
    let error = txn.commit().unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    assert!(!txn.is_prepared());
    assert!(is_locked(&db, 0, "a"), "it waits for the next start");
    let crashed = vfs.crash();
    drop((txn, other, table, db));
    let db = open(&crashed).unwrap();
    assert!(db.commit_by_xid(b"1").unwrap());
    assert_eq!(read(&db, "a").as_deref(), Some("1"));
}

/// What the coordinator has decided holds, whichever I/O the power fails at.
#[test]
fn a_crash_at_every_io_leaves_prepared_or_resolved_and_nothing_between() {
    let trace = |vfs: &Arc<SimVfs>, decided: &mut Vec<(String, bool)>| -> pandodb::Result<()> {
        let db = open(vfs)?;
        let table = db.open_table(T)?;
        for n in 0..6u32 {
            let mut txn = db.begin();
            for row in 0..3 {
                let key = format!("{n}-{row}");
                for dict in 0..2 {
                    txn.put(&table, dict, key.as_bytes(), &[7; 300], LockWait::NoWait)?;
                }
            }
            let xid = n.to_string();
            txn.prepare(xid.as_bytes())?;
            let commit = n % 3 != 2;
            decided.push((xid.clone(), commit));
            match n % 4 {
                0 => txn.detach(),
                _ if commit => {
                    txn.commit_ordered(true);
                    db.run_jobs()?;
                    txn.commit()?;
                }
                _ => txn.rollback(),
            }
            if n % 4 == 0 {
                let done = if commit {
                    db.commit_by_xid(xid.as_bytes())
                } else {
                    db.rollback_by_xid(xid.as_bytes())
                };
                done?;
            }
            if n == 3 {
                db.checkpoint()?;
            }
        }
        db.flush_logs()?;
        Ok(())
    };
    let start = || {
        let vfs = disk(7);
        let db = open(&vfs).unwrap();
        db.create_table(&spec(T)).unwrap();
        db.close().unwrap();
        vfs
    };
    let mut ios = 0;
    for at in 1.. {
        let vfs = start();
        let mut decided = Vec::new();
        vfs.fail_io_after(at, FaultKind::Sticky);
        let finished = trace(&vfs, &mut decided).is_ok();
        let vfs = vfs.crash();
        let db = open(&vfs).unwrap();
        let open_xids = db.report_prepared(100);
        for (xid, commit) in &decided {
            // The coordinator resolves what is still open as it had decided.
            if open_xids.contains(&xid.as_bytes().to_vec()) {
                let done = if *commit {
                    db.commit_by_xid(xid.as_bytes())
                } else {
                    db.rollback_by_xid(xid.as_bytes())
                };
                assert!(done.unwrap());
            }
        }
        // What it never decided may be prepared; it rolls that back.
        for xid in db.report_prepared(100) {
            assert!(!decided.iter().any(|(name, _)| name.as_bytes() == xid), "resolved above");
            assert!(db.rollback_by_xid(&xid).unwrap());
        }
        let check = |db: &Arc<Db>| {
            for (xid, commit) in &decided {
                for row in 0..3 {
                    let found = read(db, &format!("{xid}-{row}")).is_some();
                    assert_eq!(found, *commit, "crash at {at}, transaction {xid}");
                }
            }
            let rows = 3 * decided.iter().filter(|(_, commit)| *commit).count() as u32;
            assert_eq!(count(db, T).unwrap(), rows, "crash at {at}");
            assert!(db.report_prepared(100).is_empty());
        };
        check(&db);
        drop(db);
        check(&open(&vfs.crash()).unwrap());
        if finished {
            break;
        }
        ios = at;
    }
    assert!(ios > 30, "{ios}");
}

#[test]
fn a_commit_that_nobody_remembers_is_durable_before_it_is_acknowledged() {
    for remembered in [true, false] {
        let (vfs, db, table) = world();
        let mut txn = db.begin();
        put(&mut txn, &table, "a", "1");
        txn.prepare(b"1").unwrap();
        txn.commit_ordered(remembered);
        txn.commit().unwrap();
        assert_eq!(read(&db, "a").as_deref(), Some("1"));
        drop((txn, table));
        let crashed = vfs.crash();
        drop(db);
        let db = open(&crashed).unwrap();
        assert_eq!(db.report_prepared(9).len(), usize::from(remembered));
        assert_eq!(read(&db, "a").is_none(), remembered);
    }
}

#[test]
fn short_commits_are_seen_once_they_are_ordered_unless_a_longer_one_is_before_them() {
    let vfs = disk(5);
    let lines = Lines::default();
    let files: Arc<dyn Vfs> = vfs.clone();
    let mut at_once = options(&lines);
    at_once.ordered_at_once_ops = 10;
    let db = Db::open_with_vfs(at_once, files.clone(), files).unwrap();
    db.create_table(&spec(T)).unwrap();
    let table = db.open_table(T).unwrap();
    let mut short = db.begin();
    put(&mut short, &table, "a", "1");
    short.prepare(b"1").unwrap();
    short.commit_ordered(true);
    assert_eq!(read(&db, "a").as_deref(), Some("1"));
    assert!(is_locked(&db, 0, "a"), "its locks are its own until it is over");
    short.commit().unwrap();
    assert!(!is_locked(&db, 0, "a"));
    let mut long = db.begin();
    for n in 0..10 {
        put(&mut long, &table, &format!("l{n}"), "1");
    }
    put(&mut short, &table, "b", "1");
    long.prepare(b"2").unwrap();
    short.prepare(b"3").unwrap();
    long.commit_ordered(true);
    short.commit_ordered(true);
    db.checkpoint().unwrap();
    assert_eq!((read(&db, "l0"), read(&db, "b")), (None, None));
    long.commit().unwrap();
    assert_eq!((read(&db, "l0").as_deref(), read(&db, "b").as_deref()), (Some("1"), Some("1")));
    // Dropped without its commit: that is made up for.
    drop(short);
    assert!(!is_locked(&db, 0, "b"));
    db.flush_logs().unwrap();
    let crashed = vfs.crash();
    drop((long, table, db));
    assert_eq!(count(&open(&crashed).unwrap(), T).unwrap(), 12);
}

#[test]
fn lazy_modes_may_lose_a_prepare_but_only_whole() {
    let vfs = disk(3);
    let lines = Lines::default();
    let files: Arc<dyn Vfs> = vfs.clone();
    let mut lazy = options(&lines);
    lazy.flush_mode = FlushMode::Lazy;
    let db = Db::open_with_vfs(lazy, files.clone(), files).unwrap();
    db.create_table(&TableSpec { ..spec(T) }).unwrap();
    let table = db.open_table(T).unwrap();
    let mut txn = db.begin();
    put(&mut txn, &table, "a", "1");
    txn.prepare(b"1").unwrap();
    drop((txn, table, db));
    let db = open_logging(&vfs.crash(), &lines).unwrap();
    assert!(db.report_prepared(9).is_empty());
    assert_eq!(count(&db, T).unwrap(), 0);
}

/// New rows of a table without a primary key took the keys of the rows that were prepared, and were gone when these
/// committed.
#[test]
fn hidden_keys_of_prepared_rows_are_not_given_out_again_after_a_restart() {
    let insert = |db: &Arc<Db>, value: &str| {
        let table = db.open_table(T).unwrap();
        let mut txn = db.begin();
        let key = table.next_hidden_key().unwrap().to_be_bytes();
        for dict in 0..2 {
            txn.put(&table, dict, &key, value.as_bytes(), LockWait::NoWait).unwrap();
        }
        txn
    };
    let (vfs, db, table) = world();
    insert(&db, "committed").commit().unwrap();
    insert(&db, "prepared").prepare(b"x").unwrap();
    drop((table, db));
    // As a run of its own, too.
    let mut settings = options(&Lines::default());
    settings.write_set_bytes = 1;
    let files: Arc<dyn Vfs> = vfs.crash();
    let db = Db::open_with_vfs(settings, files.clone(), files.clone()).unwrap();
    insert(&db, "spilled").prepare(b"y").unwrap();
    assert!(db.metrics().spills.get() > 0);
    drop(db);
    let db = Db::open_with_vfs(options(&Lines::default()), files.clone(), files).unwrap();
    assert_eq!(db.report_prepared(9).len(), 2);
    insert(&db, "new").commit().unwrap();
    assert!(db.commit_by_xid(b"y").unwrap());
    insert(&db, "newer").commit().unwrap();
    assert!(db.commit_by_xid(b"x").unwrap());
    assert_eq!(count(&db, T).unwrap(), 5);
}

/// The server may let go of the user's prepared transaction, and give its metadata locks away, long before the engine hears
/// of it: XA COMMIT of another connection found nothing, and was taken for done.
#[test]
fn a_prepared_transaction_that_cannot_be_read_keeps_the_others_working_and_can_be_rolled_back() {
    let mut damaged = 0;
    for n in 1.. {
        let vfs = disk(n);
        let db = open(&vfs).unwrap();
        db.create_table(&spec(T)).unwrap();
        db.create_table(&spec("./db/other")).unwrap();
        fill(&db, "./db/other", 0..10).unwrap();
        // When it comes back, its range lock is over the keys of the one that cannot be read.
        let (mut around, table) = (db.begin(), db.open_table(T).unwrap());
        ["a0", "a1", "a2", "c"].iter().for_each(|key| put(&mut around, &table, key, "0"));
        around.prepare(b"around").unwrap();
        drop((around, table, db));
        let mut settings = options(&Lines::default());
        settings.write_set_bytes = 1;
        let files: Arc<dyn Vfs> = vfs.clone();
        let db = Db::open_with_vfs(settings, files.clone(), files).unwrap();
        fill(&db, T, 0..200).unwrap();
        let table = db.open_table(T).unwrap();
        let mut txn = db.begin();
        put(&mut txn, &table, "a", "1");
        put(&mut txn, &table, "b", "1");
        txn.prepare(b"x").unwrap();
        drop((txn, table, db));
        let vfs = vfs.crash();
        let before = vfs.io_count();
        vfs.fail_io_after(n, FaultKind::FlippedRead);
        let mut settings = options(&Lines::default());
        settings.lock_budget = 2;
        let files: Arc<dyn Vfs> = vfs.clone();
        let db = Db::open_with_vfs(settings, files.clone(), files);
        let met = vfs.io_count() - before >= n;
        vfs.clear_faults();
        let db = match db {
            Ok(db) => db,
            // The log and the catalog are of all tables.
            Err(error) => {
                assert!(!error.to_string().contains("db/t.pando"), "read {n}: {error}");
                continue;
            }
        };
        assert_eq!(count(&db, "./db/other").unwrap(), 10);
        assert!(db.rollback_by_xid(b"around").unwrap());
        // Nothing takes the space of what is prepared, also of what could not be read.
        let _ = db.run_jobs();
        let _ = db.checkpoint();
        {
            let copy = open(&vfs.copy_after_power_loss()).unwrap();
            assert!(copy.commit_by_xid(b"x").unwrap(), "read {n}");
            assert_eq!(read(&copy, "a").as_deref(), Some("1"), "read {n}");
            assert_eq!(count(&copy, T).unwrap(), 202, "read {n}");
        }
        match db.commit_by_xid(b"x") {
            Ok(done) => assert!(done, "read {n}: it is forgotten"),
            Err(error) => {
                damaged += 1;
                assert!(matches!(error, Error::Engine(EngineError::Corruption { .. })), "read {n}: {error}");
                assert!(db.open_table(T).is_err() || is_locked(&db, 0, "b"), "read {n}");
                assert!(db.rollback_by_xid(b"x").unwrap());
                assert!(!db.rollback_by_xid(b"x").unwrap());
                if db.open_table(T).is_ok() {
                    assert!(!is_locked(&db, 0, "b"));
                    assert_eq!(read(&db, "a"), None);
                }
                drop(db);
                let db = open(&vfs.crash()).unwrap();
                assert_eq!(read(&db, "a"), None, "read {n}");
                fill(&db, T, 200..210).unwrap();
            }
        }
        if !met {
            break;
        }
    }
    assert!(damaged > 0, "no read of what was spilled");
}
