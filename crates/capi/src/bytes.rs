//! Byte strings at the boundary.

use std::path::PathBuf;
use std::slice;

use pandodb::EngineError;

/// A byte string that belongs to someone else. `data` may be null where a function says what that
/// means; otherwise null is the empty string.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoBytes {
    /// First byte.
    pub data: *const u8,
    /// Number of bytes.
    pub len: u64,
}

impl PandoBytes {
    /// Borrows a slice.
    pub(crate) fn from_slice(bytes: &[u8]) -> PandoBytes {
        PandoBytes { data: bytes.as_ptr(), len: bytes.len() as u64 }
    }

    /// # Safety
    /// `data` is null or points to `len` bytes that stay unchanged for `'a`.
    pub(crate) unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the caller vouches for it.
        unsafe { slice::from_raw_parts(self.data, self.len as usize) }
    }

    /// As [`PandoBytes::as_slice`]; a null pointer is `None`.
    ///
    /// # Safety
    /// As [`PandoBytes::as_slice`].
    pub(crate) unsafe fn as_option<'a>(self) -> Option<&'a [u8]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: the caller vouches for it.
        Some(unsafe { self.as_slice() })
    }

    /// Text that names nothing here, as the server's id of a definition. Bytes that are not UTF-8 are replaced.
    ///
    /// # Safety
    /// As [`PandoBytes::as_slice`].
    pub(crate) unsafe fn to_text(self) -> String {
        // SAFETY: the caller vouches for it.
        String::from_utf8_lossy(unsafe { self.as_slice() }).into_owned()
    }

    /// The path of a table, or a name. Another one than was given would be that of something else. Errors: it is not UTF-8.
    ///
    /// # Safety
    /// As [`PandoBytes::as_slice`].
    pub(crate) unsafe fn to_name(self) -> pandodb::Result<String> {
        // SAFETY: the caller vouches for it.
        let bytes = unsafe { self.as_slice() };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            let what = format!("a name has to be UTF-8, which {} is not", bytes.escape_ascii());
            EngineError::argument(what).into()
        })
    }

    /// A name that is looked for, where nothing can be said of one that is none: there is nothing of it.
    ///
    /// # Safety
    /// As [`PandoBytes::as_slice`].
    pub(crate) unsafe fn to_known_name(self) -> Option<String> {
        // SAFETY: the caller vouches for it.
        String::from_utf8(unsafe { self.as_slice() }.to_vec()).ok()
    }

    /// # Safety
    /// As [`PandoBytes::as_slice`].
    pub(crate) unsafe fn to_path(self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: the caller vouches for it.
        PathBuf::from(std::ffi::OsStr::from_bytes(unsafe { self.as_slice() }))
    }
}
