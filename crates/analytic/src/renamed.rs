//! Whether two expressions with queries in them are the same, though the columns of those queries have other names.
//!
//! Each time that a query is said, its columns get new names, so that a query of the select list and the one that groups are
//! made by are never equal. With the columns that a query has itself named by where they stand, and tables by the first name that
//! they go by, they are.

use std::collections::HashMap;

use crate::block::{Block, From, Source};
use crate::expr::{Expr, Slot};
use crate::subquery::given_in;

/// Names that no query gives out itself.
const FIRST_NAME: Slot = 1 << 31;

/// Whether both have the same value of each row. Both have queries in them: others are equal, or are not.
pub(crate) fn is_same_query(first: &Expr, second: &Expr) -> bool {
    std::mem::discriminant(first) == std::mem::discriminant(second)
        && second.has_query()
        && as_text(first) == as_text(second)
}

/// All that it says.
fn as_text(expr: &Expr) -> String {
    let mut given = Vec::new();
    given_in(expr, &mut given);
    let mut names = HashMap::new();
    for slot in given {
        let name = FIRST_NAME + names.len() as Slot;
        names.entry(slot).or_insert(name);
    }
    let mut renamed = expr.clone();
    rename(&mut renamed, &names);
    format!("{renamed:?}")
}

fn rename(expr: &mut Expr, names: &HashMap<Slot, Slot>) {
    match expr {
        Expr::Slot(slot, _) => rename_slot(slot, names),
        Expr::Scalar(block, _) | Expr::Exists(block) | Expr::InQuery(_, block) => rename_block(block, names),
        Expr::Server { number, first, .. } => *number = *first,
        _ => {}
    }
    expr.parts_mut().into_iter().for_each(|part| rename(part, names));
}

fn rename_slot(slot: &mut Slot, names: &HashMap<Slot, Slot>) {
    if let Some(name) = names.get(slot) {
        *slot = *name;
    }
}

fn rename_block(block: &mut Block, names: &HashMap<Slot, Slot>) {
    block.from.iter_mut().for_each(|from| rename_from(from, names));
    let conditions = block.filter.iter_mut().chain(&mut block.groups).chain(&mut block.having);
    let order = block.order.iter_mut().map(|(expr, _)| expr);
    conditions.chain(order).for_each(|expr| rename(expr, names));
    for (slot, expr) in &mut block.outputs {
        rename_slot(slot, names);
        rename(expr, names);
    }
    block.others.iter_mut().for_each(|other| rename_block(&mut other.block, names));
}

fn rename_from(from: &mut From, names: &HashMap<Slot, Slot>) {
    from.on.iter_mut().for_each(|on| rename(on, names));
    match &mut from.source {
        Source::Table { table, first, columns, filter, .. } => {
            *table = *first;
            filter.iter_mut().for_each(|filter| rename(filter, names));
            columns.iter_mut().for_each(|column| rename_slot(&mut column.slot, names));
        }
        Source::Query(block) => rename_block(block, names),
        Source::Nest(nest) => nest.iter_mut().for_each(|from| rename_from(from, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Kind, Value};
    use crate::expr::{Comparison, OnSaying, Saying};

    /// Whether a query of one table has a row whose column is equal to the column `outer`.
    fn asked(inner: Slot, outer: Slot, rows: u64) -> Expr {
        let slot = |slot| Box::new(Expr::Slot(slot, Kind::Signed));
        let column = crate::block::TableColumn {
            slot: inner,
            kind: Kind::Signed,
            place: pando_query::Place::Stored(0),
            form: pando_query::Form::Signed,
            distinct: 0,
        };
        let from = From {
            source: Source::Table {
                table: inner as usize,
                first: 0,
                parts: 1,
                rows,
                columns: vec![column],
                filter: None,
            },
            is_outer: false,
            on: None,
        };
        let block = Block {
            from: vec![from],
            filter: Some(Expr::Compare(Comparison::Equal, slot(inner), slot(outer))),
            outputs: vec![(inner + 1, Expr::Constant(Value::Number(1), Kind::Signed))],
            ..Block::default()
        };
        Expr::Not(Box::new(Expr::Exists(Box::new(block))))
    }

    #[test]
    fn queries_are_the_same_whatever_their_own_columns_are_called() {
        assert!(is_same_query(&asked(5, 1, 9), &asked(7, 1, 9)));
        assert!(!is_same_query(&asked(5, 1, 9), &asked(7, 2, 9)), "they look at different rows");
        assert!(!is_same_query(&asked(5, 1, 9), &asked(7, 1, 8)), "they are of different tables");
        let served = |slot, number, first| {
            let of = vec![Expr::Slot(slot, Kind::Signed)];
            let test = Expr::Server {
                number,
                kind: Kind::Signed,
                may_say: Saying::Nothing,
                first,
                on_saying: OnSaying::Tell,
                of,
            };
            let mut query = asked(slot, 1, 9);
            let Expr::Not(exists) = &mut query else { panic!("what has been made") };
            let Expr::Exists(block) = &mut **exists else { panic!("what has been made") };
            block.filter = Some(test);
            query
        };
        assert!(is_same_query(&served(5, 0, 0), &served(7, 1, 0)), "the server computes the same of both");
        assert!(!is_same_query(&served(5, 0, 0), &served(7, 1, 1)));
        let plain = Expr::Slot(1, Kind::Signed);
        assert!(!is_same_query(&plain, &plain), "there is no query");
    }
}
