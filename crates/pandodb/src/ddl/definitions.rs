//! The server's definitions of tables: compared, recorded and given back.

use crate::catalog::definition::{is_partition, Definition, DefinitionState};
use crate::catalog::descriptor::{normalize, TableDescriptor};
use crate::catalog::Change;
use crate::db::Db;
use crate::error::Result;

impl Db {
    /// Whether the table, or the partitions of a table of this name, are as the server's definition with
    /// this id says: of all definitions that the engine took part in, it is the newest.
    pub fn has_definition(&self, path: &str, id: &str) -> bool {
        let path = normalize(path);
        let is_its = |name: &str| match name.strip_prefix(&path) {
            Some(rest) => rest.is_empty() || rest.starts_with("#P#") || rest.starts_with("#p#"),
            None => false,
        };
        !self.catalog.tables(|t| is_its(&t.path) && t.definition.id == id).is_empty()
    }

    /// How the definition that the server opens a table by (its image is not looked at) stands to the recorded one.
    /// `may_have_image`: the server keeps a file for this very table. Errors: no such table.
    pub fn compare_definition(
        &self,
        path: &str,
        given: &Definition,
        may_have_image: bool,
    ) -> Result<DefinitionState> {
        Ok(self.described(&normalize(path))?.definition.compare(given, may_have_image))
    }

    /// Records the definition of a table that is [`DefinitionState::Unrecorded`]. A crash may lose the record, and then
    /// it is made again.
    pub fn adopt_definition(&self, path: &str, definition: Definition) -> Result<()> {
        let _one_ddl = self.ddl.lock();
        let mut descriptor = self.described(&normalize(path))?;
        let may_have_image = !definition.image.is_empty();
        if descriptor.definition.compare(&definition, may_have_image) != DefinitionState::Unrecorded {
            return Ok(());
        }
        descriptor.definition = definition;
        self.change_catalog(Change { put: vec![descriptor], lazy: true, ..Change::default() })?;
        Ok(())
    }

    /// The id of a table's definition and the image of the server's file. None: there is no such table, or no image.
    /// Errors: the image is damaged.
    pub fn definition_image(&self, path: &str) -> Result<Option<(String, Vec<u8>)>> {
        let Ok(descriptor) = self.described(&normalize(path)) else { return Ok(None) };
        Ok(descriptor.definition.image()?.map(|image| (descriptor.definition.id, image)))
    }

    /// Paths of the tables of a database (a folder's name), or of all databases, whose definitions have images.
    pub fn tables_with_images(&self, database: Option<&str>) -> Vec<String> {
        let prefix = database.map(|name| format!("{name}/")).unwrap_or_default();
        let has_image = |t: &TableDescriptor| {
            !t.temporary && !t.definition.image.is_empty() && t.path.starts_with(&prefix)
        };
        self.catalog.of_tables(|t| has_image(t).then(|| t.path.clone()))
    }

    /// Whether a table with the definition of this id has another name than `path` now: it was renamed. A name that the server gives for
    /// the time of an ALTER TABLE (`#sql-backup-...`) is not one that the table keeps.
    pub fn is_renamed(&self, path: &str, id: &str) -> bool {
        let path = normalize(path);
        let has_moved = |t: &TableDescriptor| {
            let name = t.path.rsplit('/').next().unwrap_or_default();
            t.definition.id == id && t.path != path && !is_partition(&t.path) && !name.starts_with("#sql")
        };
        !id.is_empty() && self.catalog.table(&path).is_none() && !self.catalog.tables(has_moved).is_empty()
    }
}
