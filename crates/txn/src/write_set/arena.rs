//! Bytes that only grow at the end and shrink at the end: the keys and values of a write set.
//!
//! Chunks never move or grow, so a transaction of a gigabyte is not copied on its way there. The
//! first chunk is small (most transactions are a few rows), the next ones double up to 1 MiB; a
//! longer piece gets a chunk of its own.

/// Capacity of the first chunk: a few rows of a common table.
const FIRST_CHUNK_BYTES: usize = 1024;

/// Capacity the doubling stops at: what is wasted at the end stays small against what is used.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Where a piece of bytes begins; `len` is kept beside it. Ordered by time of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    chunk: u32,
    offset: u32,
}

/// The chunks. Invariant: no chunk after the last one that holds bytes, except the first.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// Sum of the chunks' capacities.
    bytes: usize,
}

impl Arena {
    /// Appends `piece` and says where it went.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Place {
        let fits = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= piece.len());
        if !fits {
            let doubled =
                self.chunks.last().map_or(FIRST_CHUNK_BYTES, |c| (2 * c.capacity()).min(CHUNK_BYTES_MAX));
            let chunk = Vec::with_capacity(doubled.max(piece.len()));
            self.bytes += chunk.capacity();
            self.chunks.push(chunk);
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let place = Place { chunk: index as u32, offset: chunk.len() as u32 };
        chunk.extend_from_slice(piece);
        place
    }

    /// The `len` bytes pushed at `place`.
    #[inline]
    pub(crate) fn get(&self, place: Place, len: u32) -> &[u8] {
        let start = place.offset as usize;
        &self.chunks[place.chunk as usize][start..start + len as usize]
    }

    /// Forgets `place` and everything pushed after it.
    pub(crate) fn truncate(&mut self, place: Place) {
        let index = place.chunk as usize;
        // A piece that began a chunk takes the chunk with it, but for the first.
        let kept = if place.offset == 0 { index.max(1) } else { index + 1 };
        for chunk in self.chunks.drain(kept..) {
            self.bytes -= chunk.capacity();
        }
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.truncate(place.offset as usize);
        }
    }

    /// Forgets everything but keeps the first chunk if it is a small one, for the next transaction.
    pub(crate) fn clear(&mut self) {
        self.chunks.truncate(1);
        if self.chunks.first().is_some_and(|chunk| chunk.capacity() > 16 * FIRST_CHUNK_BYTES) {
            self.chunks.clear();
        }
        self.chunks.iter_mut().for_each(Vec::clear);
        self.bytes = self.chunks.iter().map(Vec::capacity).sum();
    }

    /// Memory held: the chunks' capacities.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_all_sizes_are_found_again() {
        let mut arena = Arena::default();
        let sizes = [0, 1, 1023, 1, 5000, 3_000_000, 0, 17, 1 << 20];
        let pieces: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(i, n)| vec![i as u8; *n]).collect();
        let places: Vec<Place> = pieces.iter().map(|piece| arena.push(piece)).collect();
        for (piece, place) in pieces.iter().zip(places) {
            assert_eq!(arena.get(place, piece.len() as u32), piece);
        }
    }

    #[test]
    fn truncating_gives_memory_back_and_keeps_what_came_before() {
        let mut arena = Arena::default();
        let kept = arena.push(b"kept");
        let before = arena.bytes();
        let undone = arena.push(&[7; 100_000]);
        for _ in 0..100 {
            arena.push(&[8; 100_000]);
        }
        assert!(arena.bytes() >= before + 10_000_000);
        arena.truncate(undone);
        assert!(arena.bytes() < before + 8192);
        assert_eq!(arena.get(kept, 4), b"kept");
        let next = arena.push(b"next");
        assert_eq!(arena.get(next, 4), b"next");
        arena.truncate(kept);
        assert_eq!(arena.push(b"new"), kept);
    }

    #[test]
    fn clearing_keeps_only_a_small_first_chunk() {
        let mut arena = Arena::default();
        arena.push(&[1; 10]);
        arena.push(&[1; 1 << 21]);
        arena.clear();
        assert!((1..4096).contains(&arena.bytes()));
    }
}
