//! The decoders of this crate, for `pando-fuzz`: of a run's description, index and filter.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use pando_base::fuzz::Target;
use pando_base::{Kind, RecordRef, RunId};
use pando_column::{Compression, SegmentBuilder};
use pando_storage::Place;

use crate::fuse_filter::{key_hash, FilterPage};
use crate::index::Index;
use crate::run_meta::RunMeta;

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "run-description",
            reads: "what nodes and the log know of a run (run/src/run_meta.rs)",
            seeds: meta_seeds,
            accepts: accepts_meta,
        },
        Target {
            name: "run-index",
            reads: "the index of a run's segments (run/src/index.rs)",
            seeds: index_seeds,
            accepts: accepts_index,
        },
        Target {
            name: "filter-page",
            reads: "a page of a run's filter (run/src/fuse_filter.rs)",
            seeds: filter_seeds,
            accepts: accepts_filter,
        },
    ]
}

fn meta_seeds() -> Vec<Vec<u8>> {
    let meta = RunMeta {
        id: RunId(7),
        rows: 1000,
        tombstones: 10,
        raw_bytes: 1 << 40,
        disk_bytes: 8192,
        min_key: b"a".to_vec(),
        max_key: b"bcd".to_vec(),
        min_seqno: 5,
        max_seqno: 700,
        index: Place { offset: 20_000, len: 100 },
        extents: vec![Place { offset: 16_384, len: 4096 }, Place { offset: 1 << 40, len: 8192 }],
    };
    let private = RunMeta { min_seqno: 0, max_seqno: 0, ..meta.clone() };
    let encoded = |meta: RunMeta| {
        let mut bytes = Vec::new();
        meta.encode(&mut bytes);
        bytes
    };
    [meta, private].map(encoded).to_vec()
}

fn accepts_meta(mut bytes: &[u8]) -> bool {
    let Ok(meta) = RunMeta::decode(&mut bytes) else { return false };
    let mut again = Vec::new();
    meta.encode(&mut again);
    assert_eq!(RunMeta::decode(&mut &again[..]), Ok(meta));
    true
}

const EXTENTS: [Place; 1] = [Place { offset: 16_384, len: 1 << 20 }];

fn place(number: u64) -> Place {
    Place { offset: 16_384 + number * 100, len: 100 }
}

fn index_seeds() -> Vec<Vec<u8>> {
    let mut index = Index::default();
    let mut seeds = Vec::new();
    for number in 0..5u8 {
        let mut builder = SegmentBuilder::new();
        for row in 0..3u8 {
            let kind = if row == 1 { Kind::Delete } else { Kind::Put };
            let value: &[u8] = if row == 1 { b"" } else { b"v" };
            builder.push(RecordRef { key: &[number, row], seqno: u64::from(row), kind, value });
        }
        let mut segment = builder.finish(Compression::None);
        segment.zones = vec![number; usize::from(number)];
        index.push(&segment, place(number.into()), false, (number < 3).then_some(0));
        if number == 0 {
            index.push_filter(place(9));
        }
        let mut bytes = Vec::new();
        let codec = index.encode(&mut bytes);
        bytes.insert(0, codec);
        seeds.push(bytes);
    }
    index.set_common(place(10));
    let mut bytes = Vec::new();
    let codec = index.encode(&mut bytes);
    bytes.insert(0, codec);
    seeds.push(bytes);
    // From before there were zones.
    seeds.push(vec![1, 1, 132, 129, 1, 100, 1, 1, b'a', 128, 128, 1, 100, 2, 0, 36, 4, 5, 1, 1, 3, 9, 9, 9]);
    seeds
}

fn accepts_index(bytes: &[u8]) -> bool {
    let Some((codec, payload)) = bytes.split_first() else { return false };
    let Ok(index) = Index::decode(*codec, payload, &EXTENTS) else { return false };
    for number in 0..index.len() {
        let key = index.first_key(number).to_vec();
        assert!(index.segment_for(&key) <= number && index.segments_below(&key) <= number);
        let _ = (index.of_segment(number), index.zones(number));
    }
    let _ = (index.of_range(0, index.len()), index.segment_for(b""), index.segment_for(&[0xff; 9]));
    true
}

fn filter_seeds() -> Vec<Vec<u8>> {
    let page = |count: u64| {
        let mut hashes: Vec<u64> = (0..count).map(|n| key_hash(&n.to_be_bytes())).collect();
        let mut bytes = Vec::new();
        let codec = FilterPage::build(&mut hashes).encode(&mut bytes);
        bytes.insert(0, codec);
        bytes
    };
    [0, 1, 5, 200].map(page).to_vec()
}

fn accepts_filter(bytes: &[u8]) -> bool {
    let Some((codec, payload)) = bytes.split_first() else { return false };
    let Ok(page) = FilterPage::decode(*codec, payload) else { return false };
    (0..200u64).for_each(|n| _ = page.may_contain(key_hash(&n.to_be_bytes())));
    [0, u64::MAX].into_iter().for_each(|hash| _ = page.may_contain(hash));
    true
}
