//! The decoder of this crate, for `pando-fuzz`: of manifests of backups.
#![allow(clippy::unwrap_used, reason = "seeds are made of what is valid")]

use std::path::Path;

use pando_base::fuzz::Target;

use crate::backup::manifest::{BinlogPosition, ExtentEntry, FileEntry, Manifest};

/// All of them.
pub fn targets() -> Vec<Target> {
    vec![Target {
        name: "backup-manifest",
        reads: "the manifest of a backup (cli/src/backup/manifest.rs)",
        seeds,
        accepts,
    }]
}

fn seeds() -> Vec<Vec<u8>> {
    let mut manifest = Manifest::new("11.4".into(), "id".into(), 1_700_000_000);
    manifest.complete = true;
    let plain = manifest.clone();
    manifest.base = Some("other".into());
    manifest.binlog = Some(BinlogPosition { file: "bin.000001".into(), position: 300, gtid: "0-1-3".into() });
    manifest.chosen = vec!["d".into()];
    manifest.tables = vec!["d/t".into()];
    let extents = vec![ExtentEntry(16384, 4096, "abc".into(), 1)];
    let path = "pando/d/t.pando/main.pando".into();
    manifest.files = vec![FileEntry { path, bytes: 20480, xxh3: "0".into(), dict: Some(17), extents }];
    [plain, manifest].map(|manifest| manifest.text().unwrap()).to_vec()
}

fn accepts(bytes: &[u8]) -> bool {
    let path = Path::new("b/pando-backup.json");
    let parsed = Manifest::parse(path, bytes);
    // A checksum lets nothing through that was changed.
    let Ok(manifest) = Manifest::decode(path, bytes) else { return false };
    assert!(parsed.is_err() || parsed.is_ok_and(|parsed| parsed == manifest));
    for entry in &manifest.files {
        if let Ok(place) = Manifest::place(Path::new("b"), entry) {
            let rest = place.strip_prefix("b").unwrap();
            assert!(rest.components().all(|part| matches!(part, std::path::Component::Normal(_))));
        }
    }
    true
}
