//! Expressions: what a query computes of a row.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pando_base::locks::Mutex;
use pando_query::Failure;

use crate::block::Block;
use crate::column::{Column, Kind, Value, UNSUPPORTED};
use crate::memo::Memo;
pub use crate::tags::{Comparison, Function, Operation, Part, Saying};
use crate::window::Window;

/// Names a column of a table, or a computed one; no two columns of a query have the same number. Where an expression is
/// bound to a batch, it is the place in the batch.
pub type Slot = u32;

/// Tests a text.
pub type TestText = dyn Fn(&[u8]) -> bool + Send + Sync;
/// Makes another text of a text; `None`: NULL.
pub type ChangeText = dyn Fn(&[u8], &mut Vec<u8>) -> bool + Send + Sync;
/// An earlier moment that stands for one, as columns have it.
pub type FloorOfMoment = dyn Fn(i64) -> i64 + Send + Sync;
/// A number of a text: its length, say.
pub type MeasureText = dyn Fn(&[u8]) -> i64 + Send + Sync;
/// Appends bytes that memcmp orders as the collation orders texts.
pub type KeyOfText = dyn Fn(&[u8], &mut Vec<u8>) + Send + Sync;

/// What becomes of what the server says (warnings) while it computes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// These rows stand for others that look the same: where there is something to say, the query is given back with
    /// [`pando_query::Why::Told`], and all rows are asked for again.
    Silent,
    /// It is said of each row.
    Told,
    /// Nothing but what there is to say is wanted, of all rows that a plan of the server's could look at: if it is not what is told in
    /// the end, the query is the server's.
    Asked,
}

/// What is done with what the server's code says of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnSaying {
    /// It is told.
    Tell,
    /// It is all that is wanted of the expression.
    Ask,
    /// It gives the query back.
    GiveBack,
}

/// Computes an expression of the server's, by number, of so many rows of its columns, in the session's own thread.
pub type ServerValues = dyn Fn(u32, Hearing, &[Arc<Column>], usize) -> Result<Column, Failure> + Send + Sync;

/// What the server's own code does with texts, by number.
#[derive(Clone, Default)]
pub struct Texts {
    /// Patterns of LIKE, and the like.
    pub tests: Vec<Arc<TestText>>,
    /// Functions of a text.
    pub changes: Vec<Arc<ChangeText>>,
    /// Moments that stand for others.
    pub floors: Vec<Arc<FloorOfMoment>>,
    /// Numbers of a text.
    pub measures: Vec<Arc<MeasureText>>,
    /// Collations.
    pub collations: Vec<Arc<KeyOfText>>,
    /// How these order texts; nothing is known of those that are missing.
    pub orders: Vec<TextOrder>,
    /// Expressions that have no form here.
    pub server: Option<Arc<ServerValues>>,
    /// What these have said, by their numbers.
    pub(crate) memos: Arc<Mutex<HashMap<(u32, OnSaying), Memo>>>,
}

/// How a collation orders texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextOrder {
    /// As its keys say.
    #[default]
    Keys,
    /// As their bytes are ordered.
    Bytes,
    /// Likewise, as if all went on with spaces for ever.
    Padded,
}

impl Texts {
    /// A collation, and how it orders texts.
    pub(crate) fn collation(&self, number: u32) -> Result<(&Arc<KeyOfText>, TextOrder), Failure> {
        let key = self.collations.get(number as usize).ok_or(UNSUPPORTED)?;
        Ok((key, self.orders.get(number as usize).copied().unwrap_or_default()))
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.tests.len(), self.changes.len(), self.collations.len());
        write!(f, "Texts{counts:?}")
    }
}

impl Comparison {
    /// The other way round.
    pub fn swapped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

impl Function {
    /// What it is of no rows.
    pub(crate) fn of_nothing(self) -> Value {
        match self {
            Function::Rows
            | Function::Count
            | Function::CountDistinct
            | Function::BitOr
            | Function::BitXor => Value::Number(0),
            Function::BitAnd => Value::Number(i128::from(u64::MAX)),
            _ => Value::Null,
        }
    }

    /// Whether its last digits are those of the order of rows; `kind`: of its values.
    pub(crate) fn is_of_order(self, kind: Kind) -> bool {
        use Function::{Deviation, DeviationOfSample, Mean, Sum, Variance, VarianceOfSample};
        match self {
            Mean | Variance | VarianceOfSample | Deviation | DeviationOfSample => true,
            Sum => kind == Kind::Real,
            _ => false,
        }
    }
}

/// What is computed of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A column.
    Slot(Slot, Kind),
    /// A constant.
    Constant(Value, Kind),
    /// Of two exact numbers.
    Arithmetic(Operation, Kind, Box<Expr>, Box<Expr>),
    /// The quotient, cut to so many digits behind the point. By zero: the query is given back, as the server warns.
    Divide(u32, Box<Expr>, Box<Expr>),
    /// Of two DOUBLEs.
    Real(Operation, Box<Expr>, Box<Expr>),
    /// A comparison of values of one kind; numbers may differ in scale.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
    /// Whether it is NULL.
    IsNull(Box<Expr>),
    /// The value beside the first condition that is true, or the last.
    Case(Kind, Vec<(Expr, Expr)>, Box<Expr>),
    /// Whether it is one of some constants, none of them NULL.
    In(Box<Expr>, Vec<Value>),
    /// Whether a text is as a test says.
    Test(u32, Box<Expr>),
    /// Another text.
    Change(u32, Kind, Box<Expr>),
    /// A part of a moment.
    Part(Part, Box<Expr>),
    /// The first of the moments of which the server's code says the same: what it is asked of once holds for all of them.
    Floor(u32, Box<Expr>),
    /// A number of a text.
    Measure(u32, Box<Expr>),
    /// The value as one of another kind; digits are rounded away.
    Convert(Kind, Box<Expr>),
    /// What the server's own code computes of columns. It is computed in the session's thread, and only there.
    Server {
        /// Which.
        number: u32,
        /// What its values are.
        kind: Kind,
        /// What it may say: of all rows that a plan of the server's could look at it is asked beforehand.
        may_say: Saying,
        /// The first that is the same, but for the names of the columns of queries.
        first: u32,
        /// What becomes of it.
        on_saying: OnSaying,
        /// The columns.
        of: Vec<Expr>,
    },
    /// The second, if the first is false of no row; else the query is given back. What is true of the rows met makes an
    /// answer the only one.
    Sure(Box<Expr>, Box<Expr>),
    /// The first, to be sorted by, which lies between the others, or might: if these do not tell the order of the rows that are wanted, the query is given
    /// back.
    Near(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A DOUBLE as a column of a temporary table keeps it, with so many digits.
    Kept {
        /// Behind the point.
        decimals: u8,
        /// Before it, at most.
        whole: u8,
        /// Whether the query is given back where this is another number: the server's plan decides which one it computes with.
        is_same: bool,
        /// The DOUBLE.
        of: Box<Expr>,
    },
    /// Of the rows of a group.
    Aggregate(Function, Kind, Option<Box<Expr>>),
    /// Several, that an aggregate looks at.
    Row(Vec<Expr>),
    /// Of the rows around one, after groups.
    Window(Box<Window>),
    /// The only value of a query's only row; NULL of none.
    Scalar(Box<Block>, Kind),
    /// Whether a query has rows.
    Exists(Box<Block>),
    /// Whether a query has a row with these values.
    InQuery(Vec<Expr>, Box<Block>),
}

impl Expr {
    /// What its values are.
    pub fn kind(&self) -> Kind {
        match self {
            Expr::Slot(_, kind)
            | Expr::Constant(_, kind)
            | Expr::Arithmetic(_, kind, ..)
            | Expr::Case(kind, ..)
            | Expr::Change(_, kind, _)
            | Expr::Convert(kind, _)
            | Expr::Aggregate(_, kind, _)
            | Expr::Server { kind, .. }
            | Expr::Scalar(_, kind) => *kind,
            Expr::Window(window) => window.kind,
            Expr::Divide(scale, ..) => Kind::Decimal(*scale),
            Expr::Real(..) | Expr::Kept { .. } => Kind::Real,
            Expr::Sure(_, value) | Expr::Near(value, ..) | Expr::Floor(_, value) => value.kind(),
            Expr::Part(Part::Date, _) => Kind::Date,
            _ => Kind::Signed,
        }
    }

    /// The values that it stands for: itself, or those of a row.
    pub(crate) fn row(&self) -> &[Expr] {
        match self {
            Expr::Row(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// What it is computed from, but for queries in it.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Slot(..) | Expr::Constant(..) | Expr::Scalar(..) | Expr::Exists(_) => Vec::new(),
            Expr::Arithmetic(_, _, a, b)
            | Expr::Divide(_, a, b)
            | Expr::Real(_, a, b)
            | Expr::Sure(a, b)
            | Expr::Compare(_, a, b) => vec![a, b],
            Expr::Near(value, one, other) => vec![value, one, other],
            Expr::And(parts)
            | Expr::Or(parts)
            | Expr::Row(parts)
            | Expr::InQuery(parts, _)
            | Expr::Server { of: parts, .. } => parts.iter().collect(),
            Expr::Window(window) => window.parts(),
            Expr::Not(part)
            | Expr::IsNull(part)
            | Expr::In(part, _)
            | Expr::Test(_, part)
            | Expr::Change(_, _, part)
            | Expr::Part(_, part)
            | Expr::Floor(_, part)
            | Expr::Measure(_, part)
            | Expr::Kept { of: part, .. }
            | Expr::Convert(_, part) => vec![part],
            Expr::Case(_, whens, otherwise) => {
                whens.iter().flat_map(|(when, then)| [when, then]).chain([&**otherwise]).collect()
            }
            Expr::Aggregate(_, _, part) => part.iter().map(|part| &**part).collect(),
        }
    }

    /// As `parts`, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Slot(..) | Expr::Constant(..) | Expr::Scalar(..) | Expr::Exists(_) => Vec::new(),
            Expr::Arithmetic(_, _, a, b)
            | Expr::Divide(_, a, b)
            | Expr::Real(_, a, b)
            | Expr::Sure(a, b)
            | Expr::Compare(_, a, b) => vec![a, b],
            Expr::Near(value, one, other) => vec![value, one, other],
            Expr::And(parts)
            | Expr::Or(parts)
            | Expr::Row(parts)
            | Expr::InQuery(parts, _)
            | Expr::Server { of: parts, .. } => parts.iter_mut().collect(),
            Expr::Window(window) => window.parts_mut(),
            Expr::Not(part)
            | Expr::IsNull(part)
            | Expr::In(part, _)
            | Expr::Test(_, part)
            | Expr::Change(_, _, part)
            | Expr::Part(_, part)
            | Expr::Floor(_, part)
            | Expr::Measure(_, part)
            | Expr::Kept { of: part, .. }
            | Expr::Convert(_, part) => vec![part],
            Expr::Case(_, whens, otherwise) => {
                whens.iter_mut().flat_map(|(when, then)| [when, then]).chain([&mut **otherwise]).collect()
            }
            Expr::Aggregate(_, _, part) => part.iter_mut().map(|part| &mut **part).collect(),
        }
    }

    /// Adds the columns that it looks at, those of queries in it too.
    pub fn slots(&self, to: &mut Vec<Slot>) {
        match self {
            Expr::Slot(slot, _) => to.push(*slot),
            Expr::Scalar(block, _) | Expr::Exists(block) | Expr::InQuery(_, block) => block.slots(to),
            _ => {}
        }
        self.parts().into_iter().for_each(|part| part.slots(to));
    }

    /// Whether `test` is true of it or of a part of it.
    pub fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) || self.parts().into_iter().any(|part| part.any(test))
    }

    /// Whether there is a query in it.
    pub fn has_query(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Scalar(..) | Expr::Exists(_) | Expr::InQuery(..)))
    }

    /// Whether it looks at the rows around one.
    pub(crate) fn has_window(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Window(_)))
    }

    /// Whether the server computes a part of it.
    pub fn needs_server(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Server { .. }))
    }

    /// Adds the parts that the server computes, and of which it may say something of some rows.
    pub(crate) fn add_saying(&self, to: &mut Vec<Expr>) {
        match self {
            Expr::Server { may_say, on_saying: OnSaying::Tell, .. } if *may_say != Saying::Nothing => {
                to.push(self.clone())
            }
            _ => self.parts().into_iter().for_each(|part| part.add_saying(to)),
        }
    }

    /// Has whatever the server says of this expression give the query back, where it stands as a part.
    pub(crate) fn hush(&mut self, of: &Expr) {
        if self == of {
            if let Expr::Server { on_saying, .. } = self {
                *on_saying = OnSaying::GiveBack;
            }
            return;
        }
        self.parts_mut().into_iter().for_each(|part| part.hush(of));
    }

    /// Whether computing it may end the query, or give it back: of which rows it is computed matters.
    pub(crate) fn may_fail(&self) -> bool {
        self.any(&|part| {
            matches!(
                part,
                Expr::Divide(..)
                    | Expr::Real(..)
                    | Expr::Arithmetic(..)
                    | Expr::Convert(..)
                    | Expr::Kept { .. }
                    | Expr::Server { .. }
                    | Expr::Sure(..)
            )
        })
    }

    /// Whether it is to be asked of all rows, before anything else.
    pub(crate) fn is_early(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Sure(..)))
    }

    /// The same, of which nothing but what the server has to say is wanted.
    pub(crate) fn asked(&self) -> Expr {
        let mut copy = self.clone();
        if let Expr::Server { on_saying, .. } = &mut copy {
            *on_saying = OnSaying::Ask;
        }
        for part in copy.parts_mut() {
            *part = part.asked();
        }
        copy
    }

    /// Whether the server computes a part of it: as a condition it comes after the others, and is asked of the fewest rows.
    pub(crate) fn is_late(&self) -> bool {
        self.needs_server() && !self.is_early()
    }

    /// With other expressions in the place of some; `change` says which, from the outside in.
    pub fn replaced(&self, change: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        if let Some(other) = change(self) {
            return other;
        }
        let mut copy = self.clone();
        for part in copy.parts_mut() {
            *part = part.replaced(change);
        }
        copy
    }

    /// With places in a batch in the place of slots; `None`: it has no such column.
    pub(crate) fn bound(&self, slots: &[Slot]) -> Option<Expr> {
        let mut is_bound = !self.has_query();
        let bound = self.replaced(&mut |part| match part {
            Expr::Slot(slot, kind) => {
                let place = slots.iter().position(|known| known == slot);
                is_bound &= place.is_some();
                Some(Expr::Slot(place.unwrap_or(0) as u32, *kind))
            }
            _ => None,
        });
        is_bound.then_some(bound)
    }

    /// The conditions that all have to be true for this one to be.
    pub(crate) fn conjuncts(self, to: &mut Vec<Expr>) {
        match self {
            Expr::And(parts) => parts.into_iter().for_each(|part| part.conjuncts(to)),
            one => to.push(one),
        }
    }
}
