//! What encodings of segments cost, on the rows of a table that is there: bytes, and time to encode and decode.
//!
//!     cargo run --release -p pandodb --example segment_sizes -- DATADIR/DATABASE/TABLE.pando [rows]
//!
//! Every dictionary's leaves are read, and written again in memory in each way.

use std::path::Path;
use std::time::Instant;

use pando_base::MAX_SEQNO;
use pando_column::{Compression, EncodedSegment, Segment, SegmentBuilder, Shapes};

const SIZES: [(usize, usize); 5] = [(64, 1), (64, 512), (64, 1024), (64, 2048), (64, 4096)];

struct Sums {
    rows: u64,
    raw: u64,
    bytes: u64,
    segments: u64,
    encode_ns: u128,
    decode_ns: u128,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("the directory of a table")?;
    let most: usize = arguments.next().map_or(Ok(usize::MAX), |rows| rows.parse())?;
    let dir = Path::new(&dir);
    let keys = pandodb::KeyRing::empty();
    let described = pandodb::offline::describe(dir, dir, &keys)?;
    let layouts = described.layouts();
    for (file, dictionary) in pandodb::offline::open_directory(dir, &described, &keys) {
        let dictionary = dictionary?;
        let rows = read(&dictionary, most)?;
        let shapes = match (layouts, dictionary.name.as_str()) {
            (Some(layouts), "main") => Shapes::of(layouts),
            _ => Shapes::default(),
        };
        println!("{file}: {} rows", rows.len());
        for compression in [Compression::Zstd(3), Compression::Lz4] {
            show("row-wise", 64, &measure(&rows, 64 << 10, 1, |b| b.finish(compression)), compression);
            for (kib, least) in SIZES {
                let sums = measure(&rows, kib << 10, least, |b| b.finish_columns(compression, &shapes));
                show("columns", least, &sums, compression);
            }
        }
    }
    Ok(())
}

type Row = (Vec<u8>, Vec<u8>);

fn read(
    dictionary: &pandodb::offline::OfflineDict,
    most: usize,
) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    let mut cursor = dictionary.tree.cursor(MAX_SEQNO);
    cursor.seek_first()?;
    while cursor.valid() && rows.len() < most {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next()?;
    }
    Ok(rows)
}

fn measure(
    rows: &[Row],
    raw_bytes: usize,
    least: usize,
    finish: impl Fn(&mut SegmentBuilder) -> EncodedSegment,
) -> Sums {
    let mut sums = Sums { rows: 0, raw: 0, bytes: 0, segments: 0, encode_ns: 0, decode_ns: 0 };
    let mut builder = SegmentBuilder::new();
    let mut close = |builder: &mut SegmentBuilder| {
        let begin = Instant::now();
        let encoded = finish(builder);
        sums.encode_ns += begin.elapsed().as_nanos();
        let begin = Instant::now();
        let segment = Segment::decode(encoded.codec, &encoded.bytes).expect("what was just encoded");
        sums.decode_ns += begin.elapsed().as_nanos();
        sums.rows += segment.rows() as u64;
        sums.raw += encoded.raw_bytes;
        sums.bytes += encoded.bytes.len() as u64;
        sums.segments += 1;
    };
    for (key, value) in rows {
        if builder.raw_bytes() > raw_bytes
            && (builder.rows() >= least || builder.raw_bytes() > 64 * raw_bytes)
        {
            close(&mut builder);
        }
        builder.push(pando_base::RecordRef { key, seqno: 1, kind: pando_base::Kind::Put, value });
    }
    if !builder.is_empty() {
        close(&mut builder);
    }
    sums
}

fn show(name: &str, least: usize, sums: &Sums, compression: Compression) {
    let rows = sums.rows as f64;
    println!(
        "  {compression:5} {name:9} {least:5}: {:7.2} bytes a row of {:6.1} raw, encode {:6.0} ns, decode {:6.0} ns a row, {:5.0} us a segment",
        sums.bytes as f64 / rows,
        sums.raw as f64 / rows,
        sums.encode_ns as f64 / rows,
        sums.decode_ns as f64 / rows,
        sums.decode_ns as f64 / sums.segments as f64 / 1000.0,
    );
}
