//! Group commit: one thread at a time leads, which is to write everything buffered, change files
//! where the append side planned it, and sync if asked; the others wait (`group`), or append into the
//! other buffer.

use std::mem;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pando_base::planted::{is_planted, Bug};
use pando_base::{pause, Error, Result};
use pando_storage::vfs::{File, OpenMode};

use crate::appender::Switch;
use crate::files;
use crate::group::{Part, Turn};
use crate::header::{LogFileHead, Successor};
use crate::trim::KeptFile;
use crate::wal::Wal;

/// The file that is written now.
#[derive(Debug)]
pub(crate) struct Current {
    file: Arc<dyn File>,
    head: LogFileHead,
}

/// What the leader owns.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// `None` before the start.
    pub(crate) current: Option<Current>,
    /// The frames being written; the empty buffer in between.
    buffer: Vec<u8>,
    switches: Vec<Switch>,
}

/// How often the log looks whether the system has what it lacked, for about a minute.
const SHORTAGE_WAITS_MAX: u32 = 600;
const SHORTAGE_WAIT_MS_MAX: u64 = 100;

/// Repeats what has done nothing because the system lacked something: commits wait meanwhile, instead of the log failing for
/// good. Not for syncs: after a failed one nobody knows what is on the disk (I8).
fn patiently<T>(mut request: impl FnMut() -> Result<T>) -> Result<T> {
    let mut waits = 0;
    loop {
        match request() {
            Err(error) if error.is_shortage() && waits < SHORTAGE_WAITS_MAX => {
                std::thread::sleep(Duration::from_millis(SHORTAGE_WAIT_MS_MAX.min(1 << waits.min(10))));
                waits += 1;
            }
            outcome => return outcome,
        }
    }
}

impl Wal {
    fn has_reached(&self, lsn: u64, sync: bool) -> bool {
        let reached = if sync { &self.durable } else { &self.written };
        reached.load(Ordering::Acquire) >= lsn
    }

    /// Returns when the log is written, or synced, up to `lsn`.
    pub(crate) fn reach(&self, lsn: u64, sync: bool) -> Result<()> {
        if self.has_reached(lsn, sync) {
            return Ok(());
        }
        let mut waiting_since = None;
        let outcome = loop {
            let part = {
                let mut group = self.group.lock();
                if self.has_reached(lsn, sync) {
                    break Ok(());
                }
                if let Some(reason) = &group.failed {
                    break Err(Error::ReadOnly { reason: reason.clone() });
                }
                group.join(lsn, sync)
            };
            let turn = match part {
                Part::Lead => Turn::Lead,
                Part::Wait(waiter) => {
                    waiting_since.get_or_insert_with(|| self.vfs.now_micros());
                    waiter.wait()
                }
            };
            if turn == Turn::Lead {
                self.lead_and_hand_over(sync);
            }
            if self.has_reached(lsn, sync) {
                break Ok(());
            }
        };
        if let Some(since) = waiting_since {
            self.metrics.log_waits.add(1);
            self.metrics.log_wait_time.add(self.vfs.now_micros().saturating_sub(since));
        }
        outcome
    }

    fn lead_and_hand_over(&self, sync: bool) {
        // The lead may have been handed over just before something else failed.
        if !self.latched.load(Ordering::Acquire) {
            if let Err(error) = self.lead(sync) {
                self.latch(&error);
            }
        }
        pause(16);
        let woken = self.group.lock().hand_over(|waiter| self.has_reached(waiter.lsn, waiter.sync));
        woken.wake();
    }

    /// Nothing is accepted from now on: durability is in doubt (I8).
    pub(crate) fn latch(&self, error: &Error) {
        let woken = {
            let mut group = self.group.lock();
            group.failed.get_or_insert_with(|| match error {
                Error::ReadOnly { reason } => reason.clone(),
                error => error.to_string(),
            });
            self.latched.store(true, Ordering::Release);
            self.metrics.read_only_latched.set(1);
            group.all()
        };
        woken.wake();
    }

    /// The error of a failed log.
    pub(crate) fn read_only(&self) -> Error {
        let reason = self.group.lock().failed.clone();
        Error::ReadOnly { reason: reason.unwrap_or_else(|| "the log failed".into()) }
    }

    /// Writes all that is buffered and syncs it if asked. By the leader only. After an error the
    /// log must be latched.
    fn lead(&self, sync: bool) -> Result<()> {
        let mut writer = self.writer.lock();
        let Writer { current, buffer, switches } = &mut *writer;
        debug_assert!(buffer.is_empty() && switches.is_empty());
        // 1. Take the buffer; appends go on in the other one.
        let (end, last_seqno) = {
            let mut appender = self.appender();
            mem::swap(&mut appender.buffer, buffer);
            mem::swap(&mut appender.switches, switches);
            (appender.next_lsn, appender.next_seqno - 1)
        };
        // 2. Write, file by file.
        let mut lsn = self.written.load(Ordering::Relaxed);
        let mut from = 0;
        for switch in switches.drain(..) {
            self.write(current, lsn, &buffer[from..switch.at])?;
            lsn += (switch.at - from) as u64;
            from = switch.at;
            assert_eq!(lsn, switch.head.start_lsn, "files follow each other without a gap");
            self.switch(current, switch.head)?;
        }
        self.write(current, lsn, &buffer[from..])?;
        assert_eq!(lsn + (buffer.len() - from) as u64, end, "the buffer ends where the log does");
        self.metrics.log_written_bytes.add(buffer.len() as u64);
        self.written.store(end, Ordering::Release);
        buffer.clear();
        // A long batch must not hold its memory for ever.
        buffer.shrink_to(2 * self.options.buffer_bytes);
        // 3. Sync.
        if sync && self.durable.load(Ordering::Relaxed) < end {
            self.sync(current)?;
            self.durable_seqno.fetch_max(last_seqno, Ordering::Release);
            self.durable.store(end, Ordering::Release);
        }
        Ok(())
    }

    fn write(&self, current: &Option<Current>, lsn: u64, bytes: &[u8]) -> Result<()> {
        let Some(current) = current.as_ref().filter(|_| !bytes.is_empty()) else {
            return Ok(());
        };
        self.metrics.log_writes.add(1);
        patiently(|| current.file.write_at(bytes, current.head.offset_of(lsn)))
    }

    fn sync(&self, current: &Option<Current>) -> Result<()> {
        let Some(current) = current else {
            return Ok(());
        };
        let since = self.vfs.now_micros();
        let synced = current.file.sync();
        self.metrics.log_syncs.add(1);
        self.metrics.log_sync_time.add(self.vfs.now_micros().saturating_sub(since));
        synced
    }

    /// Goes on in a new file, once the one before is durable: that is what its head says.
    fn switch(&self, current: &mut Option<Current>, head: LogFileHead) -> Result<()> {
        if !is_planted(Bug::LogFilesReordered) {
            self.sync(current)?;
        }
        self.durable_seqno.fetch_max(head.first_seqno - 1, Ordering::Release);
        self.durable.fetch_max(head.start_lsn, Ordering::Release);
        if let Some(before) = self.files.lock().last_mut() {
            before.end_lsn = head.start_lsn;
        }
        let before = current.as_ref().map(|current| current.file.clone());
        *current = Some(self.begin_file(head, before.as_deref())?);
        Ok(())
    }

    /// Makes a log file of a spare that was planned for; the one before it notes that it is there.
    pub(crate) fn begin_file(&self, head: LogFileHead, before: Option<&dyn File>) -> Result<Current> {
        let spare = self.spares.take().expect("a switch is planned only with a spare");
        patiently(|| spare.file.write_at(&head.encode(), 0))?;
        spare.file.sync()?;
        let path = files::log_path(&self.dir, head.number);
        patiently(|| self.vfs.rename(&spare.path, &path))?;
        self.vfs.sync_dir(&self.dir)?;
        // Opened again so that errors name the file as it is called now; where that cannot be, the old handle is as good.
        let file = self.vfs.open(&path, OpenMode::Existing).unwrap_or(spare.file);
        if let Some(before) = before {
            let successor = Successor { number: head.number, start_lsn: head.start_lsn };
            // What it notes is of use only if this file is lost, and all else of it is durable: no error of it is one of the log.
            let _ = successor.note(before);
        }
        // From here on the file before may be trimmed.
        self.files.lock().push(KeptFile { path, head, end_lsn: head.start_lsn });
        Ok(Current { file, head })
    }
}
