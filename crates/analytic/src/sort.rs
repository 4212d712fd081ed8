//! Orders.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::column::{Column, Data, Dict, Kind, UNSUPPORTED};
use crate::eval::{Eval, Result};
use crate::expr::{KeyOfText, Texts};
use crate::first_rows::ordered_bits;
use crate::keys::Budget;
use pando_query::{Failure, Why};

/// What rows are sorted by, ready to be compared.
enum Ready {
    Number(Arc<Column>),
    /// The place of each row's text among all of them, equal ones together, from 1; 0: NULL.
    Text(Vec<u32>),
}

/// Compares rows.
pub(crate) struct Sorter(Vec<(Ready, bool)>);

impl Sorter {
    /// Of these columns; true: descending.
    pub(crate) fn new(keys: &[(Arc<Column>, Kind, bool)], texts: &Texts, budget: &Budget) -> Result<Sorter> {
        let mut ready = Vec::new();
        for (column, kind, descends) in keys {
            let one = match (kind, &column.data) {
                (Kind::Text(collation), Data::Text(codes, dict)) => {
                    let key = texts.collations.get(*collation as usize).ok_or(UNSUPPORTED)?;
                    Ready::Text(ranks(column, codes, dict, &**key, budget)?)
                }
                (Kind::Text(_), _) => return Err(UNSUPPORTED),
                _ => Ready::Number(column.clone()),
            };
            ready.push((one, *descends));
        }
        Ok(Sorter(ready))
    }

    /// NULL comes first.
    pub(crate) fn compare(&self, a: u32, b: u32) -> Ordering {
        for (one, descends) in &self.0 {
            let order = match one {
                Ready::Number(column) => by_number(column, a as usize, b as usize),
                Ready::Text(ranks) => ranks[a as usize].cmp(&ranks[b as usize]),
            };
            if order.is_ne() {
                return if *descends { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

/// How many bits of heads are taken, and those that a key of so many adds.
fn appended(head: u64, taken: u32, offset: u128, bits: u32) -> u64 {
    let room = u64::BITS - taken;
    match bits <= room {
        true if bits == u64::BITS => offset as u64,
        true => head << bits | offset as u64,
        false if room == u64::BITS => (offset >> (bits - room)) as u64,
        false => head << room | (offset >> (bits - room)) as u64,
    }
}

impl Ready {
    /// The least and the greatest number that stand for values in their order; `None`: all are NULL.
    fn bounds(&self) -> Option<(i128, i128)> {
        let rows = match self {
            Ready::Number(column) => column.rows(),
            Ready::Text(ranks) => ranks.len(),
        };
        let numbers = (0..rows).filter_map(|row| self.number(row));
        numbers.fold(None, |bounds, number| {
            let (least, most) = bounds.unwrap_or((number, number));
            Some((number.min(least), number.max(most)))
        })
    }

    /// A number that stands for a value in its order; `None`: NULL.
    #[inline]
    fn number(&self, row: usize) -> Option<i128> {
        match self {
            Ready::Text(ranks) => (ranks[row] > 0).then_some(ranks[row].into()),
            Ready::Number(column) if column.is_null(row) => None,
            Ready::Number(column) => Some(match &column.data {
                Data::Real(values) => ordered_bits(values[row]).into(),
                Data::Small(values) => values[row].into(),
                _ => column.number(row),
            }),
        }
    }
}

impl Sorter {
    /// A number for each row: rows whose numbers differ are in their order. It is made of as much of the keys as has room, so that most
    /// rows are compared without looking at columns, where they lie all over the memory.
    fn heads(&self, rows: usize) -> Vec<u64> {
        let mut heads = vec![0u64; rows];
        let mut taken = 0;
        for (ready, descends) in &self.0 {
            let Some((least, most)) = ready.bounds() else { continue };
            // From 1; NULL is 0. What has no room is cut from below, which leaves the order.
            let Some(last) =
                most.checked_sub(least).and_then(|span| u128::try_from(span).ok()?.checked_add(1))
            else {
                break;
            };
            let bits = u128::BITS - last.leading_zeros();
            for (row, head) in heads.iter_mut().enumerate() {
                let offset = ready.number(row).map_or(0, |number| (number - least) as u128 + 1);
                let offset = if *descends { last - offset } else { offset };
                *head = appended(*head, taken, offset, bits);
            }
            taken = (taken + bits).min(u64::BITS);
            if taken == u64::BITS {
                break;
            }
        }
        heads
    }
}

/// The key of a text.
struct TextKey {
    /// The first eight bytes behind what all keys begin with.
    head: u64,
    begin: usize,
    end: usize,
    code: u32,
}

/// The places of rows by their texts. Each different text is compared with others, once for all of its rows, and mostly by a number that stands beside it: keys of
/// rows in no order lie all over the memory.
fn ranks(column: &Column, codes: &[u32], dict: &Dict, key: &KeyOfText, budget: &Budget) -> Result<Vec<u32>> {
    let mut rank_of_code = vec![0; dict.len()];
    let mut bytes = Vec::new();
    let mut keys: Vec<TextKey> = Vec::new();
    for (row, code) in codes.iter().enumerate() {
        if !column.is_null(row) && rank_of_code[*code as usize] == 0 {
            rank_of_code[*code as usize] = 1;
            let begin = bytes.len();
            key(dict.get(*code), &mut bytes);
            keys.push(TextKey { head: 0, begin, end: bytes.len(), code: *code });
        }
    }
    budget.take(bytes.len() + keys.len() * size_of::<TextKey>() + (rank_of_code.len() + codes.len()) * 4)?;
    let of = |key: &TextKey| &bytes[key.begin..key.end];
    let first = keys.first().map_or(&[][..], of);
    let alike = |key: &TextKey| first.iter().zip(of(key)).take_while(|(a, b)| a == b).count();
    let shared = keys.iter().map(alike).min().unwrap_or(0);
    for key in &mut keys {
        let rest = &bytes[key.begin + shared..key.end];
        let mut head = [0; 8];
        let len = rest.len().min(8);
        head[..len].copy_from_slice(&rest[..len]);
        key.head = u64::from_be_bytes(head);
    }
    keys.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| of(a).cmp(of(b))));
    let mut rank = 0;
    for (at, key) in keys.iter().enumerate() {
        rank += u32::from(at == 0 || of(&keys[at - 1]) != of(key));
        rank_of_code[key.code as usize] = rank;
    }
    let rank_of =
        |(row, code): (usize, &u32)| if column.is_null(row) { 0 } else { rank_of_code[*code as usize] };
    Ok(codes.iter().enumerate().map(rank_of).collect())
}

/// Rows that are sorted without asking whether to go on.
const SORTED_AT_ONCE: usize = 1 << 17;

/// Sorts rows.
pub(crate) fn sort_rows<T: Copy>(
    rows: &mut Vec<T>,
    compare: impl Fn(T, T) -> Ordering,
    eval: Eval<'_>,
) -> Result<()> {
    for piece in rows.chunks_mut(SORTED_AT_ONCE) {
        eval.go_on()?;
        piece.sort_unstable_by(|a, b| compare(*a, *b));
    }
    let mut size = SORTED_AT_ONCE;
    let mut merged = Vec::new();
    while size < rows.len() {
        merged.reserve(rows.len());
        for pair in rows.chunks(size * 2) {
            eval.go_on()?;
            let (mut left, mut right) = pair.split_at(size.min(pair.len()));
            while let ([first, of_left @ ..], [second, of_right @ ..]) = (left, right) {
                if compare(*first, *second).is_le() {
                    merged.push(*first);
                    left = of_left;
                } else {
                    merged.push(*second);
                    right = of_right;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(rows, &mut merged);
        merged.clear();
        size *= 2;
    }
    Ok(())
}

/// The rows in their order, without those that are skipped, and those beyond the limit. NULL comes first; true: descending.
pub(crate) fn order(
    keys: &[(Arc<Column>, Kind, bool)],
    rows: usize,
    (skip, limit): (u64, Option<u64>),
    budget: &Budget,
    eval: Eval<'_>,
) -> Result<Vec<u32>> {
    let sorter = Sorter::new(keys, eval.texts, budget)?;
    let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(rows);
    let end = limit
        .map_or(rows, |limit| skip.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(rows));
    let mut order = sorted_until(end, rows, &sorter, budget, eval)?;
    if !keys.is_empty() {
        for cut in [skip, end] {
            if cut == 0 || cut >= rows {
                continue;
            }
            eval.go_on()?;
            let last = order[cut - 1];
            let alike: Vec<u32> = (0..rows as u32).filter(|row| sorter.compare(*row, last).is_eq()).collect();
            // Those that come before the cut, of those that are equal, do so by their place.
            let is_cut = alike.last().is_some_and(|row| *row > last);
            if is_cut && keys.iter().any(|(column, ..)| has_several_texts(column, &alike)) {
                return Err(Failure::GivenBack(Why::Undetermined));
            }
        }
    }
    order.truncate(end);
    order.drain(..skip.min(order.len()));
    Ok(order)
}

/// Bytes of a row while rows are sorted by heads: twice itself, where pieces are merged.
const BYTES_BY_HEADS: usize = 2 * size_of::<(u64, u32)>();

/// The rows in their order, as far as the first so many are wanted, or all of them; equal ones by their places.
fn sorted_until(
    end: usize,
    rows: usize,
    sorter: &Sorter,
    budget: &Budget,
    eval: Eval<'_>,
) -> Result<Vec<u32>> {
    let places = 0..rows as u32;
    if sorter.0.is_empty() {
        return Ok(places.collect());
    }
    let bytes = rows * BYTES_BY_HEADS;
    if !budget.try_take(bytes) {
        let compare = |a: u32, b: u32| sorter.compare(a, b).then(a.cmp(&b));
        return first_in_order(places.collect(), end, compare, eval);
    }
    let by_heads = sorter.heads(rows).into_iter().zip(places).collect();
    let compare = |a: (u64, u32), b: (u64, u32)| {
        a.0.cmp(&b.0).then_with(|| sorter.compare(a.1, b.1)).then_with(|| a.1.cmp(&b.1))
    };
    let sorted = first_in_order(by_heads, end, compare, eval);
    budget.release(bytes);
    Ok(sorted?.into_iter().map(|(_, row)| row).collect())
}

fn first_in_order<T: Copy>(
    mut rows: Vec<T>,
    end: usize,
    compare: impl Fn(T, T) -> Ordering + Copy,
    eval: Eval<'_>,
) -> Result<Vec<T>> {
    if end > 0 && end < rows.len() / 4 {
        rows.select_nth_unstable_by(end - 1, |a, b| compare(*a, *b));
        rows.truncate(end);
    }
    sort_rows(&mut rows, compare, eval)?;
    Ok(rows)
}

/// The rows that may be among the first `wanted` ones of a larger number of rows, and the last of these. One more stays that is equal to the
/// last one, of another text if there is one: so `order` sees what it would see of all rows.
pub(crate) fn first(
    keys: &[(Arc<Column>, Kind, bool)],
    rows: usize,
    wanted: usize,
    budget: &Budget,
    eval: Eval<'_>,
) -> Result<(Vec<u32>, Option<u32>)> {
    let mut kept: Vec<u32> = (0..rows as u32).collect();
    if rows <= wanted || wanted == 0 || keys.is_empty() {
        kept.truncate(wanted);
        return Ok((kept, None));
    }
    let sorter = Sorter::new(keys, eval.texts, budget)?;
    let (_, last, others) =
        kept.select_nth_unstable_by(wanted - 1, |a, b| sorter.compare(*a, *b).then(a.cmp(b)));
    let last = *last;
    let alike = || others.iter().filter(|row| sorter.compare(**row, last).is_eq());
    let is_other = |row: &&u32| keys.iter().any(|(column, ..)| has_several_texts(column, &[last, **row]));
    let one_more = alike().find(is_other).or_else(|| alike().next()).copied();
    kept.truncate(wanted);
    kept.extend(one_more);
    kept.sort_unstable();
    Ok((kept, Some(last)))
}

/// Whether some rows do not all have the same text.
fn has_several_texts(column: &Column, rows: &[u32]) -> bool {
    let Data::Text(codes, dict) = &column.data else { return false };
    let text = |row: &u32| (!column.is_null(*row as usize)).then(|| dict.get(codes[*row as usize]));
    rows.windows(2).any(|pair| text(&pair[0]) != text(&pair[1]))
}

fn by_number(column: &Column, a: usize, b: usize) -> Ordering {
    match (column.is_null(a), column.is_null(b)) {
        (false, false) => match &column.data {
            Data::Real(values) => values[a].partial_cmp(&values[b]).unwrap_or(Ordering::Equal),
            Data::Small(values) => values[a].cmp(&values[b]),
            _ => column.number(a).cmp(&column.number(b)),
        },
        (of_a, of_b) => of_b.cmp(&of_a),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use pando_column::vector::Strings;

    /// What an order by a text whose case does not count, then by a number, gives of some rows.
    fn with_keys<T>(
        rows: &[(&str, i64)],
        of: impl FnOnce(&[(Arc<Column>, Kind, bool)], &Budget, Eval<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut texts = Texts::default();
        texts.collations.push(Arc::new(|text, key| key.extend(text.to_ascii_lowercase())));
        let mut strings = Strings::new();
        rows.iter().for_each(|(text, _)| strings.push(text.as_bytes()));
        let codes = (0..rows.len() as u32).collect();
        let text = Column { data: Data::Text(codes, Dict::Strings(Arc::new(strings))), nulls: None };
        let number = Column { data: Data::Small(rows.iter().map(|row| row.1).collect()), nulls: None };
        let keys = [(Arc::new(text), Kind::Text(0), false), (Arc::new(number), Kind::Signed, false)];
        of(&keys, &Budget::new(1 << 20), Eval { texts: &texts, is_stopped: &|| false })
    }

    fn ordered(rows: &[(&str, i64)], skip: u64, limit: Option<u64>) -> Result<Vec<u32>> {
        with_keys(rows, |keys, budget, eval| order(keys, rows.len(), (skip, limit), budget, eval))
    }

    /// Rows that come piece by piece, of which no more stay than may be among the first, are ordered as all of them are; what is not
    /// determined of all rows is not determined of these.
    #[test]
    fn the_first_rows_of_pieces_are_those_of_all_rows() {
        let mut seed = 5u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut undetermined = 0;
        for round in 0..2000 {
            let texts = ["a", "A", "b", "B", "c", "d", "e"];
            let several = 1 + random(7);
            let all: Vec<(&str, i64)> =
                (0..random(60)).map(|_| (texts[random(several) as usize], random(3) as i64)).collect();
            let (skip, limit) = (random(3), random(6));
            let wanted = (skip + limit) as usize;
            let mut kept: Vec<(&str, i64)> = Vec::new();
            for piece in all.chunks(7) {
                kept.extend(piece);
                let (rows, last) =
                    with_keys(&kept, |keys, budget, eval| first(keys, kept.len(), wanted, budget, eval))
                        .unwrap();
                assert!(rows.len() <= wanted + 1, "round {round}");
                assert_eq!(last.is_some(), wanted > 0 && kept.len() > wanted, "round {round}");
                kept = rows.iter().map(|row| kept[*row as usize]).collect();
            }
            let of = |rows: &[(&str, i64)]| match ordered(rows, skip, Some(limit)) {
                Ok(order) => Some(
                    order
                        .iter()
                        .map(|row| (rows[*row as usize].0.to_owned(), rows[*row as usize].1))
                        .collect::<Vec<_>>(),
                ),
                Err(_) => None,
            };
            undetermined += usize::from(of(&all).is_none());
            assert_eq!(of(&kept), of(&all), "round {round}: {all:?} {skip} {limit}");
        }
        assert!(undetermined > 100, "{undetermined}");
    }

    /// By up to three keys of all kinds, of few and of many values, of the ends of their types.
    #[test]
    fn rows_whose_heads_differ_are_in_their_order() {
        let mut seed = 9u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut texts = Texts::default();
        texts.collations.push(Arc::new(|text, key| key.extend(text.to_ascii_lowercase())));
        let (mut told_apart, mut pairs) = (0, 0);
        for round in 0..1500u64 {
            let rows = random(40) as usize;
            let keys: Vec<(Arc<Column>, Kind, bool)> = (0..1 + random(3))
                .map(|_| {
                    let few: Vec<i64> = (0..rows).map(|_| random(5) as i64 - 2).collect();
                    let wide = [i64::MIN, -1, 0, 1, i64::MAX];
                    let (data, kind) = match random(7) {
                        0 => (Data::Small(few), Kind::Signed),
                        1 => (
                            Data::Small(few.iter().map(|few| wide[(few + 2) as usize]).collect()),
                            Kind::Signed,
                        ),
                        2 => (Data::Small((0..rows).map(|_| random(1 << 30) as i64).collect()), Kind::Date),
                        3 => (
                            Data::Large(few.iter().map(|few| i128::from(*few) << 90).collect()),
                            Kind::Decimal(2),
                        ),
                        4 => (
                            Data::Large(
                                few.iter()
                                    .map(|few| [i128::MIN, i128::MAX][few.unsigned_abs() as usize % 2])
                                    .collect(),
                            ),
                            Kind::Decimal(0),
                        ),
                        5 => {
                            let reals = [-0.0, 0.0, -1e300, 1e-300, 7.5];
                            (
                                Data::Real(few.iter().map(|few| reals[(few + 2) as usize]).collect()),
                                Kind::Real,
                            )
                        }
                        _ => {
                            let mut strings = Strings::new();
                            ["a", "A", "b", "", "c"].iter().for_each(|text| strings.push(text.as_bytes()));
                            let codes = few.iter().map(|few| (few + 2) as u32).collect();
                            (Data::Text(codes, Dict::Strings(Arc::new(strings))), Kind::Text(0))
                        }
                    };
                    let nulls = (random(2) == 0).then(|| (0..rows).map(|_| random(4) == 0).collect());
                    (Arc::new(Column { data, nulls }), kind, random(2) == 0)
                })
                .collect();
            let sorter = Sorter::new(&keys, &texts, &Budget::new(1 << 20)).unwrap();
            let heads = sorter.heads(rows);
            for a in 0..rows {
                for b in 0..rows {
                    let of_heads = heads[a].cmp(&heads[b]);
                    told_apart += usize::from(of_heads.is_ne());
                    pairs += 1;
                    assert!(
                        of_heads.is_eq() || of_heads == sorter.compare(a as u32, b as u32),
                        "round {round}"
                    );
                }
            }
            let eval = Eval { texts: &texts, is_stopped: &|| false };
            let mut expected: Vec<u32> = (0..rows as u32).collect();
            expected.sort_by(|a, b| sorter.compare(*a, *b));
            for budget in [0, 1 << 20] {
                let found = sorted_until(rows, rows, &sorter, &Budget::new(budget), eval).unwrap();
                assert_eq!(found, expected, "round {round}");
            }
        }
        assert!(told_apart * 2 > pairs, "{told_apart} of {pairs}");
    }

    #[test]
    fn which_of_equal_texts_a_limit_leaves_is_not_guessed() {
        let is_open = |skip, limit| {
            let rows = [("b", 1), ("A", 1), ("a", 1), ("a", 2), ("C", 1), ("C", 1), ("d", 1)];
            match ordered(&rows, skip, limit) {
                Ok(order) => {
                    let all = [1, 2, 3, 0, 4, 5, 6];
                    let begin = (skip as usize).min(all.len());
                    let end = limit.map_or(all.len(), |limit| (begin + limit as usize).min(all.len()));
                    assert_eq!(order, all[begin..end], "{skip} {limit:?}");
                    false
                }
                Err(failure) => {
                    assert!(matches!(failure, Failure::GivenBack(Why::Undetermined)), "{failure:?}");
                    true
                }
            }
        };
        assert!(is_open(0, Some(1)));
        assert!(is_open(1, None));
        assert!(is_open(1, Some(3)));
        // Equal ones, all of them or none; the same ones; those that a number tells apart.
        for (skip, limit) in
            [(0, None), (0, Some(0)), (0, Some(2)), (2, Some(1)), (3, Some(2)), (5, None), (9, Some(1))]
        {
            assert!(!is_open(skip, limit), "{skip} {limit:?}");
        }
    }

    #[test]
    fn many_rows_are_sorted_in_pieces_and_it_is_asked_whether_to_go_on() {
        let texts = Texts::default();
        for count in [0, 1, SORTED_AT_ONCE, SORTED_AT_ONCE * 3 + 17] {
            let asked = AtomicUsize::new(0);
            let is_stopped = || asked.fetch_add(1, Relaxed) > 100;
            let mut rows: Vec<u32> =
                (0..count as u32).map(|row| row.wrapping_mul(2_654_435_761) >> 7).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            let eval = Eval { texts: &texts, is_stopped: &is_stopped };
            assert!(sort_rows(&mut rows, |a, b| a.cmp(&b), eval).is_ok());
            assert!(rows == expected, "{count} rows");
            assert!(asked.load(Relaxed) >= count / SORTED_AT_ONCE);
            asked.store(98, Relaxed);
            assert_eq!(sort_rows(&mut rows, |a, b| b.cmp(&a), eval).is_ok(), count <= SORTED_AT_ONCE * 2);
        }
    }
}
