//! Two-phase commit: transactions are prepared, left alone by their clients, found again after a crash with
//! the locks of what they wrote, and committed or rolled back by the name that the coordinator gave them.

use std::rc::Rc;

use pandodb::{Error, FlushMode};
use rand::seq::IndexedRandom;
use rand::Rng;

use crate::client::Client;
use crate::model::{Prepared, State};
use crate::world::{ensure, note, Check, Kept, World};

/// The coordinator's name for a transaction.
pub(crate) fn xid(number: u64) -> Vec<u8> {
    format!("xid-{number}").into_bytes()
}

/// The number in a name.
pub(crate) fn number(xid: &[u8]) -> Option<u64> {
    std::str::from_utf8(xid).ok()?.strip_prefix("xid-")?.parse().ok()
}

impl World {
    pub(crate) fn prepare(&mut self, client: &mut Client) -> Check {
        if client.writes.is_empty() || self.in_flight.is_some() {
            return Ok(());
        }
        self.serial += 1;
        let number = self.serial;
        note!(self, "  prepare of {} writes as {number}", client.writes.len());
        client.cursor = None;
        client.drop_unused_counters();
        let prepared = Prepared {
            writes: client.writes.clone(),
            counters: client.counters.clone(),
            locks: client.locks.clone(),
            touched: client.touched.clone(),
        };
        let mut after = State::clone(self.current());
        after.prepared.insert(number, Rc::new(prepared));
        let after = Rc::new(after);
        self.in_flight = Some(after.clone());
        let result = client.txn.prepare(&xid(number));
        if self.came_back("a prepare", result, after, Kept::Mode(self.mode))? {
            client.prepared = Some(number);
            self.counts.prepared += 1;
        }
        Ok(())
    }

    /// Commits, rolls back or leaves a prepared transaction, or does not yet. False: it is over.
    pub(crate) fn resolve(&mut self, client: &mut Client) -> Check<bool> {
        let number = client.prepared.expect("it is prepared");
        if self.in_flight.is_some() || self.rng.random_ratio(1, 3) {
            return Ok(true);
        }
        match self.rng.random_range(0..5) {
            0 => {
                note!(self, "  leaves {number}");
                client.txn.detach();
            }
            // A rollback that the log cannot take now is done some time later: not with faults about.
            1 if !self.is_faulty => {
                note!(self, "  rollback of {number}");
                let after = Rc::new(self.current().resolved(number, false));
                self.in_flight = Some(after.clone());
                client.txn.rollback();
                self.came_back("a rollback", Ok(()), after, Kept::Mode(self.mode))?;
                self.counts.resolved += 1;
            }
            _ => self.commit_prepared(client, number)?,
        }
        Ok(false)
    }

    fn commit_prepared(&mut self, client: &mut Client, number: u64) -> Check {
        let after = Rc::new(self.current().resolved(number, true));
        self.in_flight = Some(after.clone());
        let is_ordered = self.rng.random();
        note!(self, "  commit of {number}, ordered {is_ordered}");
        if is_ordered {
            client.txn.commit_ordered(true);
            if self.rng.random_ratio(1, 3) {
                // What does not wait for commits goes on meanwhile.
                self.one_job()?;
            }
        }
        let result = client.txn.commit();
        // Of an ordered commit the coordinator's log is the proof.
        let is_remembered = is_ordered && self.mode == FlushMode::Commit;
        let kept = if is_remembered { Kept::Process } else { Kept::Mode(self.mode) };
        let done = self.came_back("a commit of a prepared transaction", result, after, kept)?;
        self.counts.resolved += u64::from(done);
        Ok(())
    }

    /// Resolves a transaction that no client has, by its name.
    pub(crate) fn resolve_by_xid(&mut self) -> Check {
        let attached: Vec<u64> = self.clients.iter().flatten().filter_map(|client| client.prepared).collect();
        let mut detached: Vec<u64> = self.current().prepared.keys().copied().collect();
        detached.retain(|number| !attached.contains(number));
        let Some(number) = detached.choose(&mut self.rng).copied() else {
            let unknown = self.db.commit_by_xid(b"nobody");
            ensure!(matches!(unknown, Ok(false)), "commit of an unknown transaction: {unknown:?}");
            return Ok(());
        };
        let commits = self.is_faulty || self.rng.random_ratio(2, 3);
        note!(self, "{} of {number} by name", if commits { "commit" } else { "rollback" });
        let after = Rc::new(self.current().resolved(number, commits));
        self.in_flight = Some(after.clone());
        let result =
            if commits { self.db.commit_by_xid(&xid(number)) } else { self.db.rollback_by_xid(&xid(number)) };
        if let Ok(false) = result {
            return Err(format!("the prepared transaction {number} is not known"));
        }
        let result = result.map(|_| ());
        let done = self.came_back("resolving by name", result, after, Kept::Mode(self.mode))?;
        self.counts.resolved += u64::from(done);
        Ok(())
    }

    /// Rolls back all that is prepared. No client is left.
    pub(crate) fn resolve_all(&mut self) -> Check {
        let numbers: Vec<u64> = self.current().prepared.keys().copied().collect();
        for number in numbers {
            let rolled_back = self.db.rollback_by_xid(&xid(number));
            ensure!(matches!(rolled_back, Ok(true)), "rollback of {number} by name: {rolled_back:?}");
            let after = Rc::new(self.current().resolved(number, false));
            self.history.push(after);
        }
        Ok(())
    }

    /// The names that the database tells are those of the transactions that no client has.
    pub(crate) fn check_prepared(&mut self) -> Check {
        let attached: Vec<u64> = self.clients.iter().flatten().filter_map(|client| client.prepared).collect();
        let expected: Vec<u64> =
            self.current().prepared.keys().copied().filter(|number| !attached.contains(number)).collect();
        let told = told(&self.db)?;
        ensure!(told == expected, "prepared transactions {told:?} and not {expected:?}");
        Ok(())
    }
}

/// Numbers of the prepared transactions that a database tells.
pub(crate) fn told(db: &pandodb::Db) -> Check<Vec<u64>> {
    let names = db.report_prepared(usize::MAX);
    let numbers =
        names.iter().map(|name| number(name).ok_or_else(|| format!("a transaction named {name:?}")));
    let mut numbers: Vec<u64> = numbers.collect::<Check<_>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether a table is kept by a prepared transaction that no client has: `None` if that depends on what it
/// has undone.
pub(crate) fn is_kept(state: &State, table: u64) -> Option<bool> {
    let writes = |prepared: &Rc<Prepared>| prepared.writes.iter().any(|write| write.table == table);
    if state.prepared.values().any(writes) {
        return Some(true);
    }
    let touches = state.prepared.values().any(|prepared| prepared.touched.contains(&table));
    (!touches).then_some(false)
}

/// Whether a change of a table was refused because of a prepared transaction, as it should be.
pub(crate) fn is_refused(what: &str, kept: Option<bool>, result: &pandodb::Result<()>) -> Check<bool> {
    let in_use = matches!(result, Err(Error::Engine(pandodb::EngineError::InUse { .. })));
    ensure!(
        !in_use || kept != Some(false),
        "{what}: refused though no prepared transaction has written there"
    );
    ensure!(
        result.is_err() || kept != Some(true),
        "{what}: done though a prepared transaction has written there"
    );
    Ok(in_use)
}
