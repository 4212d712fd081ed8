//! Renames: of a table, of all partitions of one at once, and back.
//!
//! **All partitions at once.** The server renames the partitions of a table one after the other, and takes what it has done back if
//! one is refused. On a full disk that failed in its middle, both ways, and left the table between two names. So the first call
//! renames all, in one change of the catalog, and the later ones find it done ([`Db::rename_table_as`]): there is no
//! moment, and no crash, with partitions of a table under two names. If a directory cannot be moved, all come back.
//!
//! **The way back.** What follows in the statement may fail, and then the server renames back. Space for that is promised
//! by the log with the change itself, which is refused where both do not fit ([`pando_wal::Wal::append_with_way_back`]).
//! The promise ends when it is kept, or with the statement ([`Db::end_ways_back`]).
//!
//! **Halves.** Versions before this could leave such a table: [`Db::other_half`] finds where the rest of it is, and
//! [`Db::join_halves`] makes it one again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use pando_base::planted::{is_planted, Bug};
use pando_base::{DictId, Error, Result, Seqno};

use crate::catalog::definition::{is_interim_partition, is_partition, partition_of, table_of};
use crate::catalog::descriptor::{normalize, table_dir, Intent, TableDescriptor};
use crate::catalog::foreign_key::NewName;
use crate::catalog::server_files::names_in;
use crate::catalog::{Change, Space};
use crate::db::options::LogLevel;
use crate::db::way_back::WayBack;
use crate::db::Db;
use crate::ddl::tables::{check_path, create_dir};
use crate::runtime::files::{sync_parent, STATUS_FILE};

/// One table gets another name.
struct Move {
    old: TableDescriptor,
    new: TableDescriptor,
}

impl Db {
    /// Renames a table, also into another directory, which is made if it is missing. Errors: no such table, the new name is taken, or it
    /// is none that a table can have.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.rename_table_as(from, to, None, None, None)
    }

    /// The same; generated names of the table's foreign keys follow its name. `copied`: the old name of the table of which this
    /// one is the copy, if the copy gets another one. `statement`: who may rename back until [`Db::end_ways_back`].
    ///
    /// Of a partition that gets the same name in another table all partitions of its table are renamed, and it is no error if
    /// they have been before.
    pub fn rename_table_as(
        &self,
        from: &str,
        to: &str,
        name: Option<NewName<'_>>,
        copied: Option<&str>,
        statement: Option<u64>,
    ) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let (from, to) = (normalize(from), normalize(to));
        if let (Some((from_table, partition)), Some((to_table, new_partition))) =
            (table_of(&from), table_of(&to))
        {
            if partition == new_partition && from_table != to_table && !is_interim_partition(partition) {
                return self.rename_partitions(from_table, to_table, partition, statement);
            }
        }
        let old =
            self.catalog.table(&from).ok_or_else(|| Error::NotFound { what: format!("table {from}") })?;
        self.prepared.check_unused(&old)?;
        check_path(&to, old.temporary)?;
        self.claim_name(&to)?;
        let mut new = TableDescriptor { path: to.clone(), ..old.clone() };
        if is_partition(&from) != is_partition(&to) {
            // EXCHANGE PARTITION and the like: the image is that of the table it comes from.
            new.definition.forget_image();
        }
        if partition_of(&from) != partition_of(&to) {
            // Other rows belong there, and which is not known here.
            new.definition.partition.clear();
        }
        let copied = copied.map(normalize);
        let children = self.follow_name(&mut new, &from, name, copied.as_deref());
        self.check_names(&new, Some(&old), copied.as_deref())?;
        self.carry_out(&from, &to, vec![Move { old, new }], children, statement)
    }

    /// All partitions of a table, but those that an ALTER TABLE was making or removing.
    fn rename_partitions(&self, from: &str, to: &str, asked: &str, statement: Option<u64>) -> Result<()> {
        let names = self.partition_names(from);
        if !names.contains(asked) {
            let renamed = format!("{to}#P#{asked}");
            if names.is_empty() && self.table_exists(&renamed) {
                return Ok(());
            }
            return Err(Error::NotFound { what: format!("table {from}#P#{asked}") });
        }
        self.move_partitions(from, to, statement)
    }

    fn move_partitions(&self, from: &str, to: &str, statement: Option<u64>) -> Result<()> {
        let mut moves = Vec::new();
        for old in self.partitions_of(from) {
            let (_, name) = table_of(&old.path).unwrap_or_default();
            let path = format!("{to}#P#{name}");
            self.prepared.check_unused(&old)?;
            self.claim_name(&path)?;
            // Partitions have no foreign keys, and nobody refers to one.
            let new = TableDescriptor { path, ..old.clone() };
            moves.push(Move { old, new });
        }
        self.carry_out(from, to, moves, Vec::new(), statement)
    }

    /// In the order of their names.
    fn partitions_of(&self, table: &str) -> Vec<TableDescriptor> {
        let is_its = |t: &TableDescriptor| {
            table_of(&t.path).is_some_and(|(of, name)| of == table && !is_interim_partition(name))
        };
        let mut found = self.catalog.tables(is_its);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn partition_names(&self, table: &str) -> BTreeSet<String> {
        let found = self.partitions_of(table);
        found.iter().filter_map(|t| Some(table_of(&t.path)?.1.to_owned())).collect()
    }

    /// Renames one table, or all partitions of one. `children`: of the foreign keys that follow.
    fn carry_out(
        &self,
        from: &str,
        to: &str,
        moves: Vec<Move>,
        children: Vec<TableDescriptor>,
        statement: Option<u64>,
    ) -> Result<()> {
        self.make_room_for_names(&moves)?;
        let old_children: Vec<TableDescriptor> =
            children.iter().filter_map(|child| self.catalog.table(&child.path)).collect();
        let put = moves.iter().map(|it| it.new.clone()).chain(children).collect();
        let mut change = Change { put, ..Change::default() };
        change.intend.extend(moves.iter().filter_map(|it| self.intent_gone(&it.old)));
        let both: Vec<_> = moves.iter().map(|it| (&it.old, it.new.path.as_str())).collect();
        self.follow_server_files(&both, &mut change);
        let gone = change.intend.clone();
        let undo_files = self.undo_of_files(&change);
        for Move { old, new } in &moves {
            let intent = Intent::Rename { from: old.path.clone(), to: new.path.clone() };
            change.intend.push((old.id, intent));
        }
        let way_back = self.take_way_back(statement, from, to);
        change.space = match (&way_back, statement) {
            (Some(way), _) => Space::WayBack(way.bytes),
            (None, Some(_)) => Space::WithWayBack,
            (None, None) => Space::Reserve,
        };
        let changed = self.change_catalog_as(change).inspect_err(|_| {
            if let Some(way) = &way_back {
                self.wal.end_way_back(way.bytes);
            }
        })?;
        let promised = changed.way_back_bytes;
        if let Err(error) = self.move_directories(&moves) {
            // The moves back are not on the disk yet: until they are, a start has to repeat them.
            let back = |it: &Move| {
                (it.old.id, Intent::Rename { from: it.new.path.clone(), to: it.old.path.clone() })
            };
            let intend = moves.iter().map(back).collect();
            let fulfil = gone.into_iter().map(|(id, _)| id).collect();
            let put = moves.iter().map(|it| it.old.clone()).chain(old_children).collect();
            let space = if promised > 0 { Space::WayBack(promised) } else { Space::Reserve };
            self.change_catalog(Change { put, intend, fulfil, space, ..undo_files })?;
            self.settle_names(&moves);
            return Err(error);
        }
        if let Some(statement) = statement.filter(|_| promised > 0) {
            let (from, to) = (to.to_owned(), from.to_owned());
            self.ways_back.lock().push(WayBack { statement, from, to, bytes: promised });
        }
        self.note_gone(gone);
        // From here on the tables have their new names, whatever fails.
        for Move { old, new } in &moves {
            self.follow_rename(&old.path, new, &table_dir(&self.base_dir, &new.path), changed.seqno);
        }
        self.settle_names(&moves);
        self.write_names(&moves);
        Ok(())
    }

    /// Makes the directories above the new names that are missing, as a table is created with them. Before the catalog has the names:
    /// a start that repeats the moves finds them.
    fn make_room_for_names(&self, moves: &[Move]) -> Result<()> {
        let Some(first) = moves.first() else { return Ok(()) };
        // All move to the same one.
        match table_dir(&self.base_dir, &first.new.path).parent() {
            Some(dir) if !self.vfs.exists(dir)? => create_dir(&*self.vfs, dir),
            _ => Ok(()),
        }
    }

    /// The promise of this rename, if it takes back what the same statement has done.
    fn take_way_back(&self, statement: Option<u64>, from: &str, to: &str) -> Option<WayBack> {
        let mut ways = self.ways_back.lock();
        let at = ways
            .iter()
            .position(|way| Some(way.statement) == statement && way.from == from && way.to == to)?;
        Some(ways.remove(at))
    }

    /// The statement takes no rename back any more.
    pub fn end_ways_back(&self, statement: u64) {
        let ended: Vec<WayBack> = {
            let mut ways = self.ways_back.lock();
            let (ended, others) =
                std::mem::take(&mut *ways).into_iter().partition(|way| way.statement == statement);
            *ways = others;
            ended
        };
        ended.iter().for_each(|way| self.wal.end_way_back(way.bytes));
    }

    /// All of them, or none: then an error says why.
    fn move_directories(&self, moves: &[Move]) -> Result<()> {
        for (done, Move { old, new }) in moves.iter().enumerate() {
            let (old_dir, dir) = (table_dir(&self.base_dir, &old.path), table_dir(&self.base_dir, &new.path));
            let Err(error) = self.vfs.rename(&old_dir, &dir) else { continue };
            for Move { old, new } in moves.get(..done).unwrap_or_default() {
                let (old_dir, dir) =
                    (table_dir(&self.base_dir, &old.path), table_dir(&self.base_dir, &new.path));
                if let Err(error) = self.vfs.rename(&dir, &old_dir) {
                    let text = format!("{} has to be moved back by hand: {error}", dir.display());
                    self.log(LogLevel::Error, &text);
                }
            }
            return Err(error);
        }
        Ok(())
    }

    /// Makes the moves durable. If that fails, the next start repeats them.
    fn settle_names(&self, moves: &[Move]) {
        let Some(first) = moves.first() else { return };
        // All are in the same two directories.
        let (old_dir, dir) =
            (table_dir(&self.base_dir, &first.old.path), table_dir(&self.base_dir, &first.new.path));
        match self.sync_names(&dir, &old_dir) {
            Ok(()) => self.fulfil_all(moves.iter().map(|it| it.old.id).collect()),
            Err(error) => {
                let text = format!("the move to {} may have to be repeated: {error}", dir.display());
                self.log(LogLevel::Warning, &text);
            }
        }
    }

    /// Tells people and tools the new names.
    fn write_names(&self, moves: &[Move]) {
        for Move { new, .. } in moves {
            let dir = table_dir(&self.base_dir, &new.path);
            if let Err(error) = self.write_status(&dir, new) {
                let text = format!("{} has the old name: {error}", dir.join(STATUS_FILE).display());
                self.log(LogLevel::Warning, &text);
            }
        }
    }

    /// Makes a move from one directory to another durable.
    fn sync_names(&self, new: &Path, old: &Path) -> Result<()> {
        if is_planted(Bug::RenameNotSynced) {
            return Ok(());
        }
        sync_parent(&*self.vfs, new)?;
        sync_parent(&*self.vfs, old)
    }

    /// Tells the open table and its files their new place.
    fn follow_rename(&self, from: &str, new: &TableDescriptor, dir: &Path, seqno: Seqno) {
        for dictionary in new.all_dictionaries() {
            if let Some(dict) = self.dict(DictId(dictionary.id)) {
                dict.file.set_path(&dir.join(&dictionary.file));
                if dict.is_interim.swap(false, Ordering::AcqRel) {
                    dict.readable_from.store(seqno, Ordering::Release);
                }
            }
        }
        let mut tables = self.tables.write();
        if let Some(table) = tables.remove(from) {
            *table.shared.path.lock() = new.path.clone();
            tables.insert(new.path.clone(), table);
        }
    }

    /// Of a partitioned table whose `NAME.par` has these bytes: another name that has just the partitions which this one lacks,
    /// of the same columns and keys, and is no table by itself. None: this one is whole, or there is no such name, or several.
    pub fn other_half(&self, path: &str, partitions: &[u8]) -> Option<String> {
        let path = normalize(path);
        let all: BTreeSet<String> = names_in(partitions)?.into_iter().map(str::to_owned).collect();
        let own = self.partition_names(&path);
        if own.is_empty() || own == all || !own.is_subset(&all) {
            return None;
        }
        let first = self.partitions_of(&path).into_iter().next()?;
        let missing: BTreeSet<String> = all.difference(&own).cloned().collect();
        let is_candidate = |name: &String| {
            *name != path
                && self.partition_names(name) == missing
                && self.partitions_of(name).iter().all(|it| it.definition.has_shape_of(&first.definition))
                && !self.are_own_files(name)
        };
        let name_of = |t: &TableDescriptor| Some(table_of(&t.path)?.0.to_owned());
        let names: BTreeSet<String> = self.catalog.of_tables(name_of).into_iter().collect();
        let mut found = names.into_iter().filter(is_candidate);
        let half = found.next()?;
        found.next().is_none().then_some(half)
    }

    /// Whether the recorded files of a partitioned table name just what it has.
    fn are_own_files(&self, table: &str) -> bool {
        let files = self.server_files(table);
        files
            .and_then(|files| files.partitions().ok())
            .is_some_and(|bytes| self.server_files_fit(table, &bytes))
    }

    /// Renames the partitions of [`Db::other_half`] to where the others are. The caller knows that nobody uses them. Errors: those
    /// of a rename.
    pub fn join_halves(&self, path: &str, half: &str) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let (path, half) = (normalize(path), normalize(half));
        self.move_partitions(&half, &path, None)?;
        self.log(
            LogLevel::Warning,
            &format!("table {path}: some of its partitions had the name {half}, as a RENAME TABLE had left them; now all are its own again"),
        );
        Ok(())
    }
}
