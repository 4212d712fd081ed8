//! Segments against a plain vector of records, and decoders against arbitrary bytes.

use std::collections::BTreeMap;

use pando_base::{compare_versions, Kind, RecordRef, Seqno, MAX_SEQNO};
use pando_column::{format, Compression, EncodedSegment, Segment, SegmentBuilder, RECORD_OVERHEAD_BYTES};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

type Version = (Vec<u8>, std::cmp::Reverse<Seqno>);
type Records = BTreeMap<Version, Option<Vec<u8>>>;

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(1)];

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

fn encode(records: &[RecordRef<'_>], compression: Compression) -> EncodedSegment {
    let mut builder = SegmentBuilder::new();
    records.iter().for_each(|r| builder.push(*r));
    builder.finish(compression)
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(0u8..3, 0..6), vec(any::<u8>(), 8..=8), vec(prop_oneof![Just(0u8), Just(255)], 0..40)]
}

fn seqno() -> impl Strategy<Value = Seqno> {
    prop_oneof![4 => 1u64..4, 2 => 1u64..100_000, 1 => any::<u64>()]
}

fn records() -> impl Strategy<Value = Records> {
    let value = prop_oneof![1 => Just(None), 4 => vec(any::<u8>(), 0..20).prop_map(Some), 1 => Just(Some(vec![7; 300]))];
    let fixed = vec(any::<u8>(), 4..=4).prop_map(Some);
    prop_oneof![
        btree_map((key(), seqno().prop_map(std::cmp::Reverse)), value, 1..200),
        btree_map((vec(any::<u8>(), 3..=3), Just(std::cmp::Reverse(9))), fixed, 1..100),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_record_comes_back_with_every_compression(records in records()) {
        let views = views(&records);
        for compression in COMPRESSIONS {
            let encoded = encode(&views, compression);
            prop_assert_eq!(encoded.rows as usize, views.len());
            prop_assert_eq!(encoded.tombstones as usize, views.iter().filter(|r| r.kind == Kind::Delete).count());
            let raw: usize = views.iter().map(|r| r.key.len() + r.value.len() + RECORD_OVERHEAD_BYTES).sum();
            prop_assert_eq!(encoded.raw_bytes as usize, raw);
            prop_assert_eq!(Some(encoded.min_seqno), views.iter().map(|r| r.seqno).min());
            prop_assert_eq!(Some(encoded.max_seqno), views.iter().map(|r| r.seqno).max());
            prop_assert_eq!(&encoded.first_key[..], views[0].key);
            prop_assert_eq!(&encoded.last_key[..], views[views.len() - 1].key);
            prop_assert_eq!(encoded.single_version, views.windows(2).all(|w| w[0].key != w[1].key));
            let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
            prop_assert_eq!(segment.rows(), views.len());
            for (i, view) in views.iter().enumerate() {
                prop_assert_eq!(&segment.record(i), view);
                prop_assert_eq!(segment.key(i), view.key);
                prop_assert_eq!(segment.value(i), view.value);
                prop_assert_eq!((segment.seqno(i), segment.kind(i)), (view.seqno, view.kind));
            }
        }
    }

    #[test]
    fn searches_agree_with_a_linear_one(records in records(), probes in vec((key(), seqno()), 1..20)) {
        let views = views(&records);
        let encoded = encode(&views, Compression::Lz4);
        let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
        let present = views.iter().map(|r| (r.key.to_vec(), r.seqno));
        for (key, snapshot) in probes.into_iter().chain(present) {
            let bound = views.iter().position(|r| r.key >= &key[..]).unwrap_or(views.len());
            prop_assert_eq!(segment.lower_bound(&key), bound);
            let found = views.iter().position(|r| r.key == &key[..] && r.seqno <= snapshot);
            prop_assert_eq!(segment.find(&key, snapshot), found);
            let newest = views.iter().position(|r| r.key == &key[..]);
            prop_assert_eq!(segment.find(&key, MAX_SEQNO), newest);
        }
    }

    /// Keys of one length are guessed at: those that count, that count with holes, that crowd at one end, and those of several columns.
    #[test]
    fn searches_that_guess_agree_with_a_linear_one(
        steps in vec(prop_oneof![8 => 1u64..3, 1 => 0u64..1, 1 => 1u64..100_000, 1 => 1u64..1 << 40], 60..1500),
        start in prop_oneof![Just(0u64), any::<u32>().prop_map(u64::from), Just(0x8000_0000_0000_0000)],
        width in 5usize..12,
        prefix in vec(0u8..2, 0..9),
        probes in vec((any::<prop::sample::Index>(), -2i64..3, any::<u64>()), 1..40),
    ) {
        let key = |number: u64| {
            let bytes = u128::from(number).to_be_bytes();
            [&prefix[..], &bytes[16 - width..]].concat()
        };
        let mask = u64::MAX >> (64 - 8 * width.min(8));
        let mut numbers: Vec<u64> = steps
            .iter()
            .scan(start, |number, step| {
                *number = number.wrapping_add(*step);
                Some(*number & mask)
            })
            .collect();
        numbers.sort_unstable();
        let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
        let mut builder = SegmentBuilder::new();
        for (at, key) in keys.iter().enumerate() {
            let seqno = (keys.len() - at) as Seqno;
            builder.push(RecordRef { key, seqno, kind: Kind::Put, value: b"v" });
        }
        let encoded = builder.finish(Compression::None);
        let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
        for (at, distance, any) in probes {
            let near = numbers[at.index(numbers.len())].wrapping_add_signed(distance) & mask;
            let any = any & mask;
            for mut wanted in [key(near), key(any), prefix.clone(), key(near)[..prefix.len() + 3].to_vec()] {
                for _ in 0..2 {
                    let bound = keys.partition_point(|key| *key < wanted);
                    prop_assert_eq!(segment.lower_bound(&wanted), bound);
                    let is_there = keys.get(bound) == Some(&wanted);
                    prop_assert_eq!(segment.find(&wanted, MAX_SEQNO), is_there.then_some(bound));
                    wanted.push(0);
                }
            }
        }
    }

    #[test]
    fn a_damaged_segment_is_an_error_or_a_valid_segment_but_never_a_panic(
        records in records(), which in 0usize..3, damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>(),
    ) {
        let encoded = encode(&views(&records), COMPRESSIONS[which]);
        let mut bytes = encoded.bytes.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &encoded.bytes[..cut.index(bytes.len())]] {
            if let Ok(segment) = Segment::decode(encoded.codec, bytes) {
                walk(&segment);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(codec in prop_oneof![0x10u8..0x13, any::<u8>()], rows in 0u32..6, small in vec(0u32..9, 3), flags in 0u32..40, body in vec(prop_oneof![0u8..4, any::<u8>()], 0..60), raw in any::<bool>()) {
        let mut bytes = Vec::new();
        if !raw {
            for n in [rows, body.len() as u32, small[0], small[1], small[2], flags] {
                bytes.extend_from_slice(&n.to_le_bytes());
            }
            bytes.extend_from_slice(&5u64.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        if let Ok(segment) = Segment::decode(codec, &bytes) {
            walk(&segment);
        }
    }
}

/// What decodes must be in order and readable throughout.
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
fn a_huge_value_is_a_segment_of_its_own() {
    let value: Vec<u8> = (0..100u32 << 20).map(|i| (i >> 10) as u8).collect();
    let record = RecordRef { key: b"k", seqno: 3, kind: Kind::Put, value: &value };
    for compression in [Compression::None, Compression::Lz4] {
        let encoded = encode(&[record], compression);
        let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
        assert!(segment.record(0) == record);
    }
}

#[test]
fn empty_keys_and_values_and_the_largest_seqno_survive() {
    let records = [
        RecordRef { key: b"", seqno: MAX_SEQNO, kind: Kind::Put, value: b"" },
        RecordRef { key: b"", seqno: 0, kind: Kind::Delete, value: b"" },
    ];
    let encoded = encode(&records, Compression::Zstd(3));
    let segment = Segment::decode(encoded.codec, &encoded.bytes).unwrap();
    assert_eq!([segment.record(0), segment.record(1)], records);
    assert_eq!(segment.find(b"", 5), Some(1));
}

#[test]
fn memory_is_counted_exactly() {
    let keys: Vec<[u8; 4]> = (0..1000u32).map(u32::to_be_bytes).collect();
    let rows = |seqno: fn(u64) -> u64| -> usize {
        let records: Vec<_> = keys
            .iter()
            .zip(1..)
            .map(|(key, i)| RecordRef { key, seqno: seqno(i), kind: Kind::Put, value: b"12345" })
            .collect();
        let encoded = encode(&records, Compression::Lz4);
        Segment::decode(encoded.codec, &encoded.bytes).unwrap().heap_bytes()
    };
    let base = 1000 * (4 + 5) + 1001 * 8;
    assert_eq!(rows(|_| 7), base);
    assert_eq!(rows(|i| i), base + 4000);
    assert_eq!(rows(|i| i << 40), base + 8000);
}

/// Bytes written by the first version of the format. They must be readable for ever, so this test may
/// only gain cases.
#[test]
fn the_first_format_stays_readable() {
    let records = [
        RecordRef { key: b"apple", seqno: 9, kind: Kind::Put, value: b"red" },
        RecordRef { key: b"apple", seqno: 5, kind: Kind::Delete, value: b"" },
        RecordRef { key: b"apricot", seqno: 7, kind: Kind::Put, value: b"orange" },
    ];
    let golden: &[u8] = &[
        3, 0, 0, 0, 32, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 17, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0,
        0, // header
        b'r', b'e', b'd', b'o', b'r', b'a', b'n', b'g', b'e', // values
        b'a', b'p', b'p', b'l', b'e', b'r', b'i', b'c', b'o', b't', // suffixes
        0, 5, 5, 0, 2, 5, // keys
        3, 0, 6, // lengths
        4, 0, 2, // seqnos
        2, // kinds
    ];
    assert_eq!(encode(&records, Compression::None).bytes, golden);
    let segment = Segment::decode(format::CODEC_ROWS_PLAIN, golden).unwrap();
    assert_eq!([segment.record(0), segment.record(1), segment.record(2)], records);
}
