//! Puts the frames of a batch together again.

use std::path::{Path, PathBuf};

use pando_base::{Error, Result, Seqno};

use crate::batch::BatchReader;
use crate::frame::Part;
use crate::scan::{FileScan, FoundFrame};

/// A batch found in a log file, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Its commit number.
    pub seqno: Seqno,
    /// The file its first frame is in.
    pub path: &'a Path,
    /// Where in that file its first frame is.
    pub offset: u64,
    /// Position in the endless log of its first frame.
    pub lsn: u64,
    /// How many frames it takes.
    pub frames: u32,
    /// Bytes of its entries.
    pub bytes: u64,
    /// The log up to here was synced when the batch was appended.
    pub durable_lsn: u64,
    /// Its entries.
    pub entries: BatchReader<'a>,
}

/// A batch of which some frames were seen.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) seqno: Seqno,
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) lsn: u64,
    frames: u32,
    durable_lsn: u64,
    bytes: Vec<u8>,
}

/// Where the frames of a batch collect.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pending: Option<Pending>,
    done: Option<Pending>,
}

impl Assembler {
    /// The batch that is not whole yet.
    pub(crate) fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// Adds a frame that is no mark, and gives the batch that it makes whole. Frames in the middle
    /// of a batch whose begin was not seen are the caller's to keep away.
    pub(crate) fn add<'a>(&'a mut self, scan: &'a FileScan, frame: &FoundFrame) -> Result<Option<Batch<'a>>> {
        let head = frame.head;
        let payload = scan.payload(frame);
        let begins = matches!(head.part, Part::First | Part::Whole);
        let fits = match &self.pending {
            None => begins,
            Some(pending) => !begins && pending.seqno == head.seqno,
        };
        if !fits {
            let expected = match &self.pending {
                Some(pending) => format!("more of seqno {}", pending.seqno),
                None => "the first frame of a batch".into(),
            };
            let found = format!("{:?} frame of seqno {}", head.part, head.seqno);
            return Err(Error::corruption(scan.path(), frame.offset, "frame of the log", expected, found));
        }
        if head.part == Part::Whole {
            return Ok(Some(Batch {
                seqno: head.seqno,
                path: scan.path(),
                offset: frame.offset,
                lsn: frame.lsn,
                frames: 1,
                bytes: payload.len() as u64,
                durable_lsn: head.durable_lsn,
                entries: BatchReader::new(payload, scan.path(), frame.offset),
            }));
        }
        let pending = self.pending.get_or_insert_with(|| Pending {
            seqno: head.seqno,
            path: scan.path().to_owned(),
            offset: frame.offset,
            lsn: frame.lsn,
            frames: 0,
            durable_lsn: head.durable_lsn,
            bytes: Vec::new(),
        });
        pending.frames += 1;
        pending.bytes.extend_from_slice(payload);
        if head.part != Part::Last {
            return Ok(None);
        }
        self.done = self.pending.take();
        Ok(self.done.as_ref().map(|whole| Batch {
            seqno: whole.seqno,
            path: &whole.path,
            offset: whole.offset,
            lsn: whole.lsn,
            frames: whole.frames,
            bytes: whole.bytes.len() as u64,
            durable_lsn: whole.durable_lsn,
            entries: BatchReader::new(&whole.bytes, &whole.path, whole.offset),
        }))
    }
}
