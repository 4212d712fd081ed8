//! Trouble: I/Os that fail, are misread or find the disk full; the end of the machine, in one way or
//! another, and starts that meet trouble of their own.

use std::path::Path;
use std::rc::Rc;

use pando_storage::vfs::{FaultKind, Vfs};
use pandodb::SimVfs;
use rand::seq::IndexedRandom;
use rand::Rng;

use crate::checks;
use crate::model::State;
use crate::setup;
use crate::world::{choose_mode, ensure, note, Check, World, NAMES};

impl World {
    /// Arms a fault for one of the next I/Os.
    pub(crate) fn arm_fault(&mut self) {
        let kinds = [
            FaultKind::Error,
            FaultKind::Error,
            FaultKind::Sticky,
            FaultKind::DiskFull,
            FaultKind::ShortRead,
            FaultKind::FlippedRead,
        ];
        self.arm_fault_at(&kinds, 60);
    }

    /// Arms one of these faults for one of so many I/Os.
    pub(crate) fn arm_fault_at(&mut self, kinds: &[FaultKind], ios: u64) {
        let kind = kinds[self.rng.random_range(0..kinds.len())];
        let n = self.rng.random_range(1..=ios);
        note!(self, "fault: {kind:?} at I/O {n} from now");
        self.disk.fail_io_after(n, kind);
        self.is_faulty = true;
        self.counts.faults += 1;
    }

    /// A stretch of work on a disk with little room: done or refused, and nothing fails for good.
    pub(crate) fn fill_disk(&mut self) -> Check {
        if self.is_faulty {
            return Ok(());
        }
        let room = self.rng.random_range(0..200_000);
        note!(self, "the disk has room for {room} bytes");
        self.disk.set_capacity(Some(self.disk.used_bytes() + room));
        self.is_faulty = true;
        self.counts.disks_filled += 1;
        for _ in 0..self.rng.random_range(5..30) {
            self.in_flight = None;
            let before = self.history.clone();
            self.ask_for_copies();
            match self.rng.random_range(0..10) {
                0..=6 => self.client_step()?,
                7 => self.ddl_step()?,
                8 => self.begin_job()?,
                _ => {
                    self.end_workers()?;
                    _ = self.db.checkpoint();
                }
            }
            self.examine_copies(before)?;
            ensure!(!self.is_latched(), "a full disk has latched the log");
        }
        self.end_workers()?;
        note!(self, "the disk has room again");
        self.disk.set_capacity(Some(setup::DISK_BYTES));
        self.is_faulty = false;
        self.check_whole()
    }

    /// Ends the process in one way or another, and starts it until it comes up whole.
    pub(crate) fn restart(&mut self) -> Check {
        self.clients.iter_mut().for_each(|slot| *slot = None);
        self.disk.copies_before_ios(&[]);
        let latched = self.is_latched();
        let is_cut = self.rng.random_ratio(2, 3);
        let closes = !latched && self.rng.random_ratio(1, 3);
        note!(self, "restart: closed {closes}, power cut {is_cut}, latched {latched}");
        if closes {
            self.end_workers()?;
            self.build = None;
            let closed = self.db.close();
            if self.settle("closing", closed)?.is_some() {
                self.forget_past();
            }
        }
        self.counts.crashes += u64::from(!closes || is_cut);
        self.counts.restarts += 1;
        self.count_work();
        let mut candidates = self.history.clone();
        candidates.extend(self.in_flight.take());
        // Without a power cut the system has what the process has written.
        let mut written = (!is_cut && !latched).then(|| self.written());
        self.disk = if is_cut { self.disk.crash() } else { self.disk.kill() };
        self.lose_workers()?;
        self.build = None;
        self.disk.set_capacity(Some(setup::DISK_BYTES));
        self.is_faulty = false;
        self.mode = choose_mode(&mut self.rng);
        while self.rng.random_ratio(1, 4) {
            let had_power = self.start_in_trouble(&mut candidates, written.clone())?;
            written = written.filter(|_| had_power);
        }
        let opened = setup::open(&self.disk, &mut self.rng, self.mode, &self.lines);
        self.db = opened.map_err(|error| format!("a start without faults: {error}"))?;
        if let Some(written) = written {
            candidates = written;
        }
        let state = checks::find_state(&self.db, &candidates)?;
        note!(self, "  found state {} of {}", state + 1, candidates.len());
        self.history = vec![candidates[state].restarted()];
        self.unwritten = 0;
        Ok(())
    }

    /// A start that meets a fault, and perhaps another end at once. Gives whether power has stayed. `written`
    /// is what may be there if it did until now.
    fn start_in_trouble(
        &mut self,
        candidates: &mut Vec<Rc<State>>,
        written: Option<Vec<Rc<State>>>,
    ) -> Check<bool> {
        let kinds = [FaultKind::Error, FaultKind::Sticky, FaultKind::DiskFull, FaultKind::FlippedRead];
        let kind = kinds[self.rng.random_range(0..kinds.len())];
        let n = self.rng.random_range(1..100);
        note!(self, "  a start with {kind:?} at I/O {n}");
        self.disk.fail_io_after(n, kind);
        self.counts.faults += 1;
        match setup::open(&self.disk, &mut self.rng, self.mode, &self.lines) {
            Ok(db) => {
                note!(self, "  it is up");
                // What can be read now is what is there from now on.
                if let Some(written) = written {
                    *candidates = written;
                }
                if let Ok(found) = checks::observe(&db) {
                    let state = checks::find(&found, candidates)?;
                    let state = candidates.swap_remove(state);
                    *candidates = vec![state];
                }
                if self.rng.random() {
                    db.tick();
                }
                if self.rng.random() {
                    let _ = db.close();
                }
            }
            Err(_) => self.counts.failed_starts += 1,
        }
        let is_cut = self.rng.random();
        if is_cut {
            self.counts.crashes += 1;
            self.disk = self.disk.crash();
        }
        self.disk.clear_faults();
        Ok(!is_cut)
    }

    /// Flips bits in a table's file, on a copy of the disk: what is read is right, or an error.
    pub(crate) fn rot(&mut self) -> Check {
        let copy = self.disk.copy_after_clean_stop();
        let names: Vec<usize> = self.current().tables.values().map(|table| table.name).collect();
        let Some(name) = names.choose(&mut self.rng) else { return Ok(()) };
        let dir = Path::new("/data").join(format!("{}.pando", &NAMES[*name][2..]));
        let files = copy.read_dir(&dir).map_err(|error| format!("listing {}: {error}", dir.display()))?;
        let files: Vec<_> = files.iter().filter(|file| file.name.ends_with(".pando")).collect();
        for _ in 0..self.rng.random_range(1..4) {
            let Some(file) = files.choose(&mut self.rng) else { return Ok(()) };
            flip(&copy, &dir.join(&file.name), &mut self.rng);
        }
        self.counts.rotten += 1;
        note!(self, "bits flipped in {}", dir.display());
        let Ok(db) = setup::open(&copy, &mut self.rng, self.mode, &self.lines) else { return Ok(()) };
        for (place, rows) in checks::readable(&db, self.current())? {
            let expected = &self.current().tables[&place.0].dicts[place.1];
            ensure!(checks::is_same(&rows, expected), "rot has changed {place:?} without an error");
        }
        Ok(())
    }
}

fn flip(disk: &SimVfs, path: &Path, rng: &mut impl Rng) {
    let len = disk.open(path, pando_storage::vfs::OpenMode::Existing).and_then(|file| file.len());
    if let Ok(len @ 1..) = len {
        disk.flip_bit(path, rng.random_range(0..len), rng.random_range(0..8));
    }
}
