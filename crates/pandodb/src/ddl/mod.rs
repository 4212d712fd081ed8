//! Changes of definitions: tables, columns, indexes, names; each is one change of the catalog.

pub(crate) mod alter;
pub(crate) mod change_catalog;
pub(crate) mod damaged_keys;
pub(crate) mod definitions;
pub(crate) mod encryption;
pub(crate) mod foreign_keys;
pub(crate) mod gone;
pub(crate) mod index_base;
pub(crate) mod indexes;
pub(crate) mod lost_values;
pub(crate) mod renames;
pub(crate) mod server_files;
pub(crate) mod tables;
pub(crate) mod validate;
