//! Which dictionaries there are, and what their trees look like.

use pando_base::DictId;
use pando_tree::TreeStats;

use crate::catalog::descriptor::table_dir;
use crate::db::Db;
use crate::error::Result;

/// A dictionary of a table.
#[derive(Clone, Debug)]
pub struct DictionaryRow {
    /// `database/table`.
    pub table: String,
    /// "main" for the rows, or the index's name.
    pub name: String,
    /// Its id.
    pub id: u64,
    /// Its file, below the directory of the database or absolute.
    pub file: String,
    /// An index whose entries hold the rows.
    pub is_clustering: bool,
    /// Its figures, if it is open.
    pub figures: Option<DictionaryFigures>,
}

/// What an open dictionary consists of.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryFigures {
    /// Of the tree.
    pub tree: TreeStats,
    /// Bytes of its file that are free.
    pub free_bytes: u64,
    /// Bytes that the file takes on disk.
    pub file_bytes: u64,
}

impl Db {
    /// All dictionaries of all tables, in the order of the tables' names. Figures cost no reading of files, but for their sizes.
    /// Errors: a size cannot be had.
    pub fn dictionary_rows(&self) -> Result<Vec<DictionaryRow>> {
        let mut tables = self.catalog.tables(|_| true);
        tables.sort_by(|a, b| a.path.cmp(&b.path));
        let mut rows = Vec::new();
        for table in tables {
            let dir = table_dir(std::path::Path::new(""), &table.path);
            for dictionary in table.all_dictionaries() {
                let open = self.dict(DictId(dictionary.id)).filter(|dict| !dict.is_unusable());
                let figures = match open {
                    Some(dict) => Some(DictionaryFigures {
                        tree: dict.tree.stats(),
                        free_bytes: dict.file.free_bytes(),
                        file_bytes: dict.file.allocated_bytes()?,
                    }),
                    None => None,
                };
                rows.push(DictionaryRow {
                    table: table.path.clone(),
                    name: dictionary.name.clone(),
                    id: dictionary.id,
                    file: dir.join(&dictionary.file).display().to_string(),
                    is_clustering: !dictionary.clustering.is_none(),
                    figures,
                });
            }
        }
        Ok(rows)
    }
}
