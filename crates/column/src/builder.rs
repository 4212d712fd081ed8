//! Records in run order to an encoded segment.

use std::sync::Arc;

use pando_base::{shared_prefix, Kind, RecordRef, Seqno};

use crate::columnar::{self, Shapes};
use crate::compression::{Compression, Compressor};
use crate::format::*;
use crate::row::Row;
#[cfg(debug_assertions)]
use crate::segment::Segment;
use crate::wire::put_varint;

/// Buffers that a huge value made bigger than this are given back after the segment.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// A finished segment: the payload of a block, and what a run's index says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedSegment {
    /// Format and compression, for the block's header.
    pub codec: u8,
    /// The payload.
    pub bytes: Vec<u8>,
    /// Records.
    pub rows: u32,
    /// Records that are Deletes.
    pub tombstones: u32,
    /// Bytes of keys and values plus [`RECORD_OVERHEAD_BYTES`] for each record.
    pub raw_bytes: u64,
    /// Smallest seqno.
    pub min_seqno: Seqno,
    /// Largest seqno.
    pub max_seqno: Seqno,
    /// First key.
    pub first_key: Vec<u8>,
    /// Last key.
    pub last_key: Vec<u8>,
    /// No key has two versions here.
    pub single_version: bool,
    /// As [`Zones::of`](crate::Zones::of) reads them; empty if there are none.
    pub zones: Vec<u8>,
    /// What other segments of the same run may be compressed against ([`SegmentBuilder::set_common`]); empty if there is
    /// nothing, or this one was.
    pub common: Vec<u8>,
}

/// Collects the records of a segment.
#[derive(Default)]
pub struct SegmentBuilder {
    rows: Vec<Row>,
    values: Vec<u8>,
    suffixes: Vec<u8>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    key_bytes: usize,
    tombstones: u32,
    repeated_key: bool,
    compressor: Compressor,
}

impl SegmentBuilder {
    /// An empty segment.
    pub fn new() -> SegmentBuilder {
        SegmentBuilder::default()
    }

    /// Appends a record. Panics unless it follows the one before by `compare_versions`, a Delete has
    /// no value, and the areas stay within [`SEGMENT_KEY_BYTES_MAX`] and [`SEGMENT_VALUE_BYTES_MAX`].
    #[inline]
    pub fn push(&mut self, r: RecordRef<'_>) {
        let mut shared = 0;
        if let Some(last) = self.rows.last() {
            shared = shared_prefix(&self.last_key, r.key);
            let ordered = match (self.last_key.get(shared), r.key.get(shared)) {
                (Some(a), Some(b)) => a < b,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => {
                    self.repeated_key = true;
                    last.seqno > r.seqno
                }
            };
            assert!(ordered, "records out of order: seqno {} then {}, key {:?}", last.seqno, r.seqno, r.key);
        } else {
            self.first_key.extend_from_slice(r.key);
        }
        let deleted = r.kind == Kind::Delete;
        assert!(!deleted || r.value.is_empty(), "a Delete with a value");
        self.key_bytes += r.key.len();
        assert!(self.key_bytes <= SEGMENT_KEY_BYTES_MAX, "too many key bytes in a segment");
        let suffix = &r.key[shared..];
        self.values.extend_from_slice(r.value);
        assert!(self.values.len() <= SEGMENT_VALUE_BYTES_MAX, "too many value bytes in a segment");
        self.suffixes.extend_from_slice(suffix);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(suffix);
        self.tombstones += u32::from(deleted);
        self.rows.push(Row {
            shared: shared as u32,
            suffix: suffix.len() as u32,
            value: r.value.len() as u32,
            deleted,
            seqno: r.seqno,
        });
    }

    /// Records so far.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of keys and values so far, plus [`RECORD_OVERHEAD_BYTES`] for each record.
    pub fn raw_bytes(&self) -> usize {
        self.key_bytes + self.values.len() + self.rows.len() * RECORD_OVERHEAD_BYTES
    }

    /// Bytes of keys so far.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// No record yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The key of the last record pushed; empty if there is none.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Encodes the records row-wise and leaves the builder empty. Panics if it is empty.
    pub fn finish(&mut self, compression: Compression) -> EncodedSegment {
        assert!(!self.is_empty(), "a segment without records");
        let (codec, bytes, body) = self.encode_rows(compression);
        self.end(codec, columnar::Encoded { payload: bytes, zones: Vec::new(), common: Vec::new() }, body)
    }

    /// Column-wise segments are compressed against `common` from now on, which is the [`EncodedSegment::common`] of one
    /// before; they can be decoded only with it. `None`: each for itself again; so it is, and false, with another compression
    /// than zstd.
    pub fn set_common(&mut self, compression: Compression, common: Option<Arc<[u8]>>) -> bool {
        self.compressor.set_common(compression, common)
    }

    /// As [`SegmentBuilder::finish`], but column-wise: values that are rows of one of `shapes` are taken apart.
    /// Very large segments are row-wise all the same.
    pub fn finish_columns(&mut self, compression: Compression, shapes: &Shapes) -> EncodedSegment {
        assert!(!self.is_empty(), "a segment without records");
        if self.rows.len() > columnar::ROWS_MAX || self.values.len() > columnar::VALUE_BYTES_MAX {
            return self.finish(compression);
        }
        let (suffixes, values) = (&self.suffixes, &self.values);
        let encoded =
            columnar::encode(&self.rows, suffixes, values, shapes, compression, &mut self.compressor);
        #[cfg(debug_assertions)]
        self.assert_same(&encoded.payload, compression);
        let values = std::mem::take(&mut self.values);
        self.end(CODEC_COLUMNS, encoded, values)
    }

    /// How many bytes the segment and its zones would take column-wise, as it is now. `None`: it is too large for that.
    pub fn bytes_in_columns(&mut self, compression: Compression, shapes: &Shapes) -> Option<usize> {
        if self.rows.len() > columnar::ROWS_MAX || self.values.len() > columnar::VALUE_BYTES_MAX {
            return None;
        }
        let (suffixes, values) = (&self.suffixes, &self.values);
        let encoded =
            columnar::encode(&self.rows, suffixes, values, shapes, compression, &mut self.compressor);
        Some(encoded.payload.len() + encoded.zones.len())
    }

    /// What was encoded column-wise must be, byte for byte, what row-wise encoding gives back.
    #[cfg(debug_assertions)]
    fn assert_same(&mut self, bytes: &[u8], compression: Compression) {
        let common = self.compressor.common().map_or(&[][..], |common| common);
        let columns = Segment::decode_on(common, CODEC_COLUMNS, bytes).expect("what was just encoded");
        let (codec, rows, body) = self.encode_rows(compression);
        let rows = Segment::decode(codec, &rows).expect("what was just encoded");
        assert_eq!(columns.rows(), rows.rows());
        (0..rows.rows()).for_each(|row| assert_eq!(columns.record(row), rows.record(row)));
        let common = self.compressor.common().cloned().unwrap_or_default();
        if let Some(packed) =
            columnar::Packed::open(CODEC_COLUMNS, bytes, &common).expect("what was just encoded")
        {
            for row in [0, rows.rows() / 2, rows.rows() - 1] {
                let record = rows.record(row);
                let first = rows.key(0);
                let found = packed.find(record.key, record.seqno, first).expect("what was just encoded");
                let columnar::Search::Found(found) = found else {
                    panic!("row {row} is not found: {found:?}")
                };
                assert_eq!((found.seqno, found.kind), (record.seqno, record.kind));
                assert_eq!(packed.value(&found).expect("what was just encoded"), record.value);
            }
        }
        self.values = body;
        self.values.truncate(self.rows.iter().map(|row| row.value as usize).sum());
    }

    /// Codec, payload, and the body before compression, which took the place of the values.
    fn encode_rows(&mut self, compression: Compression) -> (u8, Vec<u8>, Vec<u8>) {
        let (min_seqno, max_seqno) = self.seqnos();
        let flags = self.flags(min_seqno, max_seqno);
        let value_bytes = self.values.len();
        let mut body = std::mem::take(&mut self.values);
        self.append_areas(flags, min_seqno, &mut body);
        assert!(u32::try_from(body.len()).is_ok(), "a segment body over 4 GiB");

        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() / 2);
        for n in [self.rows.len(), body.len(), value_bytes, self.suffixes.len(), self.key_bytes] {
            bytes.extend_from_slice(&(n as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&min_seqno.to_le_bytes());
        debug_assert_eq!(bytes.len(), HEADER_BYTES);
        let codec = self.compressor.append(compression, &body, &mut bytes);
        (codec, bytes, body)
    }

    fn seqnos(&self) -> (Seqno, Seqno) {
        let seqnos = || self.rows.iter().map(|r| r.seqno);
        (seqnos().min().unwrap_or(0), seqnos().max().unwrap_or(0))
    }

    /// The finished segment; the builder is empty, and keeps `buffer` for the next one.
    fn end(&mut self, codec: u8, encoded: columnar::Encoded, buffer: Vec<u8>) -> EncodedSegment {
        let (min_seqno, max_seqno) = self.seqnos();
        let values: usize = self.rows.iter().map(|row| row.value as usize).sum();
        let segment = EncodedSegment {
            codec,
            bytes: encoded.payload,
            rows: self.rows.len() as u32,
            tombstones: self.tombstones,
            raw_bytes: (self.key_bytes + values + self.rows.len() * RECORD_OVERHEAD_BYTES) as u64,
            min_seqno,
            max_seqno,
            first_key: std::mem::take(&mut self.first_key),
            last_key: std::mem::take(&mut self.last_key),
            single_version: !self.repeated_key,
            zones: encoded.zones,
            common: encoded.common,
        };
        self.reset(buffer);
        segment
    }

    fn flags(&self, min_seqno: Seqno, max_seqno: Seqno) -> u32 {
        let (mut same_key, mut same_value) = (true, true);
        if let Some(first) = self.rows.first() {
            let key = first.shared + first.suffix;
            same_key = self.rows.iter().all(|r| r.shared + r.suffix == key);
            same_value = self.rows.iter().all(|r| r.value == first.value);
        }
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        flag(same_key, KEY_LENGTH_SAME)
            | flag(same_value, VALUE_LENGTH_SAME)
            | flag(min_seqno == max_seqno, SEQNO_SAME)
            | flag(self.tombstones > 0, HAS_DELETES)
            | flag(max_seqno - min_seqno > u64::from(u32::MAX), SEQNO_FAR)
    }

    /// Everything of the body that follows the values.
    fn append_areas(&self, flags: u32, min_seqno: Seqno, body: &mut Vec<u8>) {
        body.reserve(self.suffixes.len() + self.rows.len() * 6);
        body.extend_from_slice(&self.suffixes);
        for row in &self.rows {
            put_varint(body, u64::from(row.shared));
            if flags & KEY_LENGTH_SAME == 0 {
                put_varint(body, u64::from(row.suffix));
            }
        }
        if flags & VALUE_LENGTH_SAME == 0 {
            for row in &self.rows {
                put_varint(body, u64::from(row.value));
            }
        }
        if flags & SEQNO_SAME == 0 {
            for row in &self.rows {
                put_varint(body, row.seqno - min_seqno);
            }
        }
        if flags & HAS_DELETES != 0 {
            for rows in self.rows.chunks(8) {
                let bits = rows.iter().enumerate().map(|(i, row)| u8::from(row.deleted) << i);
                body.push(bits.fold(0, |a, b| a | b));
            }
        }
    }

    fn reset(&mut self, mut body: Vec<u8>) {
        body.clear();
        body.shrink_to(BUFFER_BYTES_KEPT);
        self.values = body;
        self.suffixes.clear();
        self.rows.clear();
        self.key_bytes = 0;
        self.tombstones = 0;
        self.repeated_key = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put<'a>(key: &'a [u8], seqno: Seqno) -> RecordRef<'a> {
        RecordRef { key, seqno, kind: Kind::Put, value: b"v" }
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn a_smaller_key_is_a_bug() {
        let mut builder = SegmentBuilder::new();
        builder.push(put(b"ab", 1));
        builder.push(put(b"a", 9));
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn the_same_version_twice_is_a_bug() {
        let mut builder = SegmentBuilder::new();
        builder.push(put(b"ab", 7));
        builder.push(put(b"ab", 7));
    }

    #[test]
    fn a_finished_builder_is_empty_and_can_be_used_again() {
        let mut builder = SegmentBuilder::new();
        builder.push(put(b"b", 7));
        builder.push(put(b"b", 3));
        let first = builder.finish(Compression::Lz4);
        assert!(!first.single_version);
        assert_eq!((first.rows, first.raw_bytes, first.min_seqno, first.max_seqno), (2, 36, 3, 7));
        assert!(builder.is_empty());
        assert_eq!(builder.raw_bytes(), 0);
        builder.push(put(b"a", 1));
        let second = builder.finish(Compression::None);
        assert!(second.single_version);
        assert_eq!((second.first_key, second.last_key), (b"a".to_vec(), b"a".to_vec()));
    }
}
