//! Going over a table on several threads: they take the ranges of its leaves from a common counter until none is left.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use pandodb::layout::Layouts;
use pandodb::{on_threads, Block, Verdict, View, Want, Zones};

use crate::run::{Failure, Why};

/// See the head of this file.
pub struct Scan<'a> {
    layouts: &'a Layouts,
    view: View<'a>,
    wants: Vec<Want>,
    /// Which of them are read only of blocks that are asked for them; empty: none.
    is_late: Vec<bool>,
    bounds: Vec<Vec<u8>>,
    next_part: AtomicUsize,
    has_failed: AtomicBool,
    rows_met: AtomicU64,
    /// Those of segments that were passed over.
    rows_skipped: AtomicU64,
    judge: &'a Judge<'a>,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Reads the late columns of the block that is looked at, of some rows (`None`: all), and says of how many of these.
pub type Rest<'a> = dyn FnMut(&mut Block, Option<&[u32]>) -> Result<usize, Failure> + 'a;

/// Says how many of a segment's rows count.
pub type Judge<'a> = dyn Fn(&Zones<'_>) -> Verdict + Sync + 'a;

impl<'a> Scan<'a> {
    /// Over the rows of a view.
    pub fn new(
        layouts: &'a Layouts,
        view: View<'a>,
        (wants, is_late): (Vec<Want>, Vec<bool>),
        judge: &'a Judge<'a>,
        is_stopped: &'a (dyn Fn() -> bool + Sync),
    ) -> Scan<'a> {
        let bounds = view.bounds();
        let (next_part, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (rows_met, rows_skipped) = (AtomicU64::new(0), AtomicU64::new(0));
        Scan {
            layouts,
            view,
            wants,
            is_late,
            bounds,
            next_part,
            has_failed,
            rows_met,
            rows_skipped,
            judge,
            is_stopped,
        }
    }

    /// How many rows were met.
    pub fn rows_met(&self) -> u64 {
        self.rows_met.load(Ordering::Relaxed)
    }

    /// How many rows there were, met or passed over.
    pub fn rows_in_all(&self) -> u64 {
        self.rows_met() + self.rows_skipped.load(Ordering::Relaxed)
    }

    /// How many threads are of use.
    pub fn threads(&self, most: usize) -> usize {
        most.clamp(1, self.bounds.len() + 1)
    }

    /// Gives all blocks to `step`, which has something of its own in each thread; these are the result.
    pub fn fold<S: Send>(
        &self,
        threads: usize,
        begin: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, Block, &mut Rest<'_>) -> Result<(), Failure> + Sync,
    ) -> Result<Vec<S>, Failure> {
        let mut results = Vec::new();
        let mut failure = None;
        for result in on_threads(threads, || self.thread(&begin, &step)) {
            match result {
                Ok(of_thread) => results.push(of_thread),
                // An error tells more than that others stopped because of it.
                Err(Failure::Error(error)) => failure = Some(Failure::Error(error)),
                Err(Failure::GivenBack(Why::Stopped)) => {
                    _ = failure.get_or_insert(Failure::GivenBack(Why::Stopped));
                }
                Err(given_back) => match failure {
                    Some(Failure::Error(_)) => {}
                    _ => failure = Some(given_back),
                },
            }
        }
        failure.map_or(Ok(results), Err)
    }

    fn thread<S>(
        &self,
        begin: &impl Fn() -> S,
        step: &impl Fn(&mut S, Block, &mut Rest<'_>) -> Result<(), Failure>,
    ) -> Result<S, Failure> {
        let mut state = begin();
        let result = loop {
            let part = self.next_part.fetch_add(1, Ordering::Relaxed);
            if part > self.bounds.len() {
                break Ok(());
            }
            // Also where nothing counts, and no block comes of it.
            let result = self.go_on().and_then(|()| self.part(part, &mut state, step));
            if let Err(failure) = result {
                break Err(failure);
            }
        };
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result.map(|()| state)
    }

    fn go_on(&self) -> Result<(), Failure> {
        match self.has_failed.load(Ordering::Relaxed) || (self.is_stopped)() {
            true => Err(Failure::GivenBack(Why::Stopped)),
            false => Ok(()),
        }
    }

    fn part<S>(
        &self,
        part: usize,
        state: &mut S,
        step: &impl Fn(&mut S, Block, &mut Rest<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begin = part.checked_sub(1).and_then(|before| self.bounds.get(before));
        let end = self.bounds.get(part);
        let (begin, end) = (begin.map(Vec::as_slice), end.map(Vec::as_slice));
        let mut blocks = self.view.blocks(self.layouts, &self.wants, begin, end)?;
        blocks.by_spans();
        if !self.is_late.is_empty() {
            blocks.read_late(self.layouts, &self.wants, &self.is_late);
        }
        while let Some(block) = blocks.next_where(self.judge)? {
            self.rows_met.fetch_add(block.rows as u64, Ordering::Relaxed);
            step(state, block, &mut |block, rows| {
                // Whoever goes row by row finds out why there are no columns, and tells.
                blocks.complete(block, rows)?.ok_or(Failure::GivenBack(Why::Unsupported))
            })?;
            self.go_on()?;
        }
        self.rows_skipped.fetch_add(blocks.rows_skipped(), Ordering::Relaxed);
        Ok(())
    }
}
