//! Columns of several segments at once.

use pando_column::layout::{ColumnType, Kind as ColumnKind, Layouts, NewColumn, Source, Value};
use pando_column::vector::Vector;
use pando_column::Pick;

use super::*;
use crate::{CachedBlock, CachedForm, RunColumns};

const ROWS: u32 = 20_000;

fn layouts() -> Layouts {
    let column = |kind, size, nullable| NewColumn {
        name: String::new(),
        ty: ColumnType { kind, size, nullable, binary: false },
        source: Source::Added(Value::Null),
    };
    Layouts::new(vec![column(ColumnKind::Unsigned, 4, false), column(ColumnKind::Varchar, 60, false)])
}

fn key(n: u32) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

fn written(bed: &Bed, layouts: &Layouts) -> Arc<Run> {
    let options = RunOptions { segment_raw_bytes: 2000, ..RunOptions::default() };
    let mut writer =
        RunWriter::new(&bed.context, RunId(1), options).with_columns(Arc::new(Shapes::of(layouts)));
    for n in 0..ROWS {
        let text = "x".repeat(n as usize % 40);
        let mut value = vec![1];
        value.extend_from_slice(&(n / 3).to_le_bytes());
        value.push(text.len() as u8);
        value.extend_from_slice(text.as_bytes());
        writer.add(RecordRef { key: &key(n), seqno: 1, kind: Kind::Put, value: &value }).unwrap();
    }
    writer.finish().unwrap().unwrap()
}

fn picks(layouts: &Layouts) -> Vec<Pick> {
    let columns = layouts.current().columns.iter().map(|column| Pick::Column(column.id));
    columns.chain([Pick::WholeKey, Pick::Key { offset: 1, size: 2 }]).collect()
}

fn is_column(block: &CachedBlock) -> bool {
    matches!(block.form, CachedForm::Column(_))
}

fn columns_in_cache(bed: &Bed) -> usize {
    bed.context.cache.contents().iter().filter(|(_, of)| is_column(of)).count()
}

fn spans(columns: &RunColumns) -> Vec<std::ops::Range<usize>> {
    let all = columns.segments(b"", None);
    let mut spans = vec![columns.span_at(0)];
    while let Some(last) = spans.last().filter(|last| last.end < all.end) {
        spans.push(columns.span_at(last.end));
    }
    spans
}

#[test]
fn a_span_has_the_columns_of_its_segments() {
    let (bed, layouts) = (Bed::new(64 << 20), layouts());
    let run = written(&bed, &layouts);
    let picks = picks(&layouts);
    let mut columns = RunColumns::new(&run).unwrap();
    let spans = spans(&columns);
    assert!((4..8).contains(&spans.len()) && spans.iter().all(|span| span.len() > 10), "{spans:?}");
    // Within a span, each segment is alone.
    assert_eq!(columns.span_at(1), 1..2);
    let mut number = 0;
    for span in &spans {
        assert!(
            columns.are_plain(span.clone(), 1, b"", None) && !columns.are_plain(span.clone(), 0, b"", None)
        );
        let whole = columns.span_columns(span.clone(), &layouts, &picks, None).unwrap().unwrap();
        let parts: Vec<_> =
            span.clone().map(|at| columns.columns(at, &layouts, &picks).unwrap().unwrap().vectors).collect();
        for (at, vector) in whole.vectors.iter().enumerate() {
            let parts: Vec<Arc<Vector>> = parts.iter().map(|part| part[at].clone().unwrap()).collect();
            assert_eq!(**vector.as_ref().unwrap(), Vector::concat(&parts));
        }
        for row in 0..whole.vectors[0].as_ref().unwrap().rows() {
            assert_eq!(whole.vectors[2].as_ref().unwrap().get(row), Some(&*key(number)));
            number += 1;
        }
    }
    assert_eq!(number, ROWS);
}

#[test]
fn the_cache_keeps_a_span_as_one_and_loses_it_with_its_run() {
    let (bed, layouts) = (Bed::new(64 << 20), layouts());
    let run = written(&bed, &layouts);
    let picks = picks(&layouts);
    let mut columns = RunColumns::new(&run).unwrap();
    let count = || columns_in_cache(&bed);
    let spans = spans(&columns);
    for _ in 0..2 {
        for span in &spans {
            columns.span_columns(span.clone(), &layouts, &picks, None).unwrap().unwrap();
        }
        assert_eq!(count(), spans.len() * picks.len());
    }

    // The list of what is cached brings the same back.
    let mut listed: Vec<CachedBlock> = bed.context.cache.contents().into_iter().map(|(_, of)| of).collect();
    listed.sort_unstable();
    drop(columns);
    drop(run);
    assert_eq!(count(), 0);
    let run = written(&bed, &layouts);
    let columns_listed: Vec<CachedBlock> = listed.iter().filter(|of| is_column(of)).copied().collect();
    let at_new_place = |of: &CachedBlock| {
        let number = columns_listed.iter().map(|of| of.offset).collect::<std::collections::BTreeSet<_>>();
        let nth = number.iter().position(|offset| *offset == of.offset).unwrap();
        let place = run.index().unwrap().entry(spans[nth].start).place;
        CachedBlock { offset: place.offset, ..*of }
    };
    let here: Vec<CachedBlock> = columns_listed.iter().map(at_new_place).collect();
    let done = run.warm(&here, Some(&layouts), &|| true).unwrap();
    assert_eq!((done as usize, count()), (here.len(), here.len()));
}

#[test]
fn of_few_rows_only_their_segments_are_read() {
    let (bed, layouts) = (Bed::new(64 << 20), layouts());
    let run = written(&bed, &layouts);
    let picks = picks(&layouts);
    let mut columns = RunColumns::new(&run).unwrap();
    let span = columns.span_at(0);
    let first = columns.rows(0) as u32;
    let rows = [3, first + 1];
    let some = columns.span_columns(span.clone(), &layouts, &picks, Some(&rows)).unwrap().unwrap();
    assert_eq!(columns_in_cache(&bed), 2 * picks.len());
    let whole = columns.span_columns(span.clone(), &layouts, &picks, None).unwrap().unwrap();
    for (some, whole) in some.vectors.iter().zip(&whole.vectors) {
        let (some, whole) = (some.as_ref().unwrap(), whole.as_ref().unwrap());
        assert_eq!(some.rows(), whole.rows());
        assert!(rows.iter().all(|row| some.get(*row as usize) == whole.get(*row as usize)));
        assert_eq!(some.get(whole.rows() - 1), None);
    }
    // What is known as a whole is given as a whole.
    let again = columns.span_columns(span, &layouts, &picks, Some(&rows)).unwrap().unwrap();
    assert!(again.vectors.iter().zip(&whole.vectors).all(|(a, b)| a == b));
}
