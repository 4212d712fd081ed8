//! The log's public face: open, start, append, wait, tick.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::locks::{MappedMutexGuard, Mutex, MutexGuard};
use pando_base::{limits, Error, Metrics, Result, Seqno};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::{File, OpenMode, Vfs};

use crate::appender::{next_salt, push_frame, Appender, Fragments, Promised, Space};
use crate::batch::BatchBuilder;
use crate::files;
use crate::group::Group;
use crate::header::{LogFileHead, FILE_HEAD_BYTES};
use crate::leader::Writer;
use crate::replay::{End, KnownFile, Replay};
use crate::scan::{FileScan, Step};
use crate::sealed::Sealer;
use crate::spares::{Spares, FILE_BYTES_MIN};
use crate::trim::KeptFile;

/// Bytes of the old log's end that are written back at once.
const WRITE_BACK_BYTES: usize = 1 << 20;
/// What a batch that takes another one back may be longer, beside an eighth: other names, and what the other has not touched.
const WAY_BACK_MARGIN_BYTES: u64 = 2048;

/// When a commit waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlushMode {
    /// Never: the log is written and synced about once a second.
    Lazy = 0,
    /// Until it is synced.
    Commit = 1,
    /// Until it is handed to the operating system; synced about once a second.
    Write = 2,
}

impl FlushMode {
    /// The mode of that number, as InnoDB's users know them.
    pub fn from_number(number: u64) -> Option<FlushMode> {
        match number {
            0 => Some(FlushMode::Lazy),
            1 => Some(FlushMode::Commit),
            2 => Some(FlushMode::Write),
            _ => None,
        }
    }

    /// What this mode asks for, but the sync.
    pub fn unsynced(self) -> FlushMode {
        match self {
            FlushMode::Commit => FlushMode::Write,
            other => other,
        }
    }
}

/// A position in the endless log, in bytes of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// How the log is laid out.
#[derive(Clone, Debug)]
pub struct WalOptions {
    /// Size of a log file; raised to 16 KiB and rounded up to pages.
    pub file_bytes: u64,
    /// Bytes in the buffer above which an append waits for them to be written.
    pub buffer_bytes: usize,
    /// Keys of encrypted batches; the log's own is [`crate::LOG_KEY_ID`].
    pub keys: KeyRing,
    /// The log ends for [`Replay`] where its first damage is, instead of giving an error.
    pub ends_at_damage: bool,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions {
            file_bytes: limits::LOG_FILE_BYTES,
            buffer_bytes: 8 << 20,
            keys: KeyRing::empty(),
            ends_at_damage: false,
        }
    }
}

/// What an append gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The batch's commit number.
    pub seqno: Seqno,
    /// The end of the batch: what to wait for.
    pub lsn: Lsn,
}

/// The write-ahead log. Shared by all threads.
#[derive(Debug)]
pub struct Wal {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    pub(crate) options: WalOptions,
    pub(crate) metrics: Arc<Metrics>,
    /// The files found at open, and where replay saw the log end.
    found: Arc<Vec<KnownFile>>,
    end: Arc<Mutex<Option<End>>>,
    fragment_bytes: usize,
    sealer: Sealer,
    /// All batches are encrypted, not only secret ones.
    encrypts_all: AtomicBool,
    appender: Mutex<Option<Appender>>,
    last_seqno: AtomicU64,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) group: Mutex<Group>,
    /// The log up to here was handed to the operating system.
    pub(crate) written: AtomicU64,
    /// The log up to here was synced.
    pub(crate) durable: AtomicU64,
    /// Every batch up to here was synced.
    pub(crate) durable_seqno: AtomicU64,
    /// Set with `Group::failed`.
    pub(crate) latched: AtomicBool,
    pub(crate) files: Mutex<Vec<KeptFile>>,
    pub(crate) spares: Spares,
    pub(crate) spare_making: Mutex<()>,
    /// The last spare that was wanted was not to be had.
    pub(crate) lacks_space: AtomicBool,
    pub(crate) trimming: Mutex<()>,
    /// While there are any, no file is trimmed.
    pub(crate) holds: AtomicU64,
}

impl Wal {
    /// Opens the log in a directory, created if missing, for replay. Nothing can be appended before
    /// [`Wal::start`].
    pub fn create_or_open(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        mut options: WalOptions,
        metrics: Arc<Metrics>,
    ) -> Result<(Wal, Replay)> {
        options.file_bytes = options.file_bytes.max(FILE_BYTES_MIN).next_multiple_of(limits::PAGE_BYTES);
        files::create_dir(&*vfs, dir)?;
        vfs.keep_dir(dir)?;
        let replay = Replay::open(vfs.clone(), dir, options.keys.clone(), options.ends_at_damage)?;
        let wal = Wal {
            dir: dir.to_owned(),
            metrics,
            found: replay.files(),
            end: replay.end(),
            fragment_bytes: Appender::fragment_bytes(options.file_bytes),
            sealer: Sealer::new(options.keys.clone()),
            encrypts_all: AtomicBool::new(false),
            appender: Mutex::new(None),
            last_seqno: AtomicU64::new(0),
            writer: Mutex::default(),
            group: Mutex::default(),
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            durable_seqno: AtomicU64::new(0),
            latched: AtomicBool::new(false),
            files: Mutex::default(),
            spares: Spares::open(vfs.clone(), dir.to_owned(), options.file_bytes)?,
            spare_making: Mutex::default(),
            lacks_space: AtomicBool::new(false),
            trimming: Mutex::default(),
            holds: AtomicU64::new(0),
            options,
            vfs,
        };
        Ok((wal, replay))
    }

    /// Makes durable what a complete pass of [`Replay::for_each`] has given: before anything is done to
    /// other files because of it. [`Wal::start`] does so itself.
    pub fn secure(&self) -> Result<()> {
        let end = self.end.lock().clone();
        self.sync_found(&end.expect("a complete replay pass comes first"))
    }

    /// Begins appending, to a new file, with this seqno, which must be higher than any that replay
    /// saw. Once, and after a complete pass of [`Replay::for_each`]. Makes durable what was replayed
    /// and cuts what was not. After a `DiskFull` it may be tried again.
    pub fn start(&self, next_seqno: Seqno) -> Result<()> {
        let end = self.end.lock().clone();
        let end = end.expect("a complete replay pass comes before the start of the log");
        assert!(next_seqno > end.last_seqno, "seqno {next_seqno} is in the log already: {end:?}");
        let mut writer = self.writer.lock();
        assert!(writer.current.is_none(), "the log is started once");
        let first_bytes = self.spares.first_bytes()?;
        self.sync_found(&end)?;
        let last = self.found.last().map(|file| file.head);
        let number = last.map_or(1, |head| head.number + 1);
        let head = LogFileHead {
            number,
            salt: next_salt(last.map_or(0, |head| head.salt) ^ self.vfs.now_micros(), number),
            start_lsn: end.lsn,
            first_seqno: next_seqno,
            continues: false,
        };
        *self.files.lock() = self.kept_files(&end);
        let before =
            self.found.last().map(|file| self.vfs.open(&file.path, OpenMode::Existing)).transpose()?;
        let current = self.begin_file(head, before.as_deref())?;
        self.cut_tail(&end)?;
        writer.current = Some(current);
        for position in [&self.written, &self.durable] {
            position.store(end.lsn, Ordering::Release);
        }
        for seqno in [&self.last_seqno, &self.durable_seqno] {
            seqno.store(next_seqno - 1, Ordering::Release);
        }
        *self.appender.lock() =
            Some(Appender::new(head, first_bytes, self.spares.len(), self.options.file_bytes));
        self.publish_kept_bytes();
        Ok(())
    }

    /// Makes durable what was replayed, which the head of the next file will say. The process before
    /// may have ended by a failed sync: then the system may show bytes that the disk does not have,
    /// and a sync alone would not write them again. So what no frame calls durable is written back.
    fn sync_found(&self, end: &End) -> Result<()> {
        if let Some((found, offset)) = end.place.and_then(|(i, offset)| Some((self.found.get(i)?, offset))) {
            let file = self.vfs.open(&found.path, OpenMode::Existing)?;
            let from = found.head.offset_of(end.durable_lsn.clamp(found.head.start_lsn, end.lsn));
            self.write_back(found, &*file, from, offset)?;
            file.sync()?;
        }
        // Names too: a spare may not be used again while its old name could come back.
        self.vfs.sync_dir(&self.dir)
    }

    /// Writes the frames between two offsets where they stand. They are read as replay reads them, each
    /// with its checksums: a bad read must not become bad bytes on the disk.
    fn write_back(&self, found: &KnownFile, file: &dyn File, from: u64, end: u64) -> Result<()> {
        let mut scan = FileScan::open(&*self.vfs, &found.path, Some(found.head.lsn_at(end)))?;
        scan.skip_to(from);
        let (mut bytes, mut start) = (Vec::new(), from);
        while let Step::Frame(frame) = scan.step()? {
            push_frame(&mut bytes, &frame.head, found.head.salt, frame.lsn, scan.payload(&frame));
            if bytes.len() >= WRITE_BACK_BYTES {
                file.write_at(&bytes, start)?;
                start += bytes.len() as u64;
                bytes.clear();
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        file.write_at(&bytes, start)
    }

    fn kept_files(&self, end: &End) -> Vec<KeptFile> {
        let (place, _) = end.place.unwrap_or_default();
        let kept = |(index, found): (usize, &KnownFile)| {
            let next_lsn = if index < place { found.bound.unwrap_or(end.lsn) } else { end.lsn };
            let end_lsn = next_lsn.max(found.head.start_lsn);
            KeptFile { path: found.path.clone(), head: found.head, end_lsn }
        };
        self.found.iter().enumerate().map(kept).collect()
    }

    /// Gives back the space behind the end of the old log. Only once the new file's head bounds the
    /// old ones: until then a batch torn between files needs its begin, to be seen as a torn tail.
    fn cut_tail(&self, end: &End) -> Result<()> {
        let (place, offset) = end.place.unwrap_or((0, FILE_HEAD_BYTES));
        for (index, found) in self.found.iter().enumerate().skip(place) {
            let len = if index == place { offset } else { FILE_HEAD_BYTES };
            self.vfs.open(&found.path, OpenMode::Existing)?.set_len(len)?;
        }
        Ok(())
    }

    /// Appends a batch: gives it the next seqno and copies it into the buffer. It is not durable
    /// before `wait` says so. An error means that it got no seqno: `DiskFull` if there is no space for
    /// it now, `ReadOnly` once the log has failed.
    pub fn append(&self, batch: &BatchBuilder) -> Result<Appended> {
        self.append_leaving(batch, Space::Free, |_, promised| promised)
    }

    /// As [`Wal::append`] for a batch that makes space, or ends what cannot be taken back: on a full disk it may take the
    /// reserve that other batches leave alone.
    pub fn append_from_reserve(&self, batch: &BatchBuilder) -> Result<Appended> {
        self.append_leaving(batch, Space::Reserve, |_, promised| promised)
    }

    /// As [`Wal::append_from_reserve`] for a batch that another one of about the same length may have to take back: space
    /// for that is promised, and how much is returned. It is given up by [`Wal::append_way_back`] or [`Wal::end_way_back`].
    pub fn append_with_way_back(&self, batch: &BatchBuilder) -> Result<(Appended, u64)> {
        let mut bytes = 0;
        let appended = self.append_leaving(batch, Space::Reserve, |frames_bytes, promised| {
            bytes = frames_bytes + frames_bytes / 8 + WAY_BACK_MARGIN_BYTES;
            Promised { way_back_bytes: promised.way_back_bytes + bytes, ..promised }
        })?;
        Ok((appended, bytes))
    }

    /// Appends what takes a batch back, for which there is space: this much was promised. An error leaves the promise.
    pub fn append_way_back(&self, batch: &BatchBuilder, bytes: u64) -> Result<Appended> {
        self.append_leaving(batch, Space::Reserve, |_, promised| Promised {
            way_back_bytes: promised.way_back_bytes.saturating_sub(bytes),
            ..promised
        })
    }

    /// The batch for which this much was promised will not be taken back.
    pub fn end_way_back(&self, bytes: u64) {
        let promised = &mut self.appender().promised;
        promised.way_back_bytes = promised.way_back_bytes.saturating_sub(bytes);
    }

    /// As [`Wal::append`] for a batch that prepares a transaction: space for its resolution is kept.
    pub fn append_prepare(&self, batch: &BatchBuilder) -> Result<Appended> {
        self.append_leaving(batch, Space::Free, |_, promised| Promised {
            unresolved: promised.unresolved + 1,
            ..promised
        })
    }

    /// As [`Wal::append`] for the batch that resolves a prepared one, for which there is space: no
    /// `DiskFull` (but for one that an earlier process prepared, see [`Wal::keep_for_resolutions`]).
    pub fn append_resolution(&self, batch: &BatchBuilder) -> Result<Appended> {
        self.append_leaving(batch, Space::Reserve, |_, promised| Promised {
            unresolved: promised.unresolved.saturating_sub(1),
            ..promised
        })
    }

    /// Whether batches are encrypted from now on that do not ask for it themselves ([`BatchBuilder::keep_secret`]).
    ///
    /// # Errors
    /// [`Error::Key`]: the key is missing, and nothing has changed.
    pub fn encrypt_all(&self, all: bool) -> Result<()> {
        if all {
            self.check_key()?;
        }
        self.encrypts_all.store(all, Ordering::Relaxed);
        Ok(())
    }

    /// Makes sure that batches can be encrypted.
    ///
    /// # Errors
    /// [`Error::Key`]
    pub fn check_key(&self) -> Result<()> {
        self.sealer.check(&self.dir)
    }

    /// Keeps space to resolve `count` batches that an earlier process prepared. `DiskFull`: there is
    /// none now; what is appended later sees to it.
    pub fn keep_for_resolutions(&self, count: u64) -> Result<()> {
        let wanted = {
            let mut appender = self.appender();
            appender.promised.unresolved += count;
            appender.spares_to_keep()
        };
        self.make_spares(wanted)
    }

    /// `left` says what is promised once this batch is in, of so many bytes.
    fn append_leaving(
        &self,
        batch: &BatchBuilder,
        space: Space,
        mut left: impl FnMut(u64, Promised) -> Promised,
    ) -> Result<Appended> {
        let is_sealed = batch.is_secret() || self.encrypts_all.load(Ordering::Relaxed);
        let sealed = match is_sealed && batch.has_entries() {
            true => Some(self.sealer.seal(&self.dir, batch)?),
            false => None,
        };
        let fragments =
            Fragments::new(sealed.as_deref().unwrap_or_else(|| batch.bytes()), self.fragment_bytes);
        loop {
            let mut appender = self.appender();
            if self.latched.load(Ordering::Relaxed) {
                drop(appender);
                return Err(self.read_only());
            }
            if appender.buffer.len() >= self.options.buffer_bytes {
                let lsn = appender.next_lsn;
                drop(appender);
                self.reach(lsn, false)?;
                continue;
            }
            let promised = left(fragments.frames_bytes(), appender.promised);
            let wanted = appender.spares_for(&fragments, promised, space);
            if wanted > appender.spares {
                drop(appender);
                self.make_spares(wanted)?;
                continue;
            }
            appender.promised = promised;
            let seqno = appender.push(&fragments, self.durable.load(Ordering::Relaxed));
            self.last_seqno.store(seqno, Ordering::Release);
            return Ok(Appended { seqno, lsn: Lsn(appender.next_lsn) });
        }
    }

    /// Waits until the log up to `lsn` is as safe as `mode` asks, leading the write and sync if
    /// nobody else does. `ReadOnly` if the log failed before that.
    pub fn wait(&self, lsn: Lsn, mode: FlushMode) -> Result<()> {
        match mode {
            FlushMode::Commit => self.reach(lsn.0, true),
            FlushMode::Write => self.reach(lsn.0, false),
            FlushMode::Lazy if self.latched.load(Ordering::Relaxed) => Err(self.read_only()),
            FlushMode::Lazy => Ok(()),
        }
    }

    /// Returns when every batch up to `seqno` is durable: before a superblock names it (I7).
    pub fn sync_up_to_seqno(&self, seqno: Seqno) -> Result<()> {
        if self.durable_seqno.load(Ordering::Acquire) >= seqno {
            return Ok(());
        }
        self.sync_all()
    }

    /// Returns when everything appended before is durable.
    pub fn sync_all(&self) -> Result<()> {
        let lsn = self.appender().next_lsn;
        self.reach(lsn, true)
    }

    /// Makes everything durable and goes on in a new file, unless the one being written has no batch yet: [`Wal::trim`] can
    /// then let all others go. Does nothing but sync where no space can be had for it.
    pub fn begin_new_file(&self) -> Result<()> {
        self.sync_all()?;
        let wanted = self.appender().spares_to_keep() + 1;
        match self.make_spares(wanted) {
            Err(error) if error.is_shortage() => return Ok(()),
            made => made?,
        }
        let mut appender = self.appender();
        if appender.is_new() || appender.spares < wanted {
            return Ok(());
        }
        appender.change_file(false);
        appender.push_mark(self.durable.load(Ordering::Relaxed));
        let lsn = appender.next_lsn;
        drop(appender);
        self.reach(lsn, true)
    }

    /// To be called about once a second: writes and syncs what the lazy modes left, marks an idle
    /// log as durable, and keeps a spare ready. A full disk is not an error here: whoever needs the
    /// space is told.
    pub fn tick(&self) -> Result<()> {
        self.sync_all()?;
        let mut appender = self.appender();
        if appender.push_mark(self.durable.load(Ordering::Relaxed)) {
            let lsn = appender.next_lsn;
            drop(appender);
            self.reach(lsn, false)?;
        } else {
            drop(appender);
        }
        match self.make_spares(1) {
            Err(error) if !error.is_shortage() => return Err(error),
            _ => self.discard_spares()?,
        }
        self.publish_kept_bytes();
        Ok(())
    }

    /// The last seqno given; before any, the one before the first that will be.
    pub fn last_seqno(&self) -> Seqno {
        self.last_seqno.load(Ordering::Acquire)
    }

    /// From now on nothing is accepted, for a reason other than a failure.
    pub fn refuse(&self, reason: &str) {
        self.latch(&Error::ReadOnly { reason: reason.to_owned() });
    }

    /// Whether the disk is too full for the next file of the log: what [`Wal::trim`] gives back is wanted.
    pub fn lacks_space(&self) -> bool {
        self.lacks_space.load(Ordering::Relaxed)
    }

    /// Why nothing is accepted any more, if so.
    pub fn failed(&self) -> Option<Error> {
        self.latched.load(Ordering::Acquire).then(|| self.read_only())
    }

    pub(crate) fn appender(&self) -> MappedMutexGuard<'_, Appender> {
        MutexGuard::map(self.appender.lock(), |appender| {
            appender.as_mut().expect("the log is started before it is used")
        })
    }
}
