//! Failing disks, full disks and rotten bits (I8).

mod common;

use common::{batch, collect, dir, is_read_only, open_with, owned, recover, seqnos, small};
use pando_base::{DictId, Error, Kind};
use pando_storage::vfs::{FaultKind, OpenMode, SimVfs, Vfs};
use pando_wal::{BatchBuilder, BatchKind, FlushMode, WalOptions, NOTE_OF_NEXT_FILE};

const HEAD_BYTES: u64 = 4096;

#[test]
fn a_failing_sync_latches_the_log_and_everything_after_it_says_why() {
    let vfs = SimVfs::new(1);
    let (wal, _, metrics) = recover(&vfs).unwrap();
    let durable = wal.append(&batch(1, 100)).unwrap();
    wal.wait(durable.lsn, FlushMode::Commit).unwrap();
    let doubtful = wal.append(&batch(2, 100)).unwrap();
    wal.wait(doubtful.lsn, FlushMode::Write).unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    let error = wal.wait(doubtful.lsn, FlushMode::Commit).unwrap_err();
    assert!(
        is_read_only(&error) && error.to_string().contains("sync of /data/#pando/pando-000001.log"),
        "{error}"
    );
    // The disk works again, and still nothing is believed.
    assert!(is_read_only(&wal.wait(doubtful.lsn, FlushMode::Commit).unwrap_err()));
    assert!(is_read_only(&wal.wait(doubtful.lsn, FlushMode::Lazy).unwrap_err()));
    assert!(is_read_only(&wal.append(&batch(3, 1)).unwrap_err()));
    assert!(is_read_only(&wal.tick().unwrap_err()));
    assert!(is_read_only(&wal.sync_up_to_seqno(2).unwrap_err()));
    assert!(wal.failed().is_some_and(|error| is_read_only(&error)));
    assert_eq!(metrics.read_only_latched.get(), 1);
    // What was durable before stays durable.
    wal.wait(durable.lsn, FlushMode::Commit).unwrap();
    wal.sync_up_to_seqno(1).unwrap();
}

#[test]
fn a_failing_write_latches_the_log() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    let got = wal.append(&batch(1, 100)).unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    let error = wal.wait(got.lsn, FlushMode::Write).unwrap_err();
    assert!(is_read_only(&error) && error.to_string().contains("write of"), "{error}");
    assert!(wal.failed().is_some());
}

#[test]
fn a_passing_shortage_passes_at_every_io() {
    for n in 1.. {
        let vfs = SimVfs::new(n);
        let (wal, _, metrics) = recover(&vfs).unwrap();
        let before = vfs.io_count();
        vfs.fail_io_after(n, FaultKind::Shortage);
        let mut expected = Vec::new();
        for i in 1..=60 {
            // An append that got no place in the log is made again; what has one waits and gets through.
            let got = wal.append(&batch(i, 1000)).or_else(|error| {
                assert!(error.is_shortage(), "at I/O {n}: {error}");
                wal.append(&batch(i, 1000))
            });
            let got = got.unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap_or_else(|error| panic!("at I/O {n}: {error}"));
            expected.push((got.seqno, owned(i, 1000)));
            if i == 40 && wal.trim(20).is_err() {
                wal.trim(20).unwrap();
            }
        }
        assert!(wal.failed().is_none() && metrics.read_only_latched.get() == 0);
        let met = vfs.io_count() - before >= n;
        let (_, survivors, _) = recover(&vfs.crash()).unwrap();
        assert!(survivors.len() >= 40 && expected.ends_with(&survivors), "at I/O {n}");
        if !met {
            return;
        }
    }
}

#[test]
fn a_new_file_lets_all_others_go() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    for i in 1..=40 {
        let got = wal.append(&batch(i, 1000)).unwrap();
        wal.wait(got.lsn, FlushMode::Commit).unwrap();
    }
    wal.begin_new_file().unwrap();
    wal.trim(41).unwrap();
    assert_eq!(wal.files().len(), 1);
    let number = wal.files()[0].number;
    wal.begin_new_file().unwrap();
    assert_eq!(wal.files()[0].number, number, "an empty file is new enough");
    drop(wal);
    let vfs = vfs.crash();
    let (wal, batches, _) = recover(&vfs).unwrap();
    assert!(batches.is_empty());
    let got = wal.append(&batch(41, 10)).unwrap();
    assert_eq!(got.seqno, 41);
    wal.wait(got.lsn, FlushMode::Commit).unwrap();
    let (_, batches, _) = recover(&vfs.crash()).unwrap();
    assert_eq!(seqnos(&batches), [41]);
}

/// The newest file is gone, and the one before it is whole: its commits must not be missed without a word. What a copy has up to
/// a place before that file began is whole.
#[test]
fn a_lost_last_file_is_missed() {
    for crashes in [false, true] {
        let vfs = SimVfs::new(1);
        let (wal, _, _) = recover(&vfs).unwrap();
        let mut expected = Vec::new();
        for i in 1..=60 {
            let got = wal.append(&batch(i, 1000)).unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap();
            expected.push(i);
        }
        drop(wal);
        // A start begins a file, too.
        let vfs = vfs.crash();
        let (wal, batches, _) = recover(&vfs).unwrap();
        assert_eq!(seqnos(&batches), expected);
        let got = wal.append(&batch(61, 10)).unwrap();
        wal.wait(got.lsn, FlushMode::Commit).unwrap();
        let files = wal.files();
        assert!(files.len() > 2, "{files:?}");
        drop(wal);
        let vfs = if crashes { vfs.crash() } else { vfs };
        for lost in [files.len() - 1, files.len() - 2] {
            let path = &files[lost].path;
            vfs.remove_file(path).unwrap();
            let Err(error) = recover(&vfs) else { panic!("{} was not missed", path.display()) };
            assert!(matches!(&error, Error::Corruption { .. }), "{error}");
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
        // The file that is the last now, cut before the place where the lost one began, as a backup has it.
        let last = &files[files.len() - 3];
        let file = vfs.open(&last.path, OpenMode::Existing).unwrap();
        file.set_len(last.bytes - 1200).unwrap();
        let (_, batches, _) = recover(&vfs).unwrap();
        assert!(!batches.is_empty() && expected.starts_with(&seqnos(&batches)), "{:?}", seqnos(&batches));
    }
}

#[test]
fn trimmed_files_are_not_missed_and_lost_ones_are() {
    for begins_anew in [false, true] {
        let vfs = SimVfs::new(1);
        let (wal, _, _) = recover(&vfs).unwrap();
        // Files are recycled, with what they noted in their lives before.
        for i in 1..=300 {
            let got = wal.append(&batch(i, 1000)).unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap();
            if i % 30 == 0 {
                wal.trim(i - 20).unwrap();
            }
        }
        let (trimmed, last) = (wal.files()[0].number - 1, 300 + u64::from(begins_anew));
        assert!(trimmed > 10, "{trimmed}");
        if begins_anew {
            // As at a clean shutdown: one file with nothing in it is left.
            wal.begin_new_file().unwrap();
            wal.trim(301).unwrap();
            assert_eq!(wal.files().len(), 1);
            let got = wal.append(&batch(301, 10)).unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap();
        }
        drop(wal);
        let vfs = vfs.crash();
        let (wal, batches, _) = recover(&vfs).unwrap();
        assert_eq!(seqnos(&batches).last(), Some(&last));
        let got = wal.append(&batch(last + 1, 10)).unwrap();
        wal.wait(got.lsn, FlushMode::Commit).unwrap();
        let files = wal.files();
        drop(wal);
        for file in files.iter().skip(1) {
            let (vfs, path) = (vfs.copy_after_clean_stop(), &file.path);
            vfs.remove_file(path).unwrap();
            let Err(error) = recover(&vfs) else { panic!("{} was not missed", path.display()) };
            assert!(matches!(&error, Error::Corruption { .. }), "{error}");
        }
        // The oldest may be away, as far as the log knows: what it had may be trimmed.
        vfs.remove_file(&files[0].path).unwrap();
        let (_, batches, _) = recover(&vfs).unwrap();
        assert_eq!(seqnos(&batches).last(), Some(&(last + 1)));
    }
}

#[test]
fn a_copy_that_ends_where_a_file_begins_meanwhile_lacks_nothing() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    (1..=20).for_each(|i| _ = wal.append(&batch(i, 1000)).unwrap());
    wal.sync_all().unwrap();
    wal.hold();
    let (end, last_seqno) = wal.end();
    let listed = wal.files_up_to(end).unwrap();
    wal.begin_new_file().unwrap();
    assert!(wal.append(&batch(21, 10)).is_ok_and(|got| wal.wait(got.lsn, FlushMode::Commit).is_ok()));
    for leaves_note_out in [true, false] {
        let copy = SimVfs::new(2);
        copy.create_dir_all(&dir()).unwrap();
        for file in &listed {
            let mut bytes = vec![0; usize::try_from(file.bytes).unwrap()];
            vfs.open(&file.path, OpenMode::Existing).unwrap().read_exact_at(&mut bytes, 0).unwrap();
            if leaves_note_out {
                bytes[NOTE_OF_NEXT_FILE.start as usize..NOTE_OF_NEXT_FILE.end as usize].fill(0);
            }
            copy.open(&file.path, OpenMode::Create).unwrap().write_at(&bytes, 0).unwrap();
        }
        match recover(&copy) {
            Ok((_, batches, _)) => assert!(leaves_note_out && seqnos(&batches).last() == Some(&last_seqno)),
            Err(error) => assert!(!leaves_note_out, "{error}"),
        }
    }
}

#[test]
fn what_was_prepared_can_be_resolved_on_a_full_disk() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    let mut prepared = Vec::new();
    let prepare = |n: u64| {
        let mut batch = BatchBuilder::new();
        batch.prepare(&n.to_be_bytes());
        batch.record(DictId(1), Kind::Put, &n.to_be_bytes(), &[7; 40]);
        wal.append_prepare(&batch)
    };
    for n in 0..500 {
        prepared.push(prepare(n).unwrap().seqno);
    }
    vfs.set_capacity(Some(vfs.used_bytes() + 100_000));
    let error = loop {
        match prepare(0) {
            Ok(got) => prepared.push(got.seqno),
            Err(error) => break error,
        }
        wal.tick().unwrap();
    };
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert!(prepared.len() > 700, "{}", prepared.len());
    // Others fill what is left; the small batches that resolve find their place all the same.
    let mut n = 0;
    while wal.append(&batch(n, 20)).is_ok() {
        n += 1;
        wal.sync_all().unwrap();
    }
    let resolved = prepared.len() as u64;
    for (i, seqno) in prepared.into_iter().enumerate() {
        let batch = match i % 2 {
            0 => BatchBuilder::commit_prepared(seqno),
            _ => BatchBuilder::rollback_prepared(seqno),
        };
        wal.append_resolution(&batch).unwrap();
        wal.tick().unwrap();
    }
    let last = wal.last_seqno();
    let (_, mut replay, _) = open_with(vfs.crash(), &dir(), small()).unwrap();
    let mut kinds = [0u64; 2];
    let end = replay.for_each(|_, entries| {
        match entries.kind() {
            BatchKind::Prepare { .. } | BatchKind::PrepareAnew { .. } => kinds[0] += 1,
            BatchKind::CommitPrepared { .. } | BatchKind::RollbackPrepared { .. } => kinds[1] += 1,
            BatchKind::Commit => {}
        }
        Ok(())
    });
    assert_eq!((end.unwrap().last_seqno, kinds), (last, [resolved, resolved]));
}

#[test]
fn what_makes_space_finds_a_reserve_on_a_full_disk() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    vfs.set_capacity(Some(vfs.used_bytes() + 100_000));
    // Wherever in a file the others end.
    for filler in [20, 333, 1000, 2500] {
        let mut n = 0;
        let error = loop {
            n += 1;
            match wal.append(&batch(n, filler)) {
                Ok(_) => wal.sync_all().unwrap(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        // A quarter of a file.
        for n in 0..3 {
            wal.append_from_reserve(&batch(n, 1000)).unwrap();
            wal.tick().unwrap();
        }
        assert!(matches!(wal.append(&batch(1, 20)), Err(Error::DiskFull { .. })), "it is refilled first");
        wal.sync_all().unwrap();
        wal.trim(wal.last_seqno()).unwrap();
    }
}

#[test]
fn a_full_disk_is_an_ordinary_error_and_the_log_goes_on_once_there_is_space() {
    let vfs = SimVfs::new(1);
    let (wal, _, metrics) = recover(&vfs).unwrap();
    vfs.set_capacity(Some(vfs.used_bytes() + 20_000));
    let mut written = 0;
    let error = loop {
        match wal.append(&batch(written + 1, 1000)) {
            Ok(got) => {
                wal.wait(got.lsn, FlushMode::Commit).unwrap();
                written = got.seqno;
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert!(written >= 18, "the space that was there was used, but for the reserve: {written}");
    assert!(wal.failed().is_none() && wal.last_seqno() == written && metrics.read_only_latched.get() == 0);
    // A batch of several files leaves nothing behind when there is no space for all of them.
    let used = vfs.used_bytes();
    assert!(matches!(wal.append(&batch(0, 100_000)), Err(Error::DiskFull { .. })));
    assert!(vfs.used_bytes() <= used + 2 * small().file_bytes);
    wal.tick().unwrap();
    // Space by trimming, then by a bigger disk.
    wal.trim(written).unwrap();
    let got = wal.append(&batch(written + 1, 1000)).unwrap();
    vfs.set_capacity(None);
    wal.append(&batch(written + 2, 100_000)).unwrap();
    wal.sync_all().unwrap();
    let (_, survivors, _) = recover(&vfs.crash()).unwrap();
    assert_eq!(survivors.last().unwrap(), &(got.seqno + 1, owned(written + 2, 100_000)));
}

#[test]
fn the_log_starts_on_a_nearly_full_disk_with_a_short_file() {
    // Symptom: after kill -9 on a full disk the engine did not start until there was room for a whole log file.
    let vfs = SimVfs::new(1);
    let large = WalOptions { file_bytes: 1 << 20, ..small() };
    let start = |vfs: &std::sync::Arc<SimVfs>| {
        let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), large.clone()).unwrap();
        let mut found = 0;
        let end = replay.for_each(|_, entries| {
            found += u64::from(matches!(entries.kind(), BatchKind::Commit));
            Ok(())
        });
        wal.start(end.unwrap().last_seqno + 1).map(|()| (wal, found))
    };
    let (wal, _) = start(&vfs).unwrap();
    wal.append(&batch(1, 100)).unwrap();
    wal.sync_all().unwrap();
    let mut vfs = vfs.crash();
    let mut written = 1;
    for room in [200_000, 100_000, 20_000] {
        vfs.set_capacity(Some(vfs.used_bytes() + room));
        let (wal, found) = start(&vfs).unwrap();
        assert_eq!(found, written, "all that was written before");
        let before = written;
        let error = loop {
            match wal.append(&batch(written + 1, 50)) {
                Ok(got) => wal.wait(got.lsn, FlushMode::Commit).unwrap(),
                Err(error) => break error,
            }
            written += 1;
            wal.tick().unwrap();
        };
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        assert!(written > before, "the short file takes some with {room} bytes of room");
        vfs = vfs.crash();
    }
    // A resolution finds its place in a short file, too, and with room whole files follow.
    vfs.set_capacity(None);
    let (wal, found) = start(&vfs).unwrap();
    assert_eq!(found, written);
    wal.append(&batch(1, 100_000)).unwrap();
    wal.sync_all().unwrap();
    let vfs = vfs.crash();
    assert_eq!(start(&vfs).unwrap().1, written + 1);
    // Without any room at all it is said.
    let vfs = vfs.crash();
    for entry in vfs.read_dir(&dir()).unwrap() {
        if entry.name.starts_with("spare-") {
            vfs.remove_file(&dir().join(&entry.name)).unwrap();
        }
    }
    vfs.set_capacity(Some(vfs.used_bytes()));
    assert!(matches!(start(&vfs).map(|_| ()), Err(Error::DiskFull { .. })));
}

#[test]
fn a_flipped_bit_in_the_durable_middle_is_corruption_with_file_and_offset() {
    // Each batch is 32 + 8 * 14 bytes: the third begins at 4096 + 2 * 144.
    for (bit_at, bit) in [(HEAD_BYTES + 288 + 1, 3), (HEAD_BYTES + 288 + 17, 0), (HEAD_BYTES + 288 + 60, 7)] {
        let vfs = SimVfs::new(1);
        let (wal, _, _) = recover(&vfs).unwrap();
        for i in 1..=6 {
            let got = wal.append(&batch(i, 100)).unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap();
        }
        drop(wal);
        let path = dir().join("pando-000001.log");
        vfs.flip_bit(&path, bit_at, bit);
        let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
        match collect(&mut replay).unwrap_err() {
            Error::Corruption { path: found, offset, .. } => {
                assert_eq!((found, offset), (path, HEAD_BYTES + 288), "bit at {bit_at}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_flipped_bit_in_the_last_batch_of_an_idle_log_is_corruption_because_of_the_mark() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    let got = wal.append(&batch(1, 100)).unwrap();
    wal.wait(got.lsn, FlushMode::Commit).unwrap();
    wal.tick().unwrap();
    let (written, io) = (wal.kept_bytes(), vfs.io_count());
    wal.tick().unwrap();
    assert_eq!(vfs.io_count(), io + 1, "one sync of the mark");
    wal.tick().unwrap();
    assert_eq!((wal.kept_bytes(), vfs.io_count()), (written, io + 1), "an idle log is left alone");
    vfs.flip_bit(&dir().join("pando-000001.log"), HEAD_BYTES + 50, 1);
    let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
    assert!(matches!(collect(&mut replay), Err(Error::Corruption { offset: HEAD_BYTES, .. })));
}

#[test]
fn every_flipped_bit_of_a_log_of_several_files_is_found_or_harmless() {
    let options = || WalOptions { file_bytes: 16 << 10, ..small() };
    let build = || {
        let vfs = SimVfs::new(3);
        let (wal, _, _) = recover(&vfs).unwrap();
        for i in 1..=20 {
            let got = wal.append(&batch(i, 1500)).unwrap();
            wal.wait(got.lsn, FlushMode::Commit).unwrap();
        }
        wal.tick().unwrap();
        vfs
    };
    let whole: Vec<u64> = (1..=20).collect();
    let vfs = build();
    for file in 1..=3u64 {
        let path = dir().join(format!("pando-{file:06}.log"));
        for at in (0..16 << 10).step_by(7) {
            let bit = (at % 8) as u8;
            vfs.flip_bit(&path, at, bit);
            let result =
                open_with(vfs.clone(), &dir(), options()).and_then(|(_, mut replay, _)| collect(&mut replay));
            match result {
                Ok((batches, _)) => assert_eq!(seqnos(&batches), whole, "file {file}, byte {at}"),
                Err(Error::Corruption { path: found, .. }) => assert_eq!(found, path, "byte {at}"),
                Err(other) => panic!("{other}"),
            }
            vfs.flip_bit(&path, at, bit);
        }
    }
}

#[test]
fn a_read_that_lies_is_never_taken_for_the_end_of_the_log() {
    let vfs = SimVfs::new(5);
    let (wal, _, _) = recover(&vfs).unwrap();
    for i in 1..=20 {
        wal.append(&batch(i, 1500)).unwrap();
    }
    wal.tick().unwrap();
    for kind in [FaultKind::ShortRead, FaultKind::FlippedRead, FaultKind::Error] {
        for n in 1..20 {
            vfs.fail_io_after(n, kind);
            let result =
                open_with(vfs.clone(), &dir(), small()).and_then(|(_, mut replay, _)| collect(&mut replay));
            vfs.clear_faults();
            if let Ok((batches, _)) = result {
                assert_eq!(batches.len(), 20, "{kind:?} at I/O {n}");
            }
        }
    }
}

#[test]
fn a_missing_file_in_the_middle_is_corruption() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    for i in 1..=40 {
        wal.append(&batch(i, 1000)).unwrap();
    }
    wal.sync_all().unwrap();
    vfs.remove_file(&dir().join("pando-000002.log")).unwrap();
    let error = open_with(vfs, &dir(), small()).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, Error::Corruption { .. }) && error.to_string().contains("pando-000003"),
        "{error}"
    );
}
