//! A query, from what the server says to the rows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use pando_query::{Failure, Limits, Why};
use pandodb::layout::Layouts;
use pandodb::{QueryThreads, Result, Table, Txn};

use crate::block::Block;
use crate::column::{Batch, Data, Kind, Value};
use crate::decode;
use crate::eval::{wrong_plan, Eval};
use crate::execute::Run;
use crate::explain::{Counts, Operator};
use crate::expr::{Expr, Slot, Texts};
use crate::keys::Budget;
use crate::null_safe;
use crate::plan::Plan;
use crate::planner::{Planner, Sample};
use crate::repeated::Repeated;
use crate::sample::Sampler;
use crate::spill::{Chunk, Spill, SpillTo};
use crate::warnings::Written;

/// A query.
#[derive(Debug)]
pub struct Query {
    block: Block,
    /// What the server may compute of all rows of a table: so it is, and comes to nothing. True: it is a part of what may warn.
    asked: Vec<(bool, Expr)>,
    /// Conditions that the server computes before the others.
    first: Vec<Expr>,
    /// What only warns is asked of all rows, too.
    asks_all: bool,
    /// What the server's code does with texts.
    pub texts: Texts,
    /// Where rows go that memory has no room for; `None`: the query is given back then.
    pub spill_to: Option<SpillTo>,
}

/// The rows of an answer. Those that are in memory, or in a part of it that [`Answer::go_to`] has read, can be looked at.
#[derive(Debug, Default)]
pub struct Answer {
    chunks: Vec<Chunk>,
    /// The row that each chunk begins with; then how many there are.
    starts: Vec<usize>,
    /// What can be looked at, and the row that it begins with.
    batch: Batch,
    start: usize,
    kinds: Vec<Kind>,
    /// Rows of tables that were gone over.
    pub rows_met: u64,
    /// Rows that there were to skip, where the answer has none since all of them were skipped.
    pub rows_skipped: u64,
    /// How it was answered.
    pub operators: Vec<Operator>,
}

/// A plan, and what it was made of.
struct Ready<'a> {
    plan: Plan,
    distinct: HashMap<Slot, f64>,
    layouts: Vec<&'a Layouts>,
}

/// What became of a query.
#[derive(Debug)]
pub enum Outcome {
    /// It is answered.
    Rows(Answer),
    /// It is to be answered some other way.
    GivenBack(Why),
}

impl Answer {
    fn new(chunks: Vec<Chunk>, kinds: Vec<Kind>) -> std::result::Result<Answer, Failure> {
        let mut answer = Answer { kinds, ..Answer::default() };
        if !chunks.iter().any(Chunk::is_spilled) {
            let batches = chunks.iter().map(Chunk::load).collect::<std::result::Result<Vec<_>, _>>()?;
            answer.batch = match batches.is_empty() {
                true => crate::execute::empty(&answer.kinds),
                false => Batch::concat(&batches, &answer.kinds),
            };
            answer.starts = vec![answer.batch.rows];
            return Ok(answer);
        }
        let mut rows = 0;
        for chunk in &chunks {
            answer.starts.push(rows);
            rows += chunk.rows();
        }
        answer.starts.push(rows);
        answer.chunks = chunks;
        Ok(answer)
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Makes a row ready to be looked at, with some around it; texts of others are gone then. False: the temporary file that it is in
    /// cannot be read.
    #[must_use]
    pub fn go_to(&mut self, row: usize) -> bool {
        let is_there = row.checked_sub(self.start).is_some_and(|row| row < self.batch.rows);
        if is_there || self.chunks.is_empty() || row >= self.rows() {
            return true;
        }
        let number = self.starts.partition_point(|start| *start <= row) - 1;
        match self.chunks[number].load() {
            Ok(batch) => {
                (self.batch, self.start) = (batch, self.starts[number]);
                true
            }
            Err(_) => false,
        }
    }

    /// A value; NULL beyond the rows and columns.
    pub fn value(&self, row: usize, column: usize) -> Value {
        match (self.batch.columns.get(column), row.checked_sub(self.start)) {
            (Some(column), Some(row)) if row < self.batch.rows => column.value(row),
            _ => Value::Null,
        }
    }

    /// A text; `None` where there is none.
    pub fn text(&self, row: usize, column: usize) -> Option<&[u8]> {
        let row = row.checked_sub(self.start)?;
        let column = self.batch.columns.get(column).filter(|column| row < column.rows())?;
        match &column.data {
            Data::Text(codes, dict) if !column.is_null(row) => Some(dict.get(codes[row])),
            _ => None,
        }
    }

    /// Digits behind the point of a column's numbers.
    pub fn scale(&self, column: usize) -> u32 {
        self.kinds.get(column).map_or(0, |kind| kind.scale())
    }
}

impl Query {
    /// Of a block.
    pub fn new(mut block: Block, texts: Texts) -> Query {
        null_safe::simplify(&mut block);
        Query { block, asked: Vec::new(), first: Vec::new(), asks_all: false, texts, spill_to: None }
    }

    /// As the server says it (`decode.rs`). `None`: it is not said right.
    pub fn decode(bytes: &[u8], texts: Texts) -> Option<Query> {
        let decode::Said { mut block, asked, first } = decode::query_of(bytes)?;
        null_safe::simplify(&mut block);
        Some(Query { block, asked, first, asks_all: false, texts, spill_to: None })
    }

    /// What only warns of some rows of several tables gives the query back, if it does. From now on it is asked of all rows of its
    /// table, and told where any plan would tell the same. False: it was so already.
    pub fn ask_all(&mut self) -> bool {
        !std::mem::replace(&mut self.asks_all, true)
    }

    fn plan(&self, sample: Option<&Sample<'_>>) -> std::result::Result<(Plan, HashMap<Slot, f64>), Failure> {
        let mut planner = Planner::new(&self.block, sample);
        let mut plan = planner.block(&self.block)?.plan;
        let asks_parts = self.asks_all || plan.scans() < 2;
        let asked = |part: bool| self.asked.iter().filter(move |(is_part, _)| *is_part == part);
        if !asked(false).all(|(_, asked)| plan.ask(asked, &[])) {
            return Err(wrong_plan("what the server may compute of other rows"));
        }
        if !plan.is_sound() {
            return Err(wrong_plan("a column where there is none"));
        }
        let parts: Vec<&Expr> = asked(true).filter(|_| asks_parts).map(|(_, asked)| asked).collect();
        let mut written = Vec::new();
        self.block.filter.iter().for_each(|filter| filter.clone().conjuncts(&mut written));
        match plan.settle_warnings(self.asks_all, &parts, &Written { all: written, first: &self.first }) {
            true => Ok((plan, planner.distinct)),
            false => Err(wrong_plan("a condition on several tables that may warn")),
        }
    }

    /// Why there is no plan for it; `None`: there is one.
    pub fn why_not(&self) -> Option<String> {
        match self.plan(None) {
            Ok(_) => None,
            Err(Failure::Error(error)) => Some(error.to_string()),
            Err(Failure::GivenBack(why)) => Some(format!("{why:?}")),
        }
    }

    /// The plan for these tables, made after a look at some of their rows; or why there is none.
    fn ready<'a>(
        &self,
        txn: &mut Txn,
        tables: &[&'a Table],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> std::result::Result<Ready<'a>, Why> {
        let layouts = tables.iter().map(|table| table.layouts().map(|layouts| &**layouts));
        let layouts = layouts.collect::<Option<Vec<_>>>().ok_or(Why::Unsupported)?;
        let eval = Eval { texts: &self.texts, is_stopped };
        let planned = {
            let sampler = RefCell::new(Sampler { txn, tables, layouts: &layouts, eval });
            // An error comes again when the table is read.
            self.plan(Some(&|scan| sampler.borrow_mut().part_left(scan).ok().flatten()))
        };
        match planned {
            Ok((plan, distinct)) => Ok(Ready { plan, distinct, layouts }),
            Err(Failure::GivenBack(why)) => Err(why),
            Err(Failure::Error(_)) => Err(Why::Unsupported),
        }
    }

    /// The operators by which it would be answered, with the rows that they are thought to give. `None`: there is no plan.
    pub fn explain(
        &self,
        txn: &mut Txn,
        tables: &[&Table],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Option<Answer> {
        let Ready { plan, distinct, .. } = self.ready(txn, tables, is_stopped).ok()?;
        let operators = Counts::of(&plan).operators(&plan, &distinct);
        Some(Answer { operators, ..Answer::default() })
    }

    /// Answers it from what the transaction sees. `is_stopped` is asked often, by all threads.
    ///
    /// # Errors
    /// Those of reading the tables.
    pub fn run(
        &self,
        txn: &mut Txn,
        tables: &[&Table],
        limits: Limits,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome> {
        let Ready { plan, distinct, layouts } = match self.ready(txn, tables, is_stopped) {
            Ok(ready) => ready,
            Err(why) => return Ok(Outcome::GivenBack(why)),
        };
        let budget = Arc::new(Budget::new(limits.memory_bytes));
        let spill = self.spill_to.clone().map(|to| Spill::new(to, limits.memory_bytes));
        let shared = (limits.threads == 0).then(QueryThreads::take);
        let threads = shared.as_ref().map_or(limits.threads, QueryThreads::count);
        let counts = Counts::of(&plan);
        let mut run = Run {
            txn,
            tables,
            layouts,
            texts: &self.texts,
            budget: &budget,
            spill: spill.as_ref(),
            threads,
            is_stopped,
            is_alone: false,
            rows_met: 0,
            rows_left: None,
            is_hurried: false,
            rows_sorted: 0,
            counts: &counts,
            filters: Vec::new(),
            first: None,
            first_stands: self.block.first_stands && self.block.others.is_empty(),
            repeated: Repeated::of(&plan, &|a, b| match (tables.get(a), tables.get(b)) {
                (Some(a), Some(b)) => a.is_same_as(b),
                _ => false,
            }),
        };
        let outputs: Vec<_> = self.block.outputs.iter().map(|(slot, _)| *slot).collect();
        let result = run.chunks(&plan, &outputs);
        let (rows_met, rows_sorted) = (run.rows_met, run.rows_sorted);
        // It is asked again then (`ask_all`).
        let is_first_of_two = !self.asks_all && matches!(result, Err(Failure::GivenBack(Why::Told)));
        if !is_first_of_two {
            txn.note_query(result.is_ok().then_some(rows_met));
        }
        if let Some(bytes) = spill.as_ref().map(Spill::bytes).filter(|bytes| *bytes > 0) {
            txn.note_spilled(bytes);
        }
        match result {
            Ok(chunks) => {
                let given = plan.slots();
                let kind = |slot| {
                    given.iter().find(|(known, _)| known == slot).map_or(Kind::Signed, |(_, kind)| *kind)
                };
                let kinds = outputs.iter().map(kind).collect();
                let operators = counts.operators(&plan, &distinct);
                match Answer::new(chunks, kinds) {
                    Ok(answer) => {
                        let is_all_skipped =
                            matches!(&plan, Plan::Sort { skip, limit, .. } if *skip > 0 && *limit != Some(0));
                        let rows_skipped =
                            if is_all_skipped && answer.rows() == 0 { rows_sorted as u64 } else { 0 };
                        Ok(Outcome::Rows(Answer { rows_met, rows_skipped, operators, ..answer }))
                    }
                    Err(Failure::GivenBack(why)) => Ok(Outcome::GivenBack(why)),
                    Err(Failure::Error(error)) => Err(error),
                }
            }
            Err(Failure::GivenBack(why)) => Ok(Outcome::GivenBack(why)),
            Err(Failure::Error(error)) => Err(error),
        }
    }
}
