//! Encrypted batches: what the log's files show, and what replay gives with the key, without it and with another.
#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

mod common;

use std::sync::Arc;

use common::{batch, collect, dir, open_with, owned, small, Owned};
use pando_base::{DictId, Error, Kind};
use pando_storage::encryption::{KeyList, KeyRing, SecretKey};
use pando_storage::vfs::{OpenMode, SimVfs, Vfs};
use pando_storage::Place;
use pando_wal::{print, BatchBuilder, BatchKind, FlushMode, WalOptions};

const SECRET: &[u8] = b"nobody reads this";

fn keys(versions: &[(u32, u8)]) -> KeyRing {
    let list = versions.iter().fold(KeyList::new(), |list, (version, byte)| {
        list.with(1, *version, SecretKey::new(vec![*byte; 32]))
    });
    KeyRing::new(Arc::new(list))
}

fn with_keys(keys: KeyRing) -> WalOptions {
    WalOptions { keys, ..small() }
}

fn secret(n: u64) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    batch.record(DictId(9), Kind::Put, &n.to_be_bytes(), SECRET);
    batch.keep_secret();
    batch
}

fn owned_secret(n: u64) -> Vec<Owned> {
    vec![Owned::Record(DictId(9), Kind::Put, n.to_be_bytes().to_vec(), SECRET.to_vec())]
}

/// All bytes of all files.
fn all_bytes(vfs: &Arc<SimVfs>) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in vfs.read_dir(&dir()).unwrap() {
        let file = vfs.open(&dir().join(entry.name), OpenMode::Existing).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        all.extend(bytes);
    }
    all
}

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}

#[test]
fn secret_batches_are_encrypted_and_come_back_with_the_key_also_when_it_was_rotated() {
    let vfs = SimVfs::new(1);
    let mut expected = Vec::new();
    for (life, ring) in [keys(&[(1, 1)]), keys(&[(1, 1), (2, 2)])].into_iter().enumerate() {
        let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(ring)).unwrap();
        let (batches, end) = collect(&mut replay).unwrap();
        assert_eq!(batches, expected, "life {life}");
        wal.start(end.last_seqno + 1).unwrap();
        for n in 0..40 {
            // Some of several frames.
            let (secret, entries) = match n % 3 {
                0 => (batch(n, 5), owned(n, 5)),
                1 => (secret(n), owned_secret(n)),
                _ => {
                    let mut long = batch(n, 20_000);
                    long.keep_secret();
                    (long, owned(n, 20_000))
                }
            };
            let appended = wal.append(&secret).unwrap();
            expected.push((appended.seqno, entries));
            wal.wait(appended.lsn, FlushMode::Commit).unwrap();
        }
    }
    assert_eq!(count(&all_bytes(&vfs), SECRET), 0);
    let (_, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(keys(&[(1, 1), (2, 2)]))).unwrap();
    assert_eq!(collect(&mut replay).unwrap().0, expected);
    for (ring, reason) in [
        (KeyRing::empty(), "no keys are given"),
        (keys(&[(1, 1)]), "version 2: there is no such key"),
        (keys(&[(1, 1), (2, 3)]), "another key"),
    ] {
        let (_, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(ring)).unwrap();
        let error = collect(&mut replay).unwrap_err();
        assert!(matches!(error, Error::Key { key_id: 1, .. }) && !error.is_damage(), "{error}");
        let text = error.to_string();
        assert!(text.contains(reason) && text.contains("/data/#pando/pando-0"), "{text}");
    }
}

#[test]
fn a_log_that_encrypts_all_does_so_with_batches_that_do_not_ask_for_it_and_only_with_a_key() {
    let vfs = SimVfs::new(1);
    let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(keys(&[(1, 1)]))).unwrap();
    let (_, end) = collect(&mut replay).unwrap();
    wal.start(end.last_seqno + 1).unwrap();
    let mut plain = BatchBuilder::new();
    plain.record(DictId(9), Kind::Put, b"k", SECRET);
    for (all, found) in [(false, 1), (true, 1), (false, 2)] {
        wal.encrypt_all(all).unwrap();
        wal.append(&plain).unwrap();
        wal.sync_all().unwrap();
        assert_eq!(count(&all_bytes(&vfs), SECRET), found);
    }
    let vfs = SimVfs::new(1);
    let (wal, mut replay, _) = open_with(vfs, &dir(), small()).unwrap();
    let (_, end) = collect(&mut replay).unwrap();
    wal.start(end.last_seqno + 1).unwrap();
    wal.encrypt_all(true).unwrap_err();
    wal.append(&plain).unwrap();
    let error = wal.append(&secret(1)).unwrap_err();
    assert!(matches!(error, Error::Key { .. }), "{error}");
    assert_eq!(wal.append(&plain).unwrap().seqno, 2, "it got no seqno, and the log goes on");
}

#[test]
fn without_the_key_a_backup_learns_what_is_prepared_and_where_adopted_runs_are() {
    let vfs = SimVfs::new(1);
    let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(keys(&[(1, 1)]))).unwrap();
    let (_, end) = collect(&mut replay).unwrap();
    wal.start(end.last_seqno + 1).unwrap();
    let places = vec![Place { offset: 16384, len: 4096 }, Place { offset: 1 << 40, len: 8192 }];
    let mut prepared = BatchBuilder::new();
    prepared.prepare(b"xid");
    prepared.adopt(DictId(12), SECRET, &places);
    prepared.keep_secret();
    let seqno = wal.append_prepare(&prepared).unwrap().seqno;
    wal.append_resolution(&BatchBuilder::commit_prepared(seqno)).unwrap();
    wal.sync_all().unwrap();
    assert_eq!(count(&all_bytes(&vfs), SECRET), 0);

    let (_, mut replay, _) = open_with(vfs.clone(), &dir(), small()).unwrap();
    replay.without_keys();
    let mut seen = 0;
    replay
        .for_each(|_, batch| {
            seen += 1;
            if seen == 1 {
                assert_eq!(batch.kind(), BatchKind::Prepare { xid: b"xid" });
                assert_eq!(batch.sealed().unwrap().adopted().unwrap(), [(DictId(12), places.clone())]);
                assert_eq!(batch.count(), 0);
            } else {
                assert_eq!(batch.kind(), BatchKind::CommitPrepared { prepare: seqno });
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, 2);
    let path = dir().join("pando-000001.log");
    for (ring, has_entries) in [(KeyRing::empty(), false), (keys(&[(1, 1)]), true)] {
        let mut text = String::new();
        print(&*vfs, &path, &ring, &mut text).unwrap().unwrap();
        assert!(text.contains("encrypted with key 1, version 1: "), "{text}");
        assert_eq!(text.contains("dict 12 adopt"), has_entries, "{text}");
    }
}

#[test]
fn a_changed_bit_behind_right_checksums_is_refused() {
    // A batch as its frame has it, with every bit changed: replay of the batch alone, so that checksums do not come first.
    let vfs = SimVfs::new(1);
    let (wal, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(keys(&[(1, 1)]))).unwrap();
    collect(&mut replay).unwrap();
    wal.start(1).unwrap();
    wal.append(&secret(1)).unwrap();
    wal.sync_all().unwrap();
    let path = dir().join("pando-000001.log");
    let file = vfs.open(&path, OpenMode::Existing).unwrap();
    let mut head = [0; 32];
    file.read_exact_at(&mut head, 4096).unwrap();
    let len = (u32::from_le_bytes(head[4..8].try_into().unwrap()) & 0xff_ffff) as usize;
    let mut payload = vec![0; len];
    file.read_exact_at(&mut payload, 4096 + 32).unwrap();
    let mut page = [0; 56];
    file.read_exact_at(&mut page, 0).unwrap();
    let (salt, start_lsn) = (
        u64::from_le_bytes(page[24..32].try_into().unwrap()),
        u64::from_le_bytes(page[32..40].try_into().unwrap()),
    );
    for bit in 0..len * 8 {
        let mut changed = payload.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let mut head = head;
        head[8..16].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(&changed).to_le_bytes());
        let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&head[4..], salt.wrapping_add(start_lsn)) as u32;
        head[..4].copy_from_slice(&sum.to_le_bytes());
        file.write_at(&head, 4096).unwrap();
        file.write_at(&changed, 4096 + 32).unwrap();
        let (_, mut replay, _) = open_with(vfs.clone(), &dir(), with_keys(keys(&[(1, 1)]))).unwrap();
        let error = collect(&mut replay).expect_err(&format!("bit {bit}"));
        assert!(matches!(error, Error::Key { .. } | Error::Corruption { .. }), "{error}");
    }
}
