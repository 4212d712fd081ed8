//! What is left of a damaged table, for tools: its rows as far as they can be read, of the last durable checkpoint. Catalog and log
//! are looked at only for what the table consists of, if its own copy of that cannot be read.

use std::path::Path;
use std::sync::Arc;

use pando_base::{DictId, Error, Metrics, Result};
use pando_column::large::Reference;
use pando_column::layout::Layouts;
use pando_run::{BlockCache, RunContext};
use pando_storage::encryption::KeyRing;
use pando_storage::vfs::Vfs;
use pando_storage::{Superblock, TreeFile};
use pando_tree::{salvage, LostRange, Salvaged, SalvagedRow, Tree};

use crate::catalog::definition::unpacked;
use crate::catalog::descriptor::TableDescriptor;
use crate::reports::described::{describe_on, Described};
use crate::reports::one_file::{open_one, CACHE_BYTES};

/// A table whose file of rows may be damaged.
#[derive(Debug)]
pub struct Damaged {
    descriptor: TableDescriptor,
    cache: Arc<BlockCache>,
    /// Of the sound superblock that is used.
    file: Arc<TreeFile>,
    superblock: Superblock,
    large: Option<Result<Arc<Tree>>>,
    /// The newest checkpoint cannot be read, and this is the one before.
    is_older: bool,
    notes: Vec<String>,
}

/// Opens a table's directory, whatever is in it.
///
/// # Errors
/// Neither `status.pando` nor the catalog in `engine_dir` can be read; the file of rows is not there or has no sound superblock.
pub fn open_damaged(vfs: &Arc<dyn Vfs>, dir: &Path, engine_dir: &Path, keys: &KeyRing) -> Result<Damaged> {
    let Described { descriptor, note } = describe_on(vfs, dir, engine_dir, keys)?;
    let Some(rows) = descriptor.dictionaries.first() else {
        return Err(Error::NotFound { what: format!("the file of rows in {}", dir.display()) });
    };
    let mut notes = Vec::from_iter(note);
    let opened = TreeFile::open_damaged(vfs, &dir.join(&rows.file), DictId(rows.id), keys)?;
    let cache = BlockCache::new(CACHE_BYTES, Arc::default());
    let (mut chosen, mut is_older) = (None, false);
    for (file, superblock) in opened {
        if !is_root_sound(&file, &superblock) {
            let epoch = superblock.epoch;
            notes.push(format!("{}: checkpoint {epoch}: its root is damaged", file.path().display()));
            chosen = chosen.or(Some((file, superblock)));
            continue;
        }
        is_older = chosen.is_some();
        if is_older {
            let text = format!("checkpoint {} before it is read: all rows may be older", superblock.epoch);
            notes.push(format!("{}: {text}", file.path().display()));
        }
        chosen = Some((file, superblock));
        break;
    }
    let Some((file, superblock)) = chosen else {
        return Err(Error::NotFound { what: format!("a superblock of {}", dir.display()) });
    };
    let large = descriptor.large.as_ref().map(|large| {
        let path = dir.join(&large.file);
        open_one(vfs, &path, DictId(large.id), &cache, keys).map(|(_, tree)| tree)
    });
    if let Some(Err(error)) = &large {
        notes.push(format!("large values cannot be read: {error}"));
    }
    Ok(Damaged { descriptor, cache, file, superblock, large, is_older, notes })
}

fn is_root_sound(file: &TreeFile, superblock: &Superblock) -> bool {
    let Some(place) = superblock.root else { return true };
    let bytes = file.read(place);
    let node = pando_storage::BlockKind::Node;
    bytes.is_ok_and(|bytes| match file.open_block(node, place.offset, &bytes) {
        Ok(_) => true,
        Err(error) => !error.is_damage(),
    })
}

/// What a receiver of rows gives to end the salvage; it knows why.
pub fn stopped() -> Error {
    Error::Unsupported { what: "stopped".into() }
}

impl Damaged {
    /// The columns of its rows.
    pub fn layouts(&self) -> Option<&Layouts> {
        self.descriptor.layouts.as_ref()
    }

    /// How many dictionaries of rows and keys it has.
    pub fn dictionaries(&self) -> usize {
        self.descriptor.dictionaries.len()
    }

    /// The server's definition, if it is recorded with the table.
    ///
    /// # Errors
    /// What is recorded is none.
    pub fn image(&self) -> Result<Option<Vec<u8>>> {
        match &*self.descriptor.definition.image {
            "" => Ok(None),
            image => unpacked(image).map(Some),
        }
    }

    /// What was found when it was opened.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Gives all rows that can be read, in the order of keys.
    ///
    /// # Errors
    /// Those of `take`; a key of encryption is missing.
    pub fn salvage(&self, take: &mut dyn FnMut(SalvagedRow<'_>) -> Result<()>) -> Result<Salvaged> {
        let metrics = Arc::new(Metrics::default());
        let context = RunContext { file: self.file.clone(), cache: self.cache.clone(), metrics };
        let mut salvaged = salvage(&context, &self.superblock, take)?;
        if self.is_older {
            salvaged.older = salvaged.rows;
            let cause = "the newest checkpoint cannot be read".to_owned();
            salvaged.lost.push(LostRange { low: Vec::new(), high: None, is_bottom: true, cause });
        }
        Ok(salvaged)
    }

    /// A value that a row refers to.
    ///
    /// # Errors
    /// It is damaged, or not there.
    pub fn large_value(&self, reference: Reference) -> Result<Vec<u8>> {
        let missing = || Error::NotFound { what: format!("large value {}", reference.id) };
        let tree = self.large.as_ref().ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
        let value = tree.get(&reference.key(), pando_base::Seqno::MAX)?.ok_or_else(missing)?;
        if value.len() as u64 != reference.length {
            let what = format!("bytes of large value {}", reference.id);
            return Err(Error::corruption(&self.file.path(), 0, what, reference.length, value.len()));
        }
        Ok(value)
    }
}
