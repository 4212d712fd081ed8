//! Rows on their way across the boundary: many in one call, in one piece of memory.

use crate::bytes::PandoBytes;

/// Rows of one fetch, in `rows` one after the other, each as
///
/// ```text
/// key length u32 | value length u32 | key | value        (lengths in native byte order)
/// ```
///
/// valid until the next fetch of the same cursor.
#[repr(C)]
#[derive(Debug)]
pub struct PandoBatch {
    /// The rows.
    pub rows: PandoBytes,
    /// How many.
    pub count: u32,
    /// 1 when the cursor has nothing after them in this direction (or before the stop key).
    pub ended: u8,
    /// 1 when the lock of the last row was not held before this fetch.
    pub just_locked: u8,
    /// 1 when the last row is locked by another, and given as it was last committed (`PANDO_WAIT_PEEK`).
    pub is_peek: u8,
}

/// Memory of a cursor's fetches.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    bytes: Vec<u8>,
    count: u32,
}

impl Arena {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        // A row of many megabytes must not be paid for until the cursor is closed.
        const KEEP_BYTES: usize = 4 << 20;
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes = Vec::new();
        }
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.reserve(8 + key.len() + value.len());
        let mut lengths = [0; 8];
        lengths[..4].copy_from_slice(&(key.len() as u32).to_ne_bytes());
        lengths[4..].copy_from_slice(&(value.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(&lengths);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn bytes(&self) -> PandoBytes {
        PandoBytes::from_slice(&self.bytes)
    }
}
