//! Making the bases of new indexes: entries in any order, sorted and checked by the machinery of bulk loads
//! (`pando_load`), and put at the bottom of their trees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use pando_base::Error as EngineError;
use pando_load::{finish, Entries, Finished, Setting, Sorter};

use crate::ddl::indexes::IndexBuild;
use crate::error::{Error, Result};

/// Bytes of entries that are handed to a sorter at once.
const BATCH_BYTES: usize = 256 << 10;

/// Entries of the bases that are being collected.
#[derive(Debug)]
pub(crate) struct Bases {
    setting: Setting,
    indexes: Vec<Base>,
    /// An entry was for an index that is not among them.
    is_astray: bool,
}

#[derive(Debug)]
struct Base {
    sorter: Arc<Sorter>,
    batch: Entries,
    batches: u64,
}

impl Drop for Bases {
    fn drop(&mut self) {
        self.setting.cancelled.store(true, Ordering::Release);
        self.indexes.iter().for_each(|base| base.sorter.give_up());
    }
}

impl Base {
    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            self.sorter.add(self.batches, std::mem::take(&mut self.batch));
            self.batches += 1;
        }
    }
}

impl IndexBuild {
    fn new_bases(&self) -> Bases {
        let setting = Setting {
            workers: self.db().load_workers(),
            memory: self.db().load_memory(),
            cancelled: Arc::new(AtomicBool::new(false)),
            stages: self.db().load_stages.clone(),
        };
        let share = self.indexes() as u64;
        let base = |index| Base {
            sorter: Sorter::new(self.tree(index), &setting, true, share),
            batch: Entries::default(),
            batches: 0,
        };
        let indexes = (0..self.indexes()).map(base).collect();
        Bases { setting, indexes, is_astray: false }
    }

    /// Takes an entry of the base of the `index`-th new index; in any order. If there are not so many, the end of the bases says so.
    pub fn add(&mut self, index: usize, key: &[u8], value: &[u8]) {
        if self.bases.is_none() {
            self.bases = Some(self.new_bases());
        }
        let Some(bases) = &mut self.bases else { return };
        let Some(base) = bases.indexes.get_mut(index) else {
            bases.is_astray = true;
            return;
        };
        base.batch.push(key, value);
        if base.batch.memory_bytes() >= BATCH_BYTES {
            base.hand_over();
        }
    }

    /// Before more entries are added: waits while those that nobody has sorted yet take all that they may. `goes_on` is asked now and
    /// then; false: it said so, or the build is bound to fail.
    pub fn wait_for_room(&mut self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let indexes = self.bases.iter().flat_map(|bases| &bases.indexes);
        indexes.map(|base| &base.sorter).all(|sorter| sorter.wait_for_room(goes_on))
    }

    /// All entries have been added: puts them at the bottom of the trees. `watch` is told the part that is
    /// done and answers whether to go on. Errors: [`Error::Duplicate`], killed, I/O, a mistake of the caller; the build can
    /// only be given up then.
    pub fn finish_bases(&mut self, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        let Some(mut bases) = self.bases.take() else { return self.end_bases() };
        if bases.is_astray {
            return Err(EngineError::argument("an entry was for an index that is not built").into());
        }
        bases.indexes.iter_mut().for_each(Base::hand_over);
        let sorters: Vec<Arc<Sorter>> = bases.indexes.iter().map(|base| base.sorter.clone()).collect();
        let cancelled = bases.setting.cancelled.clone();
        let mut look = |done| {
            if !watch(done) {
                cancelled.store(true, Ordering::Release);
            }
        };
        match finish(&sorters, &bases.setting, &mut look)? {
            Finished::Cancelled => Err(Error::Killed),
            Finished::Duplicate(index, found) => {
                self.note_duplicate(index, found.key, found.value);
                Err(Error::Duplicate { index, existing: found.existing })
            }
            Finished::Runs(runs) => {
                runs.iter().enumerate().for_each(|(index, runs)| self.set_base(index, runs));
                self.end_bases()
            }
        }
    }
}
