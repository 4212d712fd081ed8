//! The cache after a start: what it held is written down now and then and at the end, and read again in the background.
//!
//! One thread does both. It reads as a query would, one block or a few side by side at a time, and stops where the cache has no room:
//! what is asked for meanwhile is not pushed out by what was asked for before the stop.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pando_base::{DictId, Result};
use pando_run::CachedBlock;
use pando_storage::vfs::OpenMode;

use crate::db::cached_blocks::{decode, encode, Blocks};
use crate::db::options::LogLevel;
use crate::db::scheduler::{Background, TICK};
use crate::db::Db;

/// How often the list is written.
const PERIOD_MICROS: u64 = 300_000_000;
/// How often the log is told how far the reading is.
const PROGRESS_MICROS: u64 = 10_000_000;

/// The thread.
pub(super) fn keep_cache(db: &Weak<Db>, background: &Background) {
    let Some(now) = db.upgrade().map(|db| {
        db.load_cache();
        db.vfs.now_micros()
    }) else {
        return;
    };
    let mut written = now;
    loop {
        std::thread::park_timeout(TICK);
        if background.stopping() {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        let now = db.vfs.now_micros();
        if now.saturating_sub(written) >= PERIOD_MICROS {
            db.keep_cache_list();
            written = now;
        }
    }
}

/// How far the reading is.
struct Progress {
    total: u64,
    begun_micros: u64,
    told_micros: u64,
}

impl Db {
    /// Whether the list of what the cache holds is written from now on.
    pub fn set_cache_kept(&self, is_kept: bool) {
        self.cache_list.is_kept.store(is_kept, Ordering::Relaxed);
    }

    /// Writes the list, if it is to be kept and the cache is what it would be. A failure is a line in the log.
    pub(crate) fn keep_cache_list(&self) {
        let list = &self.cache_list;
        if !list.is_kept.load(Ordering::Relaxed)
            || list.is_loading.load(Ordering::Acquire)
            || self.despite_damage
        {
            return;
        }
        if let Err(error) = self.write_cache_list() {
            self.log(LogLevel::Warning, &format!("the list of cached blocks was not written: {error}"));
        }
    }

    fn write_cache_list(&self) -> Result<()> {
        let list = &self.cache_list;
        let bytes = encode(&self.cached_blocks())
            .map_err(|error| pando_base::Error::io("compress", &list.new_path, 0, error))?;
        let file = self.vfs.open(&list.new_path, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(&bytes, 0)?;
        // Half of a new list would be less than the old one.
        file.sync()?;
        self.vfs.rename(&list.new_path, &list.path)
    }

    /// What the cache holds of each open dictionary.
    fn cached_blocks(&self) -> Blocks {
        let dicts = self.open_dicts();
        let mut of_file: std::collections::HashMap<u64, DictId> =
            dicts.iter().map(|dict| (dict.tree.file_instance(), dict.id)).collect();
        of_file.remove(&self.catalog.dict.tree.file_instance());
        let mut blocks = Blocks::new();
        for (instance, block) in self.cache.contents() {
            if let Some(id) = of_file.get(&instance) {
                blocks.entry(*id).or_default().push(block);
            }
        }
        blocks.values_mut().for_each(|blocks| blocks.sort_unstable());
        blocks
    }

    /// Brings back what the list names, as far as there is room. Whatever cannot be read is passed over: who needs it gets the error.
    pub fn load_cache(&self) {
        let list = &self.cache_list;
        if !list.is_loading.load(Ordering::Acquire) {
            return;
        }
        let blocks = self.read_cache_list();
        let now = self.vfs.now_micros();
        let total = blocks.values().map(|blocks| blocks.len() as u64).sum();
        let mut progress = Progress { total, begun_micros: now, told_micros: now };
        self.metrics.cache_load_blocks.set(total);
        for (id, blocks) in &blocks {
            // No table is opened for nothing.
            if !self.cache.has_room() {
                break;
            }
            self.load_blocks(*id, blocks, &mut progress);
            if self.background.stopping() {
                // The list of before says more than the cache does.
                return;
            }
        }
        list.is_loading.store(false, Ordering::Release);
        if total > 0 {
            let seconds = Duration::from_micros(self.vfs.now_micros().saturating_sub(progress.begun_micros))
                .as_secs_f64();
            let loaded = self.metrics.cache_loaded_blocks.get();
            let line = format!(
                "the cache has {loaded} of the {total} blocks again that it had before the start; this took {seconds:.1} s"
            );
            self.log(LogLevel::Note, &line);
        }
    }

    fn read_cache_list(&self) -> Blocks {
        let path = &self.cache_list.path;
        let read = || -> Result<Option<Vec<u8>>> {
            if !self.vfs.exists(path)? {
                return Ok(None);
            }
            let file = self.vfs.open(path, OpenMode::Existing)?;
            let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(Some(bytes))
        };
        let why = match read() {
            Ok(None) => return Blocks::new(),
            Ok(Some(bytes)) => match decode(&bytes) {
                Some(blocks) => return blocks,
                None => "it is damaged".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        self.log(LogLevel::Warning, &format!("the list of cached blocks cannot be used: {why}"));
        Blocks::new()
    }

    fn load_blocks(&self, id: DictId, blocks: &[CachedBlock], progress: &mut Progress) {
        let has_it = |table: &crate::catalog::descriptor::TableDescriptor| {
            table.all_dictionaries().any(|dictionary| dictionary.id == id.0)
        };
        let Some(descriptor) = self.catalog.tables(has_it).pop() else { return };
        let Ok(table) = self.open_table(&descriptor.path) else { return };
        let Some(dict) = table.all_dicts().find(|dict| dict.id == id && !dict.is_unusable()) else { return };
        let go_on = || self.cache.has_room() && !self.background.stopping() && !dict.is_dropped();
        for some in blocks.chunks(1024) {
            if !go_on() {
                return;
            }
            let Ok(loaded) = dict.tree.warm(some, table.layouts().map(Arc::as_ref), &go_on) else { return };
            self.metrics.cache_loaded_blocks.add(loaded);
            self.tell_progress(progress);
        }
    }

    fn tell_progress(&self, progress: &mut Progress) {
        let now = self.vfs.now_micros();
        if now.saturating_sub(progress.told_micros) >= PROGRESS_MICROS {
            progress.told_micros = now;
            let (loaded, total) = (self.metrics.cache_loaded_blocks.get(), progress.total);
            self.log(LogLevel::Note, &format!("the cache has {loaded} of {total} blocks again"));
        }
    }
}
