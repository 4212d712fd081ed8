//! Which rows are selected: a byte for each, 1 or 0, and the numbers of those that have 1. Both without a branch for each row;
//! eight rows of which none is selected are passed by together.

use pando_column::vector::Nulls;

/// Entries of a dictionary that a byte can name.
const SHORT: usize = 256;

/// The numbers of the rows that are selected; `None`: all of them.
pub(crate) fn rows_of(mask: &[u8]) -> Option<Vec<u32>> {
    let mut rows = vec![0u32; mask.len()];
    let mut count = 0;
    let (eights, rest) = mask.as_chunks_of_8();
    for (number, eight) in eights.enumerate() {
        if u64::from_ne_bytes(eight) == 0 {
            continue;
        }
        for (at, is_selected) in eight.into_iter().enumerate() {
            rows[count] = (number * 8 + at) as u32;
            count += usize::from(is_selected);
        }
    }
    let begin = mask.len() - rest.len();
    for (at, is_selected) in rest.iter().enumerate() {
        rows[count] = (begin + at) as u32;
        count += usize::from(*is_selected);
    }
    rows.truncate(count);
    (count < mask.len()).then_some(rows)
}

trait Chunks {
    fn as_chunks_of_8(&self) -> (impl Iterator<Item = [u8; 8]>, &[u8]);
}

impl Chunks for [u8] {
    fn as_chunks_of_8(&self) -> (impl Iterator<Item = [u8; 8]>, &[u8]) {
        let chunks = self.chunks_exact(8);
        let rest = chunks.remainder();
        (chunks.map(|chunk| chunk.try_into().expect("eight bytes")), rest)
    }
}

/// Of rows that name entries of a dictionary, those whose entry is wanted (`wanted` has 1 or 0 for each), among the rows
/// that were selected before (`None`: all). `of_null`: whether NULL is wanted. `None`: all of those rows.
pub(crate) fn rows_of_entries(
    codes: &[u32],
    nulls: Option<&Nulls>,
    selected: Option<&[u32]>,
    (wanted, of_null): (&[u8], u8),
) -> Option<Vec<u32>> {
    let Some(selected) = selected else {
        return rows_of(&mask_of_entries(codes, nulls, (wanted, of_null)));
    };
    let of_row = |row: u32| match nulls.is_some_and(|nulls| nulls.is_null(row as usize)) {
        true => of_null,
        false => wanted[codes[row as usize] as usize],
    };
    let (mut rows, mut count) = (vec![0u32; selected.len()], 0);
    for row in selected {
        rows[count] = *row;
        count += usize::from(of_row(*row));
    }
    rows.truncate(count);
    (count < selected.len()).then_some(rows)
}

fn mask_of_entries(codes: &[u32], nulls: Option<&Nulls>, (wanted, of_null): (&[u8], u8)) -> Vec<u8> {
    let mut mask: Vec<u8> = match wanted.len() <= SHORT {
        true => {
            let mut of_bytes = [0u8; SHORT];
            of_bytes[..wanted.len()].copy_from_slice(wanted);
            codes.iter().map(|code| of_bytes[usize::from(*code as u8)]).collect()
        }
        false => codes.iter().map(|code| wanted[*code as usize]).collect(),
    };
    for (number, word) in nulls.into_iter().flat_map(Nulls::words).enumerate() {
        let mut word = *word;
        while word != 0 {
            mask[number * 64 + word.trailing_zeros() as usize] = of_null;
            word &= word - 1;
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_rows_are_named_in_order() {
        for count in [0usize, 1, 7, 8, 9, 64, 71] {
            for step in [1, 2, 3, 13, 100] {
                let mask: Vec<u8> = (0..count).map(|row| u8::from(row % step == step - 1)).collect();
                let expected: Vec<u32> = (0..count as u32).filter(|row| mask[*row as usize] == 1).collect();
                let found = rows_of(&mask);
                assert_eq!(found.is_none(), expected.len() == count, "all of {count}");
                assert_eq!(found.unwrap_or_else(|| (0..count as u32).collect()), expected);
            }
        }
    }

    /// Few entries and many, with NULLs that are wanted and not, of all rows and of some.
    #[test]
    fn rows_are_selected_by_their_entries() {
        for (entries, has_nulls, of_null, is_some) in [3u32, 256, 257].into_iter().flat_map(|entries| {
            [(false, 0), (true, 0), (true, 1)].into_iter().flat_map(move |(has_nulls, of_null)| {
                [(entries, has_nulls, of_null, false), (entries, has_nulls, of_null, true)]
            })
        }) {
            let count = 300u32;
            let codes: Vec<u32> = (0..count).map(|row| (row * row + 1) % entries).collect();
            let wanted: Vec<u8> = (0..entries).map(|entry| u8::from(entry % 3 != 1)).collect();
            let mut nulls = Nulls::new();
            (0..count).for_each(|row| nulls.push(has_nulls && row % 7 == 3));
            let some: Vec<u32> = (0..count).filter(|row| row % 2 == 0).collect();
            let selected = is_some.then_some(some.as_slice());
            let is_wanted = |row: &u32| match nulls.is_null(*row as usize) {
                true => of_null == 1,
                false => wanted[codes[*row as usize] as usize] == 1,
            };
            let all: Vec<u32> = selected.map_or_else(|| (0..count).collect(), <[u32]>::to_vec);
            let expected: Vec<u32> = all.iter().copied().filter(is_wanted).collect();
            let found = rows_of_entries(&codes, Some(&nulls), selected, (&wanted, of_null));
            assert_eq!(
                found.unwrap_or(all),
                expected,
                "{entries} entries, NULLs {has_nulls} {of_null}, some {is_some}"
            );
        }
    }
}
