//! Groups by values that other groups determine: `GROUP BY id, id - 1`, or by a constant. What there are groups by is what determines the
//! others, which are computed once for each group instead of being looked at of each row.

use crate::column::Kind;
use crate::expr::{Expr, Slot};

/// What there are groups by, each with its column.
pub(crate) type GroupsBy = Vec<(Slot, Expr)>;

/// The groups that determine the others, of which there are some if there were some; and the others.
pub(crate) fn split(groups: GroupsBy) -> (GroupsBy, GroupsBy) {
    let known: Vec<Slot> = groups.iter().filter_map(|(_, group)| of_one_value(group)).collect();
    let is_determined = |group: &Expr| {
        let mut slots = Vec::new();
        group.slots(&mut slots);
        !matches!(group, Expr::Slot(..)) && slots.iter().all(|slot| known.contains(slot)) && is_same(group)
    };
    let (mut determined, mut kept): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(_, group)| is_determined(group));
    if kept.is_empty() && !determined.is_empty() {
        // Of no rows there are no groups, not even one by a constant.
        kept.push(determined.remove(0));
    }
    (kept, determined)
}

/// The column, if all its values that are equal are the same.
fn of_one_value(group: &Expr) -> Option<Slot> {
    match group {
        // Texts may be equal in a collation only, and so are the two zeros.
        Expr::Slot(_, Kind::Text(_) | Kind::Real) => None,
        Expr::Slot(slot, _) => Some(*slot),
        _ => None,
    }
}

/// Whether it is the same of the same values, and nothing but a value too large comes of it.
fn is_same(group: &Expr) -> bool {
    !group.any(&|part| match part {
        Expr::Arithmetic(..) => false,
        Expr::Divide(..)
        | Expr::Real(..)
        | Expr::Convert(..)
        | Expr::Kept { .. }
        | Expr::Server { .. }
        | Expr::Sure(..)
        | Expr::Window(..) => true,
        part => part.has_query(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use crate::tags::Operation;

    fn slot(slot: Slot, kind: Kind) -> Expr {
        Expr::Slot(slot, kind)
    }

    fn slots(groups: &[(Slot, Expr)]) -> Vec<Slot> {
        groups.iter().map(|(slot, _)| *slot).collect()
    }

    #[test]
    fn what_others_determine_is_computed_of_them() {
        let one = || Expr::Constant(Value::Number(1), Kind::Signed);
        let less =
            |of: Expr| Expr::Arithmetic(Operation::Subtract, Kind::Signed, Box::new(of), Box::new(one()));
        let groups = vec![
            (9, one()),
            (1, slot(1, Kind::Signed)),
            (2, slot(2, Kind::Text(0))),
            (3, slot(3, Kind::Real)),
            (4, less(slot(1, Kind::Signed))),
            (5, less(less(slot(1, Kind::Signed)))),
            (6, less(slot(7, Kind::Signed))),
            (8, Expr::IsNull(Box::new(slot(2, Kind::Text(0))))),
            (10, Expr::IsNull(Box::new(slot(3, Kind::Real)))),
        ];
        let (kept, determined) = split(groups);
        assert_eq!((slots(&kept), slots(&determined)), (vec![1, 2, 3, 6, 8, 10], vec![9, 4, 5]));
    }

    #[test]
    fn a_constant_alone_stays() {
        let one = |slot: Slot| (slot, Expr::Constant(Value::Number(slot.into()), Kind::Signed));
        let (kept, determined) = split(vec![one(1), one(2)]);
        assert_eq!((slots(&kept), slots(&determined)), (vec![1], vec![2]));
        assert_eq!(split(Vec::new()), (Vec::new(), Vec::new()));
    }
}
