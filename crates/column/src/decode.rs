//! Bytes to a decoded segment. The bytes may be anything.
//!
//! 1. Read the header; check its lengths against each other and the limits.
//! 2. Decompress the body.
//! 3. Write out the keys, verifying their order and every length.
//! 4. Turn value lengths into offsets, read seqnos and kinds.
//! 5. Put all of it into one piece of memory; verify the order of versions of one key.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use pando_base::limits::KEY_BYTES_MAX;

use crate::columnar;
use crate::compression::decompress;
use crate::format::*;
use crate::segment::{Parts, RowStart, Segment, Seqnos, DELETED};
use crate::wire::{DecodeError, Reader};

struct Header {
    rows: usize,
    body_bytes: usize,
    value_bytes: usize,
    suffix_bytes: usize,
    key_bytes: usize,
    flags: u32,
    base_seqno: u64,
}

impl Segment {
    /// Decodes the payload of a segment's block. The bytes may be anything: what no builder wrote is an
    /// error.
    pub fn decode(codec: u8, bytes: &[u8]) -> Result<Segment, DecodeError> {
        Segment::decode_on(&[], codec, bytes)
    }

    /// As [`Segment::decode`], of a segment that was encoded after [`SegmentBuilder::set_common`](crate::SegmentBuilder::set_common)
    /// with `common`.
    pub fn decode_on(common: &[u8], codec: u8, bytes: &[u8]) -> Result<Segment, DecodeError> {
        if codec == CODEC_COLUMNS {
            return columnar::decode(bytes, common);
        }
        let mut reader = Reader::new(bytes);
        let header = Header::read(&mut reader)?;
        let body: Cow<'_, [u8]> = match codec {
            CODEC_ROWS_PLAIN => Cow::Borrowed(reader.rest()),
            CODEC_ROWS_LZ4 | CODEC_ROWS_ZSTD => {
                Cow::Owned(decompress(codec, reader.rest(), header.body_bytes)?)
            }
            _ => {
                return Err(DecodeError::new(
                    "segment codec",
                    "0x10, 0x11, 0x12 or 0x20",
                    format_args!("{codec:#x}"),
                ))
            }
        };
        if body.len() != header.body_bytes {
            return Err(DecodeError::new("segment body length", header.body_bytes, body.len()));
        }
        let mut areas = Reader::new(&body);
        let values = areas.bytes(header.value_bytes, "segment values")?;
        let suffixes = areas.bytes(header.suffix_bytes, "segment suffixes")?;
        // Each row has at least a byte for what its key shares: this bounds all memory by row.
        if header.rows == 0 || header.rows > areas.rest().len() {
            return Err(DecodeError::new(
                "segment rows",
                format_args!("1 to {}", areas.rest().len()),
                header.rows,
            ));
        }
        let mut rows = Rows { starts: Vec::with_capacity(header.rows + 1), repeats: Vec::new() };
        let keys = rows.expand_keys(&header, suffixes, &mut areas)?;
        rows.place_values(&header, &mut areas)?;
        let seqnos = read_seqnos(&header, &mut areas)?;
        if header.flags & HAS_DELETES != 0 {
            rows.mark_deletes(areas.bytes(header.rows.div_ceil(8), "segment kinds")?)?;
        }
        areas.end("segment body")?;

        let stride = header.same_length(KEY_LENGTH_SAME, header.key_bytes, "segment key bytes")?.unwrap_or(0);
        let parts = Parts { starts: &rows.starts, seqnos, keys: &keys, value_bytes: values.len(), stride };
        let segment = Segment::assemble(parts, |place| place.copy_from_slice(values));
        for row in rows.repeats {
            let (newer, older) = (segment.seqno(row - 1), segment.seqno(row));
            if newer <= older {
                return Err(DecodeError::new("order of versions", format_args!("below {newer}"), older));
            }
        }
        Ok(segment)
    }
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<Header, DecodeError> {
        let what = "segment header";
        let header = Header {
            rows: reader.u32(what)? as usize,
            body_bytes: reader.u32(what)? as usize,
            value_bytes: reader.u32(what)? as usize,
            suffix_bytes: reader.u32(what)? as usize,
            key_bytes: reader.u32(what)? as usize,
            flags: reader.u32(what)?,
            base_seqno: reader.u64(what)?,
        };
        if header.flags & !FLAGS_ALL != 0 {
            return Err(DecodeError::new("segment flags", "known ones", format_args!("{:#x}", header.flags)));
        }
        if header.key_bytes > SEGMENT_KEY_BYTES_MAX {
            return Err(DecodeError::new("segment key bytes", SEGMENT_KEY_BYTES_MAX, header.key_bytes));
        }
        if header.value_bytes > SEGMENT_VALUE_BYTES_MAX {
            return Err(DecodeError::new("segment value bytes", SEGMENT_VALUE_BYTES_MAX, header.value_bytes));
        }
        Ok(header)
    }

    /// The length of each key (`total` is `key_bytes`) or value, if `flag` says that all have the same.
    fn same_length(&self, flag: u32, total: usize, what: &'static str) -> Result<Option<usize>, DecodeError> {
        if self.flags & flag == 0 {
            return Ok(None);
        }
        match (total.checked_rem(self.rows), total.checked_div(self.rows)) {
            (Some(0), Some(each)) => Ok(Some(each)),
            _ => Err(DecodeError::new(what, format_args!("a multiple of {} rows", self.rows), total)),
        }
    }
}

/// The rows being read.
struct Rows {
    starts: Vec<RowStart>,
    /// Rows with the key of the row before.
    repeats: Vec<usize>,
}

impl Rows {
    fn expand_keys(
        &mut self,
        header: &Header,
        suffixes: &[u8],
        areas: &mut Reader<'_>,
    ) -> Result<Vec<u8>, DecodeError> {
        let same = header.same_length(KEY_LENGTH_SAME, header.key_bytes, "segment key bytes")?;
        let mut suffixes = Reader::new(suffixes);
        let mut keys: Vec<u8> = Vec::with_capacity(header.key_bytes);
        let (mut last, mut last_end) = (0, 0);
        for row in 0..header.rows {
            let shared = areas.varint("shared key length")? as usize;
            if shared > last_end - last {
                return Err(DecodeError::new("shared key length", last_end - last, shared));
            }
            let suffix_bytes = match same {
                Some(each) if shared <= each => each - shared,
                Some(each) => return Err(DecodeError::new("shared key length", each, shared)),
                None => areas.varint("key suffix length")? as usize,
            };
            let suffix = suffixes.bytes(suffix_bytes, "segment suffixes")?;
            let key_bytes = shared + suffix.len();
            if key_bytes > KEY_BYTES_MAX || key_bytes > header.key_bytes - last_end {
                return Err(DecodeError::new("key length", header.key_bytes - last_end, key_bytes));
            }
            if row > 0 {
                // The keys share exactly `shared` bytes, so the next one tells which is greater.
                match (keys.get(last + shared), suffix.first()) {
                    (Some(a), Some(b)) if a < b => {}
                    (None, Some(_)) => {}
                    (None, None) => self.repeats.push(row),
                    _ => {
                        return Err(DecodeError::new(
                            "order of keys",
                            "a greater key",
                            format_args!("row {row}"),
                        ))
                    }
                }
            }
            self.starts.push(RowStart { key: last_end as u32, value: 0 });
            keys.extend_from_within(last..last + shared);
            keys.extend_from_slice(suffix);
            (last, last_end) = (last_end, keys.len());
        }
        self.starts.push(RowStart { key: last_end as u32, value: 0 });
        suffixes.end("segment suffixes")?;
        if keys.len() != header.key_bytes {
            return Err(DecodeError::new("segment key bytes", header.key_bytes, keys.len()));
        }
        Ok(keys)
    }

    fn place_values(&mut self, header: &Header, areas: &mut Reader<'_>) -> Result<(), DecodeError> {
        let same = header.same_length(VALUE_LENGTH_SAME, header.value_bytes, "segment value bytes")?;
        let mut at = 0usize;
        let count = self.starts.len();
        for (row, start) in self.starts.iter_mut().enumerate() {
            // Never over SEGMENT_VALUE_BYTES_MAX: checked below before it is used again.
            start.value = at as u32;
            if row + 1 == count {
                break;
            }
            let bytes = match same {
                Some(each) => each,
                None => areas.varint("value length")? as usize,
            };
            if bytes > header.value_bytes - at {
                return Err(DecodeError::new("value length", header.value_bytes - at, bytes));
            }
            at += bytes;
        }
        if at != header.value_bytes {
            return Err(DecodeError::new("segment value bytes", header.value_bytes, at));
        }
        Ok(())
    }

    fn mark_deletes(&mut self, bits: &[u8]) -> Result<(), DecodeError> {
        let rows = self.starts.len().saturating_sub(1);
        let mut end = self.starts.last().map_or(0, |s| s.value);
        for (row, start) in self.starts.iter_mut().enumerate().take(rows).rev() {
            let (value, next) = (start.value, end);
            end = value;
            if bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 != 0) {
                if next != value {
                    return Err(DecodeError::new("value of a Delete", "0 bytes", next - value));
                }
                start.value |= DELETED;
            }
        }
        Ok(())
    }
}

fn read_seqnos(header: &Header, areas: &mut Reader<'_>) -> Result<Seqnos, DecodeError> {
    let base = header.base_seqno;
    if header.flags & SEQNO_SAME != 0 {
        return Ok(Seqnos::Same(base));
    }
    let mut next = || {
        let delta = areas.varint("seqno")?;
        match base.checked_add(delta) {
            Some(seqno) => Ok((delta, seqno)),
            None => Err(DecodeError::new("seqno", "64 bits", format_args!("{base} + {delta}"))),
        }
    };
    if header.flags & SEQNO_FAR != 0 {
        let seqnos: Result<Vec<u64>, _> = (0..header.rows).map(|_| Ok(next()?.1)).collect();
        return Ok(Seqnos::Far(seqnos?));
    }
    let deltas: Result<Vec<u32>, _> = (0..header.rows)
        .map(|_| {
            let (delta, _) = next()?;
            u32::try_from(delta).map_err(|_| DecodeError::new("seqno", "32 bits from the base", delta))
        })
        .collect();
    Ok(Seqnos::Near { base, deltas: deltas? })
}
