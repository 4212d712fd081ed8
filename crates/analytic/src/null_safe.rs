//! `a = b OR (a IS NULL AND b IS NULL)`, as tools write `a <=> b`: the two are true of the same rows.
//!
//! They differ in the others, which the first leaves NULL at times. So it is looked for only where being true is all that counts: in WHERE,
//! HAVING and ON, beneath AND and OR. The comparison stays as it is, its collation and its conversions too. What can never be true, as IS NULL
//! of a column that is NOT NULL, which the server says as a constant, goes out of an OR; so an equality may be all that is left of it.

use crate::block::{Block, From, Source};
use crate::column::Value;
use crate::expr::{Comparison, Expr, Saying};

/// Rewrites the conditions of a query, and of all queries in it.
pub(crate) fn simplify(block: &mut Block) {
    for condition in block.filter.iter_mut().chain(&mut block.having) {
        in_condition(condition);
    }
    block.from.iter_mut().for_each(in_from);
    let values = block.groups.iter_mut().chain(block.outputs.iter_mut().map(|(_, output)| output));
    values.chain(block.order.iter_mut().map(|(order, _)| order)).for_each(in_queries);
    block.others.iter_mut().for_each(|other| simplify(&mut other.block));
}

fn in_from(from: &mut From) {
    from.on.iter_mut().for_each(in_condition);
    match &mut from.source {
        Source::Table { filter, .. } => filter.iter_mut().for_each(in_condition),
        Source::Query(block) => simplify(block),
        Source::Nest(nest) => nest.iter_mut().for_each(in_from),
    }
}

fn in_condition(condition: &mut Expr) {
    in_queries(condition);
    let whole = std::mem::replace(condition, Expr::And(Vec::new()));
    *condition = simplified(whole);
}

fn in_queries(expr: &mut Expr) {
    if let Expr::Scalar(block, _) | Expr::Exists(block) | Expr::InQuery(_, block) = expr {
        simplify(block);
    }
    expr.parts_mut().into_iter().for_each(in_queries);
}

/// A condition that is true of the same rows.
fn simplified(condition: Expr) -> Expr {
    match condition {
        Expr::And(parts) => Expr::And(parts.into_iter().map(simplified).collect()),
        Expr::Or(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                match simplified(branch) {
                    Expr::Or(inner) => all.extend(inner),
                    one => all.push(one),
                }
            }
            // One stays, of whatever value.
            while all.len() > 1 {
                let Some(at) = all.iter().position(is_never_true) else { break };
                all.remove(at);
            }
            while let Some((of_equal, of_nulls)) = pair(&all) {
                if let Expr::Compare(comparison, ..) = &mut all[of_equal] {
                    *comparison = Comparison::Same;
                }
                all.remove(of_nulls);
            }
            match all.len() {
                1 => all.remove(0),
                _ => Expr::Or(all),
            }
        }
        other => other,
    }
}

/// Whether a condition is false, or NULL, of all rows, and computing it comes to nothing else.
fn is_never_true(condition: &Expr) -> bool {
    let is_false = |part: &Expr| matches!(part, Expr::Constant(Value::Null | Value::Number(0), _));
    let mut parts = Vec::new();
    parts_of(condition, &mut parts);
    parts.iter().any(|part| is_false(part)) && !condition.has_query() && !condition.may_fail()
}

fn parts_of<'a>(condition: &'a Expr, to: &mut Vec<&'a Expr>) {
    match condition {
        Expr::And(parts) => parts.iter().for_each(|part| parts_of(part, to)),
        one => to.push(one),
    }
}

/// Of the branches of an OR: an equality, and what says that its sides are NULL.
fn pair(branches: &[Expr]) -> Option<(usize, usize)> {
    branches.iter().enumerate().find_map(|(at, branch)| {
        let Expr::Compare(Comparison::Equal, a, b) = branch else { return None };
        let nulls = branches.iter().position(|other| are_null(other, a, b) && !may_say(other))?;
        Some((at, nulls))
    })
}

fn are_null(condition: &Expr, a: &Expr, b: &Expr) -> bool {
    let mut parts = Vec::new();
    parts_of(condition, &mut parts);
    let [Expr::IsNull(one), Expr::IsNull(other)] = parts.as_slice() else { return false };
    (is_of(one, a) && is_of(other, b)) || (is_of(one, b) && is_of(other, a))
}

/// Whether a side of a comparison is this value, maybe with more digits: of NULL, and of nothing else, it is NULL.
fn is_of(value: &Expr, side: &Expr) -> bool {
    match side {
        _ if is_same(value, side) => true,
        Expr::Convert(_, of) => is_of(value, of),
        _ => false,
    }
}

/// What the server computes may have another number wherever it stands.
fn is_same(value: &Expr, other: &Expr) -> bool {
    match (value, other) {
        (Expr::Server { first, of, .. }, Expr::Server { first: other, of: of_other, .. }) => {
            first == other && of == of_other
        }
        _ => value == other,
    }
}

/// Whether the server may warn of a part of it: how often is a matter of how often it is computed.
fn may_say(condition: &Expr) -> bool {
    condition.any(&|part| matches!(part, Expr::Server { may_say, .. } if *may_say != Saying::Nothing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Kind;

    fn slot(slot: u32) -> Expr {
        Expr::Slot(slot, Kind::Signed)
    }

    fn compare(comparison: Comparison, a: Expr, b: Expr) -> Expr {
        Expr::Compare(comparison, Box::new(a), Box::new(b))
    }

    fn equal(a: u32, b: u32) -> Expr {
        compare(Comparison::Equal, slot(a), slot(b))
    }

    fn nulls(a: u32, b: u32) -> Expr {
        Expr::And(vec![Expr::IsNull(Box::new(slot(a))), Expr::IsNull(Box::new(slot(b)))])
    }

    fn truth(value: i128) -> Expr {
        Expr::Constant(Value::Number(value), Kind::Signed)
    }

    #[test]
    fn an_equality_or_two_nulls_is_one_comparison() {
        let same = compare(Comparison::Same, slot(1), slot(2));
        for one in [nulls(1, 2), nulls(2, 1)] {
            assert_eq!(simplified(Expr::Or(vec![equal(1, 2), one.clone()])), same);
            assert_eq!(simplified(Expr::Or(vec![one, equal(1, 2)])), same);
        }
        let third = equal(3, 4);
        let all = Expr::Or(vec![nulls(1, 2), Expr::Or(vec![third.clone(), equal(1, 2)])]);
        assert_eq!(simplified(all), Expr::Or(vec![third, same.clone()]));
        let several = Expr::And(vec![Expr::Or(vec![equal(1, 2), nulls(1, 2)]), equal(5, 6)]);
        assert_eq!(simplified(several), Expr::And(vec![same, equal(5, 6)]));
    }

    #[test]
    fn sides_may_have_been_given_more_digits() {
        let wide = |of: u32| Expr::Convert(Kind::Decimal(2), Box::new(slot(of)));
        let condition = Expr::Or(vec![compare(Comparison::Equal, wide(1), slot(2)), nulls(1, 2)]);
        assert_eq!(simplified(condition), compare(Comparison::Same, wide(1), slot(2)));
    }

    #[test]
    fn what_the_server_computes_is_known_by_what_it_says() {
        let server = |number: u32, first: u32, may_say: Saying, of: u32| Expr::Server {
            number,
            kind: Kind::Signed,
            may_say,
            first,
            on_saying: crate::expr::OnSaying::Tell,
            of: vec![slot(of)],
        };
        let condition = |side: Expr, again: Expr| {
            let nulls = Expr::And(vec![Expr::IsNull(Box::new(again)), Expr::IsNull(Box::new(slot(2)))]);
            simplified(Expr::Or(vec![compare(Comparison::Equal, side, slot(2)), nulls]))
        };
        let side = server(3, 3, Saying::Nothing, 1);
        let same = compare(Comparison::Same, side.clone(), slot(2));
        assert_eq!(condition(side.clone(), server(4, 3, Saying::Nothing, 1)), same);
        assert_ne!(condition(side.clone(), server(4, 4, Saying::Nothing, 1)), same);
        assert_ne!(condition(side, server(4, 3, Saying::Nothing, 5)), same);
        let (warns, again) = (server(3, 3, Saying::Warnings, 1), server(4, 3, Saying::Warnings, 1));
        assert_ne!(condition(warns.clone(), again), compare(Comparison::Same, warns, slot(2)));
    }

    #[test]
    fn other_conditions_stay() {
        let more = |part: Expr| match nulls(1, 2) {
            Expr::And(mut parts) => {
                parts.push(part);
                Expr::And(parts)
            }
            other => other,
        };
        let is_null = Expr::IsNull(Box::new(slot(1)));
        let others = [
            nulls(1, 3),
            nulls(1, 1),
            more(equal(1, 3)),
            is_null,
            compare(Comparison::Same, slot(1), slot(2)),
        ];
        for other in others {
            let condition = Expr::Or(vec![equal(1, 2), other]);
            assert_eq!(simplified(condition.clone()), condition);
        }
        let less = Expr::Or(vec![compare(Comparison::Less, slot(1), slot(2)), nulls(1, 2)]);
        assert_eq!(simplified(less.clone()), less);
        // NULL here, and false as `<=>`: under NOT they differ.
        let opposite = Expr::Not(Box::new(Expr::Or(vec![equal(1, 2), nulls(1, 2)])));
        assert_eq!(simplified(opposite.clone()), opposite);
    }

    #[test]
    fn what_is_never_true_goes_out_of_an_or() {
        let is_null = |of: u32| Expr::IsNull(Box::new(slot(of)));
        let never = Expr::And(vec![is_null(1), truth(0)]);
        assert_eq!(simplified(Expr::Or(vec![equal(1, 2), never.clone()])), equal(1, 2));
        assert_eq!(simplified(Expr::Or(vec![truth(0), never.clone(), equal(1, 2)])), equal(1, 2));
        let unknown = Expr::Constant(Value::Null, Kind::Signed);
        assert_eq!(simplified(Expr::Or(vec![unknown.clone(), truth(0)])), truth(0));
        let maybe = Expr::Or(vec![equal(1, 2), Expr::And(vec![is_null(1), truth(1)])]);
        assert_eq!(simplified(maybe.clone()), maybe);
        // What may give the query back does so wherever it is computed.
        let quotient = Expr::Divide(4, Box::new(slot(1)), Box::new(slot(2)));
        let fails = Expr::And(vec![compare(Comparison::Less, quotient, truth(1)), truth(0)]);
        let kept = Expr::Or(vec![equal(1, 2), fails]);
        assert_eq!(simplified(kept.clone()), kept);
    }

    #[test]
    fn conditions_of_queries_within_are_found() {
        let on = || Expr::Or(vec![equal(1, 2), nulls(1, 2)]);
        let inner = Block { filter: Some(on()), ..Block::default() };
        let source = From { source: Source::Query(Box::new(inner.clone())), is_outer: true, on: Some(on()) };
        let mut block = Block {
            from: vec![From { source: Source::Nest(vec![source]), is_outer: false, on: None }],
            filter: Some(Expr::Not(Box::new(Expr::Exists(Box::new(inner.clone()))))),
            outputs: vec![(
                9,
                Expr::Case(
                    Kind::Signed,
                    vec![(on(), Expr::Scalar(Box::new(inner), Kind::Signed))],
                    Box::new(truth(1)),
                ),
            )],
            ..Block::default()
        };
        simplify(&mut block);
        let said = format!("{block:?}");
        assert_eq!(said.matches("Compare(Same").count(), 4, "{said}");
        // The condition of CASE is a value.
        assert_eq!(said.matches("Compare(Equal").count(), 1, "{said}");
    }
}
