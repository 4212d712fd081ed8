//! Replay: finds the log files, decides how far each one counts, and hands their batches over in
//! order. It changes nothing, so a pass may be repeated, and several may run at once.
//!
//! The log is the files in order of their numbers. A file counts from its start lsn to the smallest
//! start lsn of the files after it: normally the next one's; after a recovery that cut a torn tail,
//! the new file starts where the tail began, and files that began within the tail count for nothing.
//! Everything below a bound was synced when that head was written, so it must be whole. Only the
//! last file that counts has no bound; it ends where its frames do (see `scan`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_base::{Error, Result, Seqno};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{OpenMode, Vfs};

use crate::assemble::Assembler;
use crate::batch::BatchReader;
use crate::frame::Part;
use crate::header::{LogFileHead, Successor, FILE_HEAD_BYTES};
use crate::scan::{FileScan, FoundFrame, Step, TornTail};
use crate::sealed::Opener;
use crate::{files, Lsn};

/// How a pass over the log ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Highest seqno the log knows of, even if its batches were trimmed. 0 for a new log.
    pub last_seqno: Seqno,
    /// Batches handed over.
    pub batches: u64,
    /// Bytes of their entries.
    pub bytes: u64,
    /// Where the log goes on.
    pub end: Lsn,
    /// What a power loss left behind the end: worth a line in the error log, not an error.
    pub torn: Option<TornTail>,
    /// The damage that it ended at ([`crate::WalOptions::ends_at_damage`]).
    pub damage: Option<String>,
}

/// A log file and how far it counts.
#[derive(Clone, Debug)]
pub(crate) struct KnownFile {
    pub(crate) path: PathBuf,
    pub(crate) head: LogFileHead,
    /// Where the files after it take over; `None` for the last.
    pub(crate) bound: Option<u64>,
}

impl KnownFile {
    fn counts(&self) -> bool {
        self.bound.is_none_or(|bound| bound > self.head.start_lsn)
    }
}

/// Where the log ends, learnt by a complete pass.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Index among the files and offset in it; `None` for a new log.
    pub(crate) place: Option<(usize, u64)>,
    pub(crate) lsn: u64,
    pub(crate) last_seqno: Seqno,
    /// The log up to here was synced, say its frames.
    pub(crate) durable_lsn: u64,
}

/// The batches of the log found at open. Passes over it come before [`crate::Wal::start`]. Clones may go over it at the same time.
#[derive(Clone, Debug)]
pub struct Replay {
    vfs: Arc<dyn Vfs>,
    files: Arc<Vec<KnownFile>>,
    end: Arc<Mutex<Option<End>>>,
    bytes: u64,
    /// Decrypts batches; `None`: they are handed over as they are.
    opener: Option<Opener>,
    ends_at_damage: bool,
    /// Why files are left out.
    damage: Option<Error>,
}

impl Replay {
    /// Finds the files in a directory and reads their heads.
    pub(crate) fn open(vfs: Arc<dyn Vfs>, dir: &Path, keys: KeyRing, ends_at_damage: bool) -> Result<Replay> {
        let mut files: Vec<KnownFile> = Vec::new();
        let (mut bytes, mut damage) = (0, None);
        for (number, path) in files::log_files(&*vfs, dir)? {
            match read_head(&*vfs, number, &path, files.last()) {
                Ok((head, len)) => {
                    bytes += len.saturating_sub(FILE_HEAD_BYTES);
                    files.push(KnownFile { path, head, bound: None });
                }
                Err(error) if ends_at_damage => {
                    damage = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let mut bound = None;
        for file in files.iter_mut().rev() {
            file.bound = bound;
            bound = Some(bound.map_or(file.head.start_lsn, |b: u64| b.min(file.head.start_lsn)));
        }
        Ok(Replay {
            vfs,
            files: Arc::new(files),
            end: Arc::default(),
            bytes,
            opener: Some(Opener::new(keys)),
            ends_at_damage,
            damage,
        })
    }

    /// Lowest seqno that the kept files may hold whole; `None` for a new log. What is below must be
    /// durable in the tree files.
    pub fn oldest_seqno(&self) -> Option<Seqno> {
        self.files.first().map(|file| file.head.first_seqno.saturating_add(u64::from(file.head.continues)))
    }

    /// Hands over encrypted batches as they are ([`BatchReader::sealed`]): for who has no keys.
    pub fn without_keys(&mut self) {
        self.opener = None;
    }

    /// Most bytes a pass will read, for progress.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn files(&self) -> Arc<Vec<KnownFile>> {
        self.files.clone()
    }

    pub(crate) fn end(&self) -> Arc<Mutex<Option<End>>> {
        self.end.clone()
    }

    /// One pass over the log: every whole batch, seqnos ascending. Stops at the first error of `f`.
    pub fn for_each(&mut self, f: impl FnMut(Seqno, BatchReader<'_>) -> Result<()>) -> Result<ReplayEnd> {
        let mut pass = Pass {
            f,
            opener: self.opener.as_mut(),
            assembler: Assembler::default(),
            skip: false,
            last_seqno: 0,
            end: None,
            end_lsn: self.files.first().map_or(0, |file| file.head.start_lsn),
            durable_lsn: 0,
            batches: 0,
            bytes: 0,
            is_refused: false,
        };
        let (mut torn, mut damage) = (None, self.damage.clone());
        for (index, file) in self.files.iter().enumerate() {
            if index == 0 || file.counts() {
                match pass.file(&*self.vfs, index, file) {
                    Ok(tail) => torn = tail,
                    Err(error) if self.ends_at_damage && !pass.is_refused => {
                        damage = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let end = End {
            place: pass.end,
            lsn: pass.end_lsn,
            last_seqno: pass.last_seqno,
            durable_lsn: pass.durable_lsn,
        };
        *self.end.lock() = Some(end);
        Ok(ReplayEnd {
            last_seqno: pass.last_seqno,
            batches: pass.batches,
            bytes: pass.bytes,
            end: Lsn(pass.end_lsn),
            torn,
            damage: damage.map(|error| error.to_string()),
        })
    }
}

/// One pass.
struct Pass<'a, F> {
    f: F,
    opener: Option<&'a mut Opener>,
    assembler: Assembler,
    /// Within a batch whose begin was trimmed.
    skip: bool,
    /// Last seqno of which all is known.
    last_seqno: Seqno,
    end: Option<(usize, u64)>,
    end_lsn: u64,
    durable_lsn: u64,
    batches: u64,
    bytes: u64,
    /// The error is not of the log, but of who takes its batches.
    is_refused: bool,
}

impl<F: FnMut(Seqno, BatchReader<'_>) -> Result<()>> Pass<'_, F> {
    fn file(&mut self, vfs: &dyn Vfs, index: usize, known: &KnownFile) -> Result<Option<TornTail>> {
        let mut scan = FileScan::open(vfs, &known.path, known.bound)?;
        self.begin_file(index, known)?;
        if !known.counts() {
            return Ok(None);
        }
        loop {
            let frame = match scan.step()? {
                Step::Frame(frame) => frame,
                Step::End(torn) => {
                    check_successor(vfs, known, scan.head().lsn_at(scan.offset()))?;
                    return Ok(self.end_of_file(known, torn));
                }
            };
            self.durable_lsn = self.durable_lsn.max(frame.head.durable_lsn);
            match frame.head.part {
                // The begin of this batch was trimmed, so it is durable in the tree files.
                Part::Middle | Part::Last if self.skip => {
                    self.check_seqno(&scan, &frame)?;
                    if frame.head.part == Part::Last {
                        self.skip = false;
                        self.complete(index, &scan, frame.head.seqno);
                    }
                }
                Part::Mark => {
                    if self.assembler.pending().is_none() && !self.skip {
                        self.complete(index, &scan, self.last_seqno);
                    }
                }
                _ => self.frame(index, &scan, &frame)?,
            }
        }
    }

    /// Checks that the file goes on where the one before stopped.
    fn begin_file(&mut self, index: usize, known: &KnownFile) -> Result<()> {
        let head = known.head;
        if index == 0 {
            self.last_seqno = head.first_seqno.saturating_sub(1);
            self.skip = head.continues && known.counts();
            self.end = Some((0, FILE_HEAD_BYTES));
            return Ok(());
        }
        let within = match self.assembler.pending() {
            Some(pending) => Some(pending.seqno),
            None if self.skip => Some(self.last_seqno.saturating_add(1)),
            None => None,
        };
        let (good, expected) = match within {
            Some(seqno) => {
                (head.continues && head.first_seqno == seqno, format!("the rest of seqno {seqno}"))
            }
            None => (
                !head.continues && head.first_seqno > self.last_seqno,
                format!("more than {}", self.last_seqno),
            ),
        };
        if !good {
            let rest = if head.continues { "the rest of seqno " } else { "" };
            let found = format!("{rest}{}", head.first_seqno);
            return Err(Error::corruption(&known.path, 0, "first seqno of the log file", expected, found));
        }
        if !head.continues {
            self.last_seqno = head.first_seqno - 1;
            self.end = Some((index, FILE_HEAD_BYTES));
            self.end_lsn = head.start_lsn;
        }
        Ok(())
    }

    fn check_seqno(&self, scan: &FileScan, frame: &FoundFrame) -> Result<()> {
        let (seqno, expected) = (frame.head.seqno, self.last_seqno.saturating_add(1));
        if seqno != expected {
            return Err(Error::corruption(scan.path(), frame.offset, "seqno of a frame", expected, seqno));
        }
        Ok(())
    }

    fn frame(&mut self, index: usize, scan: &FileScan, frame: &FoundFrame) -> Result<()> {
        let seqno = frame.head.seqno;
        self.check_seqno(scan, frame)?;
        if self.skip {
            let (what, found) = ("frame of the log", format!("{:?} frame of seqno {seqno}", frame.head.part));
            return Err(Error::corruption(
                scan.path(),
                frame.offset,
                what,
                format!("the rest of seqno {seqno}"),
                found,
            ));
        }
        if let Some(batch) = self.assembler.add(scan, frame)? {
            self.batches += 1;
            self.bytes += batch.bytes;
            self.is_refused = true;
            match (batch.entries.sealed(), &mut self.opener) {
                (Some(sealed), Some(opener)) => {
                    let entries = opener.open(batch.path, batch.offset, sealed)?;
                    (self.f)(seqno, batch.entries.with_entries(&entries))?;
                }
                _ => (self.f)(seqno, batch.entries)?,
            }
            self.is_refused = false;
            self.complete(index, scan, seqno);
        }
        Ok(())
    }

    /// The log is good up to the scan's place.
    fn complete(&mut self, index: usize, scan: &FileScan, last_seqno: Seqno) {
        self.last_seqno = last_seqno;
        self.end = Some((index, scan.offset()));
        self.end_lsn = scan.head().lsn_at(scan.offset());
    }

    /// What of the log's tail is torn, after its last frame.
    fn end_of_file(&self, known: &KnownFile, torn: Option<TornTail>) -> Option<TornTail> {
        match self.assembler.pending() {
            // A batch may go on in the next file; `begin_file` checks that it does.
            _ if known.bound.is_some() => None,
            None => torn,
            Some(pending) => Some(TornTail {
                path: pending.path.clone(),
                offset: pending.offset,
                what: format!("batch of seqno {} without its end", pending.seqno),
            }),
        }
    }
}

/// The head of the file of that number behind `before`, and how long the file is.
fn read_head(
    vfs: &dyn Vfs,
    number: u64,
    path: &Path,
    before: Option<&KnownFile>,
) -> Result<(LogFileHead, u64)> {
    let file = vfs.open(path, OpenMode::Existing)?;
    let head = LogFileHead::read(path, &*file)?;
    let expected = before.map_or(number, |before| before.head.number.saturating_add(1));
    if head.number != number || number != expected {
        let (what, found) = ("number of the log file", head.number);
        return Err(Error::corruption(path, 0, what, expected, format!("{found} in file {number}")));
    }
    Ok((head, file.len()?))
}

/// The last file ends where its frames do, unless it says that another one begins there (see `header`).
fn check_successor(vfs: &dyn Vfs, known: &KnownFile, end_lsn: u64) -> Result<()> {
    if known.bound.is_some() {
        return Ok(());
    }
    let successor = Successor::read(&*vfs.open(&known.path, OpenMode::Existing)?)?;
    let Some(successor) = successor.filter(|successor| successor.start_lsn == end_lsn) else { return Ok(()) };
    let dir = known.path.parent().unwrap_or(Path::new("."));
    let expected = format!("the file that follows {}", known.path.display());
    Err(Error::corruption(&files::log_path(dir, successor.number), 0, "log", expected, "no file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{payload_checksum, FrameHead};
    use pando_storage::vfs::SimVfs;
    use proptest::prelude::*;

    /// A frame as it might stand in a file that something wrong has written.
    #[derive(Clone, Debug)]
    struct Odd {
        part: u8,
        payload: Vec<u8>,
        seqno: Seqno,
        durable_lsn: u64,
        broken: bool,
    }

    fn odd_frame() -> impl Strategy<Value = Odd> {
        let lsn = prop_oneof![4 => 0u64..5000, 1 => any::<u64>()];
        let seqno = prop_oneof![9 => 1u64..4, 1 => any::<u64>()];
        (0u8..5, proptest::collection::vec(any::<u8>(), 0..40), seqno, lsn, prop::bool::weighted(0.1))
            .prop_map(|(part, payload, seqno, durable_lsn, broken)| Odd {
                part,
                payload,
                seqno,
                durable_lsn,
                broken,
            })
    }

    fn bytes_of(head: &LogFileHead, frames: &[Odd], garbage: &[u8]) -> Vec<u8> {
        let mut bytes = head.encode();
        for odd in frames {
            let part =
                [Part::Middle, Part::First, Part::Last, Part::Whole, Part::Mark][usize::from(odd.part)];
            let frame = FrameHead {
                part,
                payload_len: odd.payload.len() as u32,
                payload_checksum: payload_checksum(&odd.payload) ^ u64::from(odd.broken),
                seqno: odd.seqno,
                durable_lsn: odd.durable_lsn,
            };
            bytes.extend_from_slice(&frame.encode(head.salt, head.lsn_at(bytes.len() as u64)));
            bytes.extend_from_slice(&odd.payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes.extend_from_slice(garbage);
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn files_of_any_frames_in_any_order_give_batches_or_corruption(
            files in proptest::collection::vec(
                (
                    proptest::collection::vec(odd_frame(), 0..6),
                    prop_oneof![9 => 0u64..600, 1 => any::<u64>()],
                    prop_oneof![9 => 0u64..4, 1 => any::<u64>()],
                    any::<bool>(),
                    proptest::collection::vec(any::<u8>(), 0..80),
                ),
                0..4,
            ),
        ) {
            let vfs: Arc<dyn Vfs> = SimVfs::new(1);
            let dir = Path::new("/log");
            vfs.create_dir_all(dir)?;
            for (i, (frames, start_lsn, first_seqno, continues, garbage)) in files.into_iter().enumerate() {
                let number = 1 + i as u64;
                let head = LogFileHead { number, salt: 5, start_lsn, first_seqno, continues };
                let path = files::log_path(dir, number);
                vfs.open(&path, OpenMode::Create)?.write_at(&bytes_of(&head, &frames, &garbage), 0)?;
                let mut text = String::new();
                if let Err(error) = crate::print(&*vfs, &path, &KeyRing::empty(), &mut text) {
                    prop_assert!(matches!(error, Error::Corruption { .. }), "{error}");
                }
            }
            // Whoever wants what is before the damage gets it, and each time the same.
            let mut lenient = Replay::open(vfs.clone(), dir, KeyRing::empty(), true)?;
            let mut passes = [Vec::new(), Vec::new()];
            for seqnos in &mut passes {
                lenient.for_each(|seqno, _| {
                    seqnos.push(seqno);
                    Ok(())
                })?;
            }
            prop_assert!(passes[0] == passes[1] && passes[0].is_sorted());
            let mut last = 0;
            let strict = Replay::open(vfs, dir, KeyRing::empty(), false);
            let pass = strict.and_then(|mut strict| {
                strict.for_each(|seqno, entries| {
                    assert!(seqno > last);
                    last = seqno;
                    entries.into_iter().try_for_each(|entry| entry.map(|_| ()))
                })
            });
            if let Err(error) = pass {
                prop_assert!(matches!(error, Error::Corruption { .. }), "{error}");
            }
        }
    }
}
