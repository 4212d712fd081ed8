//! Damaged files, failing disks, full disks: errors, never wrong answers, and nothing left behind.

use pando_base::{Error, MAX_SEQNO};
use pando_column::layout::{ColumnType, Kind as ColumnKind, Layouts, NewColumn, Source, Value};
use pando_storage::vfs::FaultKind;

use super::*;
use crate::Lookup;

#[test]
fn every_flipped_bit_of_a_block_is_found_and_no_lookup_answers_wrongly() {
    let model = plain(200, 20);
    let bed = Bed::new(0);
    let run = bed.write(1, small(600), &model);
    let end = run.meta().index.end();
    let start = run.meta().extents[0].offset;
    for offset in (start..end).step_by(13) {
        let bit = (offset % 8) as u8;
        bed.sim.flip_bit(Path::new(PATH), offset, bit);
        let error = run.verify(&Shapes::default()).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "{error}");
        assert!(error.to_string().contains(PATH), "{error}");
        for i in (0..200).step_by(7) {
            match run.get(&Lookup::new(&key(i), MAX_SEQNO)) {
                Ok(found) => assert_eq!(found.map(|f| f.value), model[&(key(i), Reverse(9))]),
                Err(error) => assert!(matches!(error, Error::Corruption { .. }), "{error}"),
            }
        }
        bed.sim.flip_bit(Path::new(PATH), offset, bit);
    }
    run.verify(&Shapes::default()).unwrap();
}

#[test]
fn a_write_that_fails_at_any_point_gives_its_space_back() {
    let model = plain(20_000, 200);
    for n in 0.. {
        let bed = Bed::new(0);
        let mut writer = RunWriter::new(
            &bed.context,
            RunId(1),
            RunOptions { compression: Compression::None, ..small(4000) },
        );
        bed.sim.fail_io_after(n, FaultKind::Error);
        let written = records(&model).try_for_each(|r| writer.add(r));
        let finished = written.and_then(|()| writer.finish());
        bed.sim.clear_faults();
        match finished {
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                assert_eq!(bed.context.file.used_bytes(), 0);
            }
            Ok(run) => {
                assert!(n > 3, "no fault was met");
                run.unwrap().verify(&Shapes::default()).unwrap();
                break;
            }
        }
    }
}

#[test]
fn a_read_that_fails_is_an_error_and_the_next_one_succeeds() {
    let model = plain(2000, 20);
    let mut failed = 0;
    for n in 0..30 {
        let bed = Bed::new(1 << 20);
        let run = bed.write(1, small(1000), &model);
        let mut cursor = run.cursor();
        bed.sim.fail_io_after(n, FaultKind::Error);
        let scan = |cursor: &mut crate::RunCursor| -> pando_base::Result<usize> {
            let mut rows = 0;
            cursor.seek_first()?;
            while cursor.valid() {
                rows += 1;
                cursor.next()?;
            }
            Ok(rows)
        };
        if scan(&mut cursor).is_err() {
            failed += 1;
            assert!(!cursor.valid());
        }
        bed.sim.clear_faults();
        assert_eq!(scan(&mut cursor).unwrap(), 2000);
        assert!(run.get(&Lookup::new(&key(7), 9)).unwrap().is_some());
    }
    assert!(failed > 3, "{failed}");
}

#[test]
fn a_full_disk_is_an_ordinary_error_and_there_is_life_after_it() {
    let bed = Bed::new(0);
    let model = plain(20_000, 200);
    let options = RunOptions { compression: Compression::None, ..small(4000) };
    bed.sim.set_capacity(Some(2 << 20));
    let mut writer = RunWriter::new(&bed.context, RunId(1), options);
    let error = records(&model).try_for_each(|r| writer.add(r)).and_then(|()| writer.finish()).unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(bed.context.file.used_bytes(), 0);
    bed.sim.set_capacity(None);
    bed.write(2, options, &model).verify(&Shapes::default()).unwrap();
}

#[test]
fn a_segment_that_is_valid_but_not_the_promised_one_is_refused() {
    let bed = Bed::new(0);
    let run = bed.write(1, small(600), &plain(200, 20));
    let index = run.index().unwrap();
    let bytes = run.read(index.entry(0).place).unwrap();
    run.decode_segment(&index, 0, &bytes).unwrap();
    // The same bytes at another place fail by their checksum already; here even the place is right.
    let other = bed.write(2, small(600), &plain(150, 19));
    let mut meta = other.meta().clone();
    meta.rows += 1;
    let lying = Run::new(bed.context.clone(), meta, Vec::new());
    assert!(matches!(lying.get(&Lookup::new(&key(3), 9)), Err(Error::Corruption { .. })));
}

#[test]
fn what_segments_have_in_common_is_used_where_it_pays_and_missed_where_it_is_damaged() {
    let column = |kind, size| NewColumn {
        name: String::new(),
        ty: ColumnType { kind, size, nullable: false, binary: false },
        source: Source::Added(Value::Null),
    };
    let layouts = Layouts::new(vec![column(ColumnKind::Unsigned, 4), column(ColumnKind::Varchar, 60)]);
    let shapes = Arc::new(Shapes::of(&layouts));
    let bed = Bed::new(1 << 20);
    let write_as = |id, compression, of: &dyn Fn(u64) -> u64| {
        let options = RunOptions { compression, ..RunOptions::default() };
        let mut writer = RunWriter::new(&bed.context, RunId(id), options).with_columns(shapes.clone());
        for n in 0..20_000u32 {
            let text =
                format!("city of {:016x}", of(u64::from(n) * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut value = vec![1];
            value.extend_from_slice(&n.to_le_bytes());
            value.push(text.len() as u8);
            value.extend_from_slice(text.as_bytes());
            writer.add(RecordRef { key: &key(n), seqno: 1, kind: Kind::Put, value: &value }).unwrap();
        }
        writer.finish().unwrap().unwrap()
    };
    let write = |id, of: &dyn Fn(u64) -> u64| write_as(id, Compression::Zstd(3), of);
    let each_its_own = write(1, &|n| n);
    assert_eq!(each_its_own.index().unwrap().common(), None);
    // Nothing is stored that nobody can use, and nothing because the second segment is smaller for itself.
    let fewer = |n: u64| if n < 1024 * 7919 { n % 300 } else { 7 };
    for compression in [Compression::Lz4, Compression::None, Compression::Zstd(3)] {
        assert_eq!(write_as(3, compression, &fewer).index().unwrap().common(), None, "{compression}");
    }
    let run = write(2, &|n| n % 300);
    let place = run.index().unwrap().common().expect("names of cities in common");
    assert!(run.meta().disk_bytes * 3 < each_its_own.meta().disk_bytes);
    run.verify(&shapes).unwrap();
    let again = Run::new(bed.context.clone(), run.meta().clone(), Vec::new());
    let get = |n| again.get(&Lookup::new(&key(n), 9));
    assert!((0..20_000).step_by(99).all(|n| get(n).unwrap().is_some()));
    drop(again);

    bed.sim.flip_bit(Path::new(PATH), place.offset + 50, 3);
    let run = Run::new(bed.context.clone(), run.meta().clone(), Vec::new());
    let damaged = |error: Error| error.to_string().contains(&format!("offset {}", place.offset));
    assert!(run.get(&Lookup::new(&key(1), 9)).is_err_and(damaged));
    assert!(run.verify(&shapes).is_err_and(damaged));
}

#[test]
fn zones_that_are_not_those_of_the_rows_are_found() {
    let column = |kind, size| NewColumn {
        name: String::new(),
        ty: ColumnType { kind, size, nullable: false, binary: false },
        source: Source::Added(Value::Null),
    };
    let shapes = |kinds: &[(ColumnKind, u32)]| {
        Shapes::of(&Layouts::new(kinds.iter().map(|(kind, size)| column(*kind, *size)).collect()))
    };
    let written = shapes(&[(ColumnKind::Signed, 2)]);
    let bed = Bed::new(1 << 20);
    let mut writer =
        RunWriter::new(&bed.context, RunId(1), small(600)).with_columns(Arc::new(written.clone()));
    for n in 0..200u8 {
        writer.add(RecordRef { key: &[n], seqno: 1, kind: Kind::Put, value: &[1, n, n] }).unwrap();
    }
    let run = writer.finish().unwrap().unwrap();
    run.verify(&written).unwrap();
    run.verify(&Shapes::default()).unwrap();
    // In another order others are the least and the greatest, and values of one byte are none of these rows.
    for other in [(ColumnKind::Unsigned, 2), (ColumnKind::Signed, 1)] {
        let error = run.verify(&shapes(&[other])).unwrap_err();
        assert!(error.to_string().contains("zones of a segment"), "{error}");
    }
}
