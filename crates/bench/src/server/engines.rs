//! What is different from engine to engine: options with the same meaning, where a table's files are, how to
//! bring everything there, and what a phase needs beforehand.

use std::path::{Path, PathBuf};

use crate::client::Connection;
use crate::error::Result;

/// What every engine gets alike.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Size of the engine's cache.
    pub cache_mb: u64,
    /// 1: each commit is on disk before it returns; 2: handed to the system; 0: about once a second.
    pub flush_at_commit: u8,
    /// Do not let the page cache be a second cache, where the engine can avoid it.
    pub direct_io: bool,
}

/// The least that InnoDB can do with while another engine is measured; it holds the server's own tables.
const INNODB_IDLE_MB: u64 = 16;
/// InnoDB's log: generous, since with its default of 96 MiB it would write pages much more often.
const INNODB_LOG_MB: (u64, u64) = (96, 1024);

/// Engines whose name does not come from a plugin of the same name.
pub fn canonical(name: &str) -> String {
    const KNOWN: [&str; 8] =
        ["PANDO", "InnoDB", "ROCKSDB", "MyISAM", "Aria", "BLACKHOLE", "MEMORY", "ARCHIVE"];
    let aliases = [("MYROCKS", "ROCKSDB"), ("INNOBASE", "InnoDB")];
    let found = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name)).copied();
    let alias = aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|(_, real)| *real);
    found.or(alias).unwrap_or(name).to_owned()
}

/// Does the engine only parse and throw away?
pub fn keeps_nothing(engine: &str) -> bool {
    engine == "BLACKHOLE"
}

/// Options that give an engine these conditions.
pub fn options(engine: &str, conditions: &Conditions) -> Vec<String> {
    let Conditions { cache_mb, flush_at_commit, direct_io } = *conditions;
    let on = |yes: bool| if yes { "ON" } else { "OFF" };
    let own = match engine {
        "PANDO" => vec![
            "--plugin-load-add=ha_pando.so".to_owned(),
            format!("--pando-cache-size={cache_mb}M"),
            format!("--pando-flush-log-at-trx-commit={flush_at_commit}"),
            format!("--pando-direct-io={}", on(direct_io)),
        ],
        "InnoDB" => vec![
            format!("--innodb-buffer-pool-size={cache_mb}M"),
            format!("--innodb-flush-log-at-trx-commit={flush_at_commit}"),
            format!("--innodb-flush-method={}", if direct_io { "O_DIRECT" } else { "fsync" }),
            format!("--innodb-log-file-size={}M", (4 * cache_mb).clamp(INNODB_LOG_MB.0, INNODB_LOG_MB.1)),
        ],
        "ROCKSDB" => vec![
            "--plugin-load-add=ha_rocksdb.so".to_owned(),
            format!("--rocksdb-block-cache-size={cache_mb}M"),
            format!("--rocksdb-flush-log-at-trx-commit={flush_at_commit}"),
            format!("--rocksdb-use-direct-reads={}", on(direct_io)),
            format!("--rocksdb-use-direct-io-for-flush-and-compaction={}", on(direct_io)),
            // A statement of more than 2^20 rows would be refused.
            "--rocksdb-max-row-locks=1073741824".to_owned(),
        ],
        "MyISAM" => vec![
            format!("--key-buffer-size={}M", cache_mb / 2),
            format!("--myisam-sort-buffer-size={}M", (cache_mb / 2).max(1)),
        ],
        "Aria" => vec![format!("--aria-pagecache-buffer-size={cache_mb}M")],
        "BLACKHOLE" => vec!["--plugin-load-add=ha_blackhole.so".to_owned()],
        "ARCHIVE" => vec!["--plugin-load-add=ha_archive.so".to_owned()],
        _ => Vec::new(),
    };
    let mut options = own;
    if engine != "InnoDB" {
        options.push(format!("--innodb-buffer-pool-size={INNODB_IDLE_MB}M"));
    }
    options
}

/// Variables that tell cache and durability of an engine in a server that is not ours.
pub fn variables(engine: &str) -> &'static [&'static str] {
    match engine {
        "PANDO" => &["pando_cache_size", "pando_flush_log_at_trx_commit", "pando_direct_io"],
        "InnoDB" => &[
            "innodb_buffer_pool_size",
            "innodb_flush_log_at_trx_commit",
            "innodb_flush_method",
            "innodb_log_file_size",
        ],
        "ROCKSDB" => {
            &["rocksdb_block_cache_size", "rocksdb_flush_log_at_trx_commit", "rocksdb_use_direct_reads"]
        }
        "MyISAM" => &["key_buffer_size"],
        "Aria" => &["aria_pagecache_buffer_size"],
        _ => &[],
    }
}

/// Brings what is in memory into the table's files, as far as an engine offers that, so that their size says
/// something. Dropped tables give their space back first.
pub fn settle(connection: &mut Connection, engine: &str) -> Result<()> {
    if engine == "ROCKSDB" {
        const DROPS: &str = "SELECT COUNT(*) FROM information_schema.rocksdb_global_info \
                             WHERE type = 'DDL_DROP_INDEX_ONGOING'";
        const TRIES: usize = 300;
        for _ in 0..TRIES {
            if connection.number(DROPS)? == 0.0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        connection.query("SET GLOBAL rocksdb_force_flush_memtable_now = 1")?;
    }
    Ok(())
}

/// What the file system has allocated for the tables of a database. MyRocks keeps all tables together, so for it
/// this is everything of the engine: right as long as other tables are gone.
pub fn table_bytes(data_dir: &Path, engine: &str, database: &str) -> u64 {
    let mut files = Vec::new();
    if engine == "ROCKSDB" {
        collect(&data_dir.join("#rocksdb"), &mut files);
        files.retain(|path| {
            path.extension().is_some_and(|extension| extension == "sst" || extension == "blob")
        });
    } else {
        collect(&data_dir.join(database), &mut files);
        files.retain(|path| {
            !path.extension().is_some_and(|extension| extension == "frm" || extension == "opt")
        });
    }
    files.iter().map(|path| allocated_bytes(path)).sum()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// 0 for a file that is gone meanwhile.
fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    const BLOCK_BYTES: u64 = 512;
    std::fs::metadata(path).map_or(0, |metadata| metadata.blocks() * BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: Conditions = Conditions { cache_mb: 256, flush_at_commit: 2, direct_io: true };

    #[test]
    fn every_transactional_engine_gets_the_same_cache_and_durability() {
        for engine in ["PANDO", "InnoDB", "ROCKSDB"] {
            let options = options(engine, &CONDITIONS).join(" ");
            assert!(options.contains("size=256M"), "{engine}: {options}");
            assert!(options.contains("flush-log-at-trx-commit=2"), "{engine}: {options}");
        }
    }

    #[test]
    fn names_are_those_of_the_server() {
        assert_eq!(
            ["pando", "innodb", "myrocks", "Spider"].map(canonical),
            ["PANDO", "InnoDB", "ROCKSDB", "Spider"]
        );
    }

    #[test]
    fn sizes_are_of_the_tables_files_wherever_the_engine_has_them() {
        let root = tempfile::tempdir().unwrap();
        let pando = root.path().join("bench/t.pando");
        std::fs::create_dir_all(&pando).unwrap();
        std::fs::create_dir_all(root.path().join("#rocksdb")).unwrap();
        for (path, size) in [
            ("bench/t.pando/tree", 8192),
            ("bench/u.ibd", 4096),
            ("bench/t.frm", 4096),
            ("#rocksdb/1.sst", 12288),
            ("#rocksdb/LOG", 4096),
        ] {
            std::fs::write(root.path().join(path), vec![1; size]).unwrap();
        }
        assert_eq!(table_bytes(root.path(), "PANDO", "bench"), 8192 + 4096);
        assert_eq!(table_bytes(root.path(), "ROCKSDB", "bench"), 12288);
        assert_eq!(table_bytes(root.path(), "InnoDB", "none"), 0);
    }
}
