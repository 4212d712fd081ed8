//! Views: what a transaction sees of a dictionary, for many threads that read it at once.
//!
//! A query over a whole table takes a [`View`] and divides its keys; each thread goes over its part with a
//! [`ViewCursor`]. All of them see the transaction's snapshot and its own uncommitted writes as they are when the
//! view is taken. The transaction stands still meanwhile: the view borrows it, so nobody writes (`writes`, 1), its
//! snapshot stays, and reading spilled writes with their lock held disturbs only other readers of this view.

use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use pando_base::{pause, Error as EngineError, Seqno};
use pando_column::large::Reference;

use crate::error::Result;
use crate::read::large::{checked, find};
use crate::read::own_writes::OwnCursor;
use crate::table::large::LargeValues;
use crate::table::writes::Writes;
use crate::table::{Dict, Table};
use crate::txn::transaction::Txn;

/// See the head of this file.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) sight: Sight,
    txn: PhantomData<&'a ()>,
}

/// What is seen of a dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) dict: Arc<Dict>,
    pub(crate) seqno: Seqno,
    /// The own writes, if there are any to this dictionary.
    pub(crate) writes: Option<Arc<Writes>>,
    /// Of rows: what they refer to.
    pub(crate) large: Option<LargeSight>,
}

/// What is seen of large values.
#[derive(Clone, Debug)]
pub(crate) struct LargeSight {
    values: Arc<LargeValues>,
    seqno: Seqno,
    writes: Option<Arc<Writes>>,
}

/// Goes up over the rows of a part of a view.
#[derive(Debug)]
pub struct ViewCursor {
    tree: pando_tree::Cursor,
    own: Option<(Arc<Writes>, OwnCursor)>,
    end: Option<Vec<u8>>,
    /// The row given last, which is left with the next step.
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nothing,
    Tree,
    Own,
}

impl Txn {
    /// What consistent reads of this transaction see of a dictionary. Errors: the table has changed since the
    /// snapshot was taken; it is of another database, or has no such dictionary.
    pub fn view<'a>(&'a mut self, table: &Table, index: usize) -> Result<View<'a>> {
        self.write_out_ranges()?;
        let seqno = self.snapshot_seqno();
        let dict = self.dict_of(table, index)?.clone();
        dict.check_readable(seqno)?;
        pause(4);
        let writes = self.has_touched(&dict).then(|| self.writes().clone());
        let large = table.large.clone().filter(|large| large.may_be_some()).map(|values| {
            let writes = self.has_touched(&values.dict).then(|| self.writes().clone());
            LargeSight { values, seqno, writes }
        });
        Ok(View { sight: Sight { dict, seqno, writes, large }, txn: PhantomData })
    }

    /// Counts a query that was answered from a view, and the rows it went over; or one that was not.
    pub fn note_query(&self, rows: Option<u64>) {
        match rows {
            Some(rows) => {
                self.db.metrics.queries_pushed.add(1);
                self.db.metrics.rows_aggregated.add(rows);
            }
            None => self.db.metrics.queries_given_back.add(1),
        }
    }

    /// Counts bytes that a query has written to a temporary file.
    pub fn note_spilled(&self, bytes: u64) {
        self.db.metrics.query_spill_files.add(1);
        self.db.metrics.query_spilled_bytes.add(bytes);
    }
}

impl View<'_> {
    /// Keys that divide the view into parts that take about as long to read, or less, ascending.
    pub fn bounds(&self) -> Vec<Vec<u8>> {
        self.sight.dict.tree.bounds()
    }

    /// A cursor before the first row in [`begin`, `end`), or from the first and to the last row of all.
    ///
    /// # Errors
    /// Those of reading files, as with every step.
    pub fn cursor(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<ViewCursor> {
        self.sight.cursor(begin, end, None)
    }
}

impl Sight {
    /// As [`View::cursor`]; of the own writes it sees what `seen` does, or those until now.
    pub(crate) fn cursor(
        &self,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        seen: Option<&OwnCursor>,
    ) -> Result<ViewCursor> {
        let mut tree = self.dict.tree.cursor(self.seqno);
        tree.seek(begin.unwrap_or(b""))?;
        let mut own = None;
        if let Some(writes) = &self.writes {
            let mut cursor = seen.map_or_else(|| OwnCursor::new(writes, self.dict.id), OwnCursor::beside);
            cursor.seek_forward(writes, begin.map_or(Bound::Unbounded, Bound::Included))?;
            own = Some((writes.clone(), cursor));
        }
        Ok(ViewCursor { tree, own, end: end.map(<[u8]>::to_vec), at: At::Nothing })
    }
}

impl LargeSight {
    /// The value that a row of the view refers to. Errors: those of reading; there is none; it is lost.
    pub(crate) fn get(&self, reference: Reference) -> Result<Vec<u8>> {
        self.values.check_there(reference)?;
        let dict = &self.values.dict;
        let own = match &self.writes {
            Some(writes) => writes.read().get(dict.id, &reference.key())?,
            None => None,
        };
        let found = match own {
            Some(own) => own,
            None => find(dict, reference, Some(self.seqno))?,
        };
        let value = found.ok_or_else(|| {
            let what = format!("large value {}", reference.id);
            EngineError::corruption(&dict.file.path(), 0, what, "there", "not there")
        })?;
        checked(dict, reference, value)
    }
}

impl ViewCursor {
    /// The next row's key and value; `None` after the last.
    ///
    /// # Errors
    /// Those of reading files; the cursor is of no use then.
    #[expect(clippy::should_implement_trait, reason = "a step that may fail and lends what it gives")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match std::mem::replace(&mut self.at, At::Nothing) {
            At::Nothing => {}
            At::Tree => self.tree.next()?,
            At::Own => self.step_own()?,
        }
        self.settle()?;
        let row = match (self.at, &self.own) {
            (At::Tree, _) => Some((self.tree.key(), self.tree.value())),
            (At::Own, Some((_, own))) => {
                own.entry().and_then(|(key, value)| Some((key.as_slice(), value.as_deref()?)))
            }
            _ => None,
        };
        let end = self.end.as_deref();
        Ok(row.filter(|(key, _)| end.is_none_or(|end| *key < end)))
    }

    /// Gives rows, until `take` says that it has enough: then it says `true`. The same as `next` for each, but much
    /// cheaper where no own writes are left.
    ///
    /// # Errors
    /// As `next`.
    pub(crate) fn visit(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> bool) -> Result<bool> {
        while let Some((key, row)) = self.next()? {
            if !take(key, row) {
                return Ok(true);
            }
            if self.at == At::Tree && self.own.as_ref().is_none_or(|(_, own)| own.entry().is_none()) {
                return self.visit_tree(&mut take);
            }
        }
        Ok(false)
    }

    /// As `visit`, from the row behind the one given last, which is the tree's, as are all that follow.
    fn visit_tree(&mut self, take: &mut impl FnMut(&[u8], &[u8]) -> bool) -> Result<bool> {
        self.at = At::Nothing;
        self.tree.next()?;
        let end = self.end.as_deref();
        let (mut is_over, mut is_enough) = (false, false);
        self.tree.visit(|key, row| {
            is_over = end.is_some_and(|end| key >= end);
            is_enough = !is_over && !take(key, row);
            !is_over && !is_enough
        })?;
        if is_enough {
            self.at = At::Tree;
        }
        Ok(is_enough)
    }

    fn step_own(&mut self) -> Result<()> {
        Ok(self.own.as_mut().map_or(Ok(()), |(writes, own)| own.step(writes))?)
    }

    /// Finds the row to give from where both sides are: of the same key the own write counts, own deletes are
    /// passed by together with what they hide.
    fn settle(&mut self) -> Result<()> {
        loop {
            let Some((own_key, own_value)) = self.own.as_ref().and_then(|(_, own)| own.entry()) else {
                self.at = if self.tree.valid() { At::Tree } else { At::Nothing };
                return Ok(());
            };
            let is_deleted = own_value.is_none();
            if self.tree.valid() {
                let order = own_key.as_slice().cmp(self.tree.key());
                if order.is_gt() {
                    self.at = At::Tree;
                    return Ok(());
                }
                if order.is_eq() {
                    self.tree.next()?;
                }
            }
            if !is_deleted {
                self.at = At::Own;
                return Ok(());
            }
            self.step_own()?;
        }
    }
}
