//! A simulated disk, in memory: what [`super::Vfs`] promises and nothing more. The seed and the order
//! of calls decide everything, so that a run with a single thread repeats exactly.
//!
//! - `content`: files. Readers see each write at once; the disk surely has what was synced.
//! - `names`: directories, likewise.
//!
//! [`SimVfs::crash`] gives the disk as a power loss may leave it: of what was not synced, each
//! operation kept or lost on its own (so in any order), and writes torn at sectors. A handle from
//! before the crash fails from then on, as does the old `SimVfs`: a thread that outlives its
//! machine does no harm.
//!
//! [`SimVfs::copies_before_ios`] asks for the same without ending the machine: copies of the disk as a power
//! loss right before the chosen I/Os would leave it, taken in the middle of whatever the engine is doing.
//!
//! Faults are counted in I/Os: reads, writes, syncs, changes of length and space, and the operations on
//! names. Questions (length, existence, time) are free. A failed sync forgets: see
//! [`super`]. One lock guards the whole disk; it is never held across a call into other code.

mod content;
mod events;
mod names;
mod stops;
#[cfg(test)]
mod tests;

use super::{DirEntry, File, LockFile, OpenMode, Vfs};
use content::{Change, SECTOR};
pub use events::DiskEvents;
use names::{Names, Node, NodeNumber};
use pando_base::locks::Mutex;
use pando_base::{Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use stops::{stop_before_writes, WriteStop};

/// What goes wrong at the I/O chosen by [`SimVfs::fail_io_after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// That I/O fails, later ones work. A failed write leaves any prefix of its sectors; after a
    /// failed sync any part of what was unsynced is on the disk, and the rest never will be.
    Error,
    /// That I/O and all later ones fail, until [`SimVfs::clear_faults`].
    Sticky,
    /// The first read at or after it finds the file shorter than it is.
    ShortRead,
    /// The first read at or after it gets one bit wrong; the disk is right.
    FlippedRead,
    /// The first write at or after it reports success and does nothing.
    LostWrite,
    /// The first I/O at or after it that may need space finds the disk full.
    DiskFull,
    /// The first I/O at or after it that may need a file descriptor, memory or space fails for want of descriptors, and
    /// has done nothing.
    Shortage,
}

/// What an I/O is, for the choice of faults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Io {
    Read,
    Write,
    /// Reserving space, creating a name.
    Space,
    /// Opening what is there.
    Open,
    Other,
}

const EMFILE: i32 = 24;

#[derive(Debug)]
struct Disk {
    names: Names,
    rng: ChaCha8Rng,
    faults: Vec<(u64, FaultKind)>,
    io_count: u64,
    capacity: Option<u64>,
    clock_micros: u64,
    crashed: bool,
    /// I/Os before which copies are taken, and what decides what a copy has lost: not the disk's own
    /// generator, so that a run is the same with and without copies.
    copies_at: Vec<u64>,
    /// The machine has gone wild if it does more I/Os than this.
    io_count_max: u64,
    copies: Vec<Disk>,
    copies_rng: ChaCha8Rng,
    /// Shared with the disks that this one becomes, and with copies.
    events: Arc<Mutex<DiskEvents>>,
}

/// A simulated disk. Cloning the `Arc` shares it.
#[derive(Debug)]
pub struct SimVfs {
    disk: Arc<Mutex<Disk>>,
}

impl Disk {
    /// Counts an I/O; gives the fault that hits it, if any.
    fn count(&mut self, io: Io) -> Option<FaultKind> {
        self.io_count += 1;
        assert!(self.io_count <= self.io_count_max, "more than {} I/Os: there is no end", self.io_count_max);
        if self.copies_at.contains(&self.io_count) {
            let copy = self.copy_after_power_loss();
            self.copies.push(copy);
        }
        self.clock_micros += 1;
        let now = self.io_count;
        let hit = self.faults.iter().position(|&(at, kind)| {
            now >= at
                && match kind {
                    FaultKind::Error | FaultKind::Sticky => true,
                    FaultKind::ShortRead | FaultKind::FlippedRead => io == Io::Read,
                    FaultKind::LostWrite => io == Io::Write,
                    FaultKind::DiskFull => matches!(io, Io::Write | Io::Space),
                    FaultKind::Shortage => matches!(io, Io::Write | Io::Space | Io::Open),
                }
        })?;
        let (_, kind) = self.faults[hit];
        let mut events = self.events.lock();
        match kind {
            FaultKind::Error | FaultKind::Sticky => events.ios_failed += 1,
            FaultKind::DiskFull => events.disk_full += 1,
            FaultKind::ShortRead => events.reads_short += 1,
            FaultKind::FlippedRead => events.reads_flipped += 1,
            FaultKind::LostWrite | FaultKind::Shortage => {}
        }
        drop(events);
        if kind != FaultKind::Sticky {
            self.faults.swap_remove(hit);
        }
        Some(kind)
    }

    /// A disk that has just been switched on.
    fn restarted(&self, names: Names, rng: ChaCha8Rng) -> Disk {
        let copies_rng = ChaCha8Rng::from_rng(&mut rng.clone());
        Disk {
            names,
            rng,
            faults: Vec::new(),
            io_count: 0,
            capacity: self.capacity,
            clock_micros: self.clock_micros,
            crashed: false,
            copies_at: Vec::new(),
            io_count_max: self.io_count_max,
            copies: Vec::new(),
            copies_rng,
            events: self.events.clone(),
        }
    }

    fn copy_after_power_loss(&mut self) -> Disk {
        let names = self.names.after_power_loss(&mut self.copies_rng, &mut self.events.lock());
        let rng = ChaCha8Rng::from_rng(&mut self.copies_rng);
        self.restarted(names, rng)
    }

    fn check_power(&self) -> io::Result<()> {
        if self.crashed {
            return Err(io::Error::other("simulated power loss"));
        }
        Ok(())
    }

    /// Begins an I/O that either works or fails.
    fn begin(&mut self, io: Io) -> io::Result<()> {
        self.check_power()?;
        match self.count(io) {
            Some(FaultKind::Error | FaultKind::Sticky) => Err(injected()),
            Some(FaultKind::DiskFull) => Err(io::ErrorKind::StorageFull.into()),
            Some(FaultKind::Shortage) => Err(io::Error::from_raw_os_error(EMFILE)),
            _ => Ok(()),
        }
    }

    fn check_space(&mut self, number: NodeNumber, offset: u64, len: u64) -> io::Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let Some(capacity) = self.capacity else { return Ok(()) };
        let missing = self.names.file(number).live.missing_bytes(offset, len);
        if missing > 0 && self.names.used_bytes() + missing > capacity {
            self.events.lock().disk_full += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn read(&mut self, number: NodeNumber, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_power()?;
        let fault = self.count(Io::Read);
        if matches!(fault, Some(FaultKind::Error | FaultKind::Sticky)) {
            return Err(injected());
        }
        let got = self.names.file(number).live.read(buf, offset);
        match fault {
            Some(FaultKind::ShortRead) if got > 0 => Ok(self.rng.random_range(0..got)),
            Some(FaultKind::FlippedRead) if got > 0 => {
                buf[self.rng.random_range(0..got)] ^= 1 << self.rng.random_range(0..8);
                Ok(got)
            }
            _ => Ok(got),
        }
    }

    fn write(&mut self, number: NodeNumber, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_power()?;
        let fault = self.count(Io::Write);
        let first_failure =
            !self.faults.iter().any(|&(at, kind)| kind == FaultKind::Sticky && at < self.io_count);
        match fault {
            Some(FaultKind::LostWrite) => return Ok(()),
            Some(FaultKind::DiskFull) => return Err(io::ErrorKind::StorageFull.into()),
            Some(FaultKind::Shortage) => return Err(io::Error::from_raw_os_error(EMFILE)),
            _ => self.check_space(number, offset, bytes.len() as u64)?,
        }
        let failed = matches!(fault, Some(FaultKind::Error | FaultKind::Sticky));
        let mut written = bytes.len();
        if failed {
            self.events.lock().writes_failed += 1;
            // A device that has gone away takes nothing more; one that fails now, any prefix.
            let sectors = bytes.len() as u64 / SECTOR;
            let prefix = if first_failure { self.rng.random_range(0..=sectors) } else { 0 };
            written = (prefix * SECTOR) as usize;
        }
        if written > 0 {
            let bytes = bytes[..written].to_vec();
            self.names.file(number).change(Change::Write { offset, bytes });
        }
        if failed {
            return Err(injected());
        }
        Ok(())
    }

    fn sync(&mut self, number: NodeNumber) -> io::Result<()> {
        let begun = self.begin(Io::Other);
        let events = self.events.clone();
        let inode = self.names.file(number);
        match begun {
            Ok(()) => inode.sync(),
            Err(_) if self.crashed => {}
            Err(_) => {
                let mut events = events.lock();
                events.syncs_failed += 1;
                inode.fail_sync(&mut self.rng, &mut events);
            }
        }
        begun
    }

    fn open(&mut self, path: &Path, mode: OpenMode) -> io::Result<NodeNumber> {
        let found = match self.names.lookup(path) {
            Ok(number) => Some(number),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let number = match (found, mode) {
            (Some(_), OpenMode::Create) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, OpenMode::Existing) => return Err(io::ErrorKind::NotFound.into()),
            (Some(number), _) if self.names.is_dir(number) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(number), _) => number,
            (None, _) => self.names.create_file(path)?,
        };
        self.names.file(number).handles += 1;
        Ok(number)
    }
}

fn injected() -> io::Error {
    io::Error::other("simulated fault")
}

/// Maps what the disk says about a name: there, not there, or trouble.
fn name_error(op: &'static str, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound { what: path.display().to_string() },
        io::ErrorKind::AlreadyExists => Error::Exists { what: path.display().to_string() },
        _ => Error::io(op, path, 0, error),
    }
}

impl SimVfs {
    /// An empty disk without limit.
    pub fn new(seed: u64) -> Arc<SimVfs> {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self::with_disk(Disk {
            names: Names::new(),
            copies_rng: ChaCha8Rng::from_rng(&mut rng.clone()),
            rng,
            faults: Vec::new(),
            io_count: 0,
            capacity: None,
            clock_micros: 0,
            crashed: false,
            copies_at: Vec::new(),
            io_count_max: u64::MAX,
            copies: Vec::new(),
            events: Arc::default(),
        })
    }

    fn with_disk(disk: Disk) -> Arc<SimVfs> {
        Arc::new(SimVfs { disk: Arc::new(Mutex::new(disk)) })
    }

    fn restart(&self, names_after: impl FnOnce(&mut Disk) -> Names) -> Arc<SimVfs> {
        let mut disk = self.disk.lock();
        assert!(!disk.crashed, "power is off already");
        let names = names_after(&mut disk);
        disk.crashed = true;
        let rng = ChaCha8Rng::seed_from_u64(disk.rng.random());
        Self::with_disk(disk.restarted(names, rng))
    }

    /// The disk as a power loss at this moment may leave it. This one goes on.
    pub fn copy_after_power_loss(&self) -> Arc<SimVfs> {
        let copy = self.disk.lock().copy_after_power_loss();
        Self::with_disk(copy)
    }

    /// The disk as switching off in peace at this moment would leave it. This one goes on.
    pub fn copy_after_clean_stop(&self) -> Arc<SimVfs> {
        let mut disk = self.disk.lock();
        let names = disk.names.after_clean_stop();
        let rng = ChaCha8Rng::from_rng(&mut disk.copies_rng);
        Self::with_disk(disk.restarted(names, rng))
    }

    /// Has copies taken as a power loss right before these I/Os would leave the disk, counted from
    /// now: 1 is the next. Replaces an earlier choice.
    pub fn copies_before_ios(&self, ios: &[u64]) {
        let mut disk = self.disk.lock();
        let now = disk.io_count;
        disk.copies_at = ios.iter().map(|n| now + n).collect();
    }

    /// The copies taken since the last call.
    pub fn take_copies(&self) -> Vec<Arc<SimVfs>> {
        let copies = std::mem::take(&mut self.disk.lock().copies);
        copies.into_iter().map(Self::with_disk).collect()
    }

    /// Power loss: gives the disk as it may be found afterwards, without faults. This one and all its
    /// handles fail from now on.
    pub fn crash(&self) -> Arc<SimVfs> {
        self.restart(|disk| disk.names.after_power_loss(&mut disk.rng, &mut disk.events.lock()))
    }

    /// The end of the process and nothing else: gives the disk as the next process finds it, with what was
    /// written and not synced, and without faults. This one and all its handles fail from now on.
    pub fn kill(&self) -> Arc<SimVfs> {
        self.restart(|disk| {
            disk.events.lock().kills += 1;
            disk.names.after_kill()
        })
    }

    /// Switching off in peace: everything done is on the disk. This one and all its handles fail from
    /// now on.
    pub fn power_cycle_clean(&self) -> Arc<SimVfs> {
        self.restart(|disk| disk.names.after_clean_stop())
    }

    /// The `n`-th I/O from now is hit by a fault; 1 is the next. Several may be pending.
    pub fn fail_io_after(&self, n: u64, kind: FaultKind) {
        let mut disk = self.disk.lock();
        let at = disk.io_count + n;
        disk.faults.push((at, kind));
    }

    /// No fault is pending or sticky any more.
    pub fn clear_faults(&self) {
        self.disk.lock().faults.clear();
    }

    /// Size of the disk, for the pages of files; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.lock().capacity = bytes;
    }

    /// Space that files take now.
    pub fn used_bytes(&self) -> u64 {
        self.disk.lock().names.used_bytes()
    }

    /// Rots a bit of a file, on the disk and for its readers.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) {
        let mut disk = self.disk.lock();
        let number = disk.names.lookup(path);
        let number = number.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let inode = disk.names.file(number);
        assert!(offset < inode.live.len && bit < 8, "no bit {bit} at {offset} of {}", path.display());
        inode.live.flip_bit(offset, bit);
        inode.durable.flip_bit(offset, bit);
        disk.events.lock().bits_rotten += 1;
    }

    /// More I/Os than this, from one start to the next, are a panic: for runs that must end.
    pub fn set_io_count_max(&self, most: u64) {
        self.disk.lock().io_count_max = most;
    }

    /// What befell it, those it was before, and all copies.
    pub fn events(&self) -> DiskEvents {
        *self.disk.lock().events.lock()
    }

    /// I/Os so far.
    pub fn io_count(&self) -> u64 {
        self.disk.lock().io_count
    }

    /// Lets simulated time pass.
    pub fn advance_micros(&self, micros: u64) {
        self.disk.lock().clock_micros += micros;
    }

    /// One operation on names.
    fn names<T>(
        &self,
        op: &'static str,
        path: &Path,
        io: Io,
        f: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> Result<T> {
        let mut disk = self.disk.lock();
        disk.begin(io).and_then(|()| f(&mut disk)).map_err(|e| name_error(op, path, e))
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let io = if mode == OpenMode::Existing { Io::Open } else { Io::Space };
        let number = self.names("open", path, io, |disk| disk.open(path, mode))?;
        Ok(Arc::new(SimFile { disk: self.disk.clone(), number, path: path.to_owned() }))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.names("remove", path, Io::Other, |disk| disk.names.remove_file(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.names("rename", from, Io::Space, |disk| disk.names.rename(from, to))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.names("create directory", path, Io::Space, |disk| disk.names.create_dir_all(path))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.names("remove directory", path, Io::Other, |disk| disk.names.remove_dir_all(path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.names("sync directory", path, Io::Other, |disk| disk.names.sync_dir(path))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.names("read directory", path, Io::Other, |disk| {
            let dir = disk.names.dir(disk.names.lookup(path)?)?;
            let entry = |(name, number): (&String, &NodeNumber)| DirEntry {
                name: name.clone(),
                is_dir: matches!(disk.names.nodes.get(number), Some(Node::Dir(_))),
            };
            Ok(dir.live.iter().map(entry).collect())
        })
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let disk = self.disk.lock();
        disk.check_power().map_err(|e| Error::io("look up", path, 0, e))?;
        Ok(disk.names.lookup(path).is_ok())
    }

    fn lock(&self, _path: &Path) -> Result<LockFile> {
        // One simulated process at a time uses a disk.
        Ok(LockFile { _file: None })
    }

    fn now_micros(&self) -> u64 {
        let mut disk = self.disk.lock();
        // Who only waits for time to pass does not wait for ever.
        disk.clock_micros += 1;
        disk.clock_micros
    }
}

/// A handle of a file of the simulated disk.
#[derive(Debug)]
struct SimFile {
    disk: Arc<Mutex<Disk>>,
    number: NodeNumber,
    path: PathBuf,
}

impl SimFile {
    fn io<T>(
        &self,
        op: &'static str,
        offset: u64,
        f: impl FnOnce(&mut Disk, NodeNumber) -> io::Result<T>,
    ) -> Result<T> {
        f(&mut self.disk.lock(), self.number).map_err(|e| Error::io(op, &self.path, offset, e))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.lock().names.file(self.number).handles -= 1;
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.io("read", offset, |disk, number| disk.read(number, buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        stops::before_write(&self.path, offset);
        self.io("write", offset, |disk, number| disk.write(number, buf, offset))
    }

    fn sync(&self) -> Result<()> {
        self.io("sync", 0, |disk, number| disk.sync(number))
    }

    fn len(&self) -> Result<u64> {
        self.io("stat", 0, |disk, number| {
            disk.check_power()?;
            Ok(disk.names.file(number).live.len)
        })
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.io("set length", len, |disk, number| {
            disk.begin(Io::Other)?;
            let inode = disk.names.file(number);
            let from = inode.live.len;
            inode.change(Change::SetLen { from, to: len });
            Ok(())
        })
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.io("reserve space", offset, |disk, number| {
            disk.begin(Io::Space)?;
            disk.check_space(number, offset, len)?;
            disk.names.file(number).change(Change::Reserve { offset, len });
            Ok(())
        })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.io("punch hole", offset, |disk, number| {
            disk.begin(Io::Other)?;
            disk.names.file(number).change(Change::Punch { offset, len });
            Ok(())
        })
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.io("stat", 0, |disk, number| {
            disk.check_power()?;
            Ok(disk.names.file(number).live.allocated_bytes())
        })
    }
}
