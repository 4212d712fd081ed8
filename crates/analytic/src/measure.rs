//! Numbers of texts: their lengths.

use crate::column::{Column, Data, Kind, Value};
use crate::eval::{Val, DICT_PER_ROW};
use crate::expr::MeasureText;

/// The number of each row's text. Each entry is asked for once.
pub(crate) fn measured(val: &Val, rows: usize, measure: &MeasureText) -> Column {
    let column = val.clone().column(Kind::Text(0), rows);
    let Data::Text(codes, dict) = &column.data else {
        return Column::constant(&Value::Null, Kind::Signed, rows);
    };
    let mut known: Vec<Option<i64>> = match dict.len() > rows * DICT_PER_ROW {
        true => Vec::new(),
        false => vec![None; dict.len()],
    };
    let mut of_row = |row: usize| {
        // The code of NULL may be that of any text.
        if column.is_null(row) {
            return 0;
        }
        let of_text = || measure(dict.get(codes[row]));
        match known.get_mut(codes[row] as usize) {
            Some(known) => *known.get_or_insert_with(of_text),
            None => of_text(),
        }
    };
    let numbers = (0..rows).map(&mut of_row).collect();
    Column { data: Data::Small(numbers), nulls: column.nulls.clone() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pando_column::vector::Strings;

    use super::*;
    use crate::column::Dict;

    #[test]
    fn a_text_is_measured_also_where_null_has_its_code() {
        let mut strings = Strings::new();
        [&b"ab"[..], b""].iter().for_each(|text| strings.push(text));
        let dict = Dict::Strings(Arc::new(strings));
        for rows in [4, 1] {
            let codes = [0, 0, 1, 0][4 - rows..].to_vec();
            let nulls = Some([true, false, false, false][4 - rows..].to_vec());
            let column = Column { data: Data::Text(codes, dict.clone()), nulls };
            let found = measured(&Val::Each(Arc::new(column)), rows, &|text: &[u8]| text.len() as i64);
            let expected = [(true, 0), (false, 2), (false, 0), (false, 2)];
            let of = |row: usize| (found.is_null(row), found.number(row));
            assert_eq!((0..rows).map(of).collect::<Vec<_>>(), expected[4 - rows..]);
        }
        let none = measured(&Val::One(Value::Null), 2, &|_: &[u8]| 7);
        assert!(none.is_null(0) && none.is_null(1));
    }
}
