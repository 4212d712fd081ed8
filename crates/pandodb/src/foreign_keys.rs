//! Foreign keys as the catalog records them.
//!
//! The record of a table has the constraints that are its own: those in which it is the **child**. Who refers to a table is
//! worked out from these. A parent is named by its path, not by its id: so a constraint may name a table that is not there
//! yet, or not any more (`foreign_key_checks=0`), and a copying ALTER, which gives the old name to a new table, changes nothing.
//!
//! * CREATE and ALTER write a table's constraints in the same record as everything else about it.
//! * RENAME changes, in the record of the rename, every constraint that names the table, and the names of constraints that were
//!   generated from its name.
//! * A renamed column changes, in the record of the ALTER, every constraint that names the column.
//! * Tables under interim names (`#sql...`: what an ALTER fills, and what it puts aside) have their constraints in their records,
//!   but these count only when the table gets its name.
//!
//! Rows are checked above this crate, which knows nothing of columns (`mariadb/src/foreign_key*.cc`).

use std::collections::{BTreeMap, BTreeSet};

use pando_base::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::db::Db;
use crate::descriptor::{normalize, TableDescriptor};

/// What becomes of children when their parent goes, or its key changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// The statement fails.
    #[default]
    Restrict,
    /// The same, by another name.
    NoAction,
    /// They go, too, or their key changes likewise.
    Cascade,
    /// Their columns become NULL.
    SetNull,
}

/// A constraint, as its child's record has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Unique among the tables of a database.
    pub name: String,
    /// The child's columns.
    pub columns: Vec<String>,
    /// Path of the parent.
    pub parent: String,
    /// The parent's columns, in the same order.
    pub parent_columns: Vec<String>,
    /// When the parent goes.
    pub on_delete: ReferentialAction,
    /// When the parent's key changes.
    pub on_update: ReferentialAction,
}

/// Names from which names of constraints are generated: a table's before and after it is renamed.
#[derive(Clone, Copy, Debug)]
pub struct NewName<'a> {
    /// Before.
    pub from: &'a str,
    /// After.
    pub to: &'a str,
}

/// Between the table's name and the number in generated names.
const GENERATED: &str = "_ibfk_";

impl ForeignKey {
    /// A generated name follows the table's.
    fn follow(&mut self, name: NewName<'_>) {
        let number = self.name.strip_prefix(name.from).and_then(|rest| rest.strip_prefix(GENERATED));
        if let Some(number) = number.filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            self.name = format!("{}{GENERATED}{number}", name.to);
        }
    }
}

/// Whether the server gives this name to what it fills or puts aside in an ALTER.
pub(crate) fn is_aside(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("#sql"))
}

fn database_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(database, _)| database)
}

/// Which tables refer to which: by the parents' paths.
#[derive(Debug, Default)]
pub(crate) struct References(BTreeMap<String, BTreeSet<String>>);

impl References {
    pub(crate) fn of<'a>(tables: impl Iterator<Item = &'a TableDescriptor>) -> References {
        let mut references: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for table in tables.filter(|table| !is_aside(&table.path)) {
            for key in &table.foreign_keys {
                references.entry(key.parent.clone()).or_default().insert(table.path.clone());
            }
        }
        References(references)
    }

    pub(crate) fn children(&self, parent: &str) -> impl Iterator<Item = &String> {
        self.0.get(parent).into_iter().flatten()
    }
}

impl Db {
    /// The constraints in which a table is the child.
    pub fn foreign_keys(&self, path: &str) -> Vec<ForeignKey> {
        self.catalog.table(path).map(|table| table.foreign_keys).unwrap_or_default()
    }

    /// The constraints in which a table, which need not be there, is the parent, and the paths of their children. In the order
    /// of databases and names.
    pub fn references_to(&self, path: &str) -> Vec<(String, ForeignKey)> {
        let parent = normalize(path);
        let mut found: Vec<(String, ForeignKey)> = Vec::new();
        for child in self.catalog.children(&parent) {
            let keys = child.foreign_keys.iter().filter(|key| key.parent == parent);
            found.extend(keys.map(|key| (child.path.clone(), key.clone())));
        }
        found.sort_by(|(a, x), (b, y)| (database_of(a), &x.name).cmp(&(database_of(b), &y.name)));
        found
    }

    /// Whether a table of this database, other than `except`, has a constraint of this name.
    pub fn has_foreign_key(&self, database: &str, name: &str, except: &str) -> bool {
        let (database, except) = (normalize(database), normalize(except));
        let is_other = |t: &TableDescriptor| {
            !t.foreign_keys.is_empty()
                && t.path != except
                && !is_aside(&t.path)
                && database_of(&t.path) == database
        };
        let tables = self.catalog.tables(is_other);
        tables.iter().any(|t| t.foreign_keys.iter().any(|key| key.name == name))
    }

    /// Grows whenever a table is made, dropped, renamed or altered: what was worked out from constraints and definitions before
    /// may not hold any more.
    pub fn schema_version(&self) -> u64 {
        self.catalog.schema_version()
    }

    /// Errors: another table of the database has a constraint of the same name.
    pub(crate) fn check_names(&self, table: &TableDescriptor) -> Result<()> {
        if is_aside(&table.path) {
            return Ok(());
        }
        let taken = |name: &str| self.has_foreign_key(database_of(&table.path), name, &table.path);
        match table.foreign_keys.iter().find(|key| taken(&key.name)) {
            Some(key) => Err(Error::Exists { what: format!("foreign key {}", key.name) }),
            None => Ok(()),
        }
    }

    /// What a rename does to constraints: those of the table itself, which `table` (with its new path) has, and those of other
    /// tables, which are returned.
    pub(crate) fn follow_name(
        &self,
        table: &mut TableDescriptor,
        from: &str,
        name: Option<NewName<'_>>,
    ) -> Vec<TableDescriptor> {
        if is_aside(from) || is_aside(&table.path) {
            return Vec::new();
        }
        let to = table.path.clone();
        for key in &mut table.foreign_keys {
            if let Some(name) = name {
                key.follow(name);
            }
            if key.parent == from {
                key.parent.clone_from(&to);
            }
        }
        let mut children = self.catalog.children(from);
        children.retain(|child| child.id != table.id);
        for key in children.iter_mut().flat_map(|child| &mut child.foreign_keys) {
            if key.parent == from {
                key.parent.clone_from(&to);
            }
        }
        children
    }

    /// What renamed columns of a table do to constraints: `planned` has the tables that change anyway; others that have to
    /// are added.
    pub(crate) fn follow_columns(
        &self,
        path: &str,
        renamed: &[(String, String)],
        planned: &mut Vec<TableDescriptor>,
    ) {
        if renamed.is_empty() {
            return;
        }
        for child in self.catalog.children(path) {
            let position = planned.iter().position(|table| table.id == child.id).unwrap_or_else(|| {
                planned.push(child);
                planned.len() - 1
            });
            for key in planned[position].foreign_keys.iter_mut().filter(|key| key.parent == path) {
                rename_columns(&mut key.parent_columns, renamed);
            }
        }
    }
}

fn rename_columns(columns: &mut [String], renamed: &[(String, String)]) {
    for column in columns {
        let is_it = |(old, _): &&(String, String)| old.to_lowercase() == column.to_lowercase();
        if let Some((_, new)) = renamed.iter().find(is_it) {
            column.clone_from(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_follow_the_table_and_others_do_not() {
        let renamed = |name: &str| {
            let mut key = ForeignKey {
                name: name.into(),
                columns: Vec::new(),
                parent: String::new(),
                parent_columns: Vec::new(),
                on_delete: ReferentialAction::Restrict,
                on_update: ReferentialAction::Restrict,
            };
            key.follow(NewName { from: "t", to: "u" });
            key.name
        };
        assert_eq!(renamed("t_ibfk_12"), "u_ibfk_12");
        for other in ["t_ibfk_", "t_ibfk_1a", "tt_ibfk_1", "fk"] {
            assert_eq!(renamed(other), other);
        }
    }

    #[test]
    fn columns_are_found_in_any_case_and_may_change_places() {
        let mut columns = vec!["A".to_owned(), "b".to_owned()];
        rename_columns(&mut columns, &[("a".into(), "b".into()), ("b".into(), "a".into())]);
        assert_eq!(columns, ["b", "a"]);
    }
}
