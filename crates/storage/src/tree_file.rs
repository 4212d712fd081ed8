//! A tree file: superblocks, then extents. One file holds one dictionary.
//!
//! ```text
//! 0       4096     8192            16384
//! | slot 0 | slot 1 | reserved      | extents, each whole pages ...            | free tail |
//! ```
//!
//! **Superblocks.** One slot always holds the superblock of the last durable checkpoint and is not
//! touched while the next is written:
//!
//! 1. Write the new superblock, epoch + 1, to the other slot, and sync. It is durable: a crash before
//!    leaves the old one as the newest that is whole, a crash after leaves the new one.
//! 2. Copy it to the slot of the old one, without a sync. Normally both slots say the same, so that
//!    one that rots while the file lies idle does not silently bring back the checkpoint before last,
//!    whose log is gone. A crash may lose the copy: then `secure` makes it again.
//!
//! If step 1 fails, either superblock may be what a crash leaves. Until a later write succeeds (into
//! the same slot) nothing that is released becomes free: `space`, invariant 3.
//!
//! **A failed sync is never retried as success.** The system may have dropped the pages it could not
//! write, and the next sync would report success without them. So after one failed sync this file
//! accepts no more checkpoints until it is opened anew, which recovers from the log.
//!
//! **Life of one checkpoint**, as seen from here: `allocate`, `write`... the runs and nodes; `sync`;
//! `write_superblock`; the owner drops the extents only the previous checkpoint needed; `reclaim`.
//!
//! **Opening**: `open` gives the newest superblock; the tree reads its nodes and `adopt`s what they
//! refer to; `finish_open` makes the rest free. The free map is never stored. Recovery calls `secure`:
//! a superblock that can be read need not be durable yet.
//!
//! **Encryption**: a file is encrypted from its creation on, or becomes so in place (`mixed`), or is not: its superblock says so. Blocks are
//! written with [`TreeFile::seal`] and read with [`TreeFile::open_block`], which do what the file needs. In an encrypted file that is not
//! mixed a block that is not encrypted is not believed, whatever its checksum.
//!
//! Locks: `superblocks`, `sync_failed`, then those of `space`; `switch` (`mixed`), then those of `space`. Reading and writing take none.

use crate::encryption::{Cipher, KeyRing, Purpose};
use crate::space::{round_up, Space, DATA_START};
use crate::superblock::SLOT_BYTES;
use crate::vfs::{File, LostFile, OpenMode, Vfs};
use crate::{Extent, FileEncryption, Place, Superblock};
use pando_base::limits::PAGE_BYTES;
use pando_base::locks::{Mutex, RwLock};
use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) const SLOT_OFFSETS: [u64; 2] = [0, SLOT_BYTES as u64];
const _: () = assert!(SLOT_OFFSETS[1] + SLOT_BYTES as u64 <= DATA_START);
/// To cut so much more off the file than the superblock allows, it is written anew.
const CUT_BYTES_MIN: u64 = 1 << 20;

static NEXT_INSTANCE: AtomicU64 = AtomicU64::new(1);

/// One file of one dictionary: two superblock slots and extents.
#[derive(Debug)]
pub struct TreeFile {
    instance: u64,
    pub(crate) dict: DictId,
    vfs: Arc<dyn Vfs>,
    file: Arc<dyn File>,
    /// Where the file is now; its handle remembers only where it was opened.
    path: RwLock<PathBuf>,
    space: Space,
    /// Set from the beginning, or when the file begins to be encrypted (`mixed`).
    pub(crate) cipher: OnceLock<Cipher>,
    /// Held for reading by who seals plain blocks, for writing while the cipher is set. Nothing is locked under it but for allocating.
    pub(crate) switch: RwLock<()>,
    /// As the durable superblock says.
    pub(crate) is_mixed: AtomicBool,
    /// Extents in use that may have plain blocks.
    pub(crate) plain_extents: AtomicU64,
    superblocks: Mutex<Slots>,
    /// The first failed sync; held while syncing, so that nobody takes another's failure for success.
    sync_failed: Mutex<Option<String>>,
}

/// Keeps what was in use in a file when it was pinned, for a backup that copies it meanwhile.
#[derive(Debug)]
pub struct FilePin {
    file: Arc<TreeFile>,
    superblock: Superblock,
}

impl FilePin {
    /// What leads to all that is pinned, but for private runs that the log names.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The file.
    pub fn file(&self) -> &Arc<TreeFile> {
        &self.file
    }

    /// Bytes that would be free without it.
    pub fn held_bytes(&self) -> u64 {
        self.file.space.held_bytes()
    }
}

impl Drop for FilePin {
    fn drop(&mut self) {
        self.file.space.unpin();
    }
}

/// What is known of the two slots.
#[derive(Debug)]
struct Slots {
    /// Slot (0 or 1) that surely holds `durable`.
    durable_slot: usize,
    /// The superblock of the last checkpoint known to be durable.
    durable: Superblock,
    /// Both slots say the same.
    is_doubled: bool,
    /// `durable` is durable in its slot. Of a file that was opened only the process before knew: which of two
    /// equal slots was synced, and whether either was. Until then what the other checkpoint may need is not
    /// reused (I7).
    is_secure: bool,
}

impl TreeFile {
    /// Creates the file of an empty dictionary and syncs it (not the directory).
    ///
    /// # Errors
    /// [`Error::Exists`] if there is a file of that name; after any other error there is none.
    pub fn create(vfs: &Arc<dyn Vfs>, path: &Path, dict: DictId) -> Result<Arc<TreeFile>> {
        TreeFile::create_with(vfs, path, dict, None)
    }

    /// As [`TreeFile::create`], encrypted with this key.
    ///
    /// # Errors
    /// [`Error::Key`] if there is no such key; nothing is created then.
    pub fn create_encrypted(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        dict: DictId,
        keys: &KeyRing,
        key_id: u32,
    ) -> Result<Arc<TreeFile>> {
        let cipher = Cipher::with_new_salt(keys.clone(), Purpose::TreeFile, key_id, path)?;
        cipher.check(path)?;
        TreeFile::create_with(vfs, path, dict, Some(cipher))
    }

    fn create_with(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        dict: DictId,
        cipher: Option<Cipher>,
    ) -> Result<Arc<TreeFile>> {
        let file = vfs.open(path, OpenMode::Create)?;
        let encryption = cipher.as_ref().map(|cipher| FileEncryption::whole(cipher.key_id(), *cipher.salt()));
        let sb = Superblock { dict, epoch: 1, file_bytes: DATA_START, encryption, ..Superblock::default() };
        let written = file
            .reserve(0, DATA_START)
            .and_then(|()| SLOT_OFFSETS.iter().try_for_each(|&at| file.write_at(&sb.to_page(at), at)))
            .and_then(|()| file.sync());
        if let Err(error) = written {
            // Best effort: the error that matters is the first.
            let _ = vfs.remove_file(path);
            return Err(error);
        }
        let file = Self::new(
            vfs,
            file,
            dict,
            DATA_START,
            Slots { durable_slot: 0, durable: sb, is_doubled: true, is_secure: true },
            cipher,
        );
        file.space.finish_open(false);
        Ok(file)
    }

    /// Opens the file of `dict`; gives the newest valid superblock. The caller adopts all extents
    /// that it leads to and then calls [`TreeFile::finish_open`].
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Corruption`] if no superblock is valid, the file belongs to
    /// another dictionary, or is shorter than its superblock says.
    pub fn open(vfs: &Arc<dyn Vfs>, path: &Path, dict: DictId) -> Result<(Arc<TreeFile>, Superblock)> {
        TreeFile::open_with(vfs, path, dict, &KeyRing::empty())
    }

    /// As [`TreeFile::open`], with the keys of encrypted files. Without the file's key its blocks can be neither read nor
    /// written; that is told when it is tried.
    ///
    /// # Errors
    /// As [`TreeFile::open`].
    pub fn open_with(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        dict: DictId,
        keys: &KeyRing,
    ) -> Result<(Arc<TreeFile>, Superblock)> {
        let file = vfs.open(path, OpenMode::Existing)?;
        let file_len = file.len()?;
        let slots = Self::read_slots(&*file, dict)?;
        let sb = slots.durable.clone();
        let need = sb.root.map_or(0, |root| root.end()).max(sb.file_bytes).max(DATA_START);
        if file_len < need {
            let expected = format!("at least {need} bytes");
            return Err(Error::corruption(path, file_len, "length of the file", expected, file_len));
        }
        let cipher = Self::cipher_of(&sb, keys);
        Ok((Self::new(vfs, file, dict, file_len, slots, cipher), sb))
    }

    fn cipher_of(sb: &Superblock, keys: &KeyRing) -> Option<Cipher> {
        let encryption = sb.encryption?;
        Some(Cipher::new(keys.clone(), Purpose::TreeFile, encryption.key_id, encryption.salt))
    }

    /// Opens the file as it was when it was pinned, which may be by another process: `superblock` is that of the
    /// pin. For reading what it leads to; nothing is written.
    ///
    /// # Errors
    /// As [`TreeFile::open`].
    pub fn open_pinned(vfs: &Arc<dyn Vfs>, path: &Path, superblock: &Superblock) -> Result<Arc<TreeFile>> {
        let file = vfs.open(path, OpenMode::Existing)?;
        let file_len = file.len()?;
        // Another file may have this name now.
        Self::read_slots(&*file, superblock.dict)?;
        let need = superblock.root.map_or(0, |root| root.end()).max(DATA_START);
        if file_len < need {
            let expected = format!("at least {need} bytes");
            return Err(Error::corruption(path, file_len, "length of the file", expected, file_len));
        }
        let slots = Slots { durable_slot: 0, durable: superblock.clone(), is_doubled: true, is_secure: true };
        let cipher = Self::cipher_of(superblock, &KeyRing::empty());
        Ok(Self::new(vfs, file, superblock.dict, file_len, slots, cipher))
    }

    /// Opens a damaged file for reading what can be read: whatever its length, by each of its superblocks that is sound, newest
    /// first.
    ///
    /// # Errors
    /// There is no file, or it cannot be read; [`Error::Corruption`] if no superblock is sound.
    pub fn open_damaged(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        dict: DictId,
        keys: &KeyRing,
    ) -> Result<Vec<(Arc<TreeFile>, Superblock)>> {
        let file = vfs.open(path, OpenMode::Existing)?;
        let file_len = file.len()?;
        let newest = Self::read_slots(&*file, dict)?.durable;
        let mut all = vec![newest.clone()];
        for offset in SLOT_OFFSETS {
            let mut page = vec![0; SLOT_BYTES];
            let got = file.read_at(&mut page, offset).unwrap_or(0);
            page.truncate(got);
            all.extend(Superblock::from_page(path, dict, offset, &page).ok().filter(|sb| *sb != newest));
        }
        let opened = all.into_iter().map(|sb| {
            let slots = Slots { durable_slot: 0, durable: sb.clone(), is_doubled: true, is_secure: true };
            let cipher = Self::cipher_of(&sb, keys);
            (Self::new(vfs, file.clone(), dict, file_len, slots, cipher), sb)
        });
        Ok(opened.collect())
    }

    /// Stands for a file that cannot be used: an empty one, of which every read and write is an error. Nothing on the disk is
    /// touched.
    pub fn lost(vfs: &Arc<dyn Vfs>, path: &Path, dict: DictId) -> Arc<TreeFile> {
        let durable = Superblock { dict, epoch: 1, file_bytes: DATA_START, ..Superblock::default() };
        let slots = Slots { durable_slot: 0, durable, is_doubled: true, is_secure: true };
        let file = Self::new(vfs, Arc::new(LostFile::new(path)), dict, DATA_START, slots, None);
        file.space.finish_open(false);
        file
    }

    fn new(
        vfs: &Arc<dyn Vfs>,
        file: Arc<dyn File>,
        dict: DictId,
        file_len: u64,
        slots: Slots,
        cipher: Option<Cipher>,
    ) -> Arc<TreeFile> {
        Arc::new(TreeFile {
            instance: NEXT_INSTANCE.fetch_add(1, Ordering::Relaxed),
            dict,
            vfs: vfs.clone(),
            path: RwLock::new(file.path().to_owned()),
            file,
            space: Space::new(file_len, slots.durable.clone()),
            cipher: cipher.map_or_else(OnceLock::new, OnceLock::from),
            switch: RwLock::default(),
            is_mixed: AtomicBool::new(slots.durable.encryption.is_some_and(|its| its.is_mixed)),
            plain_extents: AtomicU64::new(0),
            superblocks: Mutex::new(slots),
            sync_failed: Mutex::new(None),
        })
    }

    /// The newer of the valid superblocks.
    fn read_slots(file: &dyn File, dict: DictId) -> Result<Slots> {
        let read_once = |slot_offset: u64| {
            let mut page = vec![0; SLOT_BYTES];
            let got = file.read_at(&mut page, slot_offset)?;
            page.truncate(got);
            Superblock::from_page(file.path(), dict, slot_offset, &page)
        };
        // A bad read of the newest superblock must not bring an older one back: ask twice.
        let read = |slot_offset| match read_once(slot_offset) {
            Err(Error::Corruption { .. }) => read_once(slot_offset),
            result => result,
        };
        let (first, second) = (read(SLOT_OFFSETS[0]), read(SLOT_OFFSETS[1]));
        let slots =
            |durable_slot, durable, is_doubled| Slots { durable_slot, durable, is_doubled, is_secure: false };
        match (first, second) {
            (Ok(a), Ok(b)) if a == b => Ok(slots(0, a, true)),
            (Ok(a), Ok(b)) if (b.epoch > a.epoch) != is_planted(Bug::OlderSuperblockChosen) => {
                Ok(slots(1, b, false))
            }
            (Ok(a), Ok(_) | Err(Error::Corruption { .. })) => Ok(slots(0, a, false)),
            (Err(Error::Corruption { .. }), Ok(b)) => Ok(slots(1, b, false)),
            (Err(a @ Error::Corruption { .. }), Err(b @ Error::Corruption { .. })) => {
                let found = format!("slot 0: {a}; slot 1: {b}");
                Err(Error::corruption(file.path(), 0, "superblocks", "at least one valid", found))
            }
            // A read error is not a torn superblock: the other slot might be the older one. And what a newer release wrote is not to
            // be taken back to a checkpoint before it.
            (Err(Error::Corruption { .. }) | Ok(_), Err(error)) | (Err(error), _) => Err(error),
        }
    }

    /// Makes durable what [`TreeFile::open`] gave. The process before may have ended before it had synced
    /// its superblock, or because that sync failed: then the system may show what the disk does not have,
    /// and a sync alone would not write it again. To be called before the log is given up for what the
    /// superblock says, and if the slots do not say the same ([`TreeFile::is_doubled`]). Until then the file
    /// only grows.
    ///
    /// # Errors
    /// The system's; a crash may then leave an older superblock.
    pub fn secure(&self) -> Result<()> {
        self.secure_slots(&mut self.superblocks.lock())
    }

    /// As [`TreeFile::secure`], if that was not done.
    fn secure_first(&self, slots: &mut Slots) -> Result<()> {
        match slots.is_secure {
            true => Ok(()),
            false => self.secure_slots(slots),
        }
    }

    fn secure_slots(&self, slots: &mut Slots) -> Result<()> {
        // Into its own slot: whatever the other one holds is what there is until this is durable.
        let offset = SLOT_OFFSETS[slots.durable_slot];
        self.file.write_at(&slots.durable.to_page(offset), offset).map_err(|e| self.named(e))?;
        self.sync()?;
        if !slots.is_secure {
            slots.is_secure = true;
            self.space.settled(&slots.durable);
        }
        if !slots.is_doubled {
            slots.is_doubled = self.write_copy(slots);
        }
        Ok(())
    }

    /// Whether both slots say the same. If not, the one that counts must not rot.
    pub fn is_doubled(&self) -> bool {
        self.superblocks.lock().is_doubled
    }

    /// Writes the durable superblock into the other slot, too. Nothing depends on it, so its failure is no
    /// failure of the checkpoint.
    fn write_copy(&self, slots: &Slots) -> bool {
        let offset = SLOT_OFFSETS[1 - slots.durable_slot];
        self.file.write_at(&slots.durable.to_page(offset), offset).is_ok()
    }

    /// A number no other tree file opened by this process has: for keys of caches.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// While opening: this place is in use.
    ///
    /// # Errors
    /// [`Error::Corruption`] if it is not a place an extent can be, ends beyond the file, or overlaps
    /// one that was adopted before.
    pub fn adopt(self: &Arc<Self>, place: Place) -> Result<Extent> {
        let wrong = |what: &str, expected: String| {
            let found = format!("{}+{}", place.offset, place.len);
            Err(Error::corruption(&self.path(), place.offset, format!("extent {what}"), expected, found))
        };
        if place.len == 0 || place.offset % PAGE_BYTES != 0 || place.offset < DATA_START {
            return wrong("bounds", format!("whole pages from {DATA_START} on"));
        }
        let rounded = Place { offset: place.offset, len: round_up(place.len) };
        if rounded.end() > self.space.file_bytes() {
            return wrong("end", format!("at most {}", self.space.file_bytes()));
        }
        if !self.space.adopt(rounded) {
            return wrong("overlap", "pages not used by another extent".to_owned());
        }
        let is_plain = self.cipher.get().is_none() || self.is_mixed();
        Ok(Extent::new(self.clone(), rounded, self.space.age(), is_plain))
    }

    /// Ends opening: everything not adopted is free from now on.
    pub fn finish_open(&self) {
        self.space.finish_open(!self.superblocks.lock().is_secure);
    }

    /// Takes space for `len` bytes (more than 0), rounded up to pages: from the free space that fits
    /// best, otherwise by growing the file.
    ///
    /// # Errors
    /// [`Error::DiskFull`] if the disk has no room for it; nothing has changed then.
    pub fn allocate(self: &Arc<Self>, len: u64) -> Result<Extent> {
        // Before: what is allocated while the file is being pinned is held for nothing, and not the other way round.
        let age = self.space.age();
        let place = self.space.allocate(&*self.file, round_up(len)).map_err(|e| self.named(e))?;
        Ok(Extent::new(self.clone(), place, age, self.cipher.get().is_none()))
    }

    pub(crate) fn release(&self, place: Place, age: u32) {
        self.space.release(place, age);
    }

    pub(crate) fn release_unnamed(&self, place: Place) {
        self.space.release_unnamed(place);
    }

    /// The bytes of a place, which need not be whole pages.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the place is not within the file (it came from a bad pointer, or the
    /// file was cut).
    pub fn read(&self, place: Place) -> Result<Vec<u8>> {
        let end = self.space.file_bytes();
        if place.offset < DATA_START || place.end() > end {
            let (expected, found) =
                (format!("within {DATA_START}..{end}"), format!("{}+{}", place.offset, place.len));
            return Err(Error::corruption(&self.path(), place.offset, "place to read", expected, found));
        }
        let mut bytes = vec![0; place.len as usize];
        self.file.read_exact_at(&mut bytes, place.offset).map_err(|e| self.named(e))?;
        Ok(bytes)
    }

    /// The clock of its file system.
    pub fn now_micros(&self) -> u64 {
        self.vfs.now_micros()
    }

    /// Writes into an extent the caller owns. Durable after [`TreeFile::sync`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        assert!(offset >= DATA_START && end <= self.space.file_bytes(), "writing {offset}..{end} outside");
        self.file.write_at(bytes, offset).map_err(|e| self.named(e))
    }

    /// Makes all writes that returned before durable.
    ///
    /// # Errors
    /// The system's; after that, for ever, [`Error::ReadOnly`]: see the head of this file.
    pub fn sync(&self) -> Result<()> {
        let mut failed = self.sync_failed.lock();
        Self::check_latch(&failed)?;
        self.file.sync().map_err(|e| {
            let error = self.named(e);
            *failed = Some(format!("{error}; what was written to this file is in doubt"));
            error
        })
    }

    fn check_latch(failed: &Option<String>) -> Result<()> {
        match failed {
            Some(reason) => Err(Error::ReadOnly { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Number of the durable checkpoint.
    pub fn epoch(&self) -> u64 {
        self.superblocks.lock().durable.epoch
    }

    /// Makes `sb` the checkpoint that a crash leaves: everything it refers to, and the log up to its
    /// highest seqno, must be synced (I7). Fills in `dict`, `epoch` and `file_bytes` itself.
    ///
    /// # Errors
    /// After an error a crash may leave either this superblock or the one before; extents released
    /// from then on are not reused until a later call succeeds.
    pub fn write_superblock(&self, sb: &Superblock) -> Result<()> {
        let mut slots = self.superblocks.lock();
        self.secure_first(&mut slots)?;
        let encryption = slots.durable.encryption;
        self.publish(&mut slots, sb, encryption)
    }

    /// Makes the durable superblock say so of the file's encryption; `change` is told what it says, and `None` from it changes nothing.
    /// Gives what it says then.
    ///
    /// # Errors
    /// As [`TreeFile::write_superblock`]; also if not both slots have it.
    pub(crate) fn publish_encryption(
        &self,
        change: impl FnOnce(&Superblock) -> Option<FileEncryption>,
    ) -> Result<Option<FileEncryption>> {
        let mut slots = self.superblocks.lock();
        if let Some(encryption) = change(&slots.durable) {
            self.secure_first(&mut slots)?;
            let same = slots.durable.clone();
            self.publish(&mut slots, &same, Some(encryption))?;
        }
        // Without its salt a file is lost: it has to be in both before it counts.
        if !slots.is_doubled {
            let slot = SLOT_OFFSETS[1 - slots.durable_slot];
            let page = slots.durable.to_page(slot);
            self.file.write_at(&page, slot).map_err(|e| self.named(e))?;
            slots.is_doubled = true;
        }
        self.sync()?;
        Ok(slots.durable.encryption)
    }

    fn publish(&self, slots: &mut Slots, sb: &Superblock, encryption: Option<FileEncryption>) -> Result<()> {
        // What `sb` refers to may have been lost in a sync that failed: not even write it.
        Self::check_latch(&self.sync_failed.lock())?;
        let mut sb = sb.clone();
        sb.dict = self.dict;
        sb.encryption = encryption;
        sb.epoch = slots.durable.epoch + 1;
        self.space.doubt();
        sb.file_bytes = self.space.used_end();
        // 1. The new one, into the slot that is not needed.
        slots.is_doubled = false;
        let slot = 1 - slots.durable_slot;
        let offset = SLOT_OFFSETS[slot];
        self.file.write_at(&sb.to_page(offset), offset).map_err(|e| self.named(e))?;
        if !is_planted(Bug::SuperblockWithoutSync) {
            self.sync()?;
        }
        *slots = Slots { durable_slot: slot, durable: sb, is_doubled: false, is_secure: true };
        // 2. The copy.
        slots.is_doubled = self.write_copy(slots);
        self.space.settled(&slots.durable);
        Ok(())
    }

    /// Gives space back to the file system: cuts a free tail and punches large free ranges. To be
    /// called after a checkpoint became durable and what only the one before needed was dropped.
    pub fn reclaim(&self) -> Result<()> {
        let mut slots = self.superblocks.lock();
        self.secure_first(&mut slots)?;
        // The durable superblock says how long the file is at least. To cut much more than that,
        // say so first.
        if self.space.used_end() + CUT_BYTES_MIN <= slots.durable.file_bytes {
            let same = slots.durable.clone();
            let encryption = same.encryption;
            self.publish(&mut slots, &same, encryption)?;
        }
        let keep = slots.durable.file_bytes;
        self.space.truncate(&*self.file, keep).map_err(|e| self.named(e))?;
        drop(slots);
        self.space.punch(&*self.file).map_err(|e| self.named(e))
    }

    /// Whether all extents that were dropped are free by now: no superblock is in doubt, and the file is not pinned.
    ///
    /// # Errors
    /// As [`TreeFile::secure`].
    pub(crate) fn settle(&self) -> Result<bool> {
        // A superblock that is being written is in doubt for a moment.
        let mut slots = self.superblocks.lock();
        self.secure_first(&mut slots)?;
        Ok(self.space.is_settled())
    }

    /// See `mixed`.
    pub(crate) fn overwrite_free(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<bool> {
        self.space.overwrite_free(&*self.file, go_on).map_err(|e| self.named(e))
    }

    /// Pins the file: what its durable superblock leads to stays as it is, and so does everything else that is in use
    /// now, until the answer is dropped. Nobody waits for anything, and the tree goes on. `None` while it is pinned already.
    pub fn pin(self: &Arc<Self>) -> Option<FilePin> {
        let superblock = self.space.pin()?;
        Some(FilePin { file: self.clone(), superblock })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.path.read().clone()
    }

    /// The file was renamed: errors name the new path from now on.
    pub fn set_path(&self, path: &Path) {
        *self.path.write() = path.to_owned();
    }

    /// The dictionary it belongs to.
    pub fn dict(&self) -> DictId {
        self.dict
    }

    /// Bytes of extents in use.
    pub fn used_bytes(&self) -> u64 {
        self.space.used_bytes()
    }

    /// Bytes free within the file, punched or not.
    pub fn free_bytes(&self) -> u64 {
        self.space.free_bytes()
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.space.file_bytes()
    }

    /// Bytes the file takes on the disk: less than its length by what was punched.
    pub fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes().map_err(|e| self.named(e))
    }

    /// The error with the path the file has now.
    fn named(&self, mut error: Error) -> Error {
        match &mut error {
            Error::Io { path, .. }
            | Error::DiskFull { path, .. }
            | Error::Corruption { path, .. }
            | Error::NewerFormat { path, .. }
            | Error::Key { path, .. } => {
                *path = self.path();
            }
            Error::ReadOnly { .. }
            | Error::TooLong { .. }
            | Error::NotFound { .. }
            | Error::Exists { .. }
            | Error::InUse { .. }
            | Error::Unsupported { .. }
            | Error::Argument { .. }
            | Error::Locked { .. } => {}
        }
        error
    }
}
