//! Layouts as descriptors have them: of each but the first and the current one only what is not as in the one before, since a
//! change is mostly about one column of many. Checked before they are believed.
//!
//! ```text
//!   {"version": 1, "columns": [...]}
//!   {"version": 2, "changed": {"head": 3, "columns": [...], "tail": 5}}   3 columns as before, then these, then 5 as before
//! ```

use serde::{Deserialize, Serialize};

use super::{Column, Layout, Layouts};

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Stored {
    versions: Vec<StoredLayout>,
    next_column_id: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredLayout {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<Column>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Changed>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Changed {
    #[serde(default)]
    head: usize,
    columns: Vec<Column>,
    #[serde(default)]
    tail: usize,
}

impl From<Layouts> for Stored {
    fn from(layouts: Layouts) -> Stored {
        let newest = layouts.versions.len().saturating_sub(1);
        let mut before: Option<&Layout> = None;
        let versions = layouts.versions.iter().enumerate().map(|(at, layout)| {
            // The current one has names and defaults, which those before it have not.
            let changed = before
                .replace(layout)
                .filter(|_| at < newest)
                .map(|before| changes(&before.columns, &layout.columns));
            let columns = changed.is_none().then(|| layout.columns.clone());
            StoredLayout { version: layout.version, columns, changed }
        });
        Stored { versions: versions.collect(), next_column_id: layouts.next_column_id }
    }
}

fn changes(before: &[Column], now: &[Column]) -> Changed {
    let shortest = before.len().min(now.len());
    let head = before.iter().zip(now).take_while(|(a, b)| a == b).count();
    let tail =
        before.iter().rev().zip(now.iter().rev()).take(shortest - head).take_while(|(a, b)| a == b).count();
    Changed { head, columns: now[head..now.len() - tail].to_vec(), tail }
}

impl TryFrom<Stored> for Layouts {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Layouts, String> {
        let mut versions: Vec<Layout> = Vec::with_capacity(stored.versions.len());
        for StoredLayout { version, columns, changed } in stored.versions {
            let before = versions.last().map_or(&[][..], |layout| layout.columns.as_slice());
            let columns = match (columns, changed) {
                (Some(columns), None) => columns,
                (None, Some(changed)) => apply(before, changed)
                    .ok_or_else(|| fault_text(&format!("layout {version} has more than the one before")))?,
                _ => return Err(fault_text(&format!("layout {version} has no columns"))),
            };
            versions.push(Layout { version, columns });
        }
        let layouts = Layouts { versions, next_column_id: stored.next_column_id };
        match layouts.fault() {
            Some(fault) => Err(fault_text(&fault)),
            None => Ok(layouts),
        }
    }
}

fn apply(before: &[Column], changed: Changed) -> Option<Vec<Column>> {
    let Changed { head, columns, tail } = changed;
    let tail_at = before.len().checked_sub(tail).filter(|at| *at >= head)?;
    let mut all = before.get(..head)?.to_vec();
    all.extend(columns);
    all.extend_from_slice(before.get(tail_at..)?);
    Some(all)
}

fn fault_text(fault: &str) -> String {
    format!("not layouts of a table: {fault}")
}
