//! Conditions on slots, evaluated for many rows at a time.
//!
//! A condition is true, false or unknown; what counts is where it is true. NOT is brought down to the comparisons, whose
//! opposites are as unknown of NULLs as they are ([`Filter::prepare`]): then a bit for each row, "true", is enough.
//!
//! A constant is brought to the scale of its column once: what lies between two values of the column becomes a
//! condition on the values around it. So comparisons of integers with decimal constants are those of whole numbers.
//! Where cells name entries, an entry is asked about once.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cells::{Cells, Codes, Dense, Entries};
use crate::column::Collation;
use crate::frame::{Frame, Slots, Trouble};

/// How a column is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    pub(crate) fn opposite(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }

    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Says something of a text.
pub type TestText = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Something asked of a text, always with the same answer.
#[derive(Clone)]
pub struct Predicate(pub Arc<TestText>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub enum Constant {
    /// NULL.
    Null,
    /// `value` divided by ten to the power of `scale`.
    Number {
        /// Without its point.
        value: i128,
        /// Digits behind the point.
        scale: u32,
    },
    /// Text, and the order that counts for this comparison.
    Text(Vec<u8>, Collation),
}

/// A condition; columns are slots.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All are true.
    And(Vec<Filter>),
    /// One is true.
    Or(Vec<Filter>),
    /// It is false.
    Not(Box<Filter>),
    /// Column, comparison, constant.
    Compare(usize, Comparison, Constant),
    /// Two columns of one kind compared with each other.
    CompareColumns(usize, Comparison, usize),
    /// The column's text is such.
    Matches(usize, Predicate),
    /// The column equals one of them.
    In(usize, Vec<Constant>),
    /// The column is NULL.
    IsNull(usize),
    /// Always so; `None` is unknown.
    Always(Option<bool>),
}

/// A condition ready to be evaluated: where it is true.
#[derive(Debug)]
pub(crate) enum Prepared {
    All(Vec<Prepared>),
    Any(Vec<Prepared>),
    Number(usize, Comparison, i128),
    Numbers {
        slot: usize,
        sorted: Vec<i128>,
        is_negated: bool,
    },
    Text(usize, TextTest),
    /// Numbers, each times its factor.
    Columns {
        slots: [usize; 2],
        factors: [i128; 2],
        comparison: Comparison,
    },
    Texts {
        slots: [usize; 2],
        comparison: Comparison,
        collation: Collation,
    },
    /// Whether it is NULL, or is not.
    Null(usize, bool),
    Always(bool),
}

#[derive(Debug)]
pub(crate) enum TextTest {
    Compare(Comparison, Vec<u8>, Collation),
    In { constants: Vec<(Vec<u8>, Collation)>, is_negated: bool },
    Matches { predicate: Predicate, is_negated: bool },
}

impl TextTest {
    fn holds(&self, text: &[u8]) -> bool {
        match self {
            TextTest::Compare(comparison, constant, Collation(order)) => {
                comparison.holds(order(text, constant))
            }
            TextTest::In { constants, is_negated } => {
                constants.iter().any(|(constant, Collation(order))| order(text, constant).is_eq())
                    != *is_negated
            }
            TextTest::Matches { predicate: Predicate(holds), is_negated } => holds(text) != *is_negated,
        }
    }
}

/// The largest whole number of the column's scale that is not above the constant, and whether it is the constant.
/// `None`: beyond what can be computed with.
fn scaled(value: i128, scale: u32, to: u32) -> Option<(i128, bool)> {
    if scale <= to {
        return Some((value.checked_mul(10i128.checked_pow(to - scale)?)?, true));
    }
    let unit = 10i128.checked_pow(scale - to)?;
    Some((value.div_euclid(unit), value.rem_euclid(unit) == 0))
}

fn number_test(slot: usize, comparison: Comparison, value: i128, is_exact: bool) -> Prepared {
    use Comparison::*;
    if is_exact {
        return Prepared::Number(slot, comparison, value);
    }
    match comparison {
        // Of no row; but the number is computed, since that may be an error.
        Equal => Prepared::All(vec![
            Prepared::Number(slot, LessOrEqual, value),
            Prepared::Number(slot, Greater, value),
        ]),
        NotEqual => Prepared::Null(slot, false),
        Less | LessOrEqual => Prepared::Number(slot, LessOrEqual, value),
        Greater | GreaterOrEqual => Prepared::Number(slot, Greater, value),
    }
}

/// How deep conditions may stand in each other: what walks along them calls itself for each level, also when they are freed.
pub const DEPTH_MAX: usize = 64;

impl Filter {
    /// Whether conditions stand in each other deeper than this. No deeper than `levels` is looked.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return true };
        match self {
            Filter::And(parts) | Filter::Or(parts) => parts.iter().any(|part| part.is_deeper_than(below)),
            Filter::Not(part) => part.is_deeper_than(below),
            _ => false,
        }
    }

    /// Where it is true, or where its opposite is. `None`: columns and constants do not fit, or beyond what can be
    /// computed with.
    pub(crate) fn prepare(&self, slots: &Slots<'_>, is_negated: bool) -> Option<Prepared> {
        let all = |filters: &[Filter]| {
            filters.iter().map(|f| f.prepare(slots, is_negated)).collect::<Option<Vec<_>>>()
        };
        let turned = |comparison: &Comparison| match is_negated {
            true => comparison.opposite(),
            false => *comparison,
        };
        Some(match self {
            Filter::And(filters) if is_negated => Prepared::Any(all(filters)?),
            Filter::And(filters) => Prepared::All(all(filters)?),
            Filter::Or(filters) if is_negated => Prepared::All(all(filters)?),
            Filter::Or(filters) => Prepared::Any(all(filters)?),
            Filter::Not(filter) => filter.prepare(slots, !is_negated)?,
            Filter::Always(value) => Prepared::Always(value.is_some_and(|value| value != is_negated)),
            Filter::IsNull(slot) => Prepared::Null((*slot < slots.len()).then_some(*slot)?, !is_negated),
            // Likewise.
            Filter::Compare(slot, _, Constant::Null) => {
                Prepared::All(vec![Prepared::Null(*slot, true), Prepared::Null(*slot, false)])
            }
            Filter::Compare(slot, comparison, Constant::Number { value, scale }) => {
                let (value, is_exact) = scaled(*value, *scale, slots.scale(*slot)?)?;
                number_test(*slot, turned(comparison), value, is_exact)
            }
            Filter::Compare(slot, comparison, Constant::Text(text, collation)) => {
                slots.collation(*slot)?;
                let test = TextTest::Compare(turned(comparison), text.clone(), collation.clone());
                Prepared::Text(*slot, test)
            }
            Filter::CompareColumns(a, comparison, b) => prepare_columns(slots, [*a, *b], turned(comparison))?,
            Filter::Matches(slot, predicate) => {
                slots.collation(*slot)?;
                Prepared::Text(*slot, TextTest::Matches { predicate: predicate.clone(), is_negated })
            }
            Filter::In(slot, constants) => prepare_in(slots, *slot, constants, is_negated)?,
        })
    }

    pub(crate) fn renumber(&mut self, number: &dyn Fn(usize) -> usize) {
        match self {
            Filter::And(filters) | Filter::Or(filters) => filters.iter_mut().for_each(|f| f.renumber(number)),
            Filter::Not(filter) => filter.renumber(number),
            Filter::Compare(slot, ..) | Filter::In(slot, _) | Filter::IsNull(slot) => *slot = number(*slot),
            Filter::Matches(slot, _) => *slot = number(*slot),
            Filter::CompareColumns(a, _, b) => (*a, *b) = (number(*a), number(*b)),
            Filter::Always(_) => {}
        }
    }

    /// The slots that it looks at.
    pub(crate) fn slots(&self, slots: &mut Vec<usize>) {
        match self {
            Filter::And(filters) | Filter::Or(filters) => filters.iter().for_each(|f| f.slots(slots)),
            Filter::Not(filter) => filter.slots(slots),
            Filter::Compare(slot, ..) | Filter::In(slot, _) | Filter::IsNull(slot) => slots.push(*slot),
            Filter::Matches(slot, _) => slots.push(*slot),
            Filter::CompareColumns(a, _, b) => slots.extend([*a, *b]),
            Filter::Always(_) => {}
        }
    }
}

fn prepare_columns(slots: &Slots<'_>, of: [usize; 2], comparison: Comparison) -> Option<Prepared> {
    if let (Some(collation), Some(_)) = (slots.collation(of[0]), slots.collation(of[1])) {
        return Some(Prepared::Texts { slots: of, comparison, collation: collation.clone() });
    }
    let scales = [slots.scale(of[0])?, slots.scale(of[1])?];
    let factor = |scale: u32| 10i128.checked_pow(scales[0].max(scales[1]) - scale);
    Some(Prepared::Columns { slots: of, factors: [factor(scales[0])?, factor(scales[1])?], comparison })
}

fn prepare_in(slots: &Slots<'_>, slot: usize, constants: &[Constant], is_negated: bool) -> Option<Prepared> {
    let (mut sorted, mut texts, mut has_null) = (Vec::new(), Vec::new(), false);
    let is_text = slots.collation(slot).is_some();
    for constant in constants {
        match constant {
            Constant::Null => has_null = true,
            Constant::Text(text, collation) if is_text => texts.push((text.clone(), collation.clone())),
            Constant::Text(..) => return None,
            Constant::Number { value, scale } => {
                let (value, is_exact) = scaled(*value, *scale, slots.scale(slot)?)?;
                // What no value of the column can be is not looked for.
                sorted.extend(is_exact.then_some(value));
            }
        }
    }
    if is_negated && has_null {
        return Some(Prepared::Always(false));
    }
    if is_text {
        return Some(Prepared::Text(slot, TextTest::In { constants: texts, is_negated }));
    }
    slots.scale(slot)?;
    sorted.sort_unstable();
    Some(Prepared::Numbers { slot, sorted, is_negated })
}

impl Prepared {
    /// The rows for which it is true; `None`: all.
    pub(crate) fn select(
        &self,
        slots: &Slots<'_>,
        frame: &mut Frame<'_>,
    ) -> Result<Option<Vec<u32>>, Trouble> {
        let mut mask = vec![1; frame.rows];
        self.narrow(slots, frame, &mut mask)?;
        let mut selected = vec![0; frame.rows];
        let mut count = 0;
        for (row, bit) in mask.iter().enumerate() {
            selected[count] = row as u32;
            count += usize::from(*bit);
        }
        selected.truncate(count);
        Ok((count < frame.rows).then_some(selected))
    }

    /// Clears the bits of rows for which it is not true.
    pub(crate) fn narrow(
        &self,
        slots: &Slots<'_>,
        frame: &mut Frame<'_>,
        mask: &mut [u8],
    ) -> Result<(), Trouble> {
        match self {
            Prepared::All(parts) => {
                for part in parts {
                    part.narrow(slots, frame, mask)?;
                    if mask.iter().all(|bit| *bit == 0) {
                        break;
                    }
                }
            }
            Prepared::Any(parts) => {
                let mut any = vec![0; mask.len()];
                for part in parts {
                    let mut one = mask.to_vec();
                    part.narrow(slots, frame, &mut one)?;
                    any.iter_mut().zip(&one).for_each(|(any, one)| *any |= one);
                }
                mask.copy_from_slice(&any);
            }
            Prepared::Always(true) => {}
            Prepared::Always(false) => mask.fill(0),
            Prepared::Null(slot, wanted) => {
                frame.ensure(slots, *slot)?;
                match (&frame.cells(*slot).nulls, wanted) {
                    (None, true) => mask.fill(0),
                    (None, false) => {}
                    (Some(nulls), wanted) => {
                        let keep = |row| u8::from(nulls.is_null(row) == *wanted);
                        mask.iter_mut().enumerate().for_each(|(row, bit)| *bit &= keep(row));
                    }
                }
            }
            Prepared::Number(slot, comparison, constant) => {
                frame.ensure(slots, *slot)?;
                compare_numbers(frame.cells(*slot), *comparison, *constant, mask);
            }
            Prepared::Numbers { slot, sorted, is_negated } => {
                frame.ensure(slots, *slot)?;
                find_numbers(frame.cells(*slot), sorted, *is_negated, mask);
            }
            Prepared::Text(slot, test) => {
                frame.ensure(slots, *slot)?;
                test_texts(frame.cells(*slot), test, mask);
            }
            Prepared::Columns { slots: of, factors, comparison } => {
                of.iter().try_for_each(|slot| frame.ensure(slots, *slot))?;
                let cells = of.map(|slot| frame.cells(slot));
                compare_columns(cells, *factors, *comparison, mask)?;
            }
            Prepared::Texts { slots: of, comparison, collation } => {
                of.iter().try_for_each(|slot| frame.ensure(slots, *slot))?;
                let [a, b] = of.map(|slot| frame.cells(slot));
                let (a_texts, b_texts, Collation(order)) = (a.texts(), b.texts(), collation);
                for (row, bit) in mask.iter_mut().enumerate().filter(|(_, bit)| **bit != 0) {
                    let order = order(a_texts.get(a.code(row)), b_texts.get(b.code(row)));
                    *bit = u8::from(!a.is_null(row) && !b.is_null(row) && comparison.holds(order));
                }
            }
        }
        Ok(())
    }
}

/// Clears the bits of NULLs.
fn without_nulls(cells: &Cells<'_>, mask: &mut [u8]) {
    let Some(nulls) = &cells.nulls else { return };
    for (word, bits) in nulls.words().iter().zip(mask.chunks_mut(64)) {
        if *word != 0 {
            bits.iter_mut().enumerate().for_each(|(at, bit)| *bit &= !(word >> at) as u8 & 1);
        }
    }
}

/// Keeps the bits of the rows whose value passes.
fn narrow_by<T: Copy>(values: &[T], cells: &Cells<'_>, mask: &mut [u8], test: impl Fn(T) -> bool) {
    match &cells.codes {
        Codes::Own => {
            mask.iter_mut().zip(values).for_each(|(bit, value)| *bit &= u8::from(test(*value)));
        }
        Codes::First => {
            if !test(values[0]) {
                mask.fill(0);
            }
        }
        Codes::Of(codes) if values.len() <= codes.len() => {
            let passes: Vec<u8> = values.iter().map(|value| u8::from(test(*value))).collect();
            mask.iter_mut().zip(codes.iter()).for_each(|(bit, code)| *bit &= passes[*code as usize]);
        }
        Codes::Of(codes) => {
            let pairs = mask.iter_mut().zip(codes.iter());
            pairs.for_each(|(bit, code)| *bit &= u8::from(test(values[*code as usize])));
        }
    }
    without_nulls(cells, mask);
}

/// The comparison with a constant as one of ordinary numbers, or what it is for all of them.
fn narrow_compared<T: Copy + Ord>(
    values: &[T],
    cells: &Cells<'_>,
    comparison: Comparison,
    constant: T,
    mask: &mut [u8],
) {
    match comparison {
        Comparison::Equal => narrow_by(values, cells, mask, |value| value == constant),
        Comparison::NotEqual => narrow_by(values, cells, mask, |value| value != constant),
        Comparison::Less => narrow_by(values, cells, mask, |value| value < constant),
        Comparison::LessOrEqual => narrow_by(values, cells, mask, |value| value <= constant),
        Comparison::Greater => narrow_by(values, cells, mask, |value| value > constant),
        Comparison::GreaterOrEqual => narrow_by(values, cells, mask, |value| value >= constant),
    }
}

fn compare_numbers(cells: &Cells<'_>, comparison: Comparison, constant: i128, mask: &mut [u8]) {
    match &cells.entries {
        Entries::Large(values) => narrow_compared(values, cells, comparison, constant, mask),
        Entries::Small(values) => match i64::try_from(constant) {
            Ok(constant) => narrow_compared(values, cells, comparison, constant, mask),
            // All of them are on one side of it.
            Err(_) => narrow_by(values, cells, mask, |_| comparison.holds(0.cmp(&constant))),
        },
        Entries::Texts(_) | Entries::Presence => unreachable!("prepared for numbers"),
    }
}

fn find_numbers(cells: &Cells<'_>, sorted: &[i128], is_negated: bool, mask: &mut [u8]) {
    match &cells.entries {
        Entries::Large(values) => {
            narrow_by(values, cells, mask, |value| sorted.binary_search(&value).is_ok() != is_negated);
        }
        Entries::Small(values) => {
            let small: Vec<i64> = sorted.iter().filter_map(|value| i64::try_from(*value).ok()).collect();
            match small.len() {
                0..=8 => narrow_by(values, cells, mask, |value| {
                    small.iter().fold(false, |found, one| found | (*one == value)) != is_negated
                }),
                _ => {
                    narrow_by(values, cells, mask, |value| small.binary_search(&value).is_ok() != is_negated)
                }
            }
        }
        Entries::Texts(_) | Entries::Presence => unreachable!("prepared for numbers"),
    }
}

/// After so many texts it shows whether they repeat.
const TEXTS_TRIED: usize = 64;

fn test_texts(cells: &Cells<'_>, test: &TextTest, mask: &mut [u8]) {
    let texts = cells.texts();
    match &cells.codes {
        Codes::First => {
            if !test.holds(texts.get(0)) {
                mask.fill(0);
            }
        }
        Codes::Own => {
            let mut known: HashMap<&[u8], u8> = HashMap::new();
            let mut rows = mask.iter_mut().enumerate().filter(|(_, bit)| **bit != 0);
            let mut asked = 0;
            // Texts that come again are asked once; where few do, to remember them costs more than to ask.
            for (row, bit) in rows.by_ref() {
                let text = texts.get(row);
                *bit = *known.entry(text).or_insert_with(|| u8::from(test.holds(text)));
                asked += 1;
                if asked == TEXTS_TRIED && known.len() > TEXTS_TRIED / 2 {
                    break;
                }
            }
            rows.for_each(|(row, bit)| *bit = u8::from(test.holds(texts.get(row))));
        }
        Codes::Of(codes) => {
            // Asked when first met: not all entries need be those of rows that are left.
            const UNASKED: u8 = 2;
            if texts.len() > 4 * codes.len() {
                let rows = mask.iter_mut().zip(codes.iter()).filter(|(bit, _)| **bit != 0);
                rows.for_each(|(bit, code)| *bit = u8::from(test.holds(texts.get(*code as usize))));
            } else {
                let mut answers = vec![UNASKED; texts.len()];
                for (bit, code) in mask.iter_mut().zip(codes.iter()).filter(|(bit, _)| **bit != 0) {
                    let answer = &mut answers[*code as usize];
                    if *answer == UNASKED {
                        *answer = u8::from(test.holds(texts.get(*code as usize)));
                    }
                    *bit = *answer;
                }
            }
        }
    }
    without_nulls(cells, mask);
}

fn compare_columns(
    cells: [&Cells<'_>; 2],
    factors: [i128; 2],
    comparison: Comparison,
    mask: &mut [u8],
) -> Result<(), Trouble> {
    let [a, b] = cells.map(Cells::dense);
    match (&a, &b) {
        (Dense::Small(a), Dense::Small(b)) if factors == [1, 1] => {
            for ((bit, a), b) in mask.iter_mut().zip(a.iter()).zip(b.iter()) {
                *bit &= u8::from(comparison.holds(a.cmp(b)));
            }
        }
        _ => {
            for (row, bit) in mask.iter_mut().enumerate() {
                let a = a.get(row).checked_mul(factors[0]).ok_or(Trouble::Overflow)?;
                let b = b.get(row).checked_mul(factors[1]).ok_or(Trouble::Overflow)?;
                *bit &= u8::from(comparison.holds(a.cmp(&b)));
            }
        }
    }
    cells.into_iter().for_each(|cells| without_nulls(cells, mask));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In none, some, most or all of many texts; as they repeat or not, they are remembered or not.
    #[test]
    fn texts_are_tested_alike_whether_they_repeat_or_not() {
        use std::borrow::Cow;
        use std::sync::atomic::{AtomicUsize, Ordering};

        use pando_column::vector::Strings;

        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let predicate = Predicate(Arc::new(move |text: &[u8]| {
            counter.fetch_add(1, Ordering::Relaxed);
            text.ends_with(b"7")
        }));
        let test = TextTest::Matches { predicate, is_negated: false };
        for (different, most_asked) in [(1, 1), (20, 20), (33, 1000), (1000, 1000)] {
            let mut texts = Strings::default();
            (0..1000).for_each(|row| texts.push((row % different).to_string().as_bytes()));
            let entries = Entries::Texts(Cow::Borrowed(&texts));
            let cells = Cells { rows: 1000, nulls: None, codes: Codes::Own, entries };
            let mut mask: Vec<u8> = (0..1000).map(|row| u8::from(row % 3 != 0)).collect();
            asked.store(0, Ordering::Relaxed);
            test_texts(&cells, &test, &mut mask);
            assert!(asked.load(Ordering::Relaxed) <= most_asked, "of {different}");
            for (row, bit) in mask.iter().enumerate() {
                let expected = row % 3 != 0 && row % different % 10 == 7;
                assert_eq!(*bit, u8::from(expected), "row {row} of {different}");
            }
        }
    }

    #[test]
    fn constants_between_two_values_of_a_column_fall_on_the_side_where_they_are() {
        assert_eq!(scaled(125, 2, 1), Some((12, false)), "1.25 among tenths");
        assert_eq!(scaled(-125, 2, 1), Some((-13, false)), "-1.25 lies above -1.3");
        assert_eq!(scaled(-120, 2, 1), Some((-12, true)));
        assert_eq!(scaled(5, 0, 3), Some((5000, true)));
        assert_eq!(scaled(i128::MAX, 0, 1), None);
    }
}
