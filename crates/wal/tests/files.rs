//! Files: batches across their boundaries, trimming, recycling, restarting, reading for people.

mod common;

use common::{batch, collect, dir, open_with, owned, recover, seqnos, small, Owned};
use pando_base::{DictId, Error, Kind};
use pando_storage::vfs::{RealVfs, SimVfs, Vfs};
use pando_wal::{print, BatchBuilder, FlushMode, LogFileReader};

fn names(vfs: &SimVfs) -> Vec<String> {
    vfs.read_dir(&dir()).expect("the directory is there").into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_new_log_is_empty_and_begins_at_the_seqno_it_is_given() {
    let vfs = SimVfs::new(1);
    let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), small()).unwrap();
    assert_eq!(replay.oldest_seqno(), None);
    let (batches, end) = collect(&mut replay).unwrap();
    assert!(batches.is_empty() && end.last_seqno == 0 && end.torn.is_none());
    wal.start(500).unwrap();
    assert_eq!(wal.last_seqno(), 499);
    assert_eq!(wal.append(&batch(1, 1)).unwrap().seqno, 500);
    wal.sync_all().unwrap();
    let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
    assert_eq!(replay.oldest_seqno(), Some(500));
    assert_eq!(seqnos(&collect(&mut replay).unwrap().0), [500]);
}

#[test]
fn the_last_seqno_is_remembered_when_all_batches_were_trimmed() {
    let vfs = SimVfs::new(1);
    for life in 0..4u64 {
        let (wal, batches, _) = recover(&vfs).unwrap();
        assert_eq!(wal.last_seqno(), life * 10);
        assert!(batches.len() <= 10, "life {life}: trimmed files do not come back");
        for i in 0..10 {
            wal.append(&batch(i, 10)).unwrap();
        }
        wal.sync_all().unwrap();
        wal.trim(life * 10 + 1).unwrap();
    }
}

#[test]
fn a_batch_larger_than_a_log_file_survives_whole() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    wal.append(&batch(1, 100)).unwrap();
    let long = wal.append(&batch(2, 100_000)).unwrap();
    wal.append(&batch(3, 100)).unwrap();
    wal.wait(long.lsn, FlushMode::Commit).unwrap();
    assert!(wal.files().len() > 6);
    let (wal, batches, _) = recover(&vfs.crash()).unwrap();
    assert_eq!(batches[..2], [(1, owned(1, 100)), (2, owned(2, 100_000))]);
    // The files it began and continued in go together with it, not before.
    let count = wal.files().len();
    wal.trim(2).unwrap();
    assert_eq!(wal.files().len(), count);
    wal.trim(3).unwrap();
    assert!(wal.files().len() <= 2, "{:?}", wal.files());
}

#[test]
fn a_log_that_begins_within_a_trimmed_batch_replays_what_follows() {
    // A crash in the middle of trimming leaves files that continue a batch whose begin is gone.
    for removed in 1..7u64 {
        let vfs = SimVfs::new(1);
        let (wal, _, _) = recover(&vfs).unwrap();
        wal.append(&batch(1, 100_000)).unwrap();
        wal.append(&batch(2, 100)).unwrap();
        wal.sync_all().unwrap();
        for number in 1..=removed {
            vfs.remove_file(&dir().join(format!("pando-{number:06}.log"))).unwrap();
        }
        let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
        let (batches, end) = collect(&mut replay).unwrap();
        assert_eq!((seqnos(&batches), end.last_seqno), (vec![2], 2), "{removed} files gone");
        assert_eq!(replay.oldest_seqno(), Some(2));
    }
}

#[test]
fn trimmed_files_are_recycled_and_their_old_frames_never_come_back() {
    let vfs = SimVfs::new(1);
    let (wal, _, metrics) = recover(&vfs).unwrap();
    let mut most = 0;
    for i in 1..=400 {
        wal.append(&batch(i, 1000)).unwrap();
        if i % 10 == 0 {
            wal.sync_all().unwrap();
            wal.trim(i - 5).unwrap();
            most = most.max(names(&vfs).len());
            assert_eq!(metrics.log_kept_bytes.get(), wal.kept_bytes());
        }
    }
    assert!(most <= 5, "files pile up: {most}");
    assert!(wal.files().last().unwrap().number > 30);
    let spares = names(&vfs).iter().filter(|name| name.starts_with("spare-")).count();
    assert!((1..=2).contains(&spares), "{:?}", names(&vfs));
    let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
    let (batches, end) = collect(&mut replay).unwrap();
    assert!(end.torn.is_none(), "old frames look torn: {:?}", end.torn);
    assert_eq!(end.last_seqno, 400);
    assert!(batches.iter().all(|(seqno, entries)| *entries == owned(*seqno, 1000)));
    assert!(seqnos(&batches).first().is_some_and(|first| *first <= 395));
}

#[test]
fn a_restart_gives_back_the_space_behind_the_end_of_the_old_file() {
    let vfs = SimVfs::new(1);
    for _ in 0..50 {
        let (wal, _, _) = recover(&vfs).unwrap();
        wal.append(&batch(1, 10)).unwrap();
        wal.sync_all().unwrap();
    }
    let files = 50 * 8192;
    assert!(vfs.used_bytes() <= files + 3 * small().file_bytes, "{}", vfs.used_bytes());
    let (_, batches, _) = recover(&vfs).unwrap();
    assert!(seqnos(&batches).into_iter().eq(1..=50));
}

#[test]
fn other_files_in_the_directory_are_left_alone() {
    let vfs = SimVfs::new(1);
    recover(&vfs).unwrap();
    for name in ["catalog.pando", "pando-1.log", "pando-00000x.log", "pando-000001.log.bak"] {
        vfs.open(&dir().join(name), pando_storage::vfs::OpenMode::Create).unwrap();
    }
    recover(&vfs).unwrap();
    assert!(names(&vfs).len() >= 6);
}

#[test]
fn a_callbacks_error_stops_the_pass_and_another_pass_may_follow() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    for i in 1..=5 {
        wal.append(&batch(i, 10)).unwrap();
    }
    wal.sync_all().unwrap();
    let (_, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
    let mut seen = 0;
    let stopped = replay.for_each(|seqno, _| {
        seen = seqno;
        if seqno == 3 {
            Err(Error::NotFound { what: "x".into() })
        } else {
            Ok(())
        }
    });
    assert!(matches!(stopped, Err(Error::NotFound { .. })) && seen == 3);
    assert_eq!(collect(&mut replay).unwrap().0.len(), 5);
}

#[test]
fn a_file_can_be_printed_and_read_with_places() {
    let vfs = SimVfs::new(1);
    let (wal, _, _) = recover(&vfs).unwrap();
    let mut first = BatchBuilder::new();
    first.record(DictId(7), Kind::Put, b"\x01\xff", b"value");
    first.record(DictId(7), Kind::Delete, &[9; 40], b"");
    first.truncate(DictId(8));
    first.auto_increment(DictId(7), 12);
    wal.append(&first).unwrap();
    wal.append(&batch(2, 20_000)).unwrap();
    wal.sync_all().unwrap();

    let path = dir().join("pando-000001.log");
    let mut text = String::new();
    print(&*vfs, &path, &pando_storage::encryption::KeyRing::empty(), &mut text).unwrap().unwrap();
    let expected = "\
log file 1: from lsn 0 and seqno 1
seqno 1 at offset 4096 (lsn 0): 59 bytes in 1 frames
  dict 7 put 01ff (5 bytes)
  dict 7 delete 0909090909090909090909090909090909090909090909090909090909090909... of 40 bytes
  dict 8 truncate
  dict 7 auto-increment 12
end at offset 13504
unfinished batch at offset 4192
";
    assert_eq!(text, expected);

    let mut reader = LogFileReader::open(&*vfs, &dir().join("pando-000002.log")).unwrap();
    assert!(reader.head().continues && reader.head().number == 2);
    assert!(reader.next_batch().unwrap().is_none());
    assert_eq!(reader.end().continued_frames, 4);
}

#[test]
fn a_log_in_real_files_survives_reopening() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("deep").join("#pando");
    for life in 0..5u64 {
        let (wal, mut replay, _) = open_with(RealVfs::new(false), &dir, small()).unwrap();
        let (batches, end) = collect(&mut replay).unwrap();
        assert_eq!(end.last_seqno, life * 30);
        assert!(batches.iter().all(|(seqno, entries)| *entries == owned(*seqno, 700)));
        wal.start(end.last_seqno + 1).unwrap();
        for i in 1..=30 {
            let seqno = life * 30 + i;
            let got = wal.append(&batch(seqno, 700)).unwrap();
            assert_eq!(got.seqno, seqno);
            wal.wait(got.lsn, FlushMode::from_number(seqno % 3).unwrap()).unwrap();
        }
        wal.sync_up_to_seqno(life * 30 + 30).unwrap();
        wal.trim(life * 30).unwrap();
        wal.tick().unwrap();
    }
}

#[test]
fn owned_entries_are_equal_to_what_was_written() {
    // Guards the helpers that the other tests rely on.
    assert_eq!(owned(1, 2), [Owned::Record(DictId(1), Kind::Put, 1u64.to_be_bytes().to_vec(), vec![1, 32])]);
}
