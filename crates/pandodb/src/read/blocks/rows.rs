//! Rows to vectors, one row after the other.
//!
//! A row is `version of the layout | null bits | columns` (`mariadb/src/codec/row_codec.h`). One of an older layout is read by
//! the ids of the columns, as `pando_column::layout` says. How rows of a layout are read is worked out when the first one
//! is met ([`Plan`]).

use std::sync::Arc;

use pando_column::layout::{ColumnType, Layout, Layouts, Value};
use pando_column::vector::Vector;

use super::gather::Gather;
use super::want::Want;

/// How rows of one layout become values.
#[derive(Debug)]
struct Plan {
    null_bytes: usize,
    steps: Vec<Step>,
    /// Columns that these rows do not have, and what they have for them.
    added: Vec<(usize, Option<Vec<u8>>)>,
}

/// One column of the layout, or several of fixed sizes that nobody wants.
#[derive(Debug)]
struct Step {
    is_counted: bool,
    size: usize,
    null_position: Option<usize>,
    target: Option<usize>,
    /// From what to what it has grown.
    grows: Option<(ColumnType, ColumnType)>,
}

impl Plan {
    fn new(layout: &Layout, current: &Layout, wants: &[Want]) -> Plan {
        let target_of = |id: u32| {
            let stored = |want: &Want| match want {
                Want::Stored(position) | Want::Length(position) => {
                    current.columns.get(*position).is_some_and(|c| c.id == id)
                }
                Want::Key { .. } | Want::KeyPart(_) | Want::WholeKey => false,
            };
            wants.iter().position(stored)
        };
        let mut plan = Plan { null_bytes: layout.null_bytes(), steps: Vec::new(), added: Vec::new() };
        let mut nulls = 0;
        for column in &layout.columns {
            let null_position = column.ty.nullable.then(|| {
                nulls += 1;
                nulls - 1
            });
            let target = target_of(column.id);
            let now = current.columns.iter().find(|c| c.id == column.id).map(|c| c.ty);
            let grows =
                now.filter(|now| target.is_some() && now.size != column.ty.size).map(|now| (column.ty, now));
            plan.add(Step {
                is_counted: column.ty.kind.is_counted(),
                size: column.ty.size as usize,
                null_position,
                target,
                grows,
            });
        }
        while plan.steps.last().is_some_and(|step| step.target.is_none()) {
            plan.steps.pop();
        }
        for column in &current.columns {
            let target = target_of(column.id);
            let (Some(target), true) = (target, layout.columns.iter().all(|c| c.id != column.id)) else {
                continue;
            };
            let value = match &column.added_with {
                Some(Value::Bytes(bytes)) => Some(bytes.clone()),
                Some(Value::Null) | None => None,
            };
            plan.added.push((target, value));
        }
        plan
    }

    fn add(&mut self, step: Step) {
        let is_plain =
            |step: &Step| !step.is_counted && step.null_position.is_none() && step.target.is_none();
        match self.steps.last_mut() {
            Some(last) if is_plain(last) && is_plain(&step) => last.size += step.size,
            _ => self.steps.push(step),
        }
    }

    fn read(&self, row: &[u8], to: &mut [Gather]) -> Option<()> {
        let (nulls, mut rest) = row.split_at_checked(self.null_bytes)?;
        for step in &self.steps {
            if step.null_position.is_some_and(|at| nulls[at / 8] >> (at % 8) & 1 != 0) {
                if let Some(target) = step.target {
                    to[target].push_null();
                }
                continue;
            }
            let size =
                if step.is_counted { usize::try_from(take_number(&mut rest)?).ok()? } else { step.size };
            let (bytes, after) = rest.split_at_checked(size)?;
            rest = after;
            match (step.target, &step.grows) {
                (Some(target), None) => to[target].push(bytes)?,
                (Some(target), Some((from, now))) => to[target].push(&from.convert(bytes, now))?,
                (None, _) => {}
            }
        }
        for (target, value) in &self.added {
            match value {
                Some(bytes) => to[*target].push(bytes)?,
                None => to[*target].push_null(),
            }
        }
        Some(())
    }
}

/// Seven bits a byte, least significant first; the high bit: more follow.
#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct RowReader {
    layouts: Layouts,
    /// Each once.
    wants: Vec<Want>,
    /// For each want of the caller, which of `wants` it is.
    order: Vec<usize>,
    gathers: Vec<Gather>,
    /// By version; those that were met.
    plans: Vec<Option<Plan>>,
    /// Of a key.
    part: Vec<u8>,
}

impl RowReader {
    /// Requires: the wants are of columns that there are.
    pub(crate) fn new(layouts: &Layouts, wants: &[Want]) -> RowReader {
        let mut distinct: Vec<Want> = Vec::new();
        let mut order = Vec::new();
        for want in wants {
            let at = distinct.iter().position(|other| other == want).unwrap_or_else(|| {
                distinct.push(want.clone());
                distinct.len() - 1
            });
            order.push(at);
        }
        let columns = &layouts.current().columns;
        let gather = |want: &Want| match want {
            Want::Stored(position) | Want::Length(position) => Gather::of(&columns[*position].ty),
            Want::Key { size, .. } => Gather::new(*size),
            Want::KeyPart(path) => Gather::new(path.width()),
            Want::WholeKey => Gather::new(0),
        };
        let gathers = distinct.iter().map(gather).collect();
        RowReader {
            layouts: layouts.clone(),
            wants: distinct,
            order,
            gathers,
            plans: Vec::new(),
            part: Vec::new(),
        }
    }

    /// Adds a row. `None`: its bytes are not those of a row; the reader is of no use then.
    #[inline]
    pub(crate) fn read(&mut self, key: &[u8], mut row: &[u8]) -> Option<()> {
        let version = usize::try_from(take_number(&mut row)?).ok()?;
        if self.plans.get(version).is_none_or(Option::is_none) {
            let layout = self.layouts.get(u32::try_from(version).ok()?)?;
            if self.plans.len() <= version {
                self.plans.resize_with(version + 1, || None);
            }
            self.plans[version] = Some(Plan::new(layout, self.layouts.current(), &self.wants));
        }
        self.plans[version].as_ref()?.read(row, &mut self.gathers)?;
        for (gather, want) in self.gathers.iter_mut().zip(&self.wants) {
            match want {
                Want::Key { offset, size } => gather.push(key.get(*offset..offset.checked_add(*size)?)?)?,
                Want::KeyPart(path) => {
                    path.take(key, &mut self.part)?;
                    gather.push(&self.part)?;
                }
                Want::WholeKey => gather.push(key)?,
                Want::Stored(_) | Want::Length(_) => {}
            }
        }
        Some(())
    }

    /// The columns of the rows that were read since the last time.
    pub(crate) fn take(&mut self) -> Vec<Arc<Vector>> {
        let vectors: Vec<Arc<Vector>> =
            self.gathers.iter_mut().map(|gather| Arc::new(gather.take())).collect();
        self.order.iter().map(|at| vectors[*at].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use pando_column::layout::{Kind, NewColumn, Source};

    use super::*;

    fn column(kind: Kind, size: u32, nullable: bool, source: Source) -> NewColumn {
        NewColumn { name: String::new(), ty: ColumnType { kind, size, nullable, binary: false }, source }
    }

    fn added(value: &[u8]) -> Source {
        Source::Added(Value::Bytes(value.to_vec()))
    }

    /// First a (2 bytes), s (text), n (may be NULL); then s, a of 4 bytes, b, which is new, m, which is new and NULL.
    fn layouts() -> Layouts {
        let first = Layouts::new(vec![
            column(Kind::Signed, 2, false, added(b"")),
            column(Kind::Varchar, 300, false, added(b"")),
            column(Kind::Unsigned, 1, true, added(b"")),
        ]);
        let next = vec![
            column(Kind::Varchar, 300, false, Source::Column(1)),
            column(Kind::Signed, 4, false, Source::Column(0)),
            column(Kind::Unsigned, 1, true, Source::Column(2)),
            column(Kind::Bytes, 2, false, added(b"xy")),
            column(Kind::Char, 5, true, Source::Added(Value::Null)),
        ];
        first.changed(next).unwrap()
    }

    fn cells(vector: &Vector) -> Vec<Option<&[u8]>> {
        (0..vector.rows()).map(|row| vector.get(row)).collect()
    }

    #[test]
    fn rows_of_all_layouts_become_values_of_the_current_one() {
        let wants = [
            Want::Stored(1),
            Want::Key { offset: 1, size: 2 },
            Want::Stored(0),
            Want::Stored(4),
            Want::Stored(2),
            Want::Stored(3),
            Want::Stored(1),
        ];
        let mut reader = RowReader::new(&layouts(), &wants);
        // -2, "hi", NULL; then "longer", 7, 9, "ab", "c".
        reader.read(b"key", &[1, 1, 0xfe, 0xff, 2, b'h', b'i']).unwrap();
        let row = [&[2, 0, 6][..], b"longer", &[7, 0, 0, 0, 9], b"ab", &[1], b"c"].concat();
        reader.read(b"k23456", &row).unwrap();
        let vectors = reader.take();
        let numbers = [Some(&(-2i32).to_le_bytes()[..]), Some(&[7, 0, 0, 0])];
        assert_eq!(cells(&vectors[0]), numbers);
        assert_eq!(cells(&vectors[1]), [Some(&b"ey"[..]), Some(b"23")]);
        assert_eq!(cells(&vectors[2]), [Some(&b"hi"[..]), Some(b"longer")]);
        assert_eq!(cells(&vectors[3]), [None, Some(&b"c"[..])]);
        assert_eq!(cells(&vectors[4]), [None, Some(&[9][..])]);
        assert_eq!(cells(&vectors[5]), [Some(&b"xy"[..]), Some(b"ab")]);
        assert!(Arc::ptr_eq(&vectors[0], &vectors[6]));
        reader.read(b"key", &row).unwrap();
        assert_eq!(cells(&reader.take()[2]), [Some(&b"longer"[..])], "the next ones begin anew");
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let rows: [&[u8]; 6] = [&[], &[3, 0], &[0], &[1], &[1, 0, 1, 0, 200, 1], &[2, 0, 1, b'x', 1, 2, 3]];
        for row in rows {
            assert_eq!(
                RowReader::new(&layouts(), &[Want::Stored(0), Want::Stored(1)]).read(b"k", row),
                None,
                "{row:?}"
            );
        }
        let wants = [Want::Key { offset: 0, size: 2 }];
        let row = [1, 1, 0xfe, 0xff, 0];
        assert_eq!(RowReader::new(&layouts(), &wants).read(b"k", &row), None, "a key that is too short");
        assert_eq!(RowReader::new(&layouts(), &wants).read(b"ke", &row), Some(()));
    }
}
