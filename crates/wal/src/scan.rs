//! Walks the frames of one log file, and tells how its log ends: at the bound that the next file
//! sets, at bytes that never were frames of this use of the file, or in a tail that a power loss
//! tore. Damage before something that proves it was synced is corruption, never an end.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_base::planted::{is_planted, Bug};
use pando_base::{Error, Result};
use pando_storage::vfs::{File, OpenMode, Vfs};

use crate::frame::{payload_checksum, FrameHead, FRAME_HEAD_BYTES};
use crate::header::{LogFileHead, FILE_HEAD_BYTES};

/// Bytes read at once.
const WINDOW_BYTES: usize = 2 << 20;

/// A tail that a power loss tore: never acknowledged as durable, and not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The log file.
    pub path: PathBuf,
    /// Where in it the first thing is that is not whole.
    pub offset: u64,
    /// What it is.
    pub what: String,
}

/// A frame, its payload in the scan's window.
#[derive(Clone, Debug)]
pub(crate) struct FoundFrame {
    pub(crate) head: FrameHead,
    pub(crate) offset: u64,
    pub(crate) lsn: u64,
    payload: Range<usize>,
}

/// What comes next in a file.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Frame(FoundFrame),
    /// Nothing more; `Some` if what follows was torn by a power loss.
    End(Option<TornTail>),
}

/// What the bytes at a place are.
enum Look {
    Frame(FoundFrame),
    NoFrame,
    BadPayload { expected: u64, found: u64 },
    CutOff,
}

/// A cursor over the frames of one file.
#[derive(Debug)]
pub(crate) struct FileScan {
    path: PathBuf,
    file: Arc<dyn File>,
    head: LogFileHead,
    /// The log goes on elsewhere from here; everything before was synced.
    bound: Option<u64>,
    offset: u64,
    window: Vec<u8>,
    window_offset: u64,
}

impl FileScan {
    pub(crate) fn open(vfs: &dyn Vfs, path: &Path, bound: Option<u64>) -> Result<FileScan> {
        let file = vfs.open(path, OpenMode::Existing)?;
        let head = LogFileHead::read(path, &*file)?;
        let (window, window_offset) = (Vec::new(), FILE_HEAD_BYTES);
        Ok(FileScan {
            path: path.to_owned(),
            file,
            head,
            bound,
            offset: FILE_HEAD_BYTES,
            window,
            window_offset,
        })
    }

    pub(crate) fn head(&self) -> &LogFileHead {
        &self.head
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at the frame at `offset`.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    pub(crate) fn payload(&self, frame: &FoundFrame) -> &[u8] {
        self.window.get(frame.payload.clone()).unwrap_or(&[])
    }

    /// The next frame. The payload of the one before is gone after this.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let lsn = self.head.lsn_at(self.offset);
        if self.bound.is_some_and(|bound| lsn >= bound) {
            return Ok(Step::End(None));
        }
        let mut look = self.look(self.offset)?;
        if !matches!(look, Look::Frame(_)) {
            // Before the log is said to end here, or to be damaged: is it so on the disk?
            self.window.clear();
            look = self.look(self.offset)?;
        }
        let begun = !matches!(look, Look::NoFrame);
        let (what, expected, found) = match look {
            Look::Frame(frame)
                if self.bound.is_none_or(|b| lsn.saturating_add(frame.head.frame_bytes()) <= b) =>
            {
                self.offset += frame.head.frame_bytes();
                return Ok(Step::Frame(frame));
            }
            Look::Frame(frame) => {
                let end = lsn.saturating_add(frame.head.frame_bytes());
                ("end of a frame", format!("at most lsn {}", self.bound.unwrap_or(end)), format!("lsn {end}"))
            }
            Look::NoFrame => ("head of a frame", "a valid one".into(), "other bytes".into()),
            Look::BadPayload { expected, found } => {
                ("checksum of a frame", format!("{expected:#x}"), format!("{found:#x}"))
            }
            Look::CutOff => ("frame", "all of it".into(), "the end of the file".to_owned()),
        };
        if self.bound.is_some() {
            return Err(Error::corruption(&self.path, self.offset, what, expected, found));
        }
        self.end(lsn, begun, what, expected, found)
    }

    /// Looks at everything behind broken bytes for a frame that proves they were durable.
    fn end(&mut self, lsn: u64, begun: bool, what: &str, expected: String, found: String) -> Result<Step> {
        let mut torn = begun;
        if let Some(later) = self.next_frame_after(self.offset)? {
            torn = true;
            if later.proof_of(lsn) {
                let what =
                    format!("{what} (durable before the frame at offset {} was written)", later.offset);
                return Err(Error::corruption(&self.path, self.offset, what, expected, found));
            }
        }
        let what = format!("{what}: expected {expected}, found {found}");
        Ok(Step::End(torn.then(|| TornTail { path: self.path.clone(), offset: self.offset, what })))
    }

    /// Of the frames behind `offset`, one that says something behind `offset` was synced, or else
    /// any. Heads suffice: they have checksums of their own.
    fn next_frame_after(&mut self, offset: u64) -> Result<Option<Later>> {
        let bad_lsn = self.head.lsn_at(offset);
        let (salt, head) = (self.head.salt, self.head);
        let mut at = offset + 8;
        let mut any = None;
        loop {
            let window = self.fill(at, WINDOW_BYTES)?;
            if window.len() < FRAME_HEAD_BYTES {
                return Ok(any);
            }
            let start = at;
            let last = start + (window.len() - FRAME_HEAD_BYTES) as u64;
            while at <= last {
                let bytes = window.get((at - start) as usize..).and_then(|b| b.first_chunk());
                let found = bytes.and_then(|bytes| FrameHead::decode(bytes, salt, head.lsn_at(at)));
                if let Some(frame) = found {
                    let later = Later { offset: at, durable_lsn: frame.durable_lsn };
                    if later.proof_of(bad_lsn) {
                        return Ok(Some(later));
                    }
                    any = any.or(Some(later));
                    at += frame.frame_bytes();
                } else {
                    at += 8;
                }
            }
        }
    }

    fn look(&mut self, offset: u64) -> Result<Look> {
        let (salt, lsn) = (self.head.salt, self.head.lsn_at(offset));
        let Some(bytes) = self.fill(offset, FRAME_HEAD_BYTES)?.first_chunk() else {
            return Ok(Look::NoFrame);
        };
        let Some(head) = FrameHead::decode(bytes, salt, lsn) else {
            return Ok(Look::NoFrame);
        };
        let len = FRAME_HEAD_BYTES + head.payload_len as usize;
        let bytes = self.fill(offset, len)?;
        let Some(payload) = bytes.get(FRAME_HEAD_BYTES..len) else {
            return Ok(Look::CutOff);
        };
        let found = payload_checksum(payload);
        if found != head.payload_checksum && !is_planted(Bug::TornFrameAccepted) {
            return Ok(Look::BadPayload { expected: head.payload_checksum, found });
        }
        let start = (offset - self.window_offset) as usize + FRAME_HEAD_BYTES;
        let payload = start..start + head.payload_len as usize;
        Ok(Look::Frame(FoundFrame { head, offset, lsn, payload }))
    }

    /// The bytes from `offset`: at least `len` of them, unless the file ends before.
    fn fill(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let window_end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || offset + len as u64 > window_end {
            // No more than there is: many log files are short.
            let left = usize::try_from(self.file.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.window.resize(len.max(WINDOW_BYTES).min(left), 0);
            self.window_offset = offset;
            let read = self.read_window();
            self.window.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        Ok(self.window.get((offset - self.window_offset) as usize..).unwrap_or(&[]))
    }

    /// Fills the window, or reads to the end of the file. A read that ends early is not believed to
    /// be the end: what follows would be taken for a torn tail, and lost.
    fn read_window(&mut self) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = self.window.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let offset = self.window_offset + done as u64;
            let read = self.file.read_at(rest, offset)?;
            if read == 0 {
                let len = self.file.len()?;
                if offset < len {
                    return Err(Error::corruption(
                        &self.path,
                        offset,
                        "read",
                        format!("{len} bytes in all"),
                        offset,
                    ));
                }
                break;
            }
            done += read;
        }
        Ok(done)
    }
}

/// A frame found behind broken bytes.
struct Later {
    offset: u64,
    durable_lsn: u64,
}

impl Later {
    fn proof_of(&self, lsn: u64) -> bool {
        self.durable_lsn > lsn
    }
}
