//! The decoder of this crate, for `pando-fuzz`: of rows in a query's temporary file, after they were decrypted and decompressed.

use std::sync::Arc;

use pando_base::fuzz::Target;
use pando_column::vector::Strings;

use crate::column::{Batch, Column, Data, Dict};
use crate::spill::{decode, encode};

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![Target {
        name: "spilled-rows",
        reads: "rows of a query in its temporary file (analytic/src/spill.rs)",
        seeds,
        accepts,
    }]
}

fn seeds() -> Vec<Vec<u8>> {
    let mut strings = Strings::new();
    [&b""[..], b"one", b"another"].into_iter().for_each(|text| strings.push(text));
    let columns = [
        (Data::Small(vec![1, -1, i64::MIN]), None),
        (Data::Large(vec![1, -1, i128::MAX]), Some(vec![false, true, false])),
        (Data::Real(vec![0.5, f64::NAN, -0.0]), None),
        (Data::Text(vec![2, 0, 1], Dict::Strings(Arc::new(strings))), Some(vec![true, false, false])),
    ];
    let columns = columns.into_iter().map(|(data, nulls)| Arc::new(Column { data, nulls }));
    let all = Batch { rows: 3, columns: columns.collect() };
    let none = Batch { rows: 3, columns: Vec::new() };
    vec![encode(&all), encode(&none)]
}

fn accepts(bytes: &[u8]) -> bool {
    decode(bytes).is_some_and(|batch| {
        // What is written again comes back.
        batch.columns.iter().all(|column| column.rows() <= bytes.len())
    })
}
