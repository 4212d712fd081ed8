//! The index of a run: for each segment what a reader needs to skip it, for each filter page its place.
//!
//! ```text
//! codec 3, integers as varints:
//!   filter pages; per page:  offset, length
//!   segments; per segment:   first key (counted bytes), offset, length, rows, tombstones, raw bytes,
//!                            smallest seqno, distance to the largest, flags (u8),
//!                            filter page + 1 (0: none), bytes of its zones
//!   the zones of all segments, one after another (`pando_column::Zones`), packed: u8 0x10 plain or 0x12 zstd,
//!                            how many bytes, counted what is stored
//!   offset, length of the block of what the segments have in common
//!
//! codec 2: without the last line, of runs whose segments have nothing in common
//! codec 1, which is still read: without zones; each segment ends with an extension (counted bytes) that is ignored
//! ```
#![deny(clippy::indexing_slicing)]

use pando_base::limits::KEY_BYTES_MAX;
use pando_base::Seqno;
use pando_column::wire::{put_bytes, put_varint, Reader};
use pando_column::{put_packed, take_packed, DecodeError, EncodedSegment};
use pando_memory::footprint_of;
use pando_storage::Place;

use crate::key_heads::Heads;
use crate::run_meta::{is_within, put_place, read_place};

/// Codec bytes of the index block: with a block of what the segments have in common, and without.
const CODEC_WITH_COMMON: u8 = 3;
const CODEC: u8 = 2;
/// That of indexes before there were zones.
const CODEC_WITHOUT_ZONES: u8 = 1;
/// No key has two versions in the segment.
const SINGLE_VERSION: u8 = 1;
/// The first key is also the last key of the segment before.
const CONTINUES: u8 = 2;
/// A segment's entry is at least this long on disk.
const ENTRY_BYTES_MIN: usize = 11;

/// Totals of all segments before one, so that a range costs two look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) tombstones: u64,
    pub(crate) raw_bytes: u64,
}

/// What the index says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// Of all segments before this one.
    pub(crate) before: Totals,
    pub(crate) min_seqno: Seqno,
    pub(crate) max_seqno: Seqno,
    /// Number of the filter page that covers it.
    pub(crate) filter: Option<u32>,
    rows: u32,
    flags: u8,
}

impl Entry {
    pub(crate) fn rows(&self) -> usize {
        self.rows as usize
    }
    pub(crate) fn single_version(&self) -> bool {
        self.flags & SINGLE_VERSION != 0
    }
    /// Whether the first key is also the last key of the segment before.
    pub(crate) fn continues(&self) -> bool {
        self.flags & CONTINUES != 0
    }
}

/// A run's index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// First keys, one after another, and where each starts: apart from `entries`, so that a search
    /// touches little memory.
    keys: Vec<u8>,
    key_starts: Vec<u32>,
    filters: Vec<Place>,
    totals: Totals,
    /// Zones of all segments, one after another, and where those of each end; empty if nothing was said of any.
    zones: Vec<u8>,
    zone_ends: Vec<u32>,
    /// Where is what the segments have in common.
    common: Option<Place>,
    /// Of the first keys, for searches; made by `decode`.
    heads: Heads,
}

impl Index {
    /// Adds a segment (writer).
    pub(crate) fn push(
        &mut self,
        segment: &EncodedSegment,
        place: Place,
        continues: bool,
        filter: Option<u32>,
    ) {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        self.entries.push(Entry {
            place,
            before: self.totals,
            min_seqno: segment.min_seqno,
            max_seqno: segment.max_seqno,
            filter,
            rows: segment.rows,
            flags: flag(segment.single_version, SINGLE_VERSION) | flag(continues, CONTINUES),
        });
        self.push_key(&segment.first_key);
        self.totals.rows += u64::from(segment.rows);
        self.totals.tombstones += u64::from(segment.tombstones);
        self.totals.raw_bytes += segment.raw_bytes;
        self.zones.extend_from_slice(&segment.zones);
        self.zone_ends.push(self.zones.len() as u32);
    }

    fn push_key(&mut self, key: &[u8]) {
        let start = u32::try_from(self.keys.len()).unwrap_or_else(|_| panic!("first keys over 4 GiB"));
        self.key_starts.push(start);
        self.keys.extend_from_slice(key);
    }

    /// Gives segments that were written without a seqno (as 0) the seqno `seqno`.
    pub(crate) fn number(&mut self, seqno: Seqno) {
        for entry in self.entries.iter_mut().filter(|entry| entry.max_seqno == 0) {
            (entry.min_seqno, entry.max_seqno) = (seqno, seqno);
        }
    }

    /// Adds a filter page (writer).
    pub(crate) fn push_filter(&mut self, place: Place) {
        self.filters.push(place);
    }

    /// Where is what the segments have in common, which they may be compressed against.
    pub(crate) fn common(&self) -> Option<Place> {
        self.common
    }

    /// Says where it is (writer).
    pub(crate) fn set_common(&mut self, place: Place) {
        self.common = Some(place);
    }

    /// Number of the filter page that comes next (writer).
    pub(crate) fn next_filter(&self) -> u32 {
        self.filters.len() as u32
    }

    /// Segments.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Totals of all segments.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Places of the filter pages.
    pub(crate) fn filters(&self) -> &[Place] {
        &self.filters
    }

    /// Entry of segment `number`; asking for one that is not there is a bug.
    #[expect(clippy::indexing_slicing, reason = "callers count segments themselves")]
    pub(crate) fn entry(&self, number: usize) -> &Entry {
        &self.entries[number]
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// First key of segment `number`.
    #[expect(
        clippy::indexing_slicing,
        reason = "starts ascend within `keys` by construction in push and decode"
    )]
    pub(crate) fn first_key(&self, number: usize) -> &[u8] {
        let start = self.key_starts[number] as usize;
        let end = self.key_starts.get(number + 1).map_or(self.keys.len(), |end| *end as usize);
        &self.keys[start..end]
    }

    /// What `pando_column::Zones` reads of segment `number`; empty if nothing was said of it.
    pub(crate) fn zones(&self, number: usize) -> &[u8] {
        let start =
            number.checked_sub(1).and_then(|before| self.zone_ends.get(before)).map_or(0, |at| *at as usize);
        let end = self.zone_ends.get(number).map_or(start, |at| *at as usize);
        self.zones.get(start..end).unwrap_or_default()
    }

    /// Totals of segment `number` alone.
    pub(crate) fn of_segment(&self, number: usize) -> Totals {
        self.of_range(number, number + 1)
    }

    /// Totals of segments `first..end`.
    pub(crate) fn of_range(&self, first: usize, end: usize) -> Totals {
        let before = |number: usize| self.entries.get(number).map_or(self.totals, |e| e.before);
        let (low, high) = (before(first), before(end));
        Totals {
            rows: high.rows - low.rows,
            tombstones: high.tombstones - low.tombstones,
            raw_bytes: high.raw_bytes - low.raw_bytes,
        }
    }

    /// Number of segments whose first key is below `key`.
    pub(crate) fn segments_below(&self, key: &[u8]) -> usize {
        debug_assert_eq!(self.heads.len(), self.len(), "an index is searched after it was decoded");
        self.heads.below(key, |number| self.first_key(number))
    }

    /// The segment with the first record whose key is `key` or greater, or the one before that.
    pub(crate) fn segment_for(&self, key: &[u8]) -> usize {
        let below = self.segments_below(key);
        if self.begins_with(below, key) {
            below
        } else {
            below.saturating_sub(1)
        }
    }

    /// Whether the first record with this key is the first of segment `number`; there may be no such segment.
    fn begins_with(&self, number: usize, key: &[u8]) -> bool {
        self.entries.get(number).is_some_and(|entry| !entry.continues() && self.first_key(number) == key)
    }

    /// Appends the payload; gives the codec.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> u8 {
        put_varint(out, self.filters.len() as u64);
        for place in &self.filters {
            put_place(out, *place);
        }
        put_varint(out, self.len() as u64);
        for (number, entry) in self.entries.iter().enumerate() {
            let own = self.of_segment(number);
            put_bytes(out, self.first_key(number));
            put_place(out, entry.place);
            put_varint(out, own.rows);
            put_varint(out, own.tombstones);
            put_varint(out, own.raw_bytes);
            put_varint(out, entry.min_seqno);
            put_varint(out, entry.max_seqno - entry.min_seqno);
            out.push(entry.flags);
            put_varint(out, entry.filter.map_or(0, |f| u64::from(f) + 1));
            put_varint(out, self.zones(number).len() as u64);
        }
        put_packed(out, &self.zones);
        match self.common {
            None => CODEC,
            Some(place) => {
                put_place(out, place);
                CODEC_WITH_COMMON
            }
        }
    }

    /// Decodes a payload, which may be anything; all places must lie in `extents`.
    pub(crate) fn decode(codec: u8, payload: &[u8], extents: &[Place]) -> Result<Index, DecodeError> {
        if !matches!(codec, CODEC_WITH_COMMON | CODEC | CODEC_WITHOUT_ZONES) {
            return Err(DecodeError::new("index codec", "1 to 3", codec));
        }
        let has_zones = codec != CODEC_WITHOUT_ZONES;
        let mut reader = Reader::new(payload);
        let mut index = Index::default();
        let pages = reader.varint("index filter pages")?;
        for _ in 0..pages {
            index.filters.push(read_block_place(&mut reader, extents, "filter page's place")?);
        }
        let segments = reader.varint("index segments")?;
        let most = reader.rest().len() / ENTRY_BYTES_MIN;
        if segments == 0 || segments > most as u64 {
            return Err(DecodeError::new("index segments", format_args!("1 to {most}"), segments));
        }
        if payload.len() as u64 > u64::from(u32::MAX) {
            return Err(DecodeError::new("index length", u32::MAX, payload.len()));
        }
        index.entries.reserve_exact(segments as usize);
        index.key_starts.reserve_exact(segments as usize);
        index.zone_ends.reserve_exact(if has_zones { segments as usize } else { 0 });
        for _ in 0..segments {
            index.read_entry(&mut reader, extents)?;
            index.read_extension(&mut reader, has_zones)?;
        }
        if has_zones {
            let zones = take_packed(&mut reader, usize::MAX, "zones")?;
            let last = index.zone_ends.last().map_or(0, |end| *end as usize);
            if zones.len() != last {
                return Err(DecodeError::new("bytes of zones", last, zones.len()));
            }
            index.zones = zones;
        }
        if codec == CODEC_WITH_COMMON {
            index.common =
                Some(read_block_place(&mut reader, extents, "place of what segments have in common")?);
        }
        reader.end("index")?;
        index.keys.shrink_to_fit();
        index.filters.shrink_to_fit();
        index.heads = Heads::new(index.len(), |number| index.first_key(number));
        Ok(index)
    }

    fn read_extension(&mut self, reader: &mut Reader<'_>, has_zones: bool) -> Result<(), DecodeError> {
        let what = "segment's extension";
        if !has_zones {
            return reader.counted_bytes(usize::MAX, what).map(|_| ());
        }
        let last = self.zone_ends.last().copied().unwrap_or(0);
        let bytes = reader.varint(what)?;
        match u32::try_from(bytes).ok().and_then(|bytes| last.checked_add(bytes)) {
            Some(end) => self.zone_ends.push(end),
            None => return Err(DecodeError::new(what, "less than 4 GiB", bytes)),
        }
        Ok(())
    }

    fn read_entry(&mut self, reader: &mut Reader<'_>, extents: &[Place]) -> Result<(), DecodeError> {
        let key = reader.counted_bytes(KEY_BYTES_MAX, "segment's first key")?;
        let place = read_block_place(reader, extents, "segment's place")?;
        let rows = reader.varint("segment's rows")?;
        let tombstones = reader.varint("segment's tombstones")?;
        let raw_bytes = reader.varint("segment's raw bytes")?;
        let min_seqno = reader.varint("segment's smallest seqno")?;
        let distance = reader.varint("segment's largest seqno")?;
        let flags = reader.u8("segment's flags")?;
        let filter = reader.varint("segment's filter page")?;

        let ordered = match self.len().checked_sub(1) {
            None => flags & CONTINUES == 0,
            Some(last) if flags & CONTINUES != 0 => self.first_key(last) <= key,
            Some(last) => self.first_key(last) < key,
        };
        if !ordered {
            return Err(DecodeError::new("segment's first key", "ascending keys", format_args!("{key:?}")));
        }
        let sum = |a: u64, b: u64| a.checked_add(b);
        let totals = (sum(self.totals.rows, rows), sum(self.totals.tombstones, tombstones));
        let (Ok(small_rows), Some(max_seqno), (Some(all_rows), Some(all_tombstones)), Some(all_bytes)) = (
            u32::try_from(rows),
            min_seqno.checked_add(distance),
            totals,
            sum(self.totals.raw_bytes, raw_bytes),
        ) else {
            return Err(DecodeError::new(
                "segment's counts",
                "numbers in range",
                format_args!("{rows} rows"),
            ));
        };
        if rows == 0 || tombstones > rows || filter > self.filters.len() as u64 {
            return Err(DecodeError::new("segment's counts", "rows, and a page in range", rows));
        }
        self.entries.push(Entry {
            place,
            before: self.totals,
            min_seqno,
            max_seqno,
            filter: filter.checked_sub(1).map(|f| f as u32),
            rows: small_rows,
            flags,
        });
        self.push_key(key);
        self.totals = Totals { rows: all_rows, tombstones: all_tombstones, raw_bytes: all_bytes };
        Ok(())
    }

    /// What its allocations take beyond the struct itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        footprint_of(&self.entries)
            + footprint_of(&self.keys)
            + footprint_of(&self.key_starts)
            + footprint_of(&self.filters)
            + footprint_of(&self.zones)
            + footprint_of(&self.zone_ends)
            + self.heads.heap_bytes()
    }
}

fn read_block_place(
    reader: &mut Reader<'_>,
    extents: &[Place],
    what: &'static str,
) -> Result<Place, DecodeError> {
    let place = read_place(reader, what)?;
    if is_within(place, extents) {
        return Ok(place);
    }
    Err(DecodeError::new(what, "within the run's extents", format_args!("{place:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Kind, RecordRef};
    use pando_column::{Compression, SegmentBuilder};
    use proptest::prelude::*;

    const EXTENTS: [Place; 1] = [Place { offset: 16_384, len: 1 << 20 }];

    fn place(number: u64) -> Place {
        Place { offset: 16_384 + number * 100, len: 100 }
    }

    /// Three segments: keys a and b, then b and c, then d.
    fn sample() -> Index {
        let mut index = Index::default();
        let segments: [&[(&[u8], Seqno)]; 3] =
            [&[(b"a", 4), (b"b", 9)], &[(b"b", 3), (b"c", 4)], &[(b"d", 1)]];
        for (number, rows) in (0..).zip(segments) {
            let mut builder = SegmentBuilder::new();
            for (key, seqno) in rows {
                builder.push(RecordRef { key, seqno: *seqno, kind: Kind::Put, value: b"v" });
            }
            let zones = if number == 0 { b"za".to_vec() } else { b"zb".to_vec() };
            let segment = EncodedSegment { zones, ..builder.finish(Compression::None) };
            index.push(&segment, place(number), number == 1, Some(0));
        }
        index.push_filter(place(9));
        index.set_common(place(10));
        index
    }

    fn encoded() -> Vec<u8> {
        let mut bytes = Vec::new();
        assert_eq!(sample().encode(&mut bytes), CODEC_WITH_COMMON);
        bytes
    }

    #[test]
    fn an_index_comes_back() {
        let (before, after) = (sample(), Index::decode(CODEC_WITH_COMMON, &encoded(), &EXTENTS).unwrap());
        assert_eq!(after.entries(), before.entries());
        assert_eq!(after.filters(), before.filters());
        assert_eq!(after.totals(), before.totals());
        assert_eq!(after.common(), Some(place(10)));
        assert!((0..3).all(|number| after.first_key(number) == before.first_key(number)));
        let zones = (0..3).map(|number| after.zones(number));
        assert!(zones.eq([&b"za"[..], b"zb", b"zb"]));
        let on_disk = [3 * size_of::<Entry>(), 3 * 4, 3 * 4, 3, 3 * 2, size_of::<Place>()];
        let allocations = on_disk.into_iter().chain([3 * 8]);
        assert_eq!(after.heap_bytes(), allocations.map(pando_memory::footprint).sum::<usize>());
    }

    #[test]
    fn an_index_of_segments_with_nothing_in_common_does_without() {
        let (mut bytes, alone) = (Vec::new(), Index { common: None, ..sample() });
        let codec = alone.encode(&mut bytes);
        assert_eq!((codec, Index::decode(codec, &bytes, &EXTENTS).unwrap().common()), (CODEC, None));
    }

    /// Of runs that were written before there were zones.
    #[test]
    fn an_index_without_zones_is_read() {
        let golden = [
            1, 132, 129, 1, 100, // one filter page: offset 16,516, 100 bytes
            1, 1, b'a', 128, 128, 1, 100, 2, 0, 36, 4, 5, 1, 1, 3, 9, 9,
            9, // one segment with an extension
        ];
        let index = Index::decode(CODEC_WITHOUT_ZONES, &golden, &EXTENTS).unwrap();
        assert_eq!((index.first_key(0), index.totals().rows, index.zones(0)), (&b"a"[..], 2, &b""[..]));
    }

    /// What is in files of today stays readable: the bytes of [`sample`].
    #[test]
    fn an_index_with_zones_and_something_in_common_is_read() {
        let golden = [
            1, 132, 135, 1, 100, // one filter page: offset 17,284, 100 bytes
            3, // segments: first key, place, rows, tombstones, raw bytes, seqnos, flags, filter page, bytes of zones
            1, b'a', 128, 128, 1, 100, 2, 0, 36, 4, 5, 1, 1, 2, //
            1, b'b', 228, 128, 1, 100, 2, 0, 36, 3, 1, 3, 1, 2, //
            1, b'd', 200, 129, 1, 100, 1, 0, 18, 1, 0, 1, 1, 2, //
            0x10, 6, 6, b'z', b'a', b'z', b'b', b'z', b'b', // zones, plain
            232, 135, 1, 100, // what they have in common
        ];
        assert_eq!(encoded(), golden);
        let index = Index::decode(CODEC_WITH_COMMON, &golden, &EXTENTS).unwrap();
        assert_eq!((index.first_key(2), index.totals().rows, index.zones(0)), (&b"d"[..], 5, &b"za"[..]));
    }

    /// The same without its last line, and with the codec that says so.
    #[test]
    fn an_index_with_zones_alone_is_read() {
        let golden = [
            1, 132, 135, 1, 100, 1, 1, b'a', 128, 128, 1, 100, 2, 0, 36, 4, 5, 1, 1, 2, 0x10, 2, 2, b'z',
            b'a',
        ];
        let index = Index::decode(CODEC, &golden, &EXTENTS).unwrap();
        assert_eq!((index.first_key(0), index.zones(0), index.common()), (&b"a"[..], &b"za"[..], None));
    }

    #[test]
    fn a_search_begins_where_the_first_version_of_the_key_may_be() {
        let index = Index::decode(CODEC_WITH_COMMON, &encoded(), &EXTENTS).unwrap();
        let found =
            [&b""[..], b"a", b"ab", b"b", b"ba", b"c", b"cc", b"d", b"e"].map(|key| index.segment_for(key));
        assert_eq!(found, [0, 0, 0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn places_outside_the_run_and_unknown_codecs_are_refused() {
        let elsewhere = [Place { offset: 16_384, len: 250 }];
        assert!(Index::decode(CODEC_WITH_COMMON, &encoded(), &elsewhere).is_err());
        assert!(Index::decode(CODEC_WITH_COMMON + 1, &encoded(), &EXTENTS).is_err());
        // The segments and filters lie within, what they have in common does not.
        let nearly = [Place { offset: 16_384, len: 1000 }];
        assert!(Index::decode(CODEC_WITH_COMMON, &encoded(), &nearly).is_err());
    }

    proptest! {
        #[test]
        fn damaged_and_arbitrary_bytes_never_panic(
            damage in proptest::collection::vec((0usize..120, any::<u8>()), 0..6), cut in 0usize..120,
            noise in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut bytes = encoded();
            for (at, byte) in damage {
                if let Some(b) = bytes.get_mut(at) {
                    *b = byte;
                }
            }
            for bytes in [&bytes[..], bytes.get(..cut).unwrap_or_default(), &noise] {
                if let Ok(index) = Index::decode(CODEC_WITH_COMMON, bytes, &EXTENTS) {
                    prop_assert!(index.segment_for(b"b") < index.len());
                }
            }
        }
    }
}
