//! Comparisons of a text with constants, all of which have to be true: each text is looked at once, however many there are. Where
//! a collation orders texts by their bytes, no key is made of them.

use std::cmp::Ordering;

use crate::column::{Kind, Value};
use crate::eval::{holds, Result};
use crate::expr::{Comparison, Expr, KeyOfText, Slot, TextOrder, Texts};

/// What a condition says of one column of texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextBounds<'a> {
    pub slot: Slot,
    pub collation: u32,
    bounds: Vec<(Comparison, &'a [u8])>,
}

impl<'a> TextBounds<'a> {
    /// Of parts that all have to be true; `None`: they are something else.
    pub(crate) fn of(parts: &'a [Expr]) -> Option<TextBounds<'a>> {
        let mut of: Option<TextBounds<'a>> = None;
        for part in parts {
            let one = match part {
                Expr::And(parts) => TextBounds::of(parts)?,
                Expr::Compare(comparison, a, b) => TextBounds::of_comparison(*comparison, a, b)?,
                _ => return None,
            };
            match &mut of {
                None => of = Some(one),
                Some(all) if (all.slot, all.collation) == (one.slot, one.collation) => {
                    all.bounds.extend(one.bounds);
                }
                Some(_) => return None,
            }
        }
        of
    }

    /// A comparison that is UNKNOWN of NULL, as all together are then.
    fn of_comparison(comparison: Comparison, a: &'a Expr, b: &'a Expr) -> Option<TextBounds<'a>> {
        let (comparison, slot, kind, constant, of) = match (a, b) {
            (Expr::Slot(slot, kind), Expr::Constant(Value::Text(text), of)) => {
                (comparison, *slot, *kind, text, *of)
            }
            (Expr::Constant(Value::Text(text), of), Expr::Slot(slot, kind)) => {
                (comparison.swapped(), *slot, *kind, text, *of)
            }
            _ => return None,
        };
        match kind {
            Kind::Text(collation) if kind == of && comparison != Comparison::Same => {
                Some(TextBounds { slot, collation, bounds: vec![(comparison, constant.as_slice())] })
            }
            _ => None,
        }
    }

    /// What says whether a text meets all of them.
    pub(crate) fn test(&self, texts: &'a Texts) -> Result<impl FnMut(&[u8]) -> bool + use<'a>> {
        test_of(texts, self.collation, &self.bounds)
    }
}

/// What says whether all comparisons of a text with constants are true.
pub(crate) fn test_of<'a>(
    texts: &'a Texts,
    collation: u32,
    bounds: &[(Comparison, &[u8])],
) -> Result<impl FnMut(&[u8]) -> bool + use<'a>> {
    let (key, order) = texts.collation(collation)?;
    let mut of_text = Vec::new();
    let keyed = |(comparison, constant): &(Comparison, &[u8])| {
        let mut of_constant = Vec::new();
        match order {
            TextOrder::Keys => key(constant, &mut of_constant),
            TextOrder::Bytes | TextOrder::Padded => of_constant.extend_from_slice(constant),
        }
        (*comparison, of_constant)
    };
    let bounds: Vec<(Comparison, Vec<u8>)> = bounds.iter().map(keyed).collect();
    let key: &KeyOfText = &**key;
    Ok(move |text: &[u8]| match order {
        TextOrder::Keys => {
            of_text.clear();
            key(text, &mut of_text);
            bounds.iter().all(|(comparison, of_constant)| holds(*comparison, of_text.cmp(of_constant)))
        }
        TextOrder::Bytes => {
            bounds.iter().all(|(comparison, constant)| holds(*comparison, text.cmp(constant.as_slice())))
        }
        TextOrder::Padded => {
            bounds.iter().all(|(comparison, constant)| holds(*comparison, padded_order(text, constant)))
        }
    })
}

/// As if both went on with spaces for ever.
fn padded_order(a: &[u8], b: &[u8]) -> Ordering {
    let both = a.len().min(b.len());
    let of_rest = |rest: &[u8]| rest.iter().find(|byte| **byte != b' ').map(|byte| byte.cmp(&b' '));
    a[..both].cmp(&b[..both]).then_with(|| match a.len() > both {
        true => of_rest(&a[both..]).unwrap_or(Ordering::Equal),
        false => of_rest(&b[both..]).map_or(Ordering::Equal, Ordering::reverse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// As the server orders them: spaces at the end are dropped, and each space within says how what follows compares with spaces.
    fn padded_key(text: &[u8], key: &mut Vec<u8>) {
        let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        for at in 0..end {
            key.push(text[at]);
            if text[at] == b' ' {
                let next = text[at..end].iter().find(|byte| **byte != b' ').expect("no space at the end");
                key.push(if *next < b' ' { 1 } else { 3 });
            }
        }
        key.extend([b' ', 2]);
    }

    fn texts(order: TextOrder) -> Texts {
        let mut texts = Texts::default();
        match order {
            TextOrder::Padded => texts.collations.push(Arc::new(padded_key)),
            _ => texts.collations.push(Arc::new(|text, key| key.extend_from_slice(text))),
        }
        texts.orders.push(order);
        texts
    }

    #[test]
    fn texts_are_ordered_by_their_bytes_as_by_their_keys() {
        let all: Vec<Vec<u8>> =
            ["", " ", "  ", "\t", "a", "a ", "a  ", "a\t", "a \t", "a b", "a  b", "ab", "b", "\u{e9}", "a\0"]
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect();
        let key_of = |order, text: &[u8]| {
            let mut key = Vec::new();
            match order {
                TextOrder::Padded => padded_key(text, &mut key),
                _ => key.extend_from_slice(text),
            }
            key
        };
        for order in [TextOrder::Keys, TextOrder::Bytes, TextOrder::Padded] {
            let texts = texts(order);
            for a in &all {
                for comparison in [Comparison::Less, Comparison::LessOrEqual, Comparison::Equal] {
                    let mut test = test_of(&texts, 0, &[(comparison, a)]).unwrap();
                    for b in &all {
                        let expected = holds(comparison, key_of(order, b).cmp(&key_of(order, a)));
                        assert_eq!(test(b), expected, "{order:?} {comparison:?} {b:?} {a:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_of_one_column_are_asked_together() {
        let slot = |slot| Box::new(Expr::Slot(slot, Kind::Text(0)));
        let text = |text: &str| Box::new(Expr::Constant(Value::Text(text.into()), Kind::Text(0)));
        let least = Expr::Compare(Comparison::GreaterOrEqual, slot(1), text("b"));
        let most = Expr::Compare(Comparison::Greater, text("d"), slot(1));
        let both = [Expr::And(vec![least.clone(), most.clone()])];
        let bounds = TextBounds::of(&both).expect("bounds");
        let texts = texts(TextOrder::Bytes);
        let mut test = bounds.test(&texts).unwrap();
        let kept: Vec<&str> =
            ["a", "b", "c", "cz", "d", "e"].into_iter().filter(|text| test(text.as_bytes())).collect();
        assert_eq!(kept, ["b", "c", "cz"]);
        let other = Expr::Compare(Comparison::Less, slot(2), text("d"));
        assert_eq!(TextBounds::of(&[least.clone(), other]), None);
        let null = Expr::Constant(Value::Null, Kind::Text(0));
        assert_eq!(TextBounds::of(&[Expr::Compare(Comparison::Less, slot(1), Box::new(null))]), None);
        assert_eq!(TextBounds::of(&[Expr::Compare(Comparison::Same, slot(1), text("d"))]), None);
    }
}
