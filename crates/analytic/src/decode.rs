//! What the server says of a query, as bytes: each thing begins with a byte that says what it is, then come its parts
//! (`Select_bytes` in `mariadb/src/pushdown/select_translate.h`). Numbers are little-endian.

use std::sync::Arc;

use pando_query::{Form, Place};
use pandodb::KeyPath;

use crate::block::{Block, From, Operation as SetOperation, Other, Source, TableColumn};
use crate::column::{Kind, Value};
use crate::expr::{Comparison, Expr, Function, OnSaying, Operation, Part, Saying};
use crate::window::{Bound, Frame, Function as WindowFunction, Window};

/// How deep things stand in each other at most.
const DEPTH_MAX: usize = 300;

struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

/// The query, and what is asked of all rows (true: a part of what may warn). `None`: the bytes are not those of one.
pub(crate) fn query_of(bytes: &[u8]) -> Option<(Block, Vec<(bool, Expr)>)> {
    let mut reader = Reader { bytes, depth: 0 };
    let block = reader.block()?;
    let asked = reader.list(|reader| Some((reader.flag()?, reader.expr()?)))?;
    reader.bytes.is_empty().then_some((block, asked))
}

/// One of some conditions; where all say that the same is equal to a constant, it is a list of constants.
fn one_of(parts: Vec<Expr>) -> Expr {
    let mut list = Vec::new();
    let mut of = None;
    for part in &parts {
        let Expr::Compare(Comparison::Equal, a, b) = part else { return Expr::Or(parts) };
        let (Expr::Constant(value, kind), true) = (&**b, of.is_none_or(|of| of == a)) else {
            return Expr::Or(parts);
        };
        let value = match (value, a.kind()) {
            (Value::Text(_), Kind::Text(_)) => value.clone(),
            (Value::Number(number), of_a) if kind.scale() <= of_a.scale() && of_a != Kind::Real => {
                match number.checked_mul(10i128.pow(of_a.scale() - kind.scale())) {
                    Some(number) => Value::Number(number),
                    None => return Expr::Or(parts),
                }
            }
            _ => return Expr::Or(parts),
        };
        list.push(value);
        of = Some(a);
    }
    match of {
        Some(of) if list.len() > 1 => Expr::In(of.clone(), list),
        _ => Expr::Or(parts),
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn flag(&mut self) -> Option<bool> {
        self.byte().map(|byte| byte != 0)
    }

    fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn large(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn kind(&mut self) -> Option<Kind> {
        let (tag, of) = (self.byte()?, self.small()?);
        Some(match tag {
            0 => Kind::Signed,
            1 => Kind::Unsigned,
            2 => Kind::Decimal(of),
            3 => Kind::Real,
            4 => Kind::Date,
            5 => Kind::DateTime,
            6 => Kind::Time,
            7 => Kind::Text(of),
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<i128> {
        let (low, high) = (self.large()?, self.large()?);
        Some(i128::from(high as i64) << 64 | i128::from(low))
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            0 => Value::Null,
            1 => Value::Number(self.number()?),
            2 => Value::Real(f64::from_bits(self.large()?)),
            3 => {
                let size = self.small()? as usize;
                Value::Text(self.take(size)?.to_vec())
            }
            _ => return None,
        })
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.small()?;
        (0..count).map(|_| one(self)).collect()
    }

    fn optional(&mut self) -> Option<Option<Expr>> {
        match self.flag()? {
            true => Some(Some(self.expr()?)),
            false => Some(None),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth > DEPTH_MAX { None } else { read(self) };
        self.depth -= 1;
        result
    }

    fn block(&mut self) -> Option<Block> {
        self.nested(|reader| {
            Some(Block {
                from: reader.list(Self::from)?,
                filter: reader.optional()?,
                groups: reader.list(Self::expr)?,
                is_grouped: reader.flag()?,
                having: reader.optional()?,
                outputs: reader.list(|reader| Some((reader.small()?, reader.expr()?)))?,
                is_distinct: reader.flag()?,
                order: reader.list(|reader| Some((reader.expr()?, reader.flag()?)))?,
                skip: reader.large()?,
                limit: match reader.flag()? {
                    true => Some(reader.large()?),
                    false => None,
                },
                rollup: match reader.flag()? {
                    true => Some(reader.list(Self::flag)?),
                    false => None,
                },
                determined: reader.list(Self::small)?,
                others: reader.list(Self::other)?,
            })
        })
    }

    fn other(&mut self) -> Option<Other> {
        let operation = match self.byte()? {
            0 => SetOperation::Union,
            1 => SetOperation::Except,
            2 => SetOperation::Intersect,
            _ => return None,
        };
        Some(Other { operation, is_distinct: self.flag()?, block: self.block()? })
    }

    fn from(&mut self) -> Option<From> {
        self.nested(|reader| {
            let is_outer = reader.flag()?;
            let on = reader.optional()?;
            let source = match reader.byte()? {
                0 => Source::Table {
                    table: reader.small()? as usize,
                    first: reader.small()? as usize,
                    parts: reader.small()? as usize,
                    rows: reader.large()?,
                    columns: reader.list(Self::column)?,
                    filter: reader.optional()?,
                },
                1 => Source::Query(Box::new(reader.block()?)),
                2 => Source::Nest(reader.list(Self::from)?),
                _ => return None,
            };
            Some(From { source, is_outer, on })
        })
    }

    fn column(&mut self) -> Option<TableColumn> {
        let (slot, kind, position) = (self.small()?, self.kind()?, self.small()? as i32);
        let (offset, size, is_reversed) = (self.small()? as usize, self.small()? as usize, self.flag()?);
        let size_of_path = self.small()? as usize;
        let path = self.take(size_of_path)?;
        let (form, precision, scale) = (self.byte()?, self.small()?, self.small()?);
        let place = match usize::try_from(position) {
            Ok(position) => Place::Stored(position),
            Err(_) if path.is_empty() => Place::Key { offset, size, is_reversed },
            Err(_) => Place::KeyPart(Arc::new(KeyPath::parse(path)?)),
        };
        let form = match form {
            0 => Form::Signed,
            1 => Form::Unsigned,
            2 => Form::Decimal { precision, scale },
            3 => Form::Ordered,
            6 => Form::Year,
            // Texts, and DOUBLEs, are taken as they are.
            4 | 5 => Form::Presence,
            _ => return None,
        };
        Some(TableColumn { slot, kind, place, form, distinct: self.large()? })
    }

    fn boxed(&mut self) -> Option<Box<Expr>> {
        self.expr().map(Box::new)
    }

    fn operation(&mut self) -> Option<Operation> {
        Some(match self.byte()? {
            0 => Operation::Add,
            1 => Operation::Subtract,
            2 => Operation::Multiply,
            _ => return None,
        })
    }

    fn bound(&mut self) -> Option<Bound> {
        Some(match self.byte()? {
            0 => Bound::Unbounded,
            1 => Bound::Current,
            2 => Bound::Preceding(self.number()?),
            3 => Bound::Following(self.number()?),
            _ => return None,
        })
    }

    fn window(&mut self) -> Option<Window> {
        let function = match self.byte()? {
            0 => WindowFunction::RowNumber,
            1 => WindowFunction::Rank,
            2 => WindowFunction::DenseRank,
            3 => WindowFunction::Tile,
            4 => WindowFunction::PercentRank,
            5 => WindowFunction::Distribution,
            6 => WindowFunction::Lag,
            7 => WindowFunction::Lead,
            8 => WindowFunction::First,
            9 => WindowFunction::Last,
            10 => WindowFunction::Nth,
            11 => WindowFunction::Rows,
            12 => WindowFunction::Count,
            13 => WindowFunction::Sum,
            14 => WindowFunction::Min,
            15 => WindowFunction::Max,
            16 => WindowFunction::Mean,
            _ => return None,
        };
        Some(Window {
            function,
            kind: self.kind()?,
            number: i64::try_from(self.number()?).ok()?,
            of: self.optional()?,
            partition: self.list(Self::expr)?,
            order: self.list(|reader| Some((reader.expr()?, reader.flag()?)))?,
            frame: Frame { is_range: self.flag()?, begin: self.bound()?, end: self.bound()? },
        })
    }

    fn expr(&mut self) -> Option<Expr> {
        self.nested(Self::one_expr)
    }

    fn one_expr(&mut self) -> Option<Expr> {
        Some(match self.byte()? {
            0 => Expr::Slot(self.small()?, self.kind()?),
            1 => Expr::Constant(self.value()?, self.kind()?),
            2 => Expr::Arithmetic(self.operation()?, self.kind()?, self.boxed()?, self.boxed()?),
            3 => Expr::Divide(self.small()?, self.boxed()?, self.boxed()?),
            4 => Expr::Real(self.operation()?, self.boxed()?, self.boxed()?),
            5 => {
                let comparison = match self.byte()? {
                    0 => Comparison::Equal,
                    1 => Comparison::NotEqual,
                    2 => Comparison::Less,
                    3 => Comparison::LessOrEqual,
                    4 => Comparison::Greater,
                    5 => Comparison::GreaterOrEqual,
                    6 => Comparison::Same,
                    _ => return None,
                };
                Expr::Compare(comparison, self.boxed()?, self.boxed()?)
            }
            6 => Expr::And(self.list(Self::expr).filter(|parts| !parts.is_empty())?),
            7 => one_of(self.list(Self::expr).filter(|parts| !parts.is_empty())?),
            8 => Expr::Not(self.boxed()?),
            9 => Expr::IsNull(self.boxed()?),
            10 => {
                let kind = self.kind()?;
                let whens = self.list(|reader| Some((reader.expr()?, reader.expr()?)))?;
                Expr::Case(kind, whens, self.boxed()?)
            }
            11 => Expr::In(self.boxed()?, self.list(Self::value)?),
            12 => Expr::Test(self.small()?, self.boxed()?),
            13 => Expr::Change(self.small()?, self.kind()?, self.boxed()?),
            14 => {
                let part = match self.byte()? {
                    0 => Part::Year,
                    1 => Part::Month,
                    2 => Part::Day,
                    3 => Part::Quarter,
                    4 => Part::YearMonth,
                    5 => Part::Hour,
                    6 => Part::Minute,
                    7 => Part::Second,
                    8 => Part::Date,
                    9 => Part::Regular,
                    _ => return None,
                };
                Expr::Part(part, self.boxed()?)
            }
            15 => Expr::Convert(self.kind()?, self.boxed()?),
            16 => {
                let function = match self.byte()? {
                    0 => Function::Rows,
                    1 => Function::Count,
                    2 => Function::Sum,
                    3 => Function::Min,
                    4 => Function::Max,
                    5 => Function::CountDistinct,
                    6 => Function::SumDistinct,
                    7 => Function::Mean,
                    8 => Function::Variance,
                    9 => Function::VarianceOfSample,
                    10 => Function::Deviation,
                    11 => Function::DeviationOfSample,
                    12 => Function::BitAnd,
                    13 => Function::BitOr,
                    14 => Function::BitXor,
                    15 => Function::Concat,
                    16 => Function::ErrorOfSum,
                    17 => Function::ErrorOfMean,
                    _ => return None,
                };
                Expr::Aggregate(function, self.kind()?, self.optional()?.map(Box::new))
            }
            17 => {
                let kind = self.kind()?;
                Expr::Scalar(Box::new(self.block()?), kind)
            }
            18 => Expr::Exists(Box::new(self.block()?)),
            20 => {
                let (number, kind) = (self.small()?, self.kind()?);
                let may_say = match self.byte()? {
                    0 => Saying::Nothing,
                    1 => Saying::Warnings,
                    2 => Saying::Errors,
                    3 => Saying::OfParts,
                    _ => return None,
                };
                let (first, on_saying) = (self.small()?, OnSaying::Tell);
                Expr::Server { number, kind, may_say, first, on_saying, of: self.list(Self::expr)? }
            }
            21 => Expr::Row(self.list(Self::expr)?),
            22 => Expr::Window(Box::new(self.window()?)),
            23 => Expr::Sure(self.boxed()?, self.boxed()?),
            27 => Expr::Near(self.boxed()?, self.boxed()?, self.boxed()?),
            19 => Expr::InQuery(self.list(Self::expr)?, Box::new(self.block()?)),
            _ => return None,
        })
    }
}
