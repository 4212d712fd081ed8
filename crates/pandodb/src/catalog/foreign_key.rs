//! Foreign keys as the catalog records them: see [`crate::ddl::foreign_keys`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::catalog::descriptor::TableDescriptor;

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
    pub(crate) fn follow(&mut self, name: NewName<'_>) {
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

pub(crate) fn database_of(path: &str) -> &str {
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

/// Old and new names.
pub(crate) fn rename_columns(columns: &mut [String], renamed: &[(String, String)]) {
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
