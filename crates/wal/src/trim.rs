//! Which files the log keeps: their list, their recycling, and the making of spares.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pando_base::planted::{is_planted, Bug};
use pando_base::{Result, Seqno};

use crate::header::{LogFileHead, FILE_HEAD_BYTES};
use crate::spares::SPARES_KEPT_MAX;
use crate::wal::{Lsn, Wal};

/// A log file kept for recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileInfo {
    /// Its number.
    pub number: u64,
    /// Its path.
    pub path: PathBuf,
    /// Seqno of its first frame.
    pub first_seqno: Seqno,
    /// Position in the endless log of its first frame.
    pub start: Lsn,
    /// Bytes of it that are in use.
    pub bytes: u64,
}

/// A file in the list; the last one is being written.
#[derive(Clone, Debug)]
pub(crate) struct KeptFile {
    pub(crate) path: PathBuf,
    pub(crate) head: LogFileHead,
    /// Where its log ends; of the one being written, where it began.
    pub(crate) end_lsn: u64,
}

impl Wal {
    /// The files kept for recovery, oldest first.
    pub fn files(&self) -> Vec<LogFileInfo> {
        let files = self.files.lock();
        let written = self.written.load(Ordering::Acquire);
        let last = files.len().saturating_sub(1);
        let info = |(i, file): (usize, &KeptFile)| {
            let end = if i == last { written.max(file.end_lsn) } else { file.end_lsn };
            LogFileInfo {
                number: file.head.number,
                path: file.path.clone(),
                first_seqno: file.head.first_seqno,
                start: Lsn(file.head.start_lsn),
                bytes: FILE_HEAD_BYTES + (end - file.head.start_lsn),
            }
        };
        files.iter().enumerate().map(info).collect()
    }

    /// Bytes in use in the files kept for recovery.
    pub fn kept_bytes(&self) -> u64 {
        self.files().iter().map(|file| file.bytes).sum()
    }

    /// Bytes from the begin of the file in which the batch `seqno` begins to the end of the log: what can be given up at
    /// most when it is not needed any more. `None`: it is in the file being written.
    pub fn bytes_since(&self, seqno: Seqno) -> Option<u64> {
        let files = self.files.lock();
        let may_begin_after = |file: &KeptFile| {
            file.head.first_seqno > seqno || (file.head.continues && file.head.first_seqno == seqno)
        };
        let index = files.partition_point(|file| !may_begin_after(file)).saturating_sub(1);
        (index + 1 < files.len())
            .then(|| self.written.load(Ordering::Acquire).saturating_sub(files[index].head.start_lsn))
    }

    /// Forgets the batches below `keep_from`, which must be durable in the tree files: files with
    /// nothing else are recycled or removed. The file being written stays.
    pub fn trim(&self, keep_from: Seqno) -> Result<()> {
        let _one_at_a_time = self.trimming.lock();
        while let Some(path) = self.oldest_if_below(keep_from) {
            if let Some(error) = self.failed() {
                return Err(error);
            }
            // One file at a time, each durably: after a crash the files left have no gap.
            let recycle = self.appender().spares < SPARES_KEPT_MAX;
            let spare = self.spares.new_path();
            if recycle {
                self.vfs.rename(&path, &spare)?;
            } else {
                self.vfs.remove_file(&path)?;
            }
            self.files.lock().remove(0);
            if let Err(error) = self.vfs.sync_dir(&self.dir) {
                self.latch(&error);
                return Err(self.read_only());
            }
            if recycle && self.spares.take_over(spare)? {
                self.lacks_space.store(false, Ordering::Relaxed);
                self.appender().spares += 1;
            }
        }
        self.discard_spares()?;
        self.publish_kept_bytes();
        Ok(())
    }

    /// Whether [`Wal::trim`] would give up something.
    pub fn can_trim(&self, keep_from: Seqno) -> bool {
        self.oldest_if_below(keep_from).is_some()
    }

    /// From now on nothing is trimmed, until [`Wal::let_go`] was called as often: a backup copies the files.
    pub fn hold(&self) {
        self.holds.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends a [`Wal::hold`].
    pub fn let_go(&self) {
        self.holds.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether somebody holds the log.
    pub fn is_held(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// The files that have the log up to `end`, oldest first, with what of each belongs to it. It is written, but need not
    /// be durable. To be called with a hold: then they stay as they are.
    ///
    /// # Errors
    /// The log has failed.
    pub fn files_up_to(&self, end: Lsn) -> Result<Vec<LogFileInfo>> {
        self.reach(end.0, false)?;
        // Whoever began to trim before the hold has ended.
        let _trimming = self.trimming.lock();
        let mut files = self.files();
        files.retain(|file| file.start <= end);
        for file in &mut files {
            file.bytes = file.bytes.min(FILE_HEAD_BYTES + (end.0 - file.start.0));
        }
        Ok(files)
    }

    /// Where the log ends now, and the last seqno before.
    pub fn end(&self) -> (Lsn, Seqno) {
        let appender = self.appender();
        (Lsn(appender.next_lsn), appender.next_seqno - 1)
    }

    /// The oldest file, if all its batches are below.
    fn oldest_if_below(&self, keep_from: Seqno) -> Option<PathBuf> {
        let files = self.files.lock();
        if self.is_held() {
            return None;
        }
        let (oldest, next) = (files.first()?, files.get(1)?);
        // A batch that the next file continues may begin in the oldest.
        let last_seqno = if next.head.continues { next.head.first_seqno } else { next.head.first_seqno - 1 };
        let keep_from = keep_from + u64::from(is_planted(Bug::LogTrimmedEarly));
        (last_seqno < keep_from).then(|| oldest.path.clone())
    }

    /// Makes spares until this many can be planned for. With an error those beyond the usual number
    /// are given back.
    pub(crate) fn make_spares(&self, wanted: usize) -> Result<()> {
        let _one_at_a_time = self.spare_making.lock();
        while self.appender().spares < wanted {
            let made = self.spares.create();
            self.lacks_space.store(made.is_err(), Ordering::Relaxed);
            if let Err(error) = made {
                // The error to tell is the first one.
                let _ = self.discard_spares();
                return Err(error);
            }
            self.appender().spares += 1;
        }
        Ok(())
    }

    /// Removes spares beyond the usual number.
    pub(crate) fn discard_spares(&self) -> Result<()> {
        loop {
            {
                let mut appender = self.appender();
                if appender.spares <= SPARES_KEPT_MAX.max(appender.spares_to_keep()) {
                    return Ok(());
                }
                appender.spares -= 1;
            }
            self.spares.discard()?;
        }
    }

    pub(crate) fn publish_kept_bytes(&self) {
        self.metrics.log_kept_bytes.set(self.kept_bytes());
    }
}
