//! Crashes. While the engine works, copies of its disk are taken as a power loss would leave it at some
//! I/O in the middle; each is then a machine of its own, that starts, and must show one of the states
//! that could be there: nothing acknowledged as durable is lost, nothing is there in part, nothing else is
//! there. A start is cut off in the same way, and some of the machines go on working.

use std::rc::Rc;
use std::sync::Arc;

use pandodb::SimVfs;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::checks;
use crate::model::State;
use crate::setup::{self, Lines};
use crate::trace::Trace;
use crate::world::{choose_mode, note, Check, World};

/// Crashes after crashes: no deeper.
const DEPTH_MAX: u32 = 3;

impl World {
    /// Chooses I/Os of the coming step at which power will be lost on a copy.
    pub(crate) fn ask_for_copies(&mut self) {
        let count = match self.depth {
            0 => self.rng.random_range(0..4),
            depth => u64::from(self.rng.random_ratio(1, 3 * depth)),
        };
        let longest = if self.rng.random() { 8 } else { 60 };
        let ios: Vec<u64> = (0..count).map(|_| self.rng.random_range(1..longest)).collect();
        self.disk.copies_before_ios(&ios);
    }

    /// Starts the copies that the step has left. `before` is what a crash could have left when it began.
    pub(crate) fn examine_copies(&mut self, before: Vec<Rc<State>>) -> Check {
        self.disk.copies_before_ios(&[]);
        let mut copies = self.disk.take_copies();
        let mut candidates = before;
        candidates.extend(self.in_flight.clone());
        if self.depth == 0 && self.rng.random_ratio(1, 4) {
            // Between two steps; nothing else is going on.
            let copy = self.disk.copy_after_power_loss();
            let mut now = self.history.clone();
            if self.is_latched() {
                now.extend(self.in_flight.clone());
            }
            self.examine(copy, &now)?;
        }
        for copy in copies.drain(..) {
            self.examine(copy, &candidates)?;
        }
        Ok(())
    }

    /// Starts a machine on a disk that has lost power.
    fn examine(&mut self, disk: Arc<SimVfs>, candidates: &[Rc<State>]) -> Check {
        self.counts.crashes += 1;
        disk.set_capacity(Some(setup::DISK_BYTES));
        let mut rng = ChaCha8Rng::from_rng(&mut self.rng);
        let is_cut_again = self.depth < DEPTH_MAX && rng.random_ratio(1, 4);
        if is_cut_again {
            let longest = if rng.random() { 25 } else { 80 };
            disk.copies_before_ios(&[rng.random_range(1..longest), rng.random_range(1..longest)]);
        }
        note!(self, "    a copy after a power loss, depth {}", self.depth);
        let mode = choose_mode(&mut rng);
        let lines = Lines::default();
        let opened = setup::open(&disk, &mut rng, mode, &lines);
        let db = opened.map_err(|error| format!("a start after a crash: {error}"))?;
        let state = checks::find_state(&db, candidates);
        if state.is_err() {
            self.trace.lines(&lines);
        }
        let state = candidates[state?].clone();
        if is_cut_again {
            disk.copies_before_ios(&[]);
            for copy in disk.take_copies() {
                self.counts.crashes_in_recovery += 1;
                self.depth += 1;
                self.examine(copy, candidates)?;
                self.depth -= 1;
            }
        }
        if rng.random_ratio(1, 8) {
            checks::verify(&db, &state).map_err(|error| format!("verifying after a crash: {error}"))?;
        }
        if self.depth < DEPTH_MAX && rng.random_ratio(1, 6) {
            self.counts.resumed += 1;
            let trace = std::mem::replace(&mut self.trace, Trace::off());
            let mut world = World::on(disk, db, rng, mode, lines, trace);
            world.history = vec![state.restarted()];
            world.next_table = self.next_table;
            world.serial = self.serial;
            world.depth = self.depth + 1;
            let went_on = world.go_on();
            self.trace = std::mem::replace(&mut world.trace, Trace::off());
            self.counts += world.counts;
            went_on?;
        }
        Ok(())
    }

    /// Some work after a crash, and another crash.
    fn go_on(&mut self) -> Check {
        note!(self, "    it goes on");
        for _ in 0..self.rng.random_range(2..12) {
            self.step()?;
        }
        self.in_flight = None;
        let (copy, history) = (self.disk.copy_after_power_loss(), self.history.clone());
        self.examine(copy, &history)?;
        if self.rng.random_ratio(1, 4) {
            self.check_space()?;
        }
        note!(self, "    its end");
        self.clients.clear();
        self.count_work();
        self.disk = self.disk.kill();
        self.lose_workers()?;
        self.build = None;
        Ok(())
    }
}
