//! The decoders of this crate, for `pando-fuzz`: of batches, and of whole logs.
//!
//! An input of [`log`](accepts_log) is a flag byte and log files, each of them a part: its head, the note of the next file, and frames. The
//! flags say which checksums are made right again: of heads of files and frames (1), of payloads (2).
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;
use std::sync::Arc;

use pando_base::fuzz::{put_part, take_part, Target};
use pando_base::{DictId, Kind, Metrics, Result, Seqno};
use pando_storage::encryption::{KeyList, KeyRing, SecretKey};
use pando_storage::vfs::{OpenMode, SimVfs, Vfs};
use pando_storage::Place;
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::{BatchBuilder, BatchReader};
use crate::frame::{frame_bytes, payload_checksum, FrameHead, FRAME_HEAD_BYTES};
use crate::header::{COVERED_BYTES, FILE_HEAD_BYTES, NOTE_OF_NEXT_FILE, USED_BYTES};
use crate::{files, print, FlushMode, Wal, WalOptions, LOG_KEY_ID};

const DIR: &str = "/log";
const DICT: DictId = DictId(7);

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "log-batch",
            reads: "the entries of a commit, encrypted or not (wal/src/batch.rs, wal/src/sealed.rs)",
            seeds: batch_seeds,
            accepts: accepts_batch,
        },
        Target {
            name: "log",
            reads: "log files: heads, frames, batches of several frames; replayed, printed and gone on with (wal/src/replay.rs)",
            seeds: log_seeds,
            accepts: accepts_log,
        },
    ]
}

fn keys() -> KeyRing {
    KeyRing::new(Arc::new(KeyList::new().with(LOG_KEY_ID, 1, SecretKey::new(vec![9; 32]))))
}

/// Batches with every kind of entry, and of every kind.
fn batches() -> Vec<BatchBuilder> {
    let mut all = BatchBuilder::new();
    all.record(DICT, Kind::Put, b"key", b"a value");
    all.record(DICT, Kind::Delete, b"other", b"");
    all.auto_increment(DICT, 300);
    all.delete_range(DICT, b"a", Some(b"b"));
    all.delete_range(DICT, b"c", None);
    all.truncate(DictId(300));
    all.adopt(DICT, b"a run", &[Place { offset: 16384, len: 4096 }]);
    let mut secret = all.clone();
    secret.keep_secret();
    let mut prepared = BatchBuilder::new();
    prepared.prepare(b"xid");
    prepared.record(DICT, Kind::Put, b"k", b"v");
    let mut anew = BatchBuilder::new();
    anew.prepare_anew(b"xid", 3);
    anew.record(DICT, Kind::Put, b"k", b"w");
    let mut long = BatchBuilder::new();
    long.record(DICT, Kind::Put, b"long", &[3; 9000]);
    let resolutions = [BatchBuilder::commit_prepared(3), BatchBuilder::rollback_prepared(4)];
    [all, secret, prepared, anew].into_iter().chain(resolutions).chain([long]).collect()
}

fn batch_seeds() -> Vec<Vec<u8>> {
    let sealer = crate::sealed::Sealer::new(keys());
    let mut seeds: Vec<Vec<u8>> = batches().iter().map(|batch| batch.bytes().to_vec()).collect();
    seeds.truncate(6);
    seeds.push(sealer.seal(Path::new(DIR), &batches()[1]).unwrap());
    seeds
}

fn accepts_batch(bytes: &[u8]) -> bool {
    let path = Path::new("f");
    let batch = BatchReader::new(bytes, path, 0);
    let read = |batch: BatchReader<'_>| {
        let owned = batch.to_batch_of(|dict| dict == DICT);
        owned.is_ok_and(|owned| owned.entries().all(|entry| entry.is_ok_and(|entry| entry.dict() == DICT)))
    };
    match batch.sealed() {
        None => read(batch),
        Some(sealed) => {
            let _ = sealed.adopted();
            let opened = crate::sealed::Opener::new(keys()).open(path, 0, sealed);
            opened.is_ok_and(|entries| read(batch.with_entries(&entries)))
        }
    }
}

fn options() -> WalOptions {
    WalOptions { file_bytes: 16 << 10, buffer_bytes: 8 << 10, keys: keys(), ..WalOptions::default() }
}

/// Logs of one file and of two, with and without encrypted batches.
fn log_seeds() -> Vec<Vec<u8>> {
    let all = batches();
    let of: [&[usize]; 5] = [&[], &[0], &[0, 2, 4, 0], &[1, 1], &[6, 6, 2, 4]];
    of.map(|of| {
        let vfs = SimVfs::new(1);
        let (wal, mut replay) =
            Wal::create_or_open(vfs.clone(), Path::new(DIR), options(), Arc::default()).unwrap();
        replay.for_each(|_, _| Ok(())).unwrap();
        wal.start(1).unwrap();
        for batch in of {
            let appended = match batch {
                2 => wal.append_prepare(&all[*batch]),
                4 => wal.append_resolution(&BatchBuilder::commit_prepared(wal.last_seqno())),
                _ => wal.append(&all[*batch]),
            };
            wal.wait(appended.unwrap().lsn, FlushMode::Commit).unwrap();
        }
        wal.tick().unwrap();
        collect(&*vfs, Path::new(DIR))
    })
    .to_vec()
}

/// The log in a directory as an input.
pub fn collect(vfs: &dyn Vfs, dir: &Path) -> Vec<u8> {
    let mut out = vec![3];
    for (_, path) in files::log_files(vfs, dir).unwrap() {
        let file = vfs.open(&path, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let note = NOTE_OF_NEXT_FILE.start as usize..NOTE_OF_NEXT_FILE.end as usize;
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let frames = bytes.get(FILE_HEAD_BYTES as usize..used.next_multiple_of(8)).unwrap_or_default();
        put_part(&mut out, &[&bytes[..USED_BYTES], &bytes[note], frames].concat());
    }
    out
}

/// A log file from its part of an input.
fn file_of(flags: u8, part: &[u8]) -> Vec<u8> {
    let (head, rest) = part.split_at(part.len().min(USED_BYTES));
    let note_bytes = (NOTE_OF_NEXT_FILE.end - NOTE_OF_NEXT_FILE.start) as usize;
    let (note, frames) = rest.split_at(rest.len().min(note_bytes));
    let mut file = head.to_vec();
    file.resize(NOTE_OF_NEXT_FILE.start as usize, 0);
    file.extend_from_slice(note);
    file.resize(FILE_HEAD_BYTES as usize, 0);
    if flags & 1 != 0 {
        let sum = xxh3_64(&file[..COVERED_BYTES]);
        file[COVERED_BYTES..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
    }
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap());
    let (salt, start_lsn) = (word(24), word(32));
    let mut frames = frames.to_vec();
    let mut at = 0;
    while let Some(frame) = frames.get_mut(at..).filter(|frame| frame.len() >= FRAME_HEAD_BYTES) {
        let (head, rest) = frame.split_first_chunk_mut::<FRAME_HEAD_BYTES>().unwrap();
        let len = u32::from_le_bytes([head[4], head[5], head[6], 0]) as usize;
        if let (Some(payload), true) = (rest.get(..len), flags & 2 != 0) {
            head[8..16].copy_from_slice(&payload_checksum(payload).to_le_bytes());
        }
        if flags & 1 != 0 {
            FrameHead::reseal(head, salt, start_lsn.wrapping_add(at as u64));
        }
        at += frame_bytes(len);
    }
    file.extend_from_slice(&frames);
    file
}

/// Puts the log files of an input into a directory, in place of those that are there. How many there are.
///
/// # Errors
/// Of writing.
pub fn lay_out(mut bytes: &[u8], vfs: &dyn Vfs, dir: &Path) -> Result<u64> {
    let Some((flags, rest)) = bytes.split_first() else { return Ok(0) };
    bytes = rest;
    files::log_files(vfs, dir)?.iter().try_for_each(|(_, path)| vfs.remove_file(path))?;
    let mut number = 0;
    while !bytes.is_empty() && number < 4 {
        number += 1;
        let file = vfs.open(&files::log_path(dir, number), OpenMode::CreateOrOpen)?;
        file.write_at(&file_of(*flags, take_part(&mut bytes)), 0)?;
    }
    Ok(number)
}

fn accepts_log(bytes: &[u8]) -> bool {
    let (vfs, dir) = (SimVfs::new(1), Path::new(DIR));
    vfs.create_dir_all(dir).unwrap();
    let number = lay_out(bytes, &*vfs, dir).unwrap();
    for number in 1..=number {
        let mut text = String::new();
        let _ = print(&*vfs, &files::log_path(dir, number), &keys(), &mut text);
    }
    let lenient = WalOptions { ends_at_damage: true, ..options() };
    if let Ok((_, mut replay)) = Wal::create_or_open(vfs.clone(), dir, lenient, Arc::default()) {
        replay.without_keys();
        let _ = replay.for_each(|_, batch| batch.into_iter().try_for_each(|entry| entry.map(|_| ())));
    }
    go_on(vfs).is_ok()
}

/// Replays the log and goes on with it; what is written then is there after the next start.
fn go_on(vfs: Arc<SimVfs>) -> Result<()> {
    let open = || Wal::create_or_open(vfs.clone(), Path::new(DIR), options(), Arc::new(Metrics::default()));
    let replay_all = |replay: &mut crate::Replay| -> Result<Seqno> {
        let end = replay.for_each(|_, batch| batch.into_iter().try_for_each(|entry| entry.map(|_| ())))?;
        Ok(end.last_seqno)
    };
    let (wal, mut replay) = open()?;
    let last = replay_all(&mut replay)?;
    let Some(next) = last.checked_add(1) else { return Ok(()) };
    wal.start(next)?;
    let appended = wal.append(&batches()[0])?;
    wal.wait(appended.lsn, FlushMode::Commit)?;
    drop((wal, replay));
    let (_, mut replay) = open()?;
    assert_eq!(replay_all(&mut replay)?, appended.seqno, "what was written is lost");
    Ok(())
}
