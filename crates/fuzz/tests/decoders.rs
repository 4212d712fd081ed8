//! Some thousand mutants for each decoder, at each run of the tests; and that there is nothing that was forgotten.
//!
//! `PANDO_FUZZ_ROUNDS=20` tries 20 times as many, `PANDO_FUZZ_SEED=7` others.

use std::collections::BTreeSet;
use std::path::Path;

use pando_base::fuzz::Target;
use pando_fuzz::rounds::{shortened, try_bytes, try_target};
use pando_fuzz::{memory, targets};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn try_named(name: &str, rounds: u64) {
    let target = targets().into_iter().find(|target| target.name == name).expect("a target of this name");
    let rounds = rounds * number("PANDO_FUZZ_ROUNDS", 1);
    match try_target(&target, number("PANDO_FUZZ_SEED", 1), rounds, &mut |_| ()) {
        Ok(report) => {
            assert!(
                report.accepted > 0,
                "no mutant was valid: the decoder is not met beyond its first check"
            );
            assert!(report.accepted < rounds, "all mutants were valid: it refuses nothing");
        }
        Err(finding) => {
            let finding = shortened(&target, finding);
            panic!("{finding}: {:02x?}", finding.bytes);
        }
    }
}

/// A test for each, so that the name of one that ends the process is told.
macro_rules! decoders {
    ($($test:ident = $name:literal $rounds:literal,)*) => {
        $(
            #[test]
            fn $test() {
                try_named($name, $rounds);
            }
        )*

        const TRIED: &[&str] = &[$($name),*];
    };
}

decoders! {
    block = "block" 10000,
    encrypted_block = "encrypted-block" 10000,
    superblock = "superblock" 10000,
    segment_rows = "segment-rows" 10000,
    segment_columns = "segment-columns" 10000,
    zones = "zones" 10000,
    packed_bytes = "packed-bytes" 10000,
    row = "row" 10000,
    run_description = "run-description" 10000,
    run_index = "run-index" 10000,
    filter_page = "filter-page" 10000,
    node = "node" 10000,
    node_places = "node-places" 10000,
    tree_file = "tree-file" 1500,
    log_batch = "log-batch" 10000,
    log = "log" 6000,
    spilled_entries = "spilled-entries" 10000,
    catalog_record = "catalog-record" 10000,
    partition_names = "partition-names" 10000,
    cached_blocks = "cached-blocks" 10000,
    database = "database" 600,
    spilled_rows = "spilled-rows" 10000,
    definition = "definition" 10000,
    value = "value" 10000,
    key = "key" 10000,
    backup_manifest = "backup-manifest" 10000,
}

#[test]
fn every_target_is_tried_here_has_one_for_cargo_fuzz_and_stands_in_the_page() {
    let names: BTreeSet<String> = targets().iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), targets().len(), "two targets of one name");
    assert_eq!(TRIED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), names);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (manifest, page) = (read("fuzz/Cargo.toml"), read("docs/fuzzing.md"));
    for target in targets() {
        let name = target.name;
        let file = format!("fuzz_targets/{}.rs", name.replace('-', "_"));
        assert!(
            manifest.contains(&format!("name = \"{name}\"\npath = \"{file}\"")),
            "{name} in fuzz/Cargo.toml"
        );
        assert!(read(&format!("fuzz/{file}")).contains(&format!("run(\"{name}\", bytes)")), "{file}");
        let row = format!("| `{name}` | {} |", target.reads);
        assert!(page.contains(&row), "docs/fuzzing.md has not the line\n{row}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), names.len());
}

/// What would be found is found: decoders with bugs.
#[test]
fn a_panic_too_much_memory_and_refused_valid_bytes_are_findings() {
    fn sample() -> Vec<Vec<u8>> {
        vec![b"\x08some data that is valid".to_vec()]
    }
    let target = |accepts| Target { name: "sample", reads: "nothing", seeds: sample, accepts };

    let trusts_a_length = target(|bytes| {
        let len = usize::from(bytes.first().copied().unwrap_or(0));
        bytes.is_empty() || bytes[1..1 + len].len() == 8
    });
    let finding = try_target(&trusts_a_length, 1, 1000, &mut |_| ()).unwrap_err();
    assert!(finding.what.contains("out of range"), "{finding}");
    assert!(shortened(&trusts_a_length, finding).bytes.len() <= 2);

    let reserves_what_is_said = target(|bytes| {
        let len = bytes.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len) & 0x3fff_ffff);
        bytes.first() == Some(&8)
            && (len == 0x6d6f_7308 & 0x3fff_ffff || Vec::<u8>::with_capacity(len as usize).is_empty())
    });
    let finding = try_target(&reserves_what_is_said, 1, 1000, &mut |_| ()).unwrap_err();
    assert!(finding.what.contains("bytes of memory"), "{finding}");

    let refuses_all = target(|_| false);
    let finding = try_target(&refuses_all, 1, 10, &mut |_| ()).unwrap_err();
    assert_eq!(finding.what, "refused what is valid");

    let sound = target(|bytes| bytes.first() == Some(&8));
    let report = try_target(&sound, 1, 1000, &mut |_| ()).unwrap();
    assert!(report.accepted > 0 && report.accepted < 1000);
    assert!(try_bytes(&sound, b"\x08").unwrap().0);
}
