//! Closing tables that nobody uses, so that the number of open files stays within a limit however many
//! tables there are.
//!
//! A table object that only the map of open tables holds may go, and its dictionaries with it if only
//! the map of dictionaries and the table hold them, and nothing of theirs is in memory alone: no
//! commit that the log would have to bring back, no counter. Whoever has uncommitted writes, a cursor
//! or a job holds one of them. Dictionaries without a table object (made by CREATE or opened by
//! recovery) go alike. The ticker makes idle ones clean while there are too many; whoever opens or
//! creates one more closes what is clean, and if the ticker cannot keep up, makes some clean itself.
//! Looking for idle ones goes through all that are open, so openers take turns: the server's own cache may
//! use more tables than the limit allows, and then each look closes few.
//!
//! Lock order: the DDL mutex keeps tables from being opened, then the map of tables, then that of
//! dictionaries: with both held nobody can get at an object that nobody else has.

use std::collections::HashSet;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

use pando_base::DictId;

use crate::catalog::descriptor::CATALOG;
use crate::db::Db;
use crate::table::{Dict, Table};

/// Idle tables made clean by one who opens a table when there are far too many: more than that one adds.
const CLEANED_BY_OPENER: usize = 4;

/// An opener looks again after the limit's part of dictionaries more.
const PART_BETWEEN_LOOKS: usize = 16;

/// What may be closed if nobody turns out to use it.
enum Idle {
    Table(Arc<Table>),
    /// One that no table object has.
    Dict(Arc<Dict>),
}

impl Idle {
    fn dicts(&self) -> Vec<&Arc<Dict>> {
        match self {
            Idle::Table(table) => table.all_dicts().collect(),
            Idle::Dict(dict) => vec![dict],
        }
    }
}

impl Db {
    /// Files open beyond the limit.
    fn excess_files(&self) -> usize {
        self.dicts.read().len().saturating_sub(self.files_open_max)
    }

    /// While more files are open than the limit: checkpoints idle dictionaries, and closes them.
    pub(crate) fn close_idle_tables(&self) {
        let excess = self.excess_files();
        if excess == 0 {
            return;
        }
        for idle in self.idle_tables().take(excess) {
            self.clean(&idle);
            if self.background.stopping() {
                return;
            }
        }
        // Whoever creates or opens a table now closes some, too.
        if let Some(_one_ddl) = self.ddl.try_lock() {
            self.close_clean_tables();
        }
    }

    /// For who has opened or created a table, and has the DDL mutex: when it is time to look, closes idle tables that have
    /// nothing to write.
    pub(crate) fn make_room_for_tables(&self) {
        let open = self.dicts.read().len();
        // Tables were dropped since: no reason to wait until as many are open again.
        let after = self.idle_looked_at.fetch_min(open, Ordering::Relaxed).min(open);
        if open > self.files_open_max && open > after + self.files_open_max / PART_BETWEEN_LOOKS {
            self.close_clean_tables();
        }
    }

    /// While more files are open than the limit: closes idle ones that have nothing to write, and some more, for those who
    /// open the next. The caller has the DDL mutex.
    fn close_clean_tables(&self) {
        if self.excess_files() == 0 {
            return;
        }
        let wanted = self.files_open_max - self.files_open_max / PART_BETWEEN_LOOKS;
        for idle in self.idle_tables() {
            self.close_if_clean(idle);
            if self.dicts.read().len() <= wanted {
                break;
            }
        }
        let mut looked_at = usize::MAX;
        if self.excess_files() > self.files_open_max {
            for idle in self.idle_tables().take(CLEANED_BY_OPENER) {
                self.clean(&idle);
                self.close_if_clean(idle);
                // Far too many, and they are not in use: each opener helps.
                looked_at = 0;
            }
        }
        self.idle_looked_at.store(looked_at.min(self.dicts.read().len()), Ordering::Relaxed);
    }

    fn clean(&self, idle: &Idle) {
        for dict in idle.dicts() {
            self.checkpoint_or_note(dict);
            self.secure_or_note(dict);
        }
    }

    /// Tables and dictionaries that seem idle. Each is taken from its map when it is its turn: others may
    /// close the rest meanwhile, and what left the map must not be touched any more.
    fn idle_tables(&self) -> impl Iterator<Item = Idle> + '_ {
        let tables = self.tables.read();
        let owned: HashSet<DictId> =
            tables.values().flat_map(|table| table.all_dicts().map(|dict| dict.id)).collect();
        let unused = tables.iter().filter(|(_, table)| Arc::strong_count(table) == 1);
        let unused: Vec<String> = unused.map(|(path, _)| path.clone()).collect();
        let dicts = self.dicts.read();
        let alone = dicts.keys().filter(|id| **id != CATALOG && !owned.contains(id));
        let alone: Vec<DictId> = alone.copied().collect();
        let table = |path: String| self.tables.read().get(&path).cloned();
        let unused = unused.into_iter().filter_map(move |path| table(path).map(Idle::Table));
        unused.chain(alone.into_iter().filter_map(|id| self.dict(id).map(Idle::Dict)))
    }

    fn close_if_clean(&self, idle: Idle) {
        // The checkpoint of a clean dictionary writes the counter, if that was raised, or nothing.
        if !idle.dicts().iter().all(|dict| is_clean(dict) && self.checkpoint_dict(dict).is_ok()) {
            return;
        }
        let mut tables = self.tables.write();
        let mut dicts = self.dicts.write();
        // Each is held by its map, and by `idle`. The table first: who has it reaches the dictionaries, and may use one and let go of both
        // between two looks.
        if let Idle::Table(table) = &idle {
            if Arc::strong_count(table) > 2 {
                return;
            }
        }
        let is_unused = |dict: &Arc<Dict>| {
            let is_alone = Arc::strong_count(dict) == 2 && Arc::strong_count(&dict.tree) == 1;
            // What others did with it before they let go is seen.
            fence(Ordering::Acquire);
            // The counter, too: it may have been raised by one who was rolled back since the checkpoint.
            let is_written = dict.is_unusable() || (is_clean(dict) && !dict.is_dirty());
            is_alone && is_written && !self.is_kept_from_snapshots(dict)
        };
        if !idle.dicts().into_iter().all(is_unused) {
            return;
        }
        if let Idle::Table(table) = &idle {
            tables.remove(&table.path());
        }
        for dict in idle.dicts() {
            dicts.remove(&dict.id);
        }
    }
}

impl Db {
    /// Whether some snapshot may not read it: only the object in memory knows.
    fn is_kept_from_snapshots(&self, dict: &Dict) -> bool {
        if dict.is_interim.load(Ordering::Acquire) {
            return true;
        }
        let readable_from = dict.readable_from.load(Ordering::Acquire);
        readable_from > 0 && self.snapshots.live().first().is_some_and(|oldest| *oldest < readable_from)
    }
}

/// Whether the file has every commit, durably.
fn is_clean(dict: &Arc<Dict>) -> bool {
    if dict.is_unusable() {
        return true;
    }
    dict.dirty_since.load(Ordering::Acquire) == 0
        && dict.is_secure.load(Ordering::Acquire)
        && !dict.tree.is_dirty()
}
