//! Making the bases of new indexes: entries in any order, sorted, checked, and put at the bottom of their trees.

use crate::error::{Error, Result};
use crate::indexes::IndexBuild;

/// Entries of the bases that are being collected, for each new index.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    entries: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl IndexBuild {
    /// Takes an entry of the base of the `index`-th new index; in any order.
    pub fn add(&mut self, index: usize, key: &[u8], value: &[u8]) {
        let bases = &mut self.bases.entries;
        if bases.len() <= index {
            bases.resize_with(index + 1, Vec::new);
        }
        bases[index].push((key.to_vec(), value.to_vec()));
    }

    /// All entries have been added: puts them at the bottom of the trees. `watch` is told the part that is
    /// done and answers whether to go on. Errors: [`Error::Duplicate`], killed, I/O.
    pub fn finish_bases(&mut self, watch: &mut dyn FnMut(f64) -> bool) -> Result<()> {
        let mut bases = std::mem::take(&mut self.bases.entries);
        bases.resize_with(self.indexes(), Vec::new);
        for (index, mut entries) in bases.into_iter().enumerate() {
            entries.sort();
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                self.note_duplicate(index, pair[1].0.clone(), pair[1].1.clone());
                return Err(Error::Duplicate { index, existing: pair[0].1.clone() });
            }
            if !watch(0.0) {
                return Err(Error::Killed);
            }
            self.set_base_of(index, entries.iter().map(|(key, value)| (&key[..], &value[..])))?;
        }
        self.end_bases()
    }
}
