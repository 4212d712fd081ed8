//! Transactions: reads of single keys, locks, commit in one phase and in two.

pub(crate) mod commit;
pub(crate) mod escalation;
mod expectation;
pub(crate) mod gap_check;
pub(crate) mod prepared;
pub(crate) mod relog;
pub(crate) mod transaction;
mod widening;
