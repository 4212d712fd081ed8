//! What the server says of a query, as bytes: each thing begins with a byte that says what it is (`tags.rs`), then come its parts
//! (`Select_bytes` in `mariadb/src/pushdown/select_bytes.h`). Numbers are little-endian.

use std::sync::Arc;

use pando_query::{Form, Place};
use pandodb::KeyPath;

use crate::block::{Block, From, Other, Source, TableColumn};
use crate::column::{Kind, Value};
use crate::expr::{Comparison, Expr, OnSaying};
use crate::tags::{BoundTag, KindTag, Named, SourceTag, Tag, ValueTag};
use crate::window::{Bound, Frame, Window};

/// How deep things stand in each other at most.
const DEPTH_MAX: usize = 300;
/// The form of a column of which nothing but the length is wanted (`PandoForm::Length`).
const FORM_LENGTH: u8 = 7;

struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

/// The query, and what is asked of all rows (true: a part of what may warn). `None`: the bytes are not those of one.
pub(crate) fn query_of(bytes: &[u8]) -> Option<Said> {
    let mut reader = Reader { bytes, depth: 0 };
    let block = reader.block()?;
    let asked = reader.list(|reader| Some((reader.flag()?, reader.expr()?)))?;
    let first = reader.list(Reader::expr)?;
    reader.bytes.is_empty().then_some(Said { block, asked, first })
}

/// What the server says of a query.
pub(crate) struct Said {
    pub block: Block,
    /// What it may compute of rows that its plan chooses; true: parts of conditions.
    pub asked: Vec<(bool, Expr)>,
    /// Conditions that it computes before the others.
    pub first: Vec<Expr>,
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

    fn named<T: Named>(&mut self) -> Option<T> {
        self.byte().and_then(T::of)
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
        let (tag, of) = (self.named()?, self.small()?);
        Some(match tag {
            KindTag::Signed => Kind::Signed,
            KindTag::Unsigned => Kind::Unsigned,
            KindTag::Decimal => Kind::Decimal(of),
            KindTag::Real => Kind::Real,
            KindTag::Date => Kind::Date,
            KindTag::DateTime => Kind::DateTime,
            KindTag::Time => Kind::Time,
            KindTag::Text => Kind::Text(of),
        })
    }

    fn number(&mut self) -> Option<i128> {
        let (low, high) = (self.large()?, self.large()?);
        Some(i128::from(high as i64) << 64 | i128::from(low))
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.named()? {
            ValueTag::Null => Value::Null,
            ValueTag::Number => Value::Number(self.number()?),
            ValueTag::Real => Value::Real(f64::from_bits(self.large()?)),
            ValueTag::Text => {
                let size = self.small()? as usize;
                Value::Text(self.take(size)?.to_vec())
            }
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
                first_stands: reader.flag()?,
                others: reader.list(Self::other)?,
            })
        })
    }

    fn other(&mut self) -> Option<Other> {
        Some(Other { operation: self.named()?, is_distinct: self.flag()?, block: self.block()? })
    }

    fn from(&mut self) -> Option<From> {
        self.nested(|reader| {
            let is_outer = reader.flag()?;
            let on = reader.optional()?;
            let source = match reader.named()? {
                SourceTag::Table => Source::Table {
                    table: reader.small()? as usize,
                    first: reader.small()? as usize,
                    parts: reader.small()? as usize,
                    rows: reader.large()?,
                    columns: reader.list(Self::column)?,
                    filter: reader.optional()?,
                },
                SourceTag::Query => Source::Query(Box::new(reader.block()?)),
                SourceTag::Nest => Source::Nest(reader.list(Self::from)?),
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
            Ok(position) if form == FORM_LENGTH => Place::Length(position),
            Ok(position) => Place::Stored(position),
            Err(_) if path.is_empty() => Place::Key { offset, size, is_reversed },
            Err(_) => Place::KeyPart(Arc::new(KeyPath::parse(path)?)),
        };
        let form = match form {
            0 | FORM_LENGTH => Form::Signed,
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

    fn bound(&mut self) -> Option<Bound> {
        Some(match self.named()? {
            BoundTag::Unbounded => Bound::Unbounded,
            BoundTag::Current => Bound::Current,
            BoundTag::Preceding => Bound::Preceding(self.number()?),
            BoundTag::Following => Bound::Following(self.number()?),
        })
    }

    fn window(&mut self) -> Option<Window> {
        Some(Window {
            function: self.named()?,
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
        Some(match self.named()? {
            Tag::Slot => Expr::Slot(self.small()?, self.kind()?),
            Tag::Constant => Expr::Constant(self.value()?, self.kind()?),
            Tag::Arithmetic => Expr::Arithmetic(self.named()?, self.kind()?, self.boxed()?, self.boxed()?),
            Tag::Divide => Expr::Divide(self.small()?, self.boxed()?, self.boxed()?),
            Tag::Real => Expr::Real(self.named()?, self.boxed()?, self.boxed()?),
            Tag::Compare => Expr::Compare(self.named()?, self.boxed()?, self.boxed()?),
            Tag::And => Expr::And(self.list(Self::expr).filter(|parts| !parts.is_empty())?),
            Tag::Or => one_of(self.list(Self::expr).filter(|parts| !parts.is_empty())?),
            Tag::Not => Expr::Not(self.boxed()?),
            Tag::IsNull => Expr::IsNull(self.boxed()?),
            Tag::Case => {
                let kind = self.kind()?;
                let whens = self.list(|reader| Some((reader.expr()?, reader.expr()?)))?;
                Expr::Case(kind, whens, self.boxed()?)
            }
            Tag::In => Expr::In(self.boxed()?, self.list(Self::value)?),
            Tag::Test => Expr::Test(self.small()?, self.boxed()?),
            Tag::Change => Expr::Change(self.small()?, self.kind()?, self.boxed()?),
            Tag::Part => Expr::Part(self.named()?, self.boxed()?),
            Tag::Floor => Expr::Floor(self.small()?, self.boxed()?),
            Tag::Measure => Expr::Measure(self.small()?, self.boxed()?),
            Tag::Convert => Expr::Convert(self.kind()?, self.boxed()?),
            Tag::Aggregate => Expr::Aggregate(self.named()?, self.kind()?, self.optional()?.map(Box::new)),
            Tag::Scalar => {
                let kind = self.kind()?;
                Expr::Scalar(Box::new(self.block()?), kind)
            }
            Tag::Exists => Expr::Exists(Box::new(self.block()?)),
            Tag::InQuery => Expr::InQuery(self.list(Self::expr)?, Box::new(self.block()?)),
            Tag::Server => {
                let (number, kind, may_say) = (self.small()?, self.kind()?, self.named()?);
                let (first, on_saying) = (self.small()?, OnSaying::Tell);
                Expr::Server { number, kind, may_say, first, on_saying, of: self.list(Self::expr)? }
            }
            Tag::Row => Expr::Row(self.list(Self::expr)?),
            Tag::Window => Expr::Window(Box::new(self.window()?)),
            Tag::Sure => Expr::Sure(self.boxed()?, self.boxed()?),
            Tag::Near => Expr::Near(self.boxed()?, self.boxed()?, self.boxed()?),
            Tag::Kept => {
                let (decimals, whole) = (self.byte()?, self.byte()?);
                Expr::Kept { decimals, whole, is_same: self.flag()?, of: self.boxed()? }
            }
        })
    }
}
