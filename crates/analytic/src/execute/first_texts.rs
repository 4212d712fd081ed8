//! Which of several texts that are equal, and not the same, a group shows, where the server meets its rows in an order that is
//! known ([`Block::first_stands`](crate::Block::first_stands)): that of the row it meets first.
//!
//! Threads make groups of texts as they are. Only if some of these groups are equal, rows are gone over once more, in order, until the first of
//! each such group has been met: mostly among the first few thousand.

use std::collections::HashMap;

use pando_base::locks::Mutex;
use pando_query::{Failure, Why};

use crate::eval::{Eval, Result};
use crate::execute::Run;
use crate::groups::{Groups, Shape};
use crate::keys::{Budget, Keys};
use crate::plan::Plan;
use crate::spilled_groups::Gathering;

/// Whether rows come one after the other as one table has them.
pub(crate) fn is_of_one_scan(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } => true,
        Plan::Filter(input, _) | Plan::Project(input, _) => is_of_one_scan(input),
        _ => false,
    }
}

/// Groups that are equal to others, by the words of the first texts that were known of each: the words of the row that was met first.
struct Open {
    first: HashMap<Box<[u64]>, Option<Box<[u64]>>>,
    left: usize,
}

impl Open {
    fn of(keys: &Keys, words: &[u64], budget: &Budget) -> Result<Open> {
        budget.take(size_of_val(words))?;
        let firsts = keys.firsts_of(words);
        let mut counts: HashMap<&[u64], u32> = HashMap::new();
        firsts.chunks(keys.words).for_each(|words| *counts.entry(words).or_default() += 1);
        let equal = counts.into_iter().filter(|(_, count)| *count > 1);
        let first: HashMap<Box<[u64]>, _> = equal.map(|(words, _)| (words.into(), None)).collect();
        budget.release(size_of_val(words));
        budget.take(first.len() * (keys.words * 16 + 64))?;
        Ok(Open { left: first.len(), first })
    }

    /// These rows come next. Whether the first one of all groups has been met.
    fn meet(&mut self, keys: &Keys, words: &[u64]) -> bool {
        let firsts = keys.firsts_of(words);
        for (of, words) in firsts.chunks(keys.words).zip(words.chunks(keys.words)) {
            if let Some(first @ None) = self.first.get_mut(of) {
                *first = Some(words.into());
                self.left -= 1;
            }
        }
        self.left == 0
    }

    /// What stands for each of these groups.
    fn standing(&self, keys: &Keys, words: &[u64]) -> Vec<u64> {
        let (mut standing, firsts) = (words.to_vec(), keys.firsts_of(words));
        for (of, words) in firsts.chunks(keys.words).zip(standing.chunks_mut(keys.words)) {
            if let Some(Some(first)) = self.first.get(of) {
                words.copy_from_slice(first);
            }
        }
        standing
    }
}

impl Run<'_> {
    /// Makes one of groups that are equal, if it is known which of their texts stands for them.
    pub(crate) fn with_first_texts(
        &mut self,
        of: &Gathering<'_>,
        groups: Groups,
        shape: &Shape,
        budget: &Budget,
    ) -> Result<Groups> {
        // What has been added up in the order of the rows of each text is not what it would be in that of all of them.
        if !of.first_stands || of.is_of_order() || !shape.keys.have_equal(groups.words(), budget)? {
            return Ok(groups);
        }
        let open = Mutex::new(Open::of(&shape.keys, groups.words(), budget)?);
        let before = (self.rows_met, self.counts.rows(), self.threads);
        self.threads = 1;
        let (texts, is_stopped) = (self.texts, self.is_stopped);
        let result = self.fold_gathering(
            of,
            || (),
            |(), batch| {
                let columns = of.columns_of_groups(Eval { texts, is_stopped }, &batch)?;
                let words = shape.keys.encode(&columns, batch.rows, true, budget)?;
                match open.lock().meet(&shape.keys, &words) {
                    true => Err(Failure::GivenBack(Why::Stopped)),
                    false => Ok(()),
                }
            },
        );
        self.threads = before.2;
        let open = open.into_inner();
        match result {
            Err(Failure::GivenBack(Why::Stopped)) if open.left == 0 && !is_stopped() => {}
            Err(failure) => return Err(failure),
            // All groups are of rows.
            Ok(_) if open.left > 0 => return Err(Failure::GivenBack(Why::Undetermined)),
            Ok(_) => {}
        }
        self.rows_met = before.0;
        self.counts.set_rows(&before.1);
        let standing = open.standing(&shape.keys, groups.words());
        groups.united(shape, standing, budget)
    }
}
