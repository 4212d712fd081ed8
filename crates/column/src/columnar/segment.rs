//! A whole column-wise segment: records to bytes and back.
#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use pando_base::Seqno;

use super::codes::{GROUPS_MAX, HEADER_BYTES, ROWS_MAX, VALUE_BYTES_MAX};
use super::decode::{take_columns, Budget};
use super::encode::put_columns;
use super::keys::{self, Keys};
use super::rows::Group;
use super::shape::{Shape, Taker};
use super::shapes::Shapes;
use super::streams::{Source, Writer};
use super::{ints, zone};
use crate::compression::{decompress, decompress_on, Compression, Compressor};
use crate::format::{
    CODEC_HEAD_ON_COMMON, CODEC_ROWS_LZ4, CODEC_ROWS_PLAIN, CODEC_ROWS_ZSTD, SEGMENT_KEY_BYTES_MAX,
};
use crate::row::Row;
use crate::segment::{Parts, RowStart, Segment, Seqnos, DELETED};
use crate::wire::{DecodeError, Reader};

/// A segment.
pub(crate) struct Encoded {
    pub(crate) payload: Vec<u8>,
    pub(crate) zones: Vec<u8>,
    /// What other segments may be compressed against; empty if this one was, or if there is nothing.
    pub(crate) common: Vec<u8>,
}

/// Encodes the segment, against the bytes in common that the compressor has. `suffixes` and `values` are those of all records, one after another.
/// Requires: at most [`ROWS_MAX`] records and [`VALUE_BYTES_MAX`] bytes of values.
pub(crate) fn encode(
    records: &[Row],
    suffixes: &[u8],
    values: &[u8],
    shapes: &Shapes,
    compression: Compression,
    compressor: &mut Compressor,
) -> Encoded {
    let base = records.iter().map(|record| record.seqno).min().unwrap_or(0);
    let all_keys = write_out(records, suffixes);
    let mut to = Writer::new(compression, compressor);
    let seqnos: Vec<u64> = records.iter().map(|record| record.seqno - base).collect();
    ints::put(&mut to, &seqnos);
    let shared: Vec<u32> = records.iter().map(|record| record.shared).collect();
    let heads = keys::put(&mut to, &all_keys, &shared);
    let zones = put_values(&mut to, records, values, shapes, heads);

    let mut head = Vec::new();
    let codec = to.finish_head(&mut head);
    let mut out = Vec::with_capacity(HEADER_BYTES + head.len() + to.data.len());
    for n in [records.len(), all_keys.bytes.len(), values.len(), head.len(), to.head.len()] {
        out.extend_from_slice(&(n as u32).to_le_bytes());
    }
    out.extend_from_slice(&u32::from(codec).to_le_bytes());
    out.extend_from_slice(&base.to_le_bytes());
    out.extend_from_slice(&(to.data.len() as u64).to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&to.data);
    Encoded { payload: out, zones, common: to.into_common() }
}

fn write_out(records: &[Row], suffixes: &[u8]) -> Keys {
    let mut keys = Keys::default();
    let (mut last, mut at) = (0, 0);
    for record in records {
        let start = keys.bytes.len();
        keys.starts.push(start as u32);
        keys.bytes.extend_from_within(last..last + record.shared as usize);
        keys.bytes.extend_from_slice(suffixes.get(at..at + record.suffix as usize).unwrap_or_default());
        at += record.suffix as usize;
        last = start;
    }
    keys.starts.push(keys.bytes.len() as u32);
    keys
}

/// Divides the values into groups by their shapes, and writes these. Gives the zones.
fn put_values(
    to: &mut Writer<'_>,
    records: &[Row],
    values: &[u8],
    shapes: &Shapes,
    heads: Option<(Vec<u16>, usize)>,
) -> Vec<u8> {
    let whole = [Shape::None, Shape::Whole];
    // Deletes, what is not known, then the layouts, newest first.
    let known = || shapes.known.iter().rev().take(GROUPS_MAX - 2);
    let candidates: Vec<&Shape> = whole.iter().chain(known().map(|known| &known.shape)).collect();
    let mut takers: Vec<Taker<'_>> = candidates.iter().map(|shape| Taker::new(shape)).collect();
    let mut members: Vec<Vec<u32>> = candidates.iter().map(|_| Vec::new()).collect();
    let mut start = 0;
    let mut hint = 2;
    for (row, record) in records.iter().enumerate() {
        let value = values.get(start..start + record.value as usize).unwrap_or_default();
        let group = take_into(&mut takers, record.deleted, value, start as u32, hint);
        if group > 1 {
            hint = group;
        }
        if let Some(members) = members.get_mut(group) {
            members.push(row as u32);
        }
        start += record.value as usize;
    }
    let used: Vec<usize> =
        (0..members.len()).filter(|at| members.get(*at).is_some_and(|m| !m.is_empty())).collect();
    to.varint(used.len() as u64);
    for shape in used.iter().filter_map(|at| candidates.get(*at)) {
        shape.put(to);
    }
    if used.len() > 1 {
        let mut group_of = vec![0; records.len()];
        for (number, members) in used.iter().filter_map(|at| members.get(*at)).enumerate() {
            for row in members {
                if let Some(group) = group_of.get_mut(*row as usize) {
                    *group = number as u64;
                }
            }
        }
        ints::put(to, &group_of);
    }
    let mut zones = Vec::new();
    if let [only] = used[..] {
        let known = only.checked_sub(whole.len()).and_then(|at| known().nth(at));
        if let (Some(known), Some(taker)) = (known, takers.get(only)) {
            zone::put(&mut zones, &known.shape, &known.zoned, &taker.columns, values);
        }
    }
    for at in used {
        let (Some(taker), Some(members), Some(shape)) = (takers.get(at), members.get(at), candidates.get(at))
        else {
            continue;
        };
        let own = heads.as_ref().map(|(heads, count)| (of_members(heads, members), *count));
        put_columns(
            to,
            shape,
            &taker.columns,
            taker.rows,
            values,
            own.as_ref().map(|(heads, count)| (&heads[..], *count)),
        );
    }
    zones
}

/// Puts a value into the group that it belongs to; `hint` is probably it.
fn take_into(takers: &mut [Taker<'_>], deleted: bool, value: &[u8], start: u32, hint: usize) -> usize {
    let mut fits = |at: usize| takers.get_mut(at).is_some_and(|taker| taker.take(value, start));
    if deleted {
        fits(0);
        return 0;
    }
    if fits(hint) {
        return hint;
    }
    let group = (2..GROUPS_MAX).find(|at| *at != hint && fits(*at)).unwrap_or(1);
    if group == 1 {
        fits(1);
    }
    group
}

fn of_members(heads: &[u16], members: &[u32]) -> Vec<u16> {
    members.iter().filter_map(|row| heads.get(*row as usize).copied()).collect()
}

#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) rows: usize,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    stored_head: usize,
    head_bytes: usize,
    codec: u8,
    pub(crate) base: Seqno,
    data_bytes: u64,
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<Header, DecodeError> {
        let what = "segment header";
        let mut number = || Ok(reader.u32(what)? as usize);
        let header = Header {
            rows: number()?,
            key_bytes: number()?,
            value_bytes: number()?,
            stored_head: number()?,
            head_bytes: number()?,
            codec: u8::try_from(number()?).unwrap_or(0),
            base: reader.u64(what)?,
            data_bytes: reader.u64(what)?,
        };
        let bounds = [
            ("segment rows", header.rows, ROWS_MAX),
            ("segment key bytes", header.key_bytes, SEGMENT_KEY_BYTES_MAX),
            ("segment value bytes", header.value_bytes, VALUE_BYTES_MAX),
        ];
        for (what, found, most) in bounds {
            if found > most {
                return Err(DecodeError::new(what, format_args!("at most {most}"), found));
            }
        }
        if header.rows == 0 {
            return Err(DecodeError::new("segment rows", "some", 0));
        }
        if !matches!(header.codec, CODEC_ROWS_PLAIN | CODEC_ROWS_LZ4 | CODEC_ROWS_ZSTD | CODEC_HEAD_ON_COMMON)
        {
            return Err(DecodeError::new("compression of the head", "0x10 to 0x13", header.codec));
        }
        Ok(header)
    }
}

/// The header, the head after decompression, and the data.
type Opened<'a> = (Header, Cow<'a, [u8]>, &'a [u8]);

/// Takes a segment apart as far as its streams. `common` is what it was written against.
pub(crate) fn open<'a>(bytes: &'a [u8], common: &[u8]) -> Result<Opened<'a>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let header = Header::read(&mut reader)?;
    let stored = reader.bytes(header.stored_head, "segment head")?;
    if header.data_bytes != reader.rest().len() as u64 {
        return Err(DecodeError::new("segment data bytes", header.data_bytes, reader.rest().len()));
    }
    let head = match header.codec {
        CODEC_ROWS_PLAIN => Cow::Borrowed(stored),
        CODEC_HEAD_ON_COMMON => {
            Cow::Owned(decompress_on(common, CODEC_ROWS_ZSTD, stored, header.head_bytes)?)
        }
        codec => Cow::Owned(decompress(codec, stored, header.head_bytes)?),
    };
    if head.len() != header.head_bytes {
        return Err(DecodeError::new("segment head bytes", header.head_bytes, head.len()));
    }
    Ok((header, head, reader.rest()))
}

/// Decodes what [`encode`] wrote; the bytes may be anything.
pub(crate) fn decode(bytes: &[u8], common: &[u8]) -> Result<Segment, DecodeError> {
    let (header, head, data) = open(bytes, common)?;
    decode_streams(&header, &head, data, common)
}

/// The same of what [`open`] gave.
pub(crate) fn decode_streams(
    header: &Header,
    head: &[u8],
    data: &[u8],
    common: &[u8],
) -> Result<Segment, DecodeError> {
    let mut from = Source::new(head, data).on(common);
    let deltas = ints::take(&mut from, header.rows)?;
    let keys = keys::take(&mut from, header.rows, header.key_bytes)?;
    let groups = take_groups(&mut from, header, &keys.heads)?;
    from.end()?;
    let seqnos = seqnos(header.base, deltas)?;
    build(header, keys, groups, seqnos)
}

fn seqnos(base: Seqno, deltas: Vec<u64>) -> Result<Seqnos, DecodeError> {
    let most = deltas.iter().copied().max().unwrap_or(0);
    if base.checked_add(most).is_none() {
        return Err(DecodeError::new("seqno", "64 bits", format_args!("{base} + {most}")));
    }
    if most == 0 {
        return Ok(Seqnos::Same(base));
    }
    if u32::try_from(most).is_ok() {
        return Ok(Seqnos::Near { base, deltas: deltas.into_iter().map(|delta| delta as u32).collect() });
    }
    Ok(Seqnos::Far(deltas.into_iter().map(|delta| base + delta).collect()))
}

fn take_groups(from: &mut Source<'_>, header: &Header, heads: &[u16]) -> Result<Vec<Group>, DecodeError> {
    let count = from.count(GROUPS_MAX, "groups of records")?;
    let shapes: Result<Vec<Shape>, _> = (0..count).map(|_| Shape::take(from)).collect();
    let mut groups: Vec<Group> =
        shapes?.into_iter().map(|shape| Group { shape, rows: Vec::new(), columns: Vec::new() }).collect();
    let numbers = if count == 1 { vec![0; header.rows] } else { ints::take(from, header.rows)? };
    for (row, number) in (0..).zip(numbers) {
        match usize::try_from(number).ok().and_then(|number| groups.get_mut(number)) {
            Some(group) => group.rows.push(row),
            None => return Err(DecodeError::new("group of a record", format_args!("below {count}"), number)),
        }
    }
    let mut budget = Budget::new(header.value_bytes);
    for group in &mut groups {
        let own = of_members(heads, &group.rows);
        let own = heads.last().map(|last| (&own[..], usize::from(*last) + 1));
        group.columns = take_columns(from, &group.shape, group.rows.len(), own, &mut budget)?;
    }
    Ok(groups)
}

fn build(
    header: &Header,
    taken: keys::TakenKeys,
    groups: Vec<Group>,
    seqnos: Seqnos,
) -> Result<Segment, DecodeError> {
    let mut lengths = vec![0u64; header.rows];
    groups.iter().for_each(|group| group.add_lengths(&mut lengths));
    let mut places = Vec::with_capacity(header.rows + 1);
    let mut end = 0u64;
    for length in &lengths {
        places.push(end as u32);
        // Within the header's bound before it is used again.
        end += length;
        if end > header.value_bytes as u64 {
            break;
        }
    }
    if end != header.value_bytes as u64 || places.len() != header.rows {
        return Err(DecodeError::new("segment value bytes", header.value_bytes, end));
    }
    places.push(end as u32);
    let keys = taken.keys;
    let starts = keys.starts.iter().zip(&places).map(|(key, value)| RowStart { key: *key, value: *value });
    let mut starts: Vec<RowStart> = starts.collect();
    for group in groups.iter().filter(|group| group.shape == Shape::None) {
        for row in &group.rows {
            if let Some(start) = starts.get_mut(*row as usize) {
                start.value |= DELETED;
            }
        }
    }
    let stride = same_length(&keys).unwrap_or(0);
    assert_eq!(starts.len(), header.rows + 1);
    let value_bytes = header.value_bytes;
    let parts = Parts { starts: &starts, seqnos, keys: &keys.bytes, value_bytes, stride };
    let segment = Segment::assemble(parts, |place| {
        groups.iter().for_each(|group| group.write(&places, place));
    });
    for row in taken.repeats {
        let (newer, older) = (segment.seqno(row - 1), segment.seqno(row));
        if newer <= older {
            return Err(DecodeError::new("order of versions", format_args!("below {newer}"), older));
        }
    }
    Ok(segment)
}

/// The length of every key, if they all have the same.
fn same_length(keys: &Keys) -> Option<usize> {
    let mut lengths = keys.starts.iter().zip(keys.starts.iter().skip(1)).map(|(a, b)| b - a);
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(first as usize)
}
