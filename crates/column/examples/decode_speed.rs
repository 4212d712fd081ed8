//! How long one row, and all rows, of a segment take to be decoded: rows of random digits, as sysbench has them.
//!
//!     cargo run --release -p pando-column --example decode_speed -- [rows]

use std::sync::Arc;
use std::time::Instant;

use pando_base::{Kind, RecordRef};
use pando_column::layout::{ColumnType, Kind as ColumnKind, Layouts, NewColumn, Source, Value};
use pando_column::wire::put_varint;
use pando_column::{Compression, Packed, Search, Segment, SegmentBuilder, Shapes};

const REPEATS: u32 = 1000;
const BATCHES: u32 = 20;

fn main() {
    let rows = std::env::args().nth(1).map_or(84, |rows| rows.parse().expect("a number of rows"));
    let column = |kind, size| {
        let ty = ColumnType { kind, size, nullable: false, binary: false };
        NewColumn { name: "c".into(), ty, source: Source::Added(Value::Null) }
    };
    let layouts = Layouts::new(vec![
        column(ColumnKind::Signed, 4),
        column(ColumnKind::Char, 480),
        column(ColumnKind::Char, 240),
    ]);
    let mut state = 1u64;
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    let mut builder = SegmentBuilder::new();
    for n in 0..rows {
        let mut row = vec![1];
        row.extend_from_slice(&(next(2_000_000) as u32).to_le_bytes());
        for length in [119, 59] {
            put_varint(&mut row, length);
            row.extend((0..length).map(|at| if at % 12 == 11 { b'-' } else { b'0' + next(10) as u8 }));
        }
        let key = (0x8000_0000u32 + n).to_be_bytes();
        builder.push(RecordRef { key: &key, seqno: 1, kind: Kind::Put, value: &row });
    }
    let encoded = builder.finish_columns(Compression::Zstd(3), &Shapes::of(&layouts));
    println!("{rows} rows, {} bytes before, {} stored", encoded.raw_bytes, encoded.bytes.len());
    let common: Arc<[u8]> = Arc::default();
    let time = |what: &str, work: &dyn Fn(u32)| {
        let batch = |_| {
            let started = Instant::now();
            (0..REPEATS).for_each(work);
            started.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATS)
        };
        let best = (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min);
        println!("{what}: {best:.2} us (best of {BATCHES})");
    };
    let open =
        || Packed::open(encoded.codec, &encoded.bytes, &common).expect("a segment").expect("one shape");
    let packed = open();
    let first = 0x8000_0000u32.to_be_bytes();
    time("decode all rows", &|_| drop(Segment::decode(encoded.codec, &encoded.bytes).expect("a segment")));
    time("open it as it is stored", &|_| drop(open()));
    let find = |n: u32| packed.find(&(0x8000_0000 + n % rows).to_be_bytes(), 9, &first).expect("a segment");
    time("find a row", &|n| assert!(matches!(find(n), Search::Found(_))));
    time("find a row and decode it", &|n| match find(n) {
        Search::Found(row) => drop(packed.value(&row).expect("a row")),
        _ => unreachable!("it is there"),
    });
}
