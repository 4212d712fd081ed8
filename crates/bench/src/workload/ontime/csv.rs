//! Real monthly files: which of their columns is which, by the header line.
//!
//! The publisher's files have text in quotes, nothing for NULL, numbers with a point, and since 2013 or so more
//! columns than the table; some end each line with a comma. Nothing becomes NULL, further columns are passed by.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::super::CsvTable;
use super::schema::COLUMNS;
use crate::error::{Error, Result};

/// How to load one file. Errors: it cannot be read, or lacks columns without which the table makes no sense.
pub fn table_of(path: &Path) -> Result<CsvTable> {
    let file = File::open(path).map_err(Error::file(path))?;
    let mut header = String::new();
    BufReader::new(file).read_line(&mut header).map_err(Error::file(path))?;
    let columns = columns_of(&header).map_err(|what| Error::Data(format!("{}: {what}", path.display())))?;
    let path = std::fs::canonicalize(path).map_err(Error::file(path))?;
    Ok(CsvTable {
        table: "ontime".to_owned(),
        path,
        rows: None,
        columns: format!("IGNORE 1 LINES {columns}"),
    })
}

/// The list of columns and the SET clause for a file with this header.
fn columns_of(header: &str) -> std::result::Result<String, String> {
    let mut targets = Vec::new();
    let mut sets = Vec::new();
    for (place, name) in header.trim_end().split(',').enumerate() {
        let name = name.trim().trim_matches('"');
        let known = COLUMNS.iter().find(|one| {
            one.name.eq_ignore_ascii_case(name)
                || (!one.later.is_empty() && one.later.eq_ignore_ascii_case(name))
        });
        targets.push(format!("@c{place}"));
        if let Some(column) = known {
            sets.push((column.name, format!("{} = NULLIF(@c{place}, '')", column.name)));
        }
    }
    let missing: Vec<&str> = COLUMNS
        .iter()
        .filter(|one| one.sql_type.ends_with("NOT NULL") && !sets.iter().any(|(name, _)| *name == one.name))
        .map(|one| one.name)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "no header line of the On-Time Performance data: {} not in it",
            missing.join(", ")
        ));
    }
    let sets: Vec<String> = sets.into_iter().map(|(_, set)| set).collect();
    Ok(format!("({}) SET {}", targets.join(", "), sets.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_with_more_columns_other_names_and_a_last_comma_are_understood() {
        let header = "\"Year\",\"Quarter\",\"Month\",\"DayofMonth\",\"DayOfWeek\",\"FlightDate\",\"Reporting_Airline\",\
                      \"OriginAirportID\",\"Origin\",\r\n";
        let columns = columns_of(header).unwrap();
        assert!(columns
            .starts_with("(@c0, @c1, @c2, @c3, @c4, @c5, @c6, @c7, @c8, @c9) SET Year = NULLIF(@c0, '')"));
        assert!(
            columns.contains("UniqueCarrier = NULLIF(@c6, '')")
                && columns.contains("Origin = NULLIF(@c8, '')")
        );
        assert!(!columns.contains("@c7, '')") && !columns.contains("@c9, '')"));
    }

    #[test]
    fn a_file_of_something_else_is_refused_by_name_of_what_is_missing() {
        assert!(columns_of("Year,Month").unwrap_err().contains("FlightDate"));
    }
}
