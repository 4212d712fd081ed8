//! Keys for the tool: from a file, because no server is there to give them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pandodb::{KeyList, KeyRing};

/// Reads the file, if there is one.
///
/// # Errors
/// It cannot be read, or has something else than keys.
pub fn read(path: Option<&Path>) -> Result<KeyRing, Box<dyn std::error::Error>> {
    let Some(path) = path else { return Ok(KeyRing::empty()) };
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let keys = KeyList::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(KeyRing::new(Arc::new(keys)))
}

/// What could be checked of a file without its keys, for people.
pub fn told(found: &pandodb::offline::WithoutKey) -> String {
    let keys: Vec<String> =
        found.keys.iter().map(|((id, version), _)| format!("{id} (version {version})")).collect();
    let keys = match keys.is_empty() {
        true => String::new(),
        false => format!(" with key {}", keys.join(", ")),
    };
    format!(
        "the checksums of {} blocks are ok; encrypted{keys}, so what is in them was not looked at (--keys)",
        found.blocks
    )
}
