//! The stores, each behind the same few operations, with its defaults but for the cache, LZ4 where it compresses, and when it syncs.

use std::error::Error;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

pub type Outcome<T> = Result<T, Box<dyn Error>>;
pub type Row = (Vec<u8>, Vec<u8>);

/// A store that is open.
pub trait Store {
    /// One commit, durable when this returns if `sync`; else it is at least on its way to the operating system (redb: in memory).
    fn put(&mut self, rows: &[Row], sync: bool) -> Outcome<()>;
    /// The values of these keys, one lookup for each, in one snapshot where a store needs one: how many there are, and a sum of them.
    fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Seen>;
    /// At most `limit` rows from `key` on.
    fn scan(&mut self, key: &[u8], limit: usize) -> Outcome<Seen>;
    /// Everything that was written is in files.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// What was read, for checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub rows: u64,
    pub sum: u64,
}

impl Seen {
    pub fn add(&mut self, value: &[u8]) {
        self.rows += 1;
        let head = value.first_chunk::<8>().map_or(0, |head| u64::from_le_bytes(*head));
        self.sum = self.sum.wrapping_add(head);
    }
}

/// Name, version, and how it is opened in a directory with that much cache.
pub type Opener = fn(&Path, u64, bool) -> Outcome<Box<dyn Store>>;

pub const STORES: [(&str, Opener); 4] =
    [("pandodb", Pando::open), ("redb", Redb::open), ("fjall", Fjall::open), ("rocksdb", Rocks::open)];

struct Pando {
    db: Arc<pandodb::Db>,
    table: Arc<pandodb::Table>,
}

impl Pando {
    /// When commits are synced is a property of the whole database.
    fn open(dir: &Path, cache: u64, sync: bool) -> Outcome<Box<dyn Store>> {
        let mut options = pandodb::Options::new(dir);
        options.cache_bytes = cache;
        options.flush_mode = if sync { pandodb::FlushMode::Commit } else { pandodb::FlushMode::Write };
        let db = pandodb::Db::open(options)?;
        if !db.table_exists("t") {
            let compression = pandodb::Compression::Lz4;
            let spec = pandodb::TableSpec { path: "t".into(), compression, ..Default::default() };
            db.create_table(&spec)?;
        }
        let table = db.open_table("t")?;
        Ok(Box::new(Pando { db, table }))
    }
}

impl Store for Pando {
    fn put(&mut self, rows: &[Row], _sync: bool) -> Outcome<()> {
        let mut txn = self.db.begin();
        for (key, value) in rows {
            txn.put(&self.table, 0, key, value, pandodb::LockWait::Default)?;
        }
        Ok(txn.commit()?)
    }

    fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Seen> {
        let (mut txn, mut seen) = (self.db.begin(), Seen::default());
        txn.open_snapshot();
        for key in keys {
            if let Some(value) = txn.get(&self.table, 0, key)? {
                seen.add(&value);
            }
        }
        txn.rollback();
        Ok(seen)
    }

    fn scan(&mut self, key: &[u8], limit: usize) -> Outcome<Seen> {
        let (mut txn, mut seen) = (self.db.begin(), Seen::default());
        let mut cursor = txn.cursor(&self.table, 0);
        cursor.seek(&mut txn, key, pandodb::ReadMode::Snapshot)?;
        while cursor.valid() && (seen.rows as usize) < limit {
            seen.add(cursor.value());
            cursor.next(&mut txn)?;
        }
        drop(cursor);
        txn.rollback();
        Ok(seen)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.close()?)
    }
}

struct Redb {
    db: redb::Database,
}

const REDB_TABLE: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("t");

impl Redb {
    fn open(dir: &Path, cache: u64, _sync: bool) -> Outcome<Box<dyn Store>> {
        let db = redb::Builder::new().set_cache_size(cache as usize).create(dir.join("t.redb"))?;
        Ok(Box::new(Redb { db }))
    }
}

impl Store for Redb {
    fn put(&mut self, rows: &[Row], sync: bool) -> Outcome<()> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(if sync { redb::Durability::Immediate } else { redb::Durability::None })?;
        {
            let mut table = txn.open_table(REDB_TABLE)?;
            for (key, value) in rows {
                table.insert(&key[..], &value[..])?;
            }
        }
        Ok(txn.commit()?)
    }

    fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Seen> {
        use redb::ReadableDatabase;
        let table = self.db.begin_read()?.open_table(REDB_TABLE)?;
        let mut seen = Seen::default();
        for key in keys {
            if let Some(value) = table.get(&key[..])? {
                seen.add(value.value());
            }
        }
        Ok(seen)
    }

    fn scan(&mut self, key: &[u8], limit: usize) -> Outcome<Seen> {
        use redb::ReadableDatabase;
        let table = self.db.begin_read()?.open_table(REDB_TABLE)?;
        let mut seen = Seen::default();
        for row in table.range::<&[u8]>((Bound::Included(key), Bound::Unbounded))?.take(limit) {
            seen.add(row?.1.value());
        }
        Ok(seen)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        // Commits without durability reach the disk with the next one that has it.
        self.db.begin_write()?.commit()?;
        Ok(())
    }
}

struct Fjall {
    db: fjall::Database,
    keyspace: fjall::Keyspace,
}

impl Fjall {
    fn open(dir: &Path, cache: u64, _sync: bool) -> Outcome<Box<dyn Store>> {
        let db = fjall::Database::builder(dir.join("fjall")).cache_size(cache).open()?;
        let keyspace = db.keyspace("t", fjall::KeyspaceCreateOptions::default)?;
        Ok(Box::new(Fjall { db, keyspace }))
    }
}

impl Store for Fjall {
    fn put(&mut self, rows: &[Row], sync: bool) -> Outcome<()> {
        let mode = if sync { fjall::PersistMode::SyncData } else { fjall::PersistMode::Buffer };
        let mut batch = self.db.batch().durability(Some(mode));
        for (key, value) in rows {
            batch.insert(&self.keyspace, &key[..], &value[..]);
        }
        Ok(batch.commit()?)
    }

    fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Seen> {
        let mut seen = Seen::default();
        for key in keys {
            if let Some(value) = self.keyspace.get(key)? {
                seen.add(&value);
            }
        }
        Ok(seen)
    }

    fn scan(&mut self, key: &[u8], limit: usize) -> Outcome<Seen> {
        let mut seen = Seen::default();
        for row in self.keyspace.range(key..).take(limit) {
            seen.add(&row.into_inner()?.1);
        }
        Ok(seen)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.db.persist(fjall::PersistMode::SyncAll)?)
    }
}

struct Rocks {
    db: rocksdb::DB,
}

impl Rocks {
    fn open(dir: &Path, cache: u64, _sync: bool) -> Outcome<Box<dyn Store>> {
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.increase_parallelism(2);
        options.set_compression_type(rocksdb::DBCompressionType::Lz4);
        let mut blocks = rocksdb::BlockBasedOptions::default();
        blocks.set_block_cache(&rocksdb::Cache::new_lru_cache(cache as usize)?);
        // As fjall and pandodb have filters by default.
        blocks.set_bloom_filter(10.0, false);
        options.set_block_based_table_factory(&blocks);
        Ok(Box::new(Rocks { db: rocksdb::DB::open(&options, dir.join("rocks"))? }))
    }
}

impl Store for Rocks {
    fn put(&mut self, rows: &[Row], sync: bool) -> Outcome<()> {
        let mut batch = rocksdb::WriteBatch::default();
        for (key, value) in rows {
            batch.put(key, value);
        }
        let mut options = rocksdb::WriteOptions::default();
        options.set_sync(sync);
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Seen> {
        let mut seen = Seen::default();
        for key in keys {
            if let Some(value) = self.db.get_pinned(key)? {
                seen.add(&value);
            }
        }
        Ok(seen)
    }

    fn scan(&mut self, key: &[u8], limit: usize) -> Outcome<Seen> {
        let mut seen = Seen::default();
        let mut rows = self.db.raw_iterator();
        rows.seek(key);
        while let (Some(value), true) = (rows.value(), (seen.rows as usize) < limit) {
            seen.add(value);
            rows.next();
        }
        rows.status()?;
        Ok(seen)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.db.flush()?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}
