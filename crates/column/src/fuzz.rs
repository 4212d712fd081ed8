//! The decoders of this crate, for `pando-fuzz`: of segments in all their forms, of zones, rows and layouts.
//!
//! What is decoded is used as its readers do: every record is read, looked up, and picked by columns.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::sync::Arc;

use pando_base::fuzz::{put_part, take_part, Target};
use pando_base::{Kind, RecordRef, Seqno};

use crate::layout::{ColumnType, Kind as ColumnKind, Layouts, NewColumn, Source, Value};
use crate::wire::put_varint;
use crate::{
    large, pick, put_packed, take_packed, wire, Compression, EncodedSegment, Packed, Pick, Search, Segment,
    SegmentBuilder, Shapes, Zones, COMMON_BYTES_MAX,
};

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "segment-rows",
            reads: "segments by rows (column/src/decode.rs)",
            seeds: row_seeds,
            accepts: accepts_segment,
        },
        Target {
            name: "segment-columns",
            reads: "segments by columns: whole, single records, single columns (column/src/columnar)",
            seeds: column_seeds,
            accepts: accepts_segment,
        },
        Target {
            name: "zones",
            reads: "what a segment's columns lie between (column/src/columnar/zone.rs)",
            seeds: zone_seeds,
            accepts: accepts_zones,
        },
        Target {
            name: "packed-bytes",
            reads: "bytes in common, and those of all zones (column/src/compression.rs)",
            seeds: packed_seeds,
            accepts: accepts_packed,
        },
        Target {
            name: "row",
            reads: "a row, in the current layout or an older one (column/src/columnar/upgrade.rs, column/src/large.rs)",
            seeds: || (0..8).flat_map(|n| [row(1, n), row(2, n)]).collect(),
            accepts: accepts_row,
        },
    ]
}

fn column(kind: ColumnKind, size: u32, nullable: bool) -> NewColumn {
    let ty = ColumnType { kind, size, nullable, binary: false };
    NewColumn { name: "c".into(), ty, source: Source::Added(Value::Null) }
}

/// One of each kind, and a second layout with fewer.
fn layouts() -> Layouts {
    use ColumnKind::{Bit, Blob, Bytes, Char, Enum, Float, Large, Set, Signed, Unsigned, Varchar};
    let kinds = [
        (Signed, 4),
        (Unsigned, 3),
        (Float, 8),
        (Bytes, 5),
        (Bit, 2),
        (Enum, 1),
        (Set, 8),
        (Char, 10),
        (Varchar, 300),
        (Blob, 4),
        (Large, 4),
    ];
    let columns = kinds.iter().enumerate().map(|(at, (kind, size))| column(*kind, *size, at % 2 == 0));
    let first = Layouts::new(columns.collect());
    let kept = [0usize, 3, 8].map(|at| {
        let old = &first.current().columns[at];
        NewColumn { name: old.name.clone(), ty: old.ty, source: Source::Column(at) }
    });
    first.changed(kept.to_vec()).unwrap()
}

/// A row of layout `version`.
fn row(version: u32, n: u32) -> Vec<u8> {
    let layouts = layouts();
    let layout = layouts.get(version).unwrap();
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(version));
    let nulls = out.len();
    out.resize(nulls + layout.null_bytes(), 0);
    let mut nullable = 0;
    for (at, column) in layout.columns.iter().enumerate() {
        let cell = n / 3 * (at as u32 + 1);
        if column.ty.nullable {
            nullable += 1;
            if cell % 5 == 4 {
                out[nulls + (nullable - 1) / 8] |= 1 << ((nullable - 1) % 8);
                continue;
            }
        }
        let bytes: Vec<u8> = (0..40).map(|i| (cell >> (i % 4 * 8)) as u8).collect();
        let size = column.ty.size as usize;
        match column.ty.kind {
            ColumnKind::Large if n % 2 == 0 => {
                wire::put_bytes(&mut out, &large::Reference { id: n.into(), length: 1 << 20 }.encode());
            }
            kind if kind.is_counted() => wire::put_bytes(&mut out, &bytes[..n as usize % (size.min(20) + 1)]),
            _ => out.extend_from_slice(&bytes[..size]),
        }
    }
    out
}

/// Records of several kinds: rows of one layout, of two, with deletes and several versions, and none that are rows.
fn records(which: usize) -> Vec<(Vec<u8>, Seqno, Option<Vec<u8>>)> {
    let key = |n: u32| [&b"key"[..], &(n / 4).to_be_bytes(), &[n as u8 % 4]].concat();
    let seqno = |n: u32| if which == 3 { u64::from(n) << 34 } else { 7 };
    let value = |n: u32| match which {
        0 => Some(row(1, n)),
        1 => Some(row(1 + n % 2, n)),
        2 => (n % 3 != 0).then(|| row(2, n)),
        3 => Some(vec![n as u8; n as usize % 7]),
        _ => None,
    };
    let mut all: Vec<_> = (0..40).map(|n| (key(n), seqno(n), value(n))).collect();
    if which == 2 {
        let newer: Vec<_> = (0..40).step_by(3).map(|n| (key(n), 9, Some(row(2, n + 1)))).collect();
        all.extend(newer);
        all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    }
    all
}

fn builder(which: usize) -> SegmentBuilder {
    let mut builder = SegmentBuilder::new();
    for (key, seqno, value) in records(which) {
        let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
        builder.push(RecordRef { key: &key, seqno, kind, value: value.as_deref().unwrap_or_default() });
    }
    builder
}

/// A segment as an input: codec; part: bytes in common; payload.
fn input(segment: &EncodedSegment, common: &[u8]) -> Vec<u8> {
    let mut out = vec![segment.codec];
    put_part(&mut out, common);
    out.extend_from_slice(&segment.bytes);
    out
}

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(1)];

fn row_seeds() -> Vec<Vec<u8>> {
    let each = (0..5).flat_map(|which| COMPRESSIONS.map(|compression| (which, compression)));
    each.map(|(which, compression)| input(&builder(which).finish(compression), &[])).collect()
}

fn column_seeds() -> Vec<Vec<u8>> {
    let shapes = Shapes::of(&layouts());
    let mut seeds = Vec::new();
    for which in 0..5 {
        for compression in COMPRESSIONS {
            let first = builder(which).finish_columns(compression, &shapes);
            seeds.push(input(&first, &[]));
            if !first.common.is_empty() {
                let mut next = builder(which);
                next.set_common(compression, Some(first.common.clone().into()));
                seeds.push(input(&next.finish_columns(compression, &shapes), &first.common));
            }
        }
    }
    seeds
}

fn accepts_segment(bytes: &[u8]) -> bool {
    let Some((codec, mut rest)) = bytes.split_first() else { return false };
    let common: Arc<[u8]> = take_part(&mut rest).into();
    let segment = Segment::decode_on(&common, *codec, rest);
    if let Ok(segment) = &segment {
        read(segment);
    }
    let layouts = layouts();
    let columns = layouts.versions().iter().flat_map(|layout| &layout.columns);
    let mut picks: Vec<Pick> = columns.map(|column| Pick::Column(column.id)).collect();
    picks.extend([Pick::Key { offset: 1, size: 2 }, Pick::WholeKey, Pick::Column(9999)]);
    let _ = pick(*codec, rest, &common, &layouts, &picks);
    for one in &picks {
        if let Ok(Some(picked)) = pick(*codec, rest, &common, &layouts, &[*one]) {
            for vector in picked.vectors.iter().flatten() {
                assert_eq!(vector.rows(), picked.rows);
                (0..picked.rows).for_each(|row| _ = vector.get(row).map(<[u8]>::len));
            }
        }
    }
    if let Ok(Some(packed)) = Packed::open(*codec, rest, &common) {
        read_packed(&packed, segment.as_ref().ok());
    }
    segment.is_ok()
}

fn read(segment: &Segment) {
    for at in 0..segment.rows() {
        let record = segment.record(at);
        assert_eq!(segment.find(record.key, record.seqno).map(|found| segment.key(found)), Some(record.key));
        assert!(segment.lower_bound(record.key) <= at);
    }
}

fn read_packed(packed: &Packed, segment: Option<&Segment>) {
    let _ = packed.decode();
    let first = segment.map_or(&b"key\0\0\0\0\0"[..], |segment| segment.key(0)).to_vec();
    for n in 0..4 {
        let key = match segment {
            Some(segment) => segment.key(n * 17 % segment.rows()).to_vec(),
            None => [&b"key"[..], &(n as u32 * 3).to_be_bytes(), &[0]].concat(),
        };
        let _ = packed.lower_bound(&key, &first);
        if let Ok(Search::Found(row)) = packed.find(&key, Seqno::MAX, &first) {
            let _ = packed.value(&row);
        }
    }
}

fn zone_seeds() -> Vec<Vec<u8>> {
    let shapes = Shapes::of(&layouts());
    let mut some = SegmentBuilder::new();
    some.push(RecordRef { key: b"k", seqno: 1, kind: Kind::Put, value: &row(2, 14) });
    let all = [
        builder(0).finish_columns(Compression::None, &shapes),
        some.finish_columns(Compression::None, &shapes),
    ];
    all.map(|segment| segment.zones).to_vec()
}

fn accepts_zones(bytes: &[u8]) -> bool {
    let layouts = layouts();
    let Some(zones) = Zones::of(bytes, &layouts) else { return false };
    let mut found = 0;
    for column in layouts.versions().iter().flat_map(|layout| &layout.columns) {
        if let Some((least, most)) = zones.get(column.id).and_then(|zone| zone.bounds) {
            assert_eq!(least.len(), most.len());
            found += 1;
        }
    }
    found > 0
}

fn packed_seeds() -> Vec<Vec<u8>> {
    let bytes = [&b""[..], b"short", &[5; 2000], &b"some text, some more text. ".repeat(50)];
    bytes
        .map(|bytes| {
            let mut out = Vec::new();
            put_packed(&mut out, bytes);
            out
        })
        .to_vec()
}

fn accepts_packed(bytes: &[u8]) -> bool {
    take_packed(&mut wire::Reader::new(bytes), COMMON_BYTES_MAX, "bytes").is_ok()
}

fn accepts_row(bytes: &[u8]) -> bool {
    let layouts = layouts();
    let shapes = Shapes::of(&layouts);
    let (mut found, mut scratch) = (Vec::new(), Vec::new());
    let references = large::references_of(&layouts, bytes, &mut found);
    found
        .iter()
        .for_each(|reference| assert_eq!(large::Reference::decode(&reference.encode()), Some(*reference)));
    if let Some(upgraded) = shapes.upgrade(bytes, &mut scratch) {
        assert_eq!(upgraded.first(), Some(&2));
    }
    // Whatever it is, a segment gives it back.
    let mut builder = SegmentBuilder::new();
    builder.push(RecordRef { key: b"k", seqno: 1, kind: Kind::Put, value: bytes });
    let encoded = builder.finish_columns(Compression::None, &shapes);
    let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
    assert_eq!(segment.value(0), bytes);
    references.is_ok()
}
