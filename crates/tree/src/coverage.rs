//! What recovery would still need from the log: spans of commits not in the durable checkpoint.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_base::Seqno;
use pando_run::Run;

/// One sealed memtable or one truncation.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// First commit in it.
    first: Seqno,
    /// A checkpoint with this durable seqno holds all of it.
    last: Seqno,
}

/// Spans in the order of their commits; the active memtable is not among them.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    spans: VecDeque<Span>,
    /// Adopted runs that recovery would open by what the log says: their space must not be used again,
    /// even if the tree has merged them into others or was truncated.
    adopted: Vec<Arc<Run>>,
}

impl Coverage {
    pub(crate) fn push(&mut self, first: Seqno, last: Seqno) {
        debug_assert!(first <= last);
        self.spans.push_back(Span { first, last });
    }

    /// Everything before is of no interest any more, but this commit is.
    pub(crate) fn truncate(&mut self, seqno: Seqno) {
        self.spans.clear();
        self.push(seqno, seqno);
    }

    /// The log refers to the run.
    pub(crate) fn adopt(&mut self, run: Arc<Run>) {
        self.adopted.push(run);
    }

    /// Adopted runs that the log may still be needed for.
    pub(crate) fn adopted(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.adopted.iter()
    }

    /// A checkpoint up to `seqno` is durable. Gives the runs that nobody needs for recovery any more.
    #[must_use = "they are to be dropped outside the lock"]
    pub(crate) fn made_durable(&mut self, seqno: Seqno) -> Vec<Arc<Run>> {
        self.spans.retain(|span| span.last > seqno);
        let (covered, needed) =
            std::mem::take(&mut self.adopted).into_iter().partition(|run| run.meta().max_seqno <= seqno);
        self.adopted = needed;
        covered
    }

    /// First commit that only the log has.
    pub(crate) fn first(&self) -> Option<Seqno> {
        self.spans.iter().map(|span| span.first).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_frees_the_log_of_what_it_covers() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.first(), None);
        coverage.push(3, 7);
        coverage.push(8, 12);
        assert_eq!(coverage.first(), Some(3));
        assert!(coverage.made_durable(7).is_empty());
        assert_eq!(coverage.first(), Some(8));
        assert!(coverage.made_durable(11).is_empty());
        assert_eq!(coverage.first(), Some(8));
        coverage.truncate(20);
        assert_eq!(coverage.first(), Some(20));
        assert!(coverage.made_durable(20).is_empty());
        assert_eq!(coverage.first(), None);
    }
}
