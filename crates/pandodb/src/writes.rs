//! What a transaction has written and not committed, where others can ask about it.
//!
//! Purpose: a [`Txn`](crate::Txn) writes and reads its write set alone, but a locking scan must also
//! meet the keys that other transactions have written in its range and not committed: they are in no
//! tree yet, and entries of indexes that are not unique have no lock of their own. So the write set stands
//! behind an `Arc`, and every dictionary keeps a list of those that may hold something of it
//! ([`Writers`]).
//!
//! What holds:
//! 1. Only the owner's thread changes a write set, so it may read and then write without a gap; others only
//!    read, shortly. The lock is therefore free nearly always.
//! 2. A write set is on a dictionary's list from before its first write there until it is over: until
//!    after its commit is visible, or its rollback.
//! 3. It is emptied ([`Writes::end`]) before the owner's row locks are released: what another does to the
//!    owner's locks inside [`Writes::unless_ended`] is done before that release.
//!
//! Lock order: a dictionary's list and a write set are never held together; the lock manager's mutexes
//! come after a write set's.

use std::ops::Bound;
use std::sync::Arc;

use pando_base::{DictId, Result, TxnId};
use pando_txn::{Mark, WriteSet};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The uncommitted writes of one transaction; see the head of this file.
#[derive(Debug)]
pub(crate) struct Writes {
    owner: TxnId,
    set: RwLock<WriteSet>,
}

impl Writes {
    pub(crate) fn new(owner: TxnId) -> Arc<Writes> {
        Arc::new(Writes { owner, set: RwLock::new(WriteSet::new()) })
    }

    /// Whose writes they are.
    #[expect(dead_code, reason = "for range locks, which are on their way")]
    pub(crate) fn owner(&self) -> TxnId {
        self.owner
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, WriteSet> {
        self.set.read()
    }

    /// Of the owner's thread only.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, WriteSet> {
        self.set.write()
    }

    /// The smallest key of `dict` within the bounds that is written here, deleted ones included.
    ///
    /// # Errors
    /// Those of reading what is not in memory.
    #[expect(dead_code, reason = "for range locks, which are on their way")]
    pub(crate) fn first_written_between(
        &self,
        dict: DictId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let set = self.set.read();
        let first = set.next_ge(dict, from, Mark::LATEST).map(|(key, _)| key);
        let inside = first.filter(|key| match to {
            Bound::Unbounded => true,
            Bound::Included(to) => *key <= to,
            Bound::Excluded(to) => *key < to,
        });
        Ok(inside.map(<[u8]>::to_vec))
    }

    /// Does `f` while the transaction is sure not to end, unless it has (`None`). What `f` does to the
    /// owner's locks is done before they are released. `f` must not wait for anybody.
    #[expect(dead_code, reason = "for range locks, which are on their way")]
    pub(crate) fn unless_ended<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let set = self.set.read();
        (!set.is_empty()).then(f)
    }

    /// Forgets everything; the next transaction of the same owner may begin.
    pub(crate) fn end(&self) {
        self.set.write().clear();
    }
}

/// The write sets that may hold something of one dictionary.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    list: Mutex<Vec<Arc<Writes>>>,
}

impl Writers {
    pub(crate) fn add(&self, writes: &Arc<Writes>) {
        self.list.lock().push(writes.clone());
    }

    pub(crate) fn remove(&self, writes: &Arc<Writes>) {
        let mut list = self.list.lock();
        let found = list.iter().position(|other| Arc::ptr_eq(other, writes));
        list.swap_remove(found.expect("a writer is on the list"));
    }

    /// All of them, at this moment.
    #[expect(dead_code, reason = "for range locks, which are on their way")]
    pub(crate) fn all(&self) -> Vec<Arc<Writes>> {
        self.list.lock().clone()
    }
}
