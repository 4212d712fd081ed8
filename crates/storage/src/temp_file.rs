//! A file without a name, for what does not fit into memory and is of no use once this process has ended.
//!
//! - Its name is removed as soon as it is open: when the process goes, however that happens, its space is free again.
//! - Whatever is in it is encrypted with a random key that only this process knows, and never writes down: it does not matter whose
//!   rows these are, and whether their tables are encrypted. The tag that comes with it says on reading that nothing was changed.
//! - Pieces are written one after the other; the space of one is given back when its [`TempPiece`] is dropped.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pando_base::{Error, Result};

use crate::encryption::{Cipher, KeyProvider, KeyRing, Purpose, Sealed, SecretKey, TAG_BYTES};
use crate::vfs::{File, OpenMode, Vfs};

/// See the head of this file.
#[derive(Debug)]
pub struct TempFile {
    file: Arc<dyn File>,
    cipher: Cipher,
    /// Where the next piece goes.
    end: AtomicU64,
}

/// Bytes in a [`TempFile`].
#[derive(Debug)]
pub struct TempPiece {
    file: Arc<TempFile>,
    offset: u64,
    len: usize,
    sealed: Sealed,
}

/// Knows one key.
struct OwnKey(SecretKey);

impl KeyProvider for OwnKey {
    fn latest_version(&self, _: u32) -> std::result::Result<u32, String> {
        Ok(1)
    }

    fn key(&self, _: u32, _: u32) -> std::result::Result<SecretKey, String> {
        Ok(self.0.clone())
    }
}

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// Pieces begin at multiples of this, so that a file system can give back the space of each.
const ALIGNMENT: u64 = 4096;

fn room_of(len: usize) -> u64 {
    (len as u64).next_multiple_of(ALIGNMENT)
}

/// Tells names of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl TempFile {
    /// In this directory.
    ///
    /// # Errors
    /// Of creating a file there.
    pub fn new(vfs: &dyn Vfs, dir: &Path) -> Result<Arc<TempFile>> {
        // Two of a cipher's salts are a key: nobody else is ever told of it.
        let salt = || {
            Cipher::with_new_salt(KeyRing::empty(), Purpose::TempFile, 0, dir).map(|cipher| *cipher.salt())
        };
        let (first, second) = (salt()?, salt()?);
        let mut key = Vec::with_capacity(KEY_BYTES);
        key.extend_from_slice(&first);
        key.extend_from_slice(&second);
        let keys = KeyRing::new(Arc::new(OwnKey(SecretKey::new(key))));
        let cipher = Cipher::with_new_salt(keys, Purpose::TempFile, 0, dir)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name: String = cipher.salt().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = dir.join(format!("pando-{}-{number}-{name}.tmp", std::process::id()));
        let file = vfs.open(&path, OpenMode::Create)?;
        vfs.remove_file(&path)?;
        Ok(Arc::new(TempFile { file, cipher, end: AtomicU64::new(0) }))
    }

    /// Writes bytes, which are encrypted in their place.
    ///
    /// # Errors
    /// Of writing; what it would have taken is given back.
    pub fn write(self: &Arc<Self>, mut bytes: Vec<u8>) -> Result<TempPiece> {
        let len = bytes.len();
        let offset = self.end.fetch_add(room_of(len), Ordering::Relaxed);
        let sealed = self.cipher.seal(self.file.path(), |_| offset.to_le_bytes().to_vec(), &mut bytes)?;
        let piece = TempPiece { file: self.clone(), offset, len, sealed };
        self.file.write_at(&bytes, offset)?;
        Ok(piece)
    }
}

impl TempPiece {
    /// The bytes that were written.
    ///
    /// # Errors
    /// Of reading; [`Error::Corruption`]: they are others.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        let (file, path) = (&self.file.file, self.file.file.path());
        file.read_exact_at(&mut bytes, self.offset)?;
        match self.file.cipher.open(path, &self.sealed, &self.offset.to_le_bytes(), &mut bytes) {
            Ok(()) => Ok(bytes),
            // The key is the right one.
            Err(_) => Err(Error::corruption(
                path,
                self.offset,
                "tag of a temporary file",
                "what was written",
                "other bytes",
            )),
        }
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.len + TAG_BYTES
    }
}

impl Drop for TempPiece {
    fn drop(&mut self) {
        // Its space is free in the end in any case.
        let _ = self.file.file.punch_hole(self.offset, room_of(self.len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{FaultKind, RealVfs, SimVfs};

    fn text(number: usize) -> Vec<u8> {
        format!("a row that nobody else should see, number {number};").repeat(100).into_bytes()
    }

    #[test]
    fn pieces_come_back_and_the_file_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new(false);
        let file = TempFile::new(&*vfs, dir.path()).unwrap();
        assert_eq!(vfs.read_dir(dir.path()).unwrap(), []);
        let pieces: Vec<TempPiece> = (0..20).map(|number| file.write(text(number)).unwrap()).collect();
        for (number, piece) in pieces.iter().enumerate().rev() {
            assert_eq!(piece.read().unwrap(), text(number));
        }
        let mut all = vec![0; file.file.len().unwrap() as usize];
        file.file.read_exact_at(&mut all, 0).unwrap();
        assert!(!all.windows(10).any(|part| part == b"nobody els"), "rows in the clear");
        let before = file.file.allocated_bytes().unwrap();
        drop(pieces);
        assert!(file.file.allocated_bytes().unwrap() < before / 2, "space is given back");
        assert_eq!(vfs.read_dir(dir.path()).unwrap(), []);
    }

    #[test]
    fn what_was_changed_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = TempFile::new(&*RealVfs::new(false), dir.path()).unwrap();
        let pieces = [file.write(text(1)).unwrap(), file.write(text(2)).unwrap()];
        let mut byte = [0];
        file.file.read_exact_at(&mut byte, 7).unwrap();
        file.file.write_at(&[byte[0] ^ 1], 7).unwrap();
        assert!(matches!(pieces[0].read(), Err(Error::Corruption { .. })));
        assert_eq!(pieces[1].read().unwrap(), text(2));
    }

    #[test]
    fn each_failure_is_told_and_what_was_written_stays() {
        let vfs = SimVfs::new(3);
        let dir = Path::new("/tmp");
        vfs.create_dir_all(dir).unwrap();
        // Creating, removing, writing.
        let mut failed = 0;
        for io in 0..8 {
            vfs.fail_io_after(io, FaultKind::Error);
            let written = TempFile::new(&*vfs, dir).and_then(|file| {
                let piece = file.write(text(1))?;
                piece.read()
            });
            vfs.clear_faults();
            match written {
                Ok(bytes) => assert_eq!(bytes, text(1)),
                Err(error) => {
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                    failed += 1;
                }
            }
        }
        assert!(failed >= 3, "{failed}");
        let file = TempFile::new(&*vfs, dir).unwrap();
        let first = file.write(text(1)).unwrap();
        vfs.set_capacity(Some(vfs.used_bytes() + 100));
        assert!(matches!(file.write(text(2)), Err(Error::DiskFull { .. })));
        vfs.set_capacity(None);
        let third = file.write(text(3)).unwrap();
        assert_eq!((first.read().unwrap(), third.read().unwrap()), (text(1), text(3)));
    }
}
