//! Blocks into extents: allocation in growing chunks, and large writes of whole pages.

use std::sync::Arc;

use pando_base::limits::PAGE_BYTES;
use pando_base::Result;
use pando_storage::{BlockKind, Extent, Place, TreeFile};

/// Written at once.
const WRITE_BYTES: usize = 1 << 20;
/// Size of the first extent; each further one is twice as large, up to the largest.
const EXTENT_BYTES_MIN: u64 = 1 << 20;
/// Size of the largest extents (but for a larger block).
const EXTENT_BYTES_MAX: u64 = 8 << 20;

/// Takes blocks and puts them one after another. Dropped before `finish`, it gives all space back.
pub(crate) struct BlockOutput {
    file: Arc<TreeFile>,
    extents: Vec<Extent>,
    /// Where the next block goes: in the last extent, right after what `buffer` holds.
    position: u64,
    /// End of the last extent.
    end: u64,
    /// Blocks not written yet. Its first byte belongs at a page boundary.
    buffer: Vec<u8>,
    next_extent_bytes: u64,
}

impl BlockOutput {
    pub(crate) fn new(file: &Arc<TreeFile>) -> BlockOutput {
        BlockOutput {
            file: file.clone(),
            extents: Vec::new(),
            position: 0,
            end: 0,
            buffer: Vec::new(),
            next_extent_bytes: EXTENT_BYTES_MIN,
        }
    }

    /// Seals a block and puts it after the last one, or into a new extent if it does not fit.
    pub(crate) fn append(&mut self, kind: BlockKind, codec: u8, payload: &[u8]) -> Result<Place> {
        let file = self.file.clone();
        // Its space is what it takes, also if the file begins to be encrypted now.
        let sealing = file.sealing();
        let len = sealing.block_bytes(0, payload.len());
        if self.end - self.position < len {
            self.close_extent()?;
            let extent = self.file.allocate(len.max(self.next_extent_bytes))?;
            self.next_extent_bytes = (self.next_extent_bytes * 2).min(EXTENT_BYTES_MAX);
            self.position = extent.place().offset;
            self.end = extent.place().end();
            self.extents.push(extent);
        }
        let place = Place { offset: self.position, len };
        sealing.seal(kind, codec, place.offset, &[], &mut self.buffer, payload)?;
        drop(sealing);
        self.position += len;
        if self.buffer.len() >= WRITE_BYTES {
            self.write(self.buffer.len() / PAGE_BYTES as usize * PAGE_BYTES as usize)?;
        }
        Ok(place)
    }

    /// Writes what is left and gives the extents, cut to what they hold.
    pub(crate) fn finish(mut self) -> Result<Vec<Extent>> {
        self.close_extent()?;
        Ok(self.extents)
    }

    fn close_extent(&mut self) -> Result<()> {
        let Some(extent) = self.extents.last_mut() else { return Ok(()) };
        extent.shrink_to(self.position - extent.place().offset);
        let padded = self.buffer.len().next_multiple_of(PAGE_BYTES as usize);
        // The padding belongs to the block stream only until the next extent begins.
        self.position += (padded - self.buffer.len()) as u64;
        self.buffer.resize(padded, 0);
        self.write(padded)?;
        self.end = self.position;
        Ok(())
    }

    /// Writes the first `len` bytes of the buffer, whole pages.
    fn write(&mut self, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let start = self.position - self.buffer.len() as u64;
        assert!(start % PAGE_BYTES == 0 && len as u64 % PAGE_BYTES == 0, "write of {len} at {start}");
        self.file.write(start, &self.buffer[..len])?;
        self.buffer.drain(..len);
        self.buffer.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}
