//! What a query says: blocks of FROM, WHERE, GROUP BY and so on, with the columns resolved.

use pando_query::{Form, Place};

use crate::column::Kind;
use crate::expr::{Expr, Slot};
pub use crate::tags::SetOperation as Operation;

/// A column of a table that a query looks at.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name in the query.
    pub slot: Slot,
    /// What its values are.
    pub kind: Kind,
    /// Where they are.
    pub place: Place,
    /// How they are stored.
    pub form: Form,
    /// How many different values there are, about; 0: nobody knows.
    pub distinct: u64,
}

/// What rows come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A table, by number.
    Table {
        /// Which of the tables that the query was given.
        table: usize,
        /// The first of them that is the same one, under whatever name.
        first: usize,
        /// How many of these, from that one on, are its partitions; 1: it has none.
        parts: usize,
        /// How many rows it has, about.
        rows: u64,
        /// What is looked at.
        columns: Vec<TableColumn>,
        /// Which of its rows there are: others have expired.
        filter: Option<Expr>,
    },
    /// A query; its outputs are named by their slots.
    Query(Box<Block>),
    /// Some, joined.
    Nest(Vec<From>),
}

/// A part of FROM, joined with what stands before it.
#[derive(Clone, Debug)]
pub struct From {
    /// The rows.
    pub source: Source,
    /// LEFT JOIN: what stands before it stays if there is no partner.
    pub is_outer: bool,
    /// ON.
    pub on: Option<Expr>,
}

/// A SELECT, or several whose rows are taken together.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// FROM.
    pub from: Vec<From>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY.
    pub groups: Vec<Expr>,
    /// Whether there are groups: one of all rows, if there is no GROUP BY.
    pub is_grouped: bool,
    /// HAVING.
    pub having: Option<Expr>,
    /// The select list.
    pub outputs: Vec<(Slot, Expr)>,
    /// DISTINCT.
    pub is_distinct: bool,
    /// ORDER BY; true: descending.
    pub order: Vec<(Expr, bool)>,
    /// OFFSET.
    pub skip: u64,
    /// LIMIT.
    pub limit: Option<u64>,
    /// Of WITH ROLLUP: which groups descend. Its rows come in the order of the groups.
    pub rollup: Option<Vec<bool>>,
    /// Columns that no group names, of which each group has one value all the same: those of a table one of whose unique keys is among the groups.
    pub determined: Vec<Slot>,
    /// Of a block that is a whole query of one table: whether a group whose rows have texts that are equal, and not the same, shows that of
    /// its first row in the order of the table. Otherwise such a query is given back.
    pub first_stands: bool,
    /// Taken together with these, one after the other; their outputs are in the same order.
    pub others: Vec<Other>,
}

/// A query whose rows are taken together with those before it.
#[derive(Clone, Debug)]
pub struct Other {
    /// How.
    pub operation: Operation,
    /// No row twice.
    pub is_distinct: bool,
    /// The query.
    pub block: Block,
}

impl PartialEq for Block {
    fn eq(&self, _: &Block) -> bool {
        // Two queries are never taken for one.
        false
    }
}

impl Block {
    /// Adds all columns that it looks at, its own and others'.
    pub fn slots(&self, to: &mut Vec<Slot>) {
        self.from.iter().for_each(|from| from.slots(to));
        self.expressions().for_each(|expr| expr.slots(to));
        self.others.iter().for_each(|other| other.block.slots(to));
    }

    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let one = self.filter.iter().chain(&self.groups).chain(&self.having);
        let outputs = self.outputs.iter().map(|(_, expr)| expr);
        one.chain(outputs).chain(self.order.iter().map(|(expr, _)| expr))
    }

    /// Adds the columns that its sources give.
    pub fn given(&self, to: &mut Vec<Slot>) {
        self.from.iter().for_each(|from| from.given(to));
    }
}

impl From {
    fn slots(&self, to: &mut Vec<Slot>) {
        self.on.iter().for_each(|on| on.slots(to));
        match &self.source {
            Source::Table { .. } => {}
            Source::Query(block) => block.slots(to),
            Source::Nest(nest) => nest.iter().for_each(|from| from.slots(to)),
        }
    }

    /// Adds the columns that it gives.
    pub fn given(&self, to: &mut Vec<Slot>) {
        match &self.source {
            Source::Table { columns, .. } => to.extend(columns.iter().map(|column| column.slot)),
            Source::Query(block) => to.extend(block.outputs.iter().map(|(slot, _)| *slot)),
            Source::Nest(nest) => nest.iter().for_each(|from| from.given(to)),
        }
    }
}
