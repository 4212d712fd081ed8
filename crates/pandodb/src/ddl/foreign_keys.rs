//! Foreign keys as the catalog records them.
//!
//! The record of a table has the constraints that are its own: those in which it is the **child**. Who refers to a table is
//! worked out from these. A parent is named by its path, not by its id: so a constraint may name a table that is not there
//! yet, or not any more (`foreign_key_checks=0`), and a copying ALTER, which gives the old name to a new table, changes nothing.
//!
//! * CREATE and ALTER write a table's constraints in the same record as everything else about it.
//! * RENAME changes, in the record of the rename, every constraint that names the table, and the names of constraints that were
//!   generated from its name. A copy that an ALTER gives another name follows the old name of what it has copied, which may still be
//!   there, to be dropped next.
//! * A renamed column changes, in the record of the ALTER, every constraint that names the column.
//! * Tables under interim names (`#sql...`: what an ALTER fills, and what it puts aside) have their constraints in their records,
//!   but these count only when the table gets its name. What is put aside counts under its old name until another table has that:
//!   at no moment of an ALTER has the parent no child.
//!
//! Rows are checked above this crate, which knows nothing of columns (`mariadb/src/foreign`).

use pando_base::{Error, Result};

use crate::catalog::descriptor::{normalize, TableDescriptor};
use crate::catalog::foreign_key::{database_of, is_aside, rename_columns, ForeignKey, NewName};
use crate::db::Db;

/// A constraint with the one name that its parent has.
pub(crate) fn normalized(key: ForeignKey) -> ForeignKey {
    ForeignKey { parent: normalize(&key.parent), ..key }
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
        for (name, child) in self.catalog.children_by_name(&parent) {
            let keys = child.foreign_keys.iter().filter(|key| key.parent == parent);
            found.extend(keys.map(|key| (name.clone(), key.clone())));
        }
        found.sort_by(|(a, x), (b, y)| (database_of(a), &x.name).cmp(&(database_of(b), &y.name)));
        found
    }

    /// Whether a table of this database, other than `except`, has a constraint of this name, in any case of its letters.
    pub fn has_foreign_key(&self, database: &str, name: &str, except: &str) -> bool {
        let (database, except) = (normalize(database), normalize(except));
        self.is_name_taken(&database, |other| other.eq_ignore_ascii_case(name), |t| t.path == except)
    }

    fn is_name_taken(
        &self,
        database: &str,
        is_it: impl Fn(&str) -> bool,
        except: impl Fn(&TableDescriptor) -> bool,
    ) -> bool {
        let has_it = |t: &TableDescriptor| {
            t.foreign_keys.iter().any(|key| is_it(&key.name))
                && database_of(&t.path) == database
                && !is_aside(&t.path)
                && !except(t)
        };
        !self.catalog.tables(has_it).is_empty()
    }

    /// Grows whenever a table is made, dropped, renamed or altered: what was worked out from constraints and definitions before
    /// may not hold any more.
    pub fn schema_version(&self) -> u64 {
        self.catalog.schema_version()
    }

    /// Errors: another table of the database, which `except` is not, has a constraint of the same name. As for InnoDB, ASCII letters in
    /// another case make no other name; but names that `before`, the table as it was, had in this database may differ in that alone: older
    /// versions let such tables be.
    pub(crate) fn check_names(
        &self,
        table: &TableDescriptor,
        before: Option<&TableDescriptor>,
        except: Option<&str>,
    ) -> Result<()> {
        if is_aside(&table.path) {
            return Ok(());
        }
        let database = database_of(&table.path);
        let before = before.filter(|before| database_of(&before.path) == database);
        let was_there =
            |name: &str| before.is_some_and(|before| before.foreign_keys.iter().any(|key| key.name == name));
        let taken = |name: &str| {
            let is_it = |other: &str| match was_there(name) {
                true => other == name,
                false => other.eq_ignore_ascii_case(name),
            };
            self.is_name_taken(database, is_it, |t| t.id == table.id || Some(t.path.as_str()) == except)
        };
        match table.foreign_keys.iter().find(|key| taken(&key.name)) {
            Some(key) => Err(Error::Exists { what: format!("foreign key {}", key.name) }),
            None => Ok(()),
        }
    }

    /// What a rename does to constraints: those of the table itself, which `table` (with its new path) has, and those of other
    /// tables, which are returned. `copied`: the old name of the table of which this one is the copy.
    pub(crate) fn follow_name(
        &self,
        table: &mut TableDescriptor,
        from: &str,
        name: Option<NewName<'_>>,
        copied: Option<&str>,
    ) -> Vec<TableDescriptor> {
        let from = copied.unwrap_or(from);
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
        children.retain(|child| child.id != table.id && child.path != from);
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
