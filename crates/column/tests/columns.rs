//! Column-wise segments give back every byte, whatever values are; their decoder takes any bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pando_base::{compare_versions, Kind, RecordRef, Seqno};
use pando_column::layout::{ColumnType, Kind as ColumnKind, Layouts, NewColumn, Source, Value};
use pando_column::vector::Vector;
use pando_column::wire::{put_varint, Reader};
use pando_column::{
    format, pick, Compression, EncodedSegment, Packed, Pick, Search, Segment, SegmentBuilder, Shapes, Zones,
    ZONE_BYTES_MAX,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(1)];

type Records = BTreeMap<(Vec<u8>, std::cmp::Reverse<Seqno>), Option<Vec<u8>>>;

fn column(kind: ColumnKind, size: u32, nullable: bool) -> NewColumn {
    let ty = ColumnType { kind, size, nullable, binary: false };
    NewColumn { name: "c".into(), ty, source: Source::Added(Value::Null) }
}

/// One of each kind, and a second layout with fewer.
fn layouts() -> Layouts {
    use ColumnKind::*;
    let kinds = [
        (Signed, 4),
        (Unsigned, 3),
        (Float, 8),
        (Bytes, 5),
        (Bytes, 16),
        (Bit, 2),
        (Enum, 1),
        (Set, 8),
        (Char, 10),
        (Varchar, 300),
        (Blob, 4),
        (Large, 4),
    ];
    let columns =
        kinds.iter().flat_map(|(kind, size)| [column(*kind, *size, false), column(*kind, *size, true)]);
    let first = Layouts::new(columns.collect());
    let kept =
        [0usize, 3, 18, 19].map(|at| NewColumn { source: Source::Column(at), ..column_of(&first, at) });
    first.changed(kept.to_vec()).expect("columns of the first layout")
}

fn column_of(layouts: &Layouts, at: usize) -> NewColumn {
    let column = &layouts.current().columns[at];
    NewColumn { name: column.name.clone(), ty: column.ty, source: Source::Column(at) }
}

/// A row of layout `version`, from a number for each cell: few distinct ones repeat.
fn row(layouts: &Layouts, version: u32, cells: &[u32]) -> Vec<u8> {
    let layout = layouts.get(version).expect("a layout");
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(version));
    let nulls = out.len();
    out.resize(nulls + layout.null_bytes(), 0);
    let mut nullable = 0;
    for (at, column) in layout.columns.iter().enumerate() {
        let cell = cells[at % cells.len()].wrapping_mul(at as u32 + 1);
        if column.ty.nullable {
            nullable += 1;
            if cell % 5 == 0 {
                out[nulls + (nullable - 1) / 8] |= 1 << ((nullable - 1) % 8);
                continue;
            }
        }
        let bytes: Vec<u8> = (0..40).map(|i| (cell >> (i % 4 * 8)) as u8).collect();
        let size = column.ty.size as usize;
        match column.ty.kind {
            ColumnKind::Char => put_text(&mut out, &bytes[..cell as usize % (size + 1)]),
            ColumnKind::Varchar | ColumnKind::Blob | ColumnKind::Large => {
                put_text(&mut out, &bytes.repeat(6)[..cell as usize % 200])
            }
            _ => out.extend_from_slice(&bytes[..size]),
        }
    }
    out
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn views(records: &Records) -> Vec<RecordRef<'_>> {
    records
        .iter()
        .map(|((key, seqno), value)| RecordRef {
            key,
            seqno: seqno.0,
            kind: if value.is_some() { Kind::Put } else { Kind::Delete },
            value: value.as_deref().unwrap_or_default(),
        })
        .collect()
}

fn encode(records: &[RecordRef<'_>], compression: Compression, shapes: &Shapes) -> EncodedSegment {
    let mut builder = SegmentBuilder::new();
    records.iter().for_each(|r| builder.push(*r));
    builder.finish_columns(compression, shapes)
}

fn assert_survive(records: &[RecordRef<'_>], shapes: &Shapes) {
    for compression in COMPRESSIONS {
        let encoded = encode(records, compression, shapes);
        assert_eq!(encoded.codec, format::CODEC_COLUMNS);
        let mut rows = SegmentBuilder::new();
        records.iter().for_each(|r| rows.push(*r));
        let rows = rows.finish(compression);
        let zones = Vec::new();
        assert_eq!(
            EncodedSegment {
                codec: rows.codec,
                bytes: rows.bytes.clone(),
                zones,
                common: Vec::new(),
                ..encoded.clone()
            },
            rows
        );
        let columns = Segment::decode(encoded.codec, &encoded.bytes).expect("what was just encoded");
        let rows = Segment::decode(rows.codec, &rows.bytes).expect("what was just encoded");
        assert_eq!(columns.rows(), records.len());
        assert_eq!(columns.heap_bytes(), rows.heap_bytes());
        for (i, record) in records.iter().enumerate() {
            assert_eq!(&columns.record(i), record);
            assert_eq!(columns.lower_bound(record.key), rows.lower_bound(record.key));
        }
        assert_packed(&encoded, &columns, &Arc::default());
    }
}

/// Every row that is looked for in the segment as it is stored is what the decoded one has, and so is all of it.
fn assert_packed(encoded: &EncodedSegment, segment: &Segment, common: &Arc<[u8]>) {
    let packed = Packed::open(encoded.codec, &encoded.bytes, common).expect("what was just encoded");
    // Else rows and deletes are mixed, or layouts.
    let Some(packed) = packed else { return };
    assert_eq!(packed.rows(), segment.rows());
    let first = segment.key(0);
    assert!(packed.find(first, Seqno::MAX, &[first, &[1]].concat()).is_err());
    let whole = packed.decode().expect("what was just encoded");
    for i in (0..segment.rows()).step_by(1 + segment.rows() / 200) {
        let record = segment.record(i);
        assert_eq!(whole.record(i), record);
        assert_eq!(
            packed.lower_bound(record.key, first).expect("what was just encoded"),
            segment.lower_bound(record.key)
        );
        for snapshot in [record.seqno, record.seqno.saturating_sub(1), Seqno::MAX] {
            let row = segment.lower_bound_version(record.key, snapshot);
            match packed.find(record.key, snapshot, first).expect("what was just encoded") {
                Search::Found(found) => {
                    let record = segment.record(row);
                    let value = packed.value(&found).expect("what was just encoded");
                    let found =
                        RecordRef { key: record.key, seqno: found.seqno, kind: found.kind, value: &value };
                    assert_eq!(found, record);
                }
                Search::Absent => assert_ne!(segment.key(row), record.key),
                Search::Beyond => assert_eq!(row, segment.rows()),
            }
        }
        let before = record.key.split_last().map_or(&[][..], |(_, start)| start);
        if segment.find(before, Seqno::MAX).is_none() {
            let is_beyond = segment.lower_bound(before) == segment.rows();
            let expected = if is_beyond { Search::Beyond } else { Search::Absent };
            assert_eq!(packed.find(before, Seqno::MAX, first).expect("what was just encoded"), expected);
        }
        let behind: Vec<u8> = [record.key, &[0]].concat();
        assert_eq!(
            packed.lower_bound(&behind, first).expect("what was just encoded"),
            segment.lower_bound(&behind)
        );
        let row = segment.lower_bound_version(&behind, Seqno::MAX);
        let expected = if row == segment.rows() { Search::Beyond } else { Search::Absent };
        if row == segment.rows() || segment.key(row) != behind {
            assert_eq!(packed.find(&behind, Seqno::MAX, first).expect("what was just encoded"), expected);
        }
    }
}

/// Every column picked from the segment has the rows' values, alone and together with others.
fn assert_picked(records: &[RecordRef<'_>], layouts: &Layouts) {
    let current = layouts.current();
    let mut picks: Vec<Pick> = layouts.versions()[0].columns.iter().map(|c| Pick::Column(c.id)).collect();
    picks.push(Pick::Key { offset: 1, size: 2 });
    picks.push(Pick::WholeKey);
    picks.push(Pick::Column(9999));
    for compression in COMPRESSIONS {
        let encoded = encode(records, compression, &Shapes::of(layouts));
        let of = |picks: &[Pick]| {
            pick(encoded.codec, &encoded.bytes, &[], layouts, picks).expect("what was just encoded")
        };
        let all = of(&picks);
        let version = records[0].value.first().copied().unwrap_or(0);
        let is_plain = |r: &RecordRef<'_>| {
            r.kind == Kind::Put && r.value.first() == Some(&version) && take_apart(layouts, r.value).is_some()
        };
        let Some(all) = all else {
            assert!(!records.iter().all(is_plain) || records.iter().any(|r| r.key.len() < 3));
            continue;
        };
        assert_eq!((all.rows, all.version), (records.len(), u32::from(version)));
        assert!(all.version <= current.version);
        for (at, r) in records.iter().enumerate() {
            let values = take_apart(layouts, r.value).expect("a row");
            for (pick, vector) in picks.iter().zip(&all.vectors) {
                let found = vector.as_ref().map(|vector| vector.get(at).map(<[u8]>::to_vec));
                let expected = match *pick {
                    Pick::Key { offset, size } => Some(Some(r.key[offset..offset + size].to_vec())),
                    Pick::WholeKey => Some(Some(r.key.to_vec())),
                    Pick::Column(id) => values.iter().find(|(of, _)| *of == id).map(|(_, v)| v.clone()),
                };
                assert_eq!(found, expected, "row {at}, {pick:?}");
            }
        }
        for (one, vector) in picks.iter().zip(&all.vectors) {
            let alone = of(&[*one]).expect("columns");
            assert_eq!(&alone.vectors[0], vector);
        }
        assert!(of(&[]).expect("columns").vectors.is_empty());
    }
}

/// Where all records are rows of one layout, each column's zone is the least and the greatest of its values.
fn assert_zones(records: &[RecordRef<'_>], layouts: &Layouts) {
    let encoded = encode(records, Compression::Lz4, &Shapes::of(layouts));
    let rows = records.iter().map(|r| match r.kind {
        Kind::Put => take_apart(layouts, r.value).map(|values| (r.value[0], values)),
        Kind::Delete => None,
    });
    let rows = rows.collect::<Option<Vec<_>>>().filter(|rows| rows.iter().all(|(of, _)| *of == rows[0].0));
    let Some(rows) = rows else {
        assert!(encoded.zones.is_empty(), "zones of records that are not all rows of one layout");
        return;
    };
    let zones = Zones::of(&encoded.zones, layouts).expect("zones");
    assert_eq!(zones.layout.version, u32::from(rows[0].0));
    for (at, column) in zones.layout.columns.iter().enumerate() {
        let kind = column.ty.kind;
        let is_zoned = !kind.is_counted() && kind != ColumnKind::Float && column.ty.size <= ZONE_BYTES_MAX;
        // In the order of numbers, of little-endian bytes.
        let place = |value: &Vec<u8>| {
            let mut bytes = value.clone();
            if !matches!(kind, ColumnKind::Bytes | ColumnKind::Bit) {
                bytes.reverse();
            }
            bytes
                .first_mut()
                .into_iter()
                .for_each(|top| *top ^= if kind == ColumnKind::Signed { 0x80 } else { 0 });
            bytes
        };
        let values = || rows.iter().filter_map(|(_, values)| values[at].1.as_ref());
        let bounds = values().min_by_key(|value| place(value)).zip(values().max_by_key(|value| place(value)));
        let has_null = rows.iter().any(|(_, values)| values[at].1.is_none());
        let found = zones.get(column.id).map(|zone| (zone.bounds, zone.has_null));
        let expected = (bounds.map(|(least, most)| (&least[..], &most[..])), has_null);
        assert_eq!(found, is_zoned.then_some(expected), "{kind:?}");
    }
    assert_eq!(zones.get(9999), None);
}

/// Ids and values of a row's columns; `None`: it is not a row.
fn take_apart(layouts: &Layouts, row: &[u8]) -> Option<Vec<(u32, Option<Vec<u8>>)>> {
    let layout = layouts.get((*row.first()?).into())?;
    let (nulls, rest) = row[1..].split_at_checked(layout.null_bytes())?;
    let mut rest = Reader::new(rest);
    let mut null_at = 0;
    let mut values = Vec::new();
    for column in &layout.columns {
        let at = null_at;
        null_at += usize::from(column.ty.nullable);
        if column.ty.nullable && nulls[at / 8] >> (at % 8) & 1 != 0 {
            values.push((column.id, None));
            continue;
        }
        let value = match column.ty.kind.is_counted() {
            true => rest.counted_bytes(usize::MAX, "").ok()?,
            false => rest.bytes(column.ty.size as usize, "").ok()?,
        };
        values.push((column.id, Some(value.to_vec())));
    }
    rest.rest().is_empty().then_some(values)
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let index =
        (0u8..3, 0u32..1000).prop_map(|(head, tail)| [&[b'k', head][..], &tail.to_be_bytes()].concat());
    prop_oneof![2 => vec(0u8..3, 0..6), 4 => index, 2 => vec(any::<u8>(), 8..=8), 1 => vec(Just(255u8), 0..30)]
}

fn seqno() -> impl Strategy<Value = std::cmp::Reverse<Seqno>> {
    prop_oneof![6 => Just(7u64), 2 => 1u64..100_000, 1 => any::<u64>()].prop_map(std::cmp::Reverse)
}

/// Rows of both layouts, Deletes, and bytes that are neither.
fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    let cells = vec(prop_oneof![0u32..4, 0u32..300, any::<u32>()], 1..4);
    let rows = (prop_oneof![5 => Just(1u32), 1 => Just(2)], cells)
        .prop_map(|(version, cells)| Some(row(&layouts(), version, &cells)));
    prop_oneof![12 => rows, 1 => Just(None), 1 => vec(any::<u8>(), 0..30).prop_map(Some)]
}

fn records() -> impl Strategy<Value = Records> {
    btree_map((key(), seqno()), value(), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_record_comes_back(records in records()) {
        assert_survive(&views(&records), &Shapes::of(&layouts()));
        assert_survive(&views(&records), &Shapes::default());
        assert_picked(&views(&records), &layouts());
        assert_zones(&views(&records), &layouts());
    }

    #[test]
    fn rows_of_one_layout_come_back(cells in vec(vec(0u32..40, 3..=3), 1..600), version in 1u32..3) {
        let layouts = layouts();
        let rows = (0u32..).zip(&cells);
        let records: Records = rows
            .map(|(id, cells)| ((id.to_be_bytes().to_vec(), std::cmp::Reverse(0)), Some(row(&layouts, version, cells))))
            .collect();
        assert_survive(&views(&records), &Shapes::of(&layouts));
        assert_picked(&views(&records), &layouts);
        assert_zones(&views(&records), &layouts);
    }

    #[test]
    fn zones_of_arbitrary_bytes_never_panic(noise in vec(prop_oneof![0u8..8, any::<u8>()], 0..200)) {
        let layouts = layouts();
        if let Some(zones) = Zones::of(&noise, &layouts) {
            layouts.versions().iter().flat_map(|layout| &layout.columns).for_each(|column| _ = zones.get(column.id));
        }
    }

    #[test]
    fn a_damaged_segment_is_an_error_or_a_valid_segment_but_never_a_panic(
        records in records(), which in 0usize..3,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>(),
    ) {
        let encoded = encode(&views(&records), COMPRESSIONS[which], &Shapes::of(&layouts()));
        let mut bytes = encoded.bytes.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &encoded.bytes[..cut.index(bytes.len())]] {
            if let Ok(segment) = Segment::decode(encoded.codec, bytes) {
                walk(&segment);
            }
            walk_packed(encoded.codec, bytes, &[]);
            let layouts = layouts();
            for at in 0..22 {
                let picks = [Pick::Column(layouts.versions()[0].columns[at].id), Pick::Key { offset: 0, size: 1 }];
                let _ = pick(encoded.codec, bytes, &[], &layouts, &picks);
            }
        }
    }

    #[test]
    fn a_segment_compressed_against_another_gives_back_every_byte(
        first in records(), mut second in records(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        // Neighbours have most in common.
        second.extend(first.iter().skip(1).map(|(key, value)| (key.clone(), value.clone())));
        let (shapes, zstd) = (Shapes::of(&layouts()), Compression::Zstd(3));
        let common: Arc<[u8]> = encode(&views(&first), zstd, &shapes).common.into();
        let mut builder = SegmentBuilder::new();
        builder.set_common(zstd, (!common.is_empty()).then(|| common.clone()));
        let records = views(&second);
        records.iter().for_each(|r| builder.push(*r));
        let encoded = builder.finish_columns(zstd, &shapes);
        prop_assert!(common.is_empty() || encoded.common.is_empty());
        let segment = Segment::decode_on(&common, encoded.codec, &encoded.bytes).unwrap();
        prop_assert_eq!(segment.rows(), records.len());
        for (at, record) in records.iter().enumerate() {
            prop_assert_eq!(&segment.record(at), record);
        }
        assert_packed(&encoded, &segment, &common);
        let (layouts, mut bytes) = (layouts(), encoded.bytes.clone());
        let picks: Vec<Pick> = layouts.versions()[0].columns.iter().map(|c| Pick::Column(c.id)).collect();
        let alone = encode(&records, zstd, &shapes);
        let of = |codec, bytes: &[u8], common: &[u8]| {
            let picked = pick(codec, bytes, common, &layouts, &picks).unwrap()?;
            let cells = |vector: Option<Vector>| {
                let vector = vector?;
                Some((0..picked.rows).map(|row| vector.get(row).map(<[u8]>::to_vec)).collect::<Vec<_>>())
            };
            Some(picked.vectors.into_iter().map(cells).collect::<Vec<_>>())
        };
        prop_assert_eq!(of(encoded.codec, &encoded.bytes, &common), of(alone.codec, &alone.bytes, &[]));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for (bytes, common) in [(&bytes, &common[..]), (&encoded.bytes, &[]), (&encoded.bytes, &common[..common.len() / 2])] {
            if let Ok(segment) = Segment::decode_on(common, encoded.codec, bytes) {
                walk(&segment);
            }
            walk_packed(encoded.codec, bytes, common);
            let _ = pick(encoded.codec, bytes, common, &layouts, &picks);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        rows in 0u32..70, keys in 0u32..300, values in 0u32..300,
        head in vec(prop_oneof![4 => 0u8..6, 1 => any::<u8>()], 0..80), data in vec(any::<u8>(), 0..30),
    ) {
        let mut bytes = Vec::new();
        for n in [rows, keys, values, head.len() as u32, head.len() as u32, 0x10] {
            bytes.extend_from_slice(&n.to_le_bytes());
        }
        bytes.extend_from_slice(&5u64.to_le_bytes());
        bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&data);
        if let Ok(segment) = Segment::decode(format::CODEC_COLUMNS, &bytes) {
            walk(&segment);
        }
    }
}

/// Rows of a number, a city and its state, `first` of so many cities on.
fn cities(layouts: &Layouts, first: usize) -> Records {
    let row = |n: usize| {
        let city = first + n * 7919 % 300;
        let mut out = Vec::new();
        put_varint(&mut out, u64::from(layouts.current().version));
        out.extend_from_slice(&(n as u32).to_le_bytes());
        put_text(
            &mut out,
            format!("city of {:x}", (city as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_bytes(),
        );
        put_text(
            &mut out,
            format!("state of {:x}", (city as u64 % 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_bytes(),
        );
        out
    };
    (0..1024).map(|n| (((n as u32).to_be_bytes().to_vec(), std::cmp::Reverse(1)), Some(row(n)))).collect()
}

/// A column that is said to follow from itself, or from one behind it, which follows from it, had no end.
#[test]
fn a_column_follows_only_from_one_before_it() {
    let layouts = city_layouts();
    let records: Records = cities(&layouts, 0).into_iter().step_by(15).collect();
    let encoded = encode(&views(&records), Compression::None, &Shapes::of(&layouts));
    let picks: Vec<Pick> = layouts.current().columns.iter().map(|column| Pick::Column(column.id)).collect();
    let mut refused = 0;
    for at in 0..encoded.bytes.len() {
        for number in 0..4 {
            let mut bytes = encoded.bytes.clone();
            bytes[at] = number;
            let picked = pick(encoded.codec, &bytes, &[], &layouts, &picks);
            let what = "determinant of a column";
            refused += usize::from(picked.is_err_and(|error| error.what == what));
        }
    }
    assert!(refused > 0, "no byte says what a column follows from");
}

#[test]
fn dictionaries_that_another_segment_has_cost_little_and_need_it() {
    let layouts = city_layouts();
    let (shapes, zstd) = (Shapes::of(&layouts), Compression::Zstd(3));
    let first = encode(&views(&cities(&layouts, 0)), zstd, &shapes);
    // Nine in ten are the same.
    let other = cities(&layouts, 30);
    let alone = encode(&views(&other), zstd, &shapes);
    let mut builder = SegmentBuilder::new();
    builder.set_common(zstd, Some(first.common.clone().into()));
    views(&other).iter().for_each(|r| builder.push(*r));
    let against = builder.finish_columns(zstd, &shapes);
    assert!(
        against.bytes.len() * 10 < alone.bytes.len() * 7,
        "{} of {}",
        against.bytes.len(),
        alone.bytes.len()
    );
    assert!(Segment::decode_on(&first.common, against.codec, &against.bytes).is_ok());
    assert!(Segment::decode(against.codec, &against.bytes).is_err());
    // LZ4 has no such thing.
    let lz4 = encode(&views(&other), Compression::Lz4, &shapes);
    builder.set_common(Compression::Lz4, Some(first.common.into()));
    views(&other).iter().for_each(|r| builder.push(*r));
    assert_eq!(builder.finish_columns(Compression::Lz4, &shapes), lz4);
}

/// Rows of random digits, as benchmarks have them: their texts are coded each for itself.
fn digits() -> (Layouts, Records) {
    let columns =
        [(ColumnKind::Varchar, 300, false), (ColumnKind::Bytes, 30, false), (ColumnKind::Blob, 4, true)];
    let columns = columns.map(|(kind, size, nullable)| column(kind, size, nullable));
    let layouts = Layouts::new(columns.to_vec());
    let mut state = 3u64;
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    let mut records = Records::new();
    for n in 0..300u32 {
        let mut digits = |count: u64| (0..count).map(|_| b'0' + next(11) as u8).collect::<Vec<u8>>();
        let (mut row, text, fixed, blob) = (vec![1, 0], digits(60), digits(30), digits(90));
        put_text(&mut row, &text[..next(60) as usize]);
        row.extend_from_slice(&fixed);
        match n % 3 {
            0 => row[1] = 1,
            _ => put_text(&mut row, &blob),
        }
        records.insert((n.to_be_bytes().to_vec(), std::cmp::Reverse(1)), Some(row));
    }
    (layouts, records)
}

#[test]
fn texts_in_which_nothing_repeats_survive() {
    let (layouts, records) = digits();
    let (records, shapes) = (views(&records), Shapes::of(&layouts));
    assert_survive(&records, &shapes);
    assert_picked(&records, &layouts);
    let raw: usize = records.iter().map(|record| record.value.len()).sum();
    let encoded = encode(&records, Compression::Zstd(3), &shapes);
    assert!(encoded.bytes.len() * 100 < raw * 49, "{} of {raw}", encoded.bytes.len());
}

/// The same, as the first version with coded strings wrote them.
#[test]
fn the_first_format_of_coded_strings_stays_readable() {
    let segment = &include_bytes!("golden/coded")[..];
    let decoded = Segment::decode(format::CODEC_COLUMNS, segment).unwrap();
    let (_, rows) = digits();
    assert_eq!(decoded.rows(), rows.len());
    assert!(views(&rows).iter().enumerate().all(|(at, row)| decoded.record(at) == *row));
    let packed = Packed::open(format::CODEC_COLUMNS, segment, &Arc::default()).unwrap().unwrap();
    for row in views(&rows) {
        let Search::Found(found) = packed.find(row.key, 1, decoded.key(0)).unwrap() else {
            panic!("{:?}", row.key)
        };
        assert_eq!(packed.value(&found).unwrap(), row.value);
    }
}

/// A segment of 40 cities and what it is compressed against, as the first version with common bytes wrote them.
#[test]
fn the_first_format_with_common_bytes_stays_readable() {
    let (common, segment) = (&include_bytes!("golden/common")[..], &include_bytes!("golden/segment")[..]);
    let layouts = city_layouts();
    let rows: Records = cities(&layouts, 5).into_iter().step_by(26).collect();
    let decoded = Segment::decode_on(common, format::CODEC_COLUMNS, segment).unwrap();
    assert_eq!(decoded.rows(), 40);
    assert!(views(&rows).iter().enumerate().all(|(at, row)| decoded.record(at) == *row));
    assert!(segment.windows(4).any(|head| head == [format::CODEC_HEAD_ON_COMMON, 0, 0, 0]));
}

fn city_layouts() -> Layouts {
    Layouts::new(vec![
        column(ColumnKind::Unsigned, 4, false),
        column(ColumnKind::Varchar, 60, false),
        column(ColumnKind::Varchar, 60, false),
    ])
}

/// What decodes must be in order and readable throughout.
/// Looks for some rows, whatever the bytes are.
fn walk_packed(codec: u8, bytes: &[u8], common: &[u8]) {
    let Ok(Some(packed)) = Packed::open(codec, bytes, &common.into()) else { return };
    if let Ok(segment) = packed.decode() {
        let first = segment.key(0);
        for at in 0..segment.rows() {
            if let Ok(Search::Found(row)) = packed.find(segment.key(at), Seqno::MAX, first) {
                let _ = packed.value(&row);
            }
        }
    }
    for key in [&[0u8][..], &[1], &[2, 2], &[7; 9]] {
        if let Ok(Search::Found(row)) = packed.find(key, Seqno::MAX, key) {
            let _ = packed.value(&row);
        }
    }
}

fn walk(segment: &Segment) {
    assert!(segment.rows() > 0);
    for i in 0..segment.rows() {
        let r = segment.record(i);
        assert!(r.kind == Kind::Put || r.value.is_empty());
        if i > 0 {
            let last = segment.record(i - 1);
            assert!(compare_versions((last.key, last.seqno), (r.key, r.seqno)).is_lt());
        }
    }
}

#[test]
fn a_column_that_another_says_costs_next_to_nothing() {
    let text = |column: &str| NewColumn { name: column.into(), ..column_of_text() };
    let layouts = Layouts::new(vec![text("code"), text("city")]);
    let size = |with_city: bool| {
        let rows: Vec<Vec<u8>> = (0..2000u32)
            .map(|i| {
                let airport = i.wrapping_mul(0x9e37_79b9) >> 26;
                let mut out = vec![1];
                put_text(&mut out, format!("A{airport:02}").as_bytes());
                let city = format!("the city of number {airport}");
                put_text(&mut out, if with_city { city.as_bytes() } else { b"" });
                out
            })
            .collect();
        let keys: Vec<[u8; 4]> = (0..2000u32).map(u32::to_be_bytes).collect();
        let records =
            keys.iter().zip(&rows).map(|(key, value)| RecordRef { key, seqno: 3, kind: Kind::Put, value });
        let records: Vec<_> = records.collect();
        assert_survive(&records, &Shapes::of(&layouts));
        encode(&records, Compression::Zstd(3), &Shapes::of(&layouts)).bytes.len()
    };
    let (without, with) = (size(false), size(true));
    assert!(with < without + 500, "{without}, then {with}");
    assert!(without < 2000, "{without}");
}

fn column_of_text() -> NewColumn {
    column(ColumnKind::Varchar, 100, false)
}

#[test]
fn an_index_entry_costs_the_step_to_the_next_row() {
    let keys: Vec<Vec<u8>> = (0..7u8)
        .flat_map(|day| {
            (0..500u32).map(move |i| [&[1, day][..], &(i * 7 + u32::from(day)).to_be_bytes()].concat())
        })
        .collect();
    let records = keys.iter().map(|key| RecordRef { key, seqno: 3, kind: Kind::Put, value: b"" });
    let records: Vec<_> = records.collect();
    assert_survive(&records, &Shapes::default());
    assert!(encode(&records, Compression::Zstd(3), &Shapes::default()).bytes.len() < 150);
}

#[test]
fn a_segment_too_large_for_columns_is_row_wise() {
    let value = vec![7; 17 << 20];
    let record = RecordRef { key: b"k", seqno: 3, kind: Kind::Put, value: &value };
    let encoded = encode(&[record], Compression::Lz4, &Shapes::default());
    assert_eq!(encoded.codec, format::CODEC_ROWS_LZ4);
    assert!(Segment::decode(encoded.codec, &encoded.bytes).unwrap().record(0) == record);
}

/// Bytes written by the first version of the column-wise format. They must be readable for ever, so this test may
/// only gain cases.
#[test]
fn the_first_format_stays_readable() {
    let layouts =
        Layouts::new(vec![column(ColumnKind::Signed, 2, true), column(ColumnKind::Varchar, 9, false)]);
    let rows: [&[u8]; 5] = [
        &[1, 0, 7, 0, 1, b'a'],
        &[1, 1, 1, b'b'],
        &[1, 0, 0xff, 0xff, 2, b'c', b'd'],
        b"opaque",
        &[1, 0, 7, 0, 1, b'a'],
    ];
    let keys: [&[u8]; 5] = [b"k\0\x01", b"k\0\x02", b"k\0\x04", b"m", b"m"];
    let seqnos = [9, 9, 9, 8, 7];
    let mut records: Vec<RecordRef<'_>> = (0..5)
        .map(|i| RecordRef { key: keys[i], seqno: seqnos[i], kind: Kind::Put, value: rows[i] })
        .collect();
    records.push(RecordRef { key: b"n", seqno: 9, kind: Kind::Delete, value: b"" });
    let encoded = encode(&records, Compression::None, &Shapes::of(&layouts));
    // Before dictionaries were in the order of their values, and as they are now.
    let before = "060000000c0000001d0000005d0000005d0000001000000007000000000000000000000000000000010002006a08010200020000\
                  04020003006b00040100d8010100020049030001020102080204010002006a02000201000006006f7061717565000000020301\
                  04878002000f010002006101020300010101000400616263640100020024";
    let now = "060000000c0000001d0000005d0000005d0000001000000007000000000000000000000000000000010002006a08010200020000\
                  04020003006b00040100d8010100020049030001020102080204010002006a02000201000006006f7061717565000000020301\
                  04ffff010010010002009201020300010101000400616263640100020024";
    let [before, now] = [before, now].map(|golden| {
        let digits = golden.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect::<Vec<u8>>()
    });
    assert_eq!(encoded.bytes, now);
    for golden in [before, now] {
        let segment = Segment::decode(format::CODEC_COLUMNS, &golden).unwrap();
        assert!((0..6).all(|i| segment.record(i) == records[i]));
    }
}
