//! Reads one log file on its own, for people: what `pando log` prints.

use std::fmt;
use std::path::Path;

use pando_base::{Kind, Result};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::Vfs;

use crate::assemble::{Assembler, Batch};
use crate::batch::{BatchKind, Entry};
use crate::frame::Part;
use crate::header::LogFileHead;
use crate::scan::{FileScan, Step, TornTail};
use crate::sealed::{Opener, SealedEntries};

/// How a log file ends, seen alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFileEnd {
    /// Where in the file the log ends.
    pub offset: u64,
    /// A tail that a power loss tore.
    pub torn: Option<TornTail>,
    /// Frames at the begin that belong to a batch begun in the file before.
    pub continued_frames: u32,
    /// Place of a batch that the next file may complete.
    pub unfinished_at: Option<u64>,
}

/// Iterates over the batches of one log file, whole ones only.
#[derive(Debug)]
pub struct LogFileReader {
    scan: FileScan,
    assembler: Assembler,
    begun: bool,
    end: LogFileEnd,
}

impl LogFileReader {
    /// Opens a file and checks its head.
    pub fn open(vfs: &dyn Vfs, path: &Path) -> Result<LogFileReader> {
        let scan = FileScan::open(vfs, path, None)?;
        let begun = !scan.head().continues;
        Ok(LogFileReader { scan, assembler: Assembler::default(), begun, end: LogFileEnd::default() })
    }

    /// The head of the file.
    pub fn head(&self) -> &LogFileHead {
        self.scan.head()
    }

    /// The next batch; `None` at the end of the file's log.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>> {
        loop {
            let frame = match self.scan.step()? {
                Step::Frame(frame) => frame,
                Step::End(torn) => {
                    self.end.torn = torn;
                    self.end.offset = self.scan.offset();
                    self.end.unfinished_at = self.assembler.pending().map(|pending| pending.offset);
                    return Ok(None);
                }
            };
            match frame.head.part {
                Part::Mark => continue,
                Part::Middle | Part::Last if !self.begun => {
                    self.end.continued_frames += 1;
                    continue;
                }
                _ => self.begun = true,
            }
            let completes = matches!(frame.head.part, Part::Whole | Part::Last);
            if completes {
                return self.assembler.add(&self.scan, &frame);
            }
            self.assembler.add(&self.scan, &frame)?;
        }
    }

    /// How the file ended, once `next_batch` gave `None`.
    pub fn end(&self) -> &LogFileEnd {
        &self.end
    }
}

/// Prints a log file, a line for the file, each batch and each entry. Errors of `out` are given
/// inside, those of the file outside.
///
/// Without the keys of encrypted batches it prints what can be told of them.
pub fn print(vfs: &dyn Vfs, path: &Path, keys: &KeyRing, out: &mut dyn fmt::Write) -> Result<fmt::Result> {
    let mut opener = Opener::new(keys.clone());
    let mut reader = LogFileReader::open(vfs, path)?;
    let head = *reader.head();
    let mut written = writeln!(
        out,
        "log file {}: from lsn {} and seqno {}{}",
        head.number,
        head.start_lsn,
        head.first_seqno,
        if head.continues { ", begins within a batch" } else { "" }
    );
    while let Some(batch) = reader.next_batch()? {
        written = written.and_then(|()| {
            let Batch { seqno, offset, lsn, frames, bytes, .. } = batch;
            let what = What(batch.entries.kind());
            writeln!(
                out,
                "seqno {seqno} at offset {offset} (lsn {lsn}): {bytes} bytes in {frames} frames{what}"
            )
        });
        let mut decrypted = Vec::new();
        let entries = match batch.entries.sealed() {
            Some(sealed) => {
                written = written.and_then(|()| print_sealed(out, sealed));
                if keys.is_empty() {
                    continue;
                }
                decrypted.extend(opener.open(batch.path, batch.offset, sealed)?);
                batch.entries.with_entries(&decrypted)
            }
            None => batch.entries,
        };
        for entry in entries {
            let entry = entry?;
            written = written.and_then(|()| print_entry(out, &entry));
        }
    }
    let end = reader.end();
    written = written.and_then(|()| writeln!(out, "end at offset {}", end.offset));
    if let Some(offset) = end.unfinished_at {
        written = written.and_then(|()| writeln!(out, "unfinished batch at offset {offset}"));
    }
    if let Some(torn) = &end.torn {
        written = written.and_then(|()| writeln!(out, "torn tail: {}", torn.what));
    }
    Ok(written)
}

fn print_sealed(out: &mut dyn fmt::Write, sealed: &SealedEntries<'_>) -> fmt::Result {
    let (id, version) = (sealed.key_id, sealed.key_version);
    writeln!(out, "  encrypted with key {id}, version {version}: {} bytes", sealed.entries_bytes())
}

fn print_entry(out: &mut dyn fmt::Write, entry: &Entry<'_>) -> fmt::Result {
    write!(out, "  dict {} ", entry.dict())?;
    match entry {
        Entry::Record { kind: Kind::Put, key, value, .. } => {
            writeln!(out, "put {} ({} bytes)", Hex(key), value.len())
        }
        Entry::Record { kind: Kind::Delete, key, .. } => writeln!(out, "delete {}", Hex(key)),
        Entry::Truncate { .. } => writeln!(out, "truncate"),
        Entry::AutoIncrement { next, .. } => writeln!(out, "auto-increment {next}"),
        Entry::DeleteRange { lo, hi, .. } => {
            let end = hi.map_or("the end".to_owned(), |hi| Hex(hi).to_string());
            writeln!(out, "delete {} to {end}", Hex(lo))
        }
        Entry::Adopt { run, .. } => writeln!(out, "adopt {}", Hex(run)),
    }
}

/// What a batch is, if it is not simply a commit.
struct What<'a>(BatchKind<'a>);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BatchKind::Commit => Ok(()),
            BatchKind::Prepare { xid } => write!(f, ", prepares {}", Hex(xid)),
            BatchKind::PrepareAnew { xid, previous } => {
                write!(f, ", prepares {} in place of seqno {previous}", Hex(xid))
            }
            BatchKind::CommitPrepared { prepare } => write!(f, ", commits seqno {prepare}"),
            BatchKind::RollbackPrepared { prepare } => write!(f, ", rolls back seqno {prepare}"),
        }
    }
}

/// Bytes in hexadecimal, long ones cut.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 32;
        for byte in self.0.iter().take(SHOWN) {
            write!(f, "{byte:02x}")?;
        }
        if self.0.len() > SHOWN {
            write!(f, "... of {} bytes", self.0.len())?;
        }
        Ok(())
    }
}
