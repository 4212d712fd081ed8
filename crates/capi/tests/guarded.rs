//! Every exported function is guarded against panics: read from the sources.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::fs;
use std::path::Path;

/// What a body has to call. What is before it in the body must not be able to panic: it would stop the process, though not in a way
/// that the language does not allow.
const GUARDS: &[&str] =
    &["guard(", "contain(", "run(|", "run_contained(", "txn.run(", "change(txn", ".build(|"];

/// Name and text of each exported function of a source.
fn exported(source: &str) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    for part in source.split("extern \"C\" fn ").skip(1) {
        let Some((name, _)) = part.split_once('(') else { continue };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name {
            let end = part.find("\n}\n").unwrap_or(part.len());
            all.push((name, &part[..end]));
        }
    }
    all
}

fn unguarded(source: &str) -> Vec<&str> {
    let is_guarded = |body: &str| GUARDS.iter().any(|guard| body.contains(guard));
    exported(source).into_iter().filter(|(_, body)| !is_guarded(body)).map(|(name, _)| name).collect()
}

#[test]
fn every_exported_function_is_guarded_against_panics() {
    let mut exported_count = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        assert_eq!(source.matches("no_mangle").count(), exported(&source).len(), "{}", path.display());
        exported_count += exported(&source).len();
        assert_eq!(unguarded(&source), Vec::<&str>::new(), "{}", path.display());
    }
    let header = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/pando.h")).unwrap();
    let declared = header
        .lines()
        .filter(|line| !line.starts_with([' ', '*', '/']))
        .filter(|line| line.contains(" pando_") || line.contains("*pando_"));
    assert_eq!(exported_count, declared.count());
}

#[test]
fn a_function_without_a_guard_is_found() {
    let source =
        "pub extern \"C\" fn good() {\n    guard(|| 1);\n}\n\npub extern \"C\" fn bad(x: u8) {\n    x;\n}\n";
    assert_eq!(unguarded(source), ["bad"]);
}
