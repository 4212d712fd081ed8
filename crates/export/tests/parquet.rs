//! Parquet files, read again by the library that writes them.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use bytes::Bytes;
use pando_export::frm::{Definition, FrmColumn};
use pando_export::parquet::ParquetWriter;
use pando_export::value::Cell;
use parquet::basic::{LogicalType, Repetition};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

fn columns(names: &[&str]) -> Vec<FrmColumn> {
    let definition = Definition::read(include_bytes!("frm/types.frm")).unwrap();
    let find = |name: &&str| definition.columns.iter().find(|column| column.name == *name).unwrap().clone();
    names.iter().map(find).collect()
}

fn written(columns: &[FrmColumn], rows: &[Vec<Cell>]) -> (SerializedFileReader<Bytes>, Vec<String>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = ParquetWriter::new(file.reopen().unwrap(), columns).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    let notes = writer.end().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    (SerializedFileReader::new(Bytes::from(bytes)).unwrap(), notes)
}

fn fields(row: &Row) -> Vec<Field> {
    row.get_column_iter().map(|(_, field)| field.clone()).collect()
}

#[test]
fn values_come_back_as_they_were() {
    let text = |text: &str| Cell::Text(text.into());
    let columns = columns(&["t1", "t8u", "de", "da", "dt6", "ts6", "u", "vc4", "bl"]);
    let rows = vec![
        vec![
            Cell::Integer(-128),
            Cell::Integer(i128::from(u64::MAX)),
            Cell::Decimal(format!("-{}", decimal_of(&columns[2], "7"))),
            text("1969-12-31"),
            text("2024-02-29 23:59:59.000001"),
            text("1970-01-01 00:00:01.500"),
            text("00112233-4455-6677-8899-aabbccddeeff"),
            text("ü"),
            Cell::Bytes(vec![0, 255]),
        ],
        vec![Cell::Null; columns.len()],
    ];
    let columns: Vec<FrmColumn> =
        columns.into_iter().map(|column| FrmColumn { flags: column.flags | 0x8000, ..column }).collect();
    let (file, notes) = written(&columns, &rows);
    assert_eq!(notes, Vec::<String>::new());
    let found: Vec<Vec<Field>> = file.get_row_iter(None).unwrap().map(|row| fields(&row.unwrap())).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0][0], Field::Byte(-128));
    assert_eq!(found[0][1], Field::ULong(u64::MAX));
    assert!(found[0][2].to_string().starts_with("-7"), "{}", found[0][2]);
    assert_eq!(found[0][3], Field::Date(-1));
    assert_eq!(found[0][4], Field::TimestampMicros(1_709_251_199_000_001));
    assert_eq!(found[0][5], Field::TimestampMicros(1_500_000));
    assert_eq!(found[0][7], Field::Str("ü".into()));
    assert_eq!(found[0][8], Field::Bytes(vec![0, 255].into()));
    assert!(found[1].iter().all(|field| *field == Field::Null), "{:?}", found[1]);
    let schema = file.metadata().file_metadata().schema_descr();
    assert_eq!(schema.column(6).logical_type_ref(), Some(&LogicalType::Uuid));
    assert_eq!(schema.column(3).logical_type_ref(), Some(&LogicalType::Date));
}

/// A decimal of this column's digits behind the point.
fn decimal_of(column: &FrmColumn, whole: &str) -> String {
    match column.decimals() {
        0 => whole.to_owned(),
        scale => format!("{whole}.{}", "0".repeat(scale as usize)),
    }
}

#[test]
fn dates_of_no_calendar_and_broken_texts_are_counted() {
    let columns = columns(&["da", "vc4"]);
    let required: Vec<FrmColumn> =
        columns.into_iter().map(|column| FrmColumn { flags: column.flags & 0x7fff, ..column }).collect();
    let rows = [
        vec![Cell::Text("0000-00-00".into()), Cell::Bytes(vec![b'a', 0xff])],
        vec![Cell::Text("2024-02-30".into()), Cell::Text("b".into())],
    ];
    let (file, notes) = written(&required, &rows);
    let found: Vec<Vec<Field>> = file.get_row_iter(None).unwrap().map(|row| fields(&row.unwrap())).collect();
    assert_eq!(found[0], [Field::Null, Field::Str("a\u{fffd}".into())]);
    assert_eq!(found[1], [Field::Null, Field::Str("b".into())]);
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("column da has 2 dates"), "{notes:?}");
    assert!(notes[1].starts_with("column vc4 has 1 values"), "{notes:?}");
    let fields = file.metadata().file_metadata().schema_descr().root_schema().get_fields();
    let repetitions: Vec<Repetition> =
        fields.iter().map(|field| field.get_basic_info().repetition()).collect();
    assert_eq!(repetitions, [Repetition::OPTIONAL, Repetition::REQUIRED]);
}

#[test]
fn a_null_where_none_may_be_is_an_error_with_the_columns_name() {
    let columns: Vec<FrmColumn> = columns(&["t1"])
        .into_iter()
        .map(|column| FrmColumn { flags: column.flags & 0x7fff, ..column })
        .collect();
    let mut writer = ParquetWriter::new(Vec::new(), &columns).unwrap();
    let error = writer.row(&[Cell::Null]).unwrap_err().to_string();
    assert!(error.contains("t1"), "{error}");
}

#[test]
fn many_rows_are_several_row_groups() {
    let columns = columns(&["t4"]);
    let rows: Vec<Vec<Cell>> = (0..1_100_000).map(|number| vec![Cell::Integer(number)]).collect();
    let (file, _) = written(&columns, &rows);
    assert_eq!((file.num_row_groups(), file.metadata().file_metadata().num_rows()), (2, 1_100_000));
    let numbers = file.get_row_iter(None).unwrap().map(|row| fields(&row.unwrap()).remove(0));
    assert!(numbers.zip(0..).all(|(field, number)| field == Field::Int(number)));
    let (file, _) = written(&columns, &[]);
    assert_eq!((file.num_row_groups(), file.metadata().file_metadata().num_rows()), (0, 0));
}
