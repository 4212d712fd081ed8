//! CHECK TABLE: every block, and the agreement of a table's dictionaries. OPTIMIZE TABLE.

use std::sync::Arc;

use pando_base::Seqno;
use pando_column::large::{references_of, Reference};
use pando_column::Shapes;

use crate::db::Db;
use crate::error::{Error, Result};
use crate::table::clustering::Clustering;
use crate::table::large::id_of;
use crate::table::{Dict, Table};

/// While CHECK TABLE counts rows, it asks after so many whether to go on.
const ROWS_BETWEEN_LOOKS: u64 = 4096;

/// About how many bytes are rewritten with a leaf.
pub(crate) fn bytes_of_leaf(dict: &Dict) -> u64 {
    let stats = dict.tree.stats();
    stats.disk_bytes / stats.leaves.max(1)
}

impl Db {
    /// OPTIMIZE TABLE: pushes everything into the leaves, rewrites them, and gives the space back. Others go
    /// on meanwhile. `watch` is told the part that is done before each leaf, and says whether to go on. It goes no faster than
    /// [`Db::set_optimize_rate`] says.
    ///
    /// # Errors
    /// Those of reading and writing; [`Error::Killed`] if `watch` said so: what was done stays.
    pub fn compact_table(&self, table: &Table, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        self.check_own(table)?;
        let weight = |dict: &Arc<Dict>| (dict.tree.stats().raw_bytes + 1) as f64;
        let total: f64 = table.all_dicts().map(weight).sum();
        let mut before = 0.0;
        for dict in table.all_dicts().filter(|dict| !dict.is_unusable()) {
            let share = weight(dict) / total;
            let bytes = bytes_of_leaf(dict);
            let mut paced = |part: f64| {
                let mut goes_on = || watch((before + share * part).min(1.0));
                self.optimize_pace.wait(&*self.vfs, bytes, &mut goes_on)
            };
            if !self.compact_dict(dict, &mut paced)? {
                return Err(Error::Killed);
            }
            before += share;
        }
        Ok(())
    }

    /// From now on [`Db::compact_table`] rewrites no more bytes a second, of all tables together. 0: as fast as it goes. Whoever is at work
    /// heeds it, too.
    pub fn set_optimize_rate(&self, bytes_per_second: u64) {
        self.optimize_pace.set(bytes_per_second);
    }

    /// The same with one dictionary. False: `watch` said that it is enough.
    pub(crate) fn compact_dict(&self, dict: &Arc<Dict>, watch: &mut dyn FnMut(f64) -> bool) -> Result<bool> {
        // What was deleted just now is in the active memtable.
        dict.tree.seal(|| self.wal.last_seqno());
        let is_whole = dict.tree.compact_all_while(watch)?;
        // What was replaced is free only when no checkpoint refers to it.
        self.checkpoint_dict(dict)?;
        // Nor is it given back by a checkpoint that has nothing to write.
        dict.file.reclaim()?;
        Ok(is_whole)
    }

    /// CHECK TABLE: reads all of a table: blocks and their checksums, order, counts; then counts the rows of
    /// every dictionary at one snapshot, which must agree. `watch` is told now and then the part that is done, and
    /// says whether to go on.
    ///
    /// An index that is found damaged, or to have not one entry for each row, becomes unusable (`damaged_keys`), and the check goes on.
    ///
    /// # Errors
    /// The first thing found wrong; [`Error::Killed`] if `watch` said so.
    pub fn check_table(&self, table: &Table, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        self.check_own(table)?;
        // Reading blocks, then counting rows: each takes about half of the time.
        let share = 0.5 / table.all_dicts().count() as f64;
        let mut before = 0.0;
        let mut found = None;
        for (index, dict) in table.all_dicts().enumerate() {
            let is_whole = match dict.check_usable() {
                Ok(()) => {
                    let mut verify = || dict.tree.verify_while(&mut |part| watch(before + share * part));
                    // It may be the reading that was bad.
                    let checked =
                        verify().or_else(|error| if error.is_damage() { verify() } else { Err(error) });
                    checked.map_err(Error::from)
                }
                Err(error) => Err(error),
            };
            match is_whole {
                Ok(true) => {}
                Ok(false) => return Err(Error::Killed),
                Err(error) if index < table.dicts().len() => {
                    self.note_damage(index, dict, error, &mut found)?
                }
                // `check_large` tells of it.
                Err(Error::KeyUnusable { .. }) => {}
                Err(error) => return Err(error),
            }
            before += share;
        }
        self.check_counts(table, share, watch, &mut found)?;
        if let Some(lost) = self.check_large(table, &mut |_| watch(1.0 - share))? {
            found.get_or_insert(lost);
        }
        found.map_or(Ok(()), Err)
    }

    /// The second half of a check: every index has an entry for each row, and a clustering index the same rows.
    fn check_counts(
        &self,
        table: &Table,
        share: f64,
        watch: &mut dyn FnMut(f64) -> bool,
        found: &mut Option<Error>,
    ) -> Result<()> {
        let mut before = 0.5;
        let shapes = table.layouts.as_ref().map(|layouts| Shapes::of(layouts));
        let snapshot = self.snapshots.take();
        let mut rows = None;
        let has_clustering = (1..table.dicts().len()).any(|index| !table.clustering(index).is_none());
        let mut sum = None;
        for (index, dict) in table.dicts().iter().enumerate().filter(|(_, dict)| !dict.is_unusable()) {
            let about = rows.unwrap_or_else(|| dict.tree.rows_estimate()).max(1);
            let mut look = |count| watch(before + share * (count as f64 / about as f64).min(1.0));
            let rows_in_it = match index {
                0 if has_clustering => Clustering::Row,
                _ => table.clustering(index),
            };
            let counted = match (rows_in_it, &shapes) {
                (Clustering::None, _) | (_, None) => {
                    count_rows(dict, snapshot.seqno(), &mut look).map(|count| (count, None))
                }
                (of, Some(shapes)) => sum_rows(dict, of, shapes, snapshot.seqno(), &mut look),
            };
            let checked = counted.and_then(|(count, sum_here)| {
                let expected = *rows.get_or_insert(count);
                let path = dict.file.path();
                if count != expected {
                    let expected = format!("{expected}, one for each row");
                    return Err(pando_base::Error::corruption(
                        &path,
                        0,
                        "entries of an index",
                        expected,
                        count,
                    )
                    .into());
                }
                if sum_here.is_some() && *sum.get_or_insert(sum_here) != sum_here {
                    let what = "rows in a clustering index";
                    return Err(pando_base::Error::corruption(
                        &path,
                        0,
                        what,
                        "those of the table",
                        "others",
                    )
                    .into());
                }
                Ok(())
            });
            if let Err(error) = checked {
                self.note_damage(index, dict, error, found)?;
            }
            before += share;
        }
        Ok(())
    }

    /// The large values are those that rows refer to, and some may be lost: that is the answer.
    fn check_large(&self, table: &Table, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Option<Error>> {
        let (Some(large), Some(layouts)) = (&table.large, table.layouts()) else { return Ok(None) };
        if !large.may_be_some() {
            return Ok(None);
        }
        let snapshot = self.snapshots.take();
        let (mut wanted, mut there) = (References::default(), References::default());
        let (mut found, mut lost, mut rows_lost) = (Vec::new(), 0u64, 0u64);
        each_row(table.rows(), snapshot.seqno(), go_on, |_, row| {
            references_of(layouts, row, &mut found).map_err(|e| e.at(&table.rows().file.path(), 0))?;
            let lost_before = lost;
            for reference in found.drain(..) {
                if large.is_lost(reference) {
                    lost += 1;
                    continue;
                }
                wanted.add(reference);
                if large.has_leftovers() {
                    check_value(&large.dict, reference, snapshot.seqno())?;
                }
            }
            rows_lost += u64::from(lost > lost_before);
            Ok(())
        })?;
        let is_lost = lost > 0 || large.dict.is_unusable();
        let lost =
            is_lost.then(|| large.lost_error(&format!("{lost} large values of {rows_lost} rows were")));
        // Where some may be left over, each has been looked for.
        if large.dict.is_unusable() || large.has_leftovers() {
            return Ok(lost);
        }
        each_row(&large.dict, snapshot.seqno(), go_on, |key, value| {
            there.add(Reference { id: id_of(&large.dict, key)?, length: value.len() as u64 });
            Ok(())
        })?;
        match wanted == there {
            true => Ok(lost),
            false => {
                let (wanted, there) = (wanted.to_string(), there.to_string());
                let path = large.dict.file.path();
                Err(pando_base::Error::corruption(&path, 0, "large values", wanted, there).into())
            }
        }
    }

    /// What a check finds in dictionary `index` of a table. Errors: it is not that of an index alone.
    fn note_damage(&self, index: usize, dict: &Dict, error: Error, found: &mut Option<Error>) -> Result<()> {
        match &error {
            Error::Engine(damage) if index > 0 && damage.is_damage() => self.mark_unusable(dict, damage)?,
            Error::KeyUnusable { .. } => {}
            _ => return Err(error),
        }
        found.get_or_insert(error);
        Ok(())
    }
}

/// Looks for one large value. Errors: those of reading; it is not there, or has another length.
fn check_value(dict: &Dict, reference: Reference, seqno: Seqno) -> pando_base::Result<()> {
    let value = dict.tree.get(&reference.key(), seqno)?;
    let length = value.map(|value| value.len() as u64);
    if length == Some(reference.length) {
        return Ok(());
    }
    let what = format!("large value {}", reference.id);
    let found = length.map_or_else(|| "none".into(), |length| format!("{length} bytes"));
    let expected = format!("{} bytes", reference.length);
    Err(pando_base::Error::corruption(&dict.file.path(), 0, what, expected, found))
}

/// Some references, whose order does not count.
#[derive(Debug, Default, PartialEq, Eq)]
struct References {
    count: u64,
    bytes: u64,
    sum: u64,
}

impl References {
    fn add(&mut self, reference: Reference) {
        self.count += 1;
        self.bytes = self.bytes.wrapping_add(reference.length);
        self.sum = self.sum.wrapping_add(xxhash_rust::xxh3::xxh3_64(&reference.encode()));
    }
}

impl std::fmt::Display for References {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes, sum {:016x}", self.count, self.bytes, self.sum)
    }
}

/// Gives the entries of a dictionary that a snapshot sees. Errors: those of reading and of `each`; it was not to go on.
fn each_row(
    dict: &Dict,
    seqno: Seqno,
    go_on: &mut dyn FnMut(u64) -> bool,
    mut each: impl FnMut(&[u8], &[u8]) -> pando_base::Result<()>,
) -> Result<()> {
    let mut count = 0u64;
    let mut cursor = dict.tree.cursor(seqno);
    cursor.seek_first()?;
    while cursor.valid() {
        if count % ROWS_BETWEEN_LOOKS == 0 && !go_on(count) {
            return Err(Error::Killed);
        }
        each(cursor.key(), cursor.value())?;
        count += 1;
        cursor.next()?;
    }
    Ok(())
}

/// Rows that a snapshot sees in a dictionary of rows, or a clustering index: how many, and a sum over their bytes in the current
/// layout, in which their order does not count. Errors: those of reading; an entry without a row.
fn sum_rows(
    dict: &Dict,
    of: Clustering,
    shapes: &Shapes,
    seqno: Seqno,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(u64, Option<u64>)> {
    let (mut count, mut sum, mut scratch) = (0u64, 0u64, Vec::new());
    let mut cursor = dict.tree.cursor(seqno);
    cursor.seek_first()?;
    while cursor.valid() {
        if count % ROWS_BETWEEN_LOOKS == 0 && !go_on(count) {
            return Err(Error::Killed);
        }
        let Some((row, _)) = of.split(cursor.value()) else {
            let path = dict.file.path();
            let what = "an entry of a clustering index";
            return Err(pando_base::Error::corruption(&path, 0, what, "a row", "none").into());
        };
        let row = shapes.upgrade(row, &mut scratch).unwrap_or(row);
        sum = sum.wrapping_add(xxhash_rust::xxh3::xxh3_64(row));
        count += 1;
        cursor.next()?;
    }
    Ok((count, Some(sum)))
}

/// Rows of a dictionary that a snapshot sees, counted one by one.
fn count_rows(dict: &Dict, seqno: Seqno, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
    let mut count = 0;
    each_row(dict, seqno, go_on, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}
