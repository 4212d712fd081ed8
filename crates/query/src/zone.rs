//! What a condition is for all rows of a segment, by the bounds of its columns alone.
//!
//! Only what compares a column's numbers with constants, or asks for NULLs, is looked at. Of a condition that can fail nothing
//! is said (`range.rs`): it is to be computed of every row.

use pandodb::layout::{Column as StoredColumn, Kind, Layouts};
use pandodb::{Verdict, Zone, Zones};

use crate::cells::number;
use crate::column::{Column, Form, Place};
use crate::filter::{Comparison, Prepared};

/// The numbers of a column, in the scale of its slot.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The least and the most; `None`: NULL everywhere.
    bounds: Option<(i128, i128)>,
    has_null: bool,
}

impl Span {
    /// Of a column; `stored` is what the table says of it, if it is not in the key. `None`: nothing is known.
    pub fn of(zone: &Zone, form: &Form, place: &Place, stored: Option<&StoredColumn>) -> Option<Span> {
        let of_nulls = Span { bounds: None, has_null: zone.has_null };
        let Some((least, most)) = &zone.bounds else { return Some(of_nulls) };
        if matches!(form, Form::Presence) {
            // Some value, whichever.
            return Some(Span { bounds: Some((i128::MIN, i128::MAX)), ..of_nulls });
        }
        let (least, most) = match place {
            Place::Key { is_reversed: true, .. } => (most, least),
            _ => (least, most),
        };
        // The bounds are those of the stored values' own order: it has to be that of what is meant.
        let is_ordered = match (form, stored.map(|stored| stored.ty.kind)) {
            (Form::Signed | Form::Unsigned | Form::Ordered | Form::Decimal { .. } | Form::Year, None) => true,
            (Form::Signed, Some(kind)) => kind == Kind::Signed,
            (Form::Year, Some(kind)) => kind == Kind::Unsigned,
            (Form::Unsigned, Some(kind)) => matches!(kind, Kind::Unsigned | Kind::Enum | Kind::Set),
            (Form::Ordered | Form::Decimal { .. }, Some(kind)) => kind == Kind::Bytes,
            (Form::Text(_) | Form::Presence, _) => false,
        };
        let of = |bytes: &[u8]| number(bytes, form, place);
        let bounds = (of(least)?, of(most)?);
        (is_ordered && bounds.0 <= bounds.1).then_some(Span { bounds: Some(bounds), ..of_nulls })
    }

    /// The least and the most; `None`: NULL everywhere.
    pub fn bounds(&self) -> Option<(i128, i128)> {
        self.bounds
    }

    /// Whether there may be NULLs.
    pub fn has_null(&self) -> bool {
        self.has_null
    }

    /// Of how many rows a test is true, which NULLs do not pass.
    fn verdict(self, passes: impl Fn(i128, i128) -> Verdict) -> Verdict {
        match self.bounds.map(|(least, most)| passes(least, most)) {
            None => Verdict::None,
            Some(Verdict::All) if self.has_null => Verdict::Some,
            Some(verdict) => verdict,
        }
    }
}

/// Of how many rows of a segment a condition is true; `wants` are the columns that were asked for.
pub(crate) fn verdict_of_zones(
    condition: &Prepared,
    columns: &[Column],
    wants: &[usize],
    layouts: &Layouts,
    zones: &Zones<'_>,
) -> Verdict {
    verdict(condition, &|slot| {
        let want = wants.iter().position(|column| *column == slot)?;
        let column = &columns[slot];
        let stored = match column.place {
            Place::Stored(position) => Some(&layouts.current().columns[position]),
            Place::Length(_) | Place::Key { .. } | Place::KeyPart(_) => None,
        };
        Span::of(&zones.get(want)?, &column.form, &column.place, stored)
    })
}

/// Of how many rows a condition is true; `span_of` tells of slots.
pub(crate) fn verdict(condition: &Prepared, span_of: &dyn Fn(usize) -> Option<Span>) -> Verdict {
    let of = |part: &Prepared| verdict(part, span_of);
    match condition {
        Prepared::All(parts) => parts.iter().map(of).fold(Verdict::All, |all, one| match (all, one) {
            (Verdict::None, _) | (_, Verdict::None) => Verdict::None,
            (Verdict::All, Verdict::All) => Verdict::All,
            _ => Verdict::Some,
        }),
        Prepared::Any(parts) => parts.iter().map(of).fold(Verdict::None, |any, one| match (any, one) {
            (Verdict::All, _) | (_, Verdict::All) => Verdict::All,
            (Verdict::None, Verdict::None) => Verdict::None,
            _ => Verdict::Some,
        }),
        Prepared::Always(true) => Verdict::All,
        Prepared::Always(false) => Verdict::None,
        Prepared::Null(slot, wanted) => match (span_of(*slot), wanted) {
            (None, _) => Verdict::Some,
            (Some(Span { bounds: None, .. }), true) | (Some(Span { has_null: false, .. }), false) => {
                Verdict::All
            }
            (Some(Span { bounds: None, .. }), false) | (Some(Span { has_null: false, .. }), true) => {
                Verdict::None
            }
            _ => Verdict::Some,
        },
        Prepared::Number(slot, comparison, constant) => span_of(*slot).map_or(Verdict::Some, |span| {
            span.verdict(|least, most| compared(*comparison, *constant, least, most))
        }),
        Prepared::Numbers { slot, sorted, is_negated } => span_of(*slot).map_or(Verdict::Some, |span| {
            span.verdict(|least, most| {
                let inside = sorted.partition_point(|n| *n < least)..sorted.partition_point(|n| *n <= most);
                let found = match (inside.is_empty(), least == most) {
                    (true, _) => Verdict::None,
                    (false, true) => Verdict::All,
                    (false, false) => Verdict::Some,
                };
                if *is_negated {
                    opposite(found)
                } else {
                    found
                }
            })
        }),
        Prepared::Text(..) | Prepared::Texts { .. } | Prepared::Columns { .. } => Verdict::Some,
    }
}

fn opposite(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::None => Verdict::All,
        Verdict::Some => Verdict::Some,
        Verdict::All => Verdict::None,
    }
}

/// How many of the values between two bounds, which are among them, compare with a constant as asked.
fn compared(comparison: Comparison, constant: i128, least: i128, most: i128) -> Verdict {
    let of = |all: bool, some: bool| match (all, some) {
        (true, _) => Verdict::All,
        (false, true) => Verdict::Some,
        (false, false) => Verdict::None,
    };
    match comparison {
        Comparison::Equal => of(least == constant && most == constant, least <= constant && constant <= most),
        Comparison::Less => of(most < constant, least < constant),
        Comparison::LessOrEqual => of(most <= constant, least <= constant),
        Comparison::NotEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
            opposite(compared(comparison.opposite(), constant, least, most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    /// All small columns of up to three rows, NULLs among them, and all conditions on them: what is said of all or none is
    /// so.
    #[test]
    fn no_verdict_is_wrong() {
        let values = [None, Some(1i128), Some(2), Some(3)];
        let tests: Vec<Prepared> = (0..=4)
            .flat_map(|constant| COMPARISONS.map(|c| Prepared::Number(0, c, constant)))
            .chain((0..16u32).flat_map(|bits| {
                let sorted: Vec<i128> = (0..4).filter(|at| bits >> at & 1 != 0).collect();
                [false, true].map(|is_negated| Prepared::Numbers {
                    slot: 0,
                    sorted: sorted.clone(),
                    is_negated,
                })
            }))
            .chain([Prepared::Null(0, true), Prepared::Null(0, false)])
            .collect();
        let holds = |test: &Prepared, value: Option<i128>| match (test, value) {
            (Prepared::Null(_, wanted), value) => value.is_none() == *wanted,
            (_, None) => false,
            (Prepared::Number(_, comparison, constant), Some(value)) => comparison.holds(value.cmp(constant)),
            (Prepared::Numbers { sorted, is_negated, .. }, Some(value)) => {
                sorted.contains(&value) != *is_negated
            }
            _ => unreachable!("none of the tests"),
        };
        let mut said = [0; 3];
        for rows in 0..64 {
            let rows = [values[rows % 4], values[rows / 4 % 4], values[rows / 16]];
            let there = rows.iter().flatten();
            let bounds = there.clone().min().copied().zip(there.max().copied());
            // Bounds may be wider than they need to be, and NULLs may be suspected.
            for (wider, suspected) in [(0, false), (0, true), (1, false), (1, true)] {
                let bounds = bounds.map(|(least, most)| (least - wider, most + wider));
                let has_null = suspected || rows.contains(&None);
                let span = Span { bounds, has_null };
                for test in &tests {
                    let said_of = verdict(test, &|_| Some(span));
                    let passing = rows.iter().filter(|value| holds(test, **value)).count();
                    let is_right = match said_of {
                        Verdict::None => passing == 0,
                        Verdict::All => passing == 3,
                        Verdict::Some => true,
                    };
                    assert!(is_right, "{said_of:?} of {rows:?} for {test:?}");
                    said[said_of as usize] += 1;
                }
            }
        }
        assert!(said.iter().all(|count| *count > 500), "{said:?}: each is said often");
    }

    #[test]
    fn parts_are_joined() {
        let (none, all) = (|| Prepared::Always(false), || Prepared::Always(true));
        let some = || Prepared::Number(0, Comparison::Equal, 2);
        let of = |test: &Prepared| verdict(test, &|_| Some(Span { bounds: Some((1, 3)), has_null: false }));
        assert_eq!(of(&Prepared::All(vec![all(), all()])), Verdict::All);
        assert_eq!(of(&Prepared::All(vec![all(), some()])), Verdict::Some);
        assert_eq!(of(&Prepared::All(vec![some(), none()])), Verdict::None);
        assert_eq!(of(&Prepared::Any(vec![some(), none()])), Verdict::Some);
        assert_eq!(of(&Prepared::Any(vec![none(), none()])), Verdict::None);
        assert_eq!(of(&Prepared::Any(vec![some(), all()])), Verdict::All);
        assert_eq!(verdict(&some(), &|_| None), Verdict::Some);
    }
}
