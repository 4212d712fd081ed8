//! The frame: what the log is made of. A batch is one frame, or several when it is long.
//!
//! ```text
//!  0  head checksum      u32  xxh3 of bytes 4..32, seeded with the file's salt and the frame's lsn
//!  4  length and part    u32  payload bytes in the low 24 bits, `Part` in the high 8
//!  8  payload checksum   u64  xxh3 of the payload
//! 16  seqno              u64  of the batch; of a mark: the last one before it
//! 24  durable lsn        u64  the log up to here was synced when this frame was made
//! 32  payload, padded with zeros to a multiple of 8
//! ```
//!
//! The head has a checksum of its own, so a length is believed before its payload is read, and a
//! search for later frames behind a broken one costs little. Salt and lsn in the seed reject frames
//! of an earlier use of the file and frames in the wrong place. The payload's checksum is not
//! seeded: it is computed before the append mutex is taken, and the head's vouches for it.
#![deny(clippy::indexing_slicing)]

use pando_base::Seqno;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a frame before its payload.
pub(crate) const FRAME_HEAD_BYTES: usize = 32;

/// Longest payload of a frame: what a reader must hold in one piece.
pub(crate) const FRAME_PAYLOAD_BYTES_MAX: usize = 1 << 20;

const LENGTH_BITS: u32 = 24;
const _: () = assert!(FRAME_PAYLOAD_BYTES_MAX < 1 << LENGTH_BITS);

/// Which part of a batch a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Part {
    /// One in the middle.
    Middle = 0,
    /// The first of several.
    First = 1,
    /// The last of several.
    Last = 2,
    /// All of it.
    Whole = 3,
    /// No batch: it only carries `durable_lsn`, to prove that what is before it was synced.
    Mark = 4,
}

impl Part {
    /// The part that fragment `i` of `n` is.
    pub(crate) fn of(i: usize, n: usize) -> Part {
        match (i == 0, i + 1 == n) {
            (true, true) => Part::Whole,
            (true, false) => Part::First,
            (false, true) => Part::Last,
            (false, false) => Part::Middle,
        }
    }

    fn from_byte(byte: u8) -> Option<Part> {
        Some(match byte {
            0 => Part::Middle,
            1 => Part::First,
            2 => Part::Last,
            3 => Part::Whole,
            4 => Part::Mark,
            _ => return None,
        })
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) part: Part,
    pub(crate) payload_len: u32,
    pub(crate) payload_checksum: u64,
    pub(crate) seqno: Seqno,
    pub(crate) durable_lsn: u64,
}

impl FrameHead {
    pub(crate) fn encode(&self, salt: u64, lsn: u64) -> [u8; FRAME_HEAD_BYTES] {
        debug_assert!(self.payload_len as usize <= FRAME_PAYLOAD_BYTES_MAX);
        let word = self.payload_len | u32::from(self.part as u8) << LENGTH_BITS;
        let mut bytes = [0; FRAME_HEAD_BYTES];
        let fields = [u64::from(word) << 32, self.payload_checksum, self.seqno, self.durable_lsn];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        let checksum = head_checksum(&bytes, salt, lsn);
        if let Some(to) = bytes.first_chunk_mut::<4>() {
            *to = checksum.to_le_bytes();
        }
        bytes
    }

    /// `None` for bytes that are not the head of a frame at this place of this file.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEAD_BYTES], salt: u64, lsn: u64) -> Option<FrameHead> {
        let mut fields = [0u64; 4];
        for (field, from) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
            *field = u64::from_le_bytes(from.first_chunk().copied()?);
        }
        let [first, payload_checksum, seqno, durable_lsn] = fields;
        let word = (first >> 32) as u32;
        let part = Part::from_byte((word >> LENGTH_BITS) as u8)?;
        let payload_len = word & ((1 << LENGTH_BITS) - 1);
        if payload_len as usize > FRAME_PAYLOAD_BYTES_MAX || head_checksum(bytes, salt, lsn) != first as u32 {
            return None;
        }
        Some(FrameHead { part, payload_len, payload_checksum, seqno, durable_lsn })
    }

    /// Makes the checksum of a head right again.
    #[cfg(feature = "fuzz")]
    pub(crate) fn reseal(bytes: &mut [u8; FRAME_HEAD_BYTES], salt: u64, lsn: u64) {
        let checksum = head_checksum(bytes, salt, lsn);
        bytes.iter_mut().zip(checksum.to_le_bytes()).for_each(|(byte, of)| *byte = of);
    }

    /// Bytes the frame takes in the file, and by which it advances the lsn.
    pub(crate) fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_len as usize) as u64
    }
}

/// Bytes a frame with such a payload takes.
pub(crate) fn frame_bytes(payload_len: usize) -> usize {
    FRAME_HEAD_BYTES + payload_len.next_multiple_of(8)
}

/// The checksum of a payload.
pub(crate) fn payload_checksum(payload: &[u8]) -> u64 {
    xxh3_64(payload)
}

fn head_checksum(bytes: &[u8; FRAME_HEAD_BYTES], salt: u64, lsn: u64) -> u32 {
    let (_, covered) = bytes.split_at(4);
    xxh3_64_with_seed(covered, salt.wrapping_add(lsn)) as u32
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: FrameHead = FrameHead {
        part: Part::Last,
        payload_len: 12345,
        payload_checksum: u64::MAX,
        seqno: 77,
        durable_lsn: 1 << 40,
    };

    #[test]
    fn a_head_comes_back_only_at_its_place_in_its_use_of_the_file() {
        let bytes = HEAD.encode(5, 800);
        assert_eq!(FrameHead::decode(&bytes, 5, 800), Some(HEAD));
        assert_eq!(FrameHead::decode(&bytes, 6, 800), None);
        assert_eq!(FrameHead::decode(&bytes, 5, 808), None);
    }

    #[test]
    fn every_flipped_bit_of_a_head_is_found() {
        let good = HEAD.encode(5, 800);
        for bit in 0..FRAME_HEAD_BYTES * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHead::decode(&bytes, 5, 800), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_head(bytes: [u8; FRAME_HEAD_BYTES], salt: u64, lsn: u64) {
            prop_assert_eq!(FrameHead::decode(&bytes, salt, lsn), None);
        }
    }
}
