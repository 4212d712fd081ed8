//! Window functions: what is told of the rows around each row, after groups and before DISTINCT and ORDER BY.
//!
//! Rows are sorted by the partition and the order of a window; then each row has its **frame**: from which row of the partition
//! to which. Both ends only ever go forward, so sums are differences of sums from the partition's begin, and extremes come
//! out of a queue. Rows that the order leaves equal are **peers**. Which of them comes first is a matter of the server's sort:
//! where that decides (ROW_NUMBER of peers, frames that end between them), the query is given back. It decides nothing where peers are
//! the same in all that is looked at, as any order of them gives the same rows then.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pando_query::{Failure, Why};

use crate::column::{Batch, Column, Data, Kind, NO_ROW, OVERFLOW, UNSUPPORTED};
use crate::eval::{wrong_plan, Eval, Result};
use crate::execute::{with_slots, Run};
use crate::expr::{Expr, Slot};
use crate::keys::Budget;
use crate::plan::Plan;
use crate::planner::{Grouped, Planner, Unit};
use crate::sort::{sort_rows, Sorter};
pub use crate::tags::WindowFunction as Function;

/// What a window holds of each row while it is computed: its place in the order, its peers, its frame, sums up to it, its value.
const ROW_BYTES: usize = 112;

/// Rows after which is asked whether to go on.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Where a frame begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// With the partition.
    Unbounded,
    /// At the row; of a range: at its peers.
    Current,
    /// So many rows before; of a range: as much below, without the point of what the order is by.
    Preceding(i128),
    /// Behind, or above.
    Following(i128),
}

/// Which rows of the partition are around one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Told by values, not by rows.
    pub is_range: bool,
    /// Where it begins.
    pub begin: Bound,
    /// Where it ends.
    pub end: Bound,
}

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What is told.
    pub function: Function,
    /// What its values are.
    pub kind: Kind,
    /// Of `Tile`, `Lag`, `Lead` and `Nth`.
    pub number: i64,
    /// Of what.
    pub of: Option<Expr>,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY; true: descending.
    pub order: Vec<(Expr, bool)>,
    /// The frame.
    pub frame: Frame,
}

impl Window {
    pub(crate) fn parts(&self) -> Vec<&Expr> {
        self.of.iter().chain(&self.partition).chain(self.order.iter().map(|(expr, _)| expr)).collect()
    }

    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Expr> {
        let order = self.order.iter_mut().map(|(expr, _)| expr);
        self.of.iter_mut().chain(&mut self.partition).chain(order).collect()
    }

    fn is_sorted_as(&self, other: &Window) -> bool {
        self.partition == other.partition && self.order == other.order
    }

    fn sorted_by(&self) -> impl Iterator<Item = &Expr> {
        self.partition.iter().chain(self.order.iter().map(|(expr, _)| expr))
    }

    /// Whether it tells of a row by its place among its peers.
    fn tells_peers_apart(&self) -> bool {
        let Frame { is_range, begin, end } = self.frame;
        match self.function {
            Function::RowNumber | Function::Tile | Function::Lag | Function::Lead => true,
            Function::Rank | Function::DenseRank | Function::PercentRank | Function::Distribution => false,
            // The last digits of a sum are a matter of its order.
            Function::Sum | Function::Mean if self.kind == Kind::Real => true,
            _ => !is_range && (begin != Bound::Unbounded || end != Bound::Unbounded),
        }
    }
}

/// What is seen of peers: what is looked at above the windows, and how other windows sort. `None`: their order may show whatever they are, as windows that
/// sort differently tell them apart.
fn seen_of_peers(windows: &[(Slot, Window)], of: &Window, needed: &[Slot]) -> Option<Vec<Slot>> {
    let others = || windows.iter().map(|(_, window)| window).filter(|other| !other.is_sorted_as(of));
    if others().any(Window::tells_peers_apart) {
        return None;
    }
    Some(with_slots(needed, &others().flat_map(Window::sorted_by).collect::<Vec<_>>()))
}

/// The server sorts once for windows of which each sorts as the beginning of the next one, and takes that to be so of the first
/// and the last too: where two sort differently and a third one as both begin, it tells something else of the rows of one.
/// What it tells depends on how it came by its plan.
fn is_mixed_up_by_server(windows: &[(Slot, Window)]) -> bool {
    let sorted = |window: &Window| -> Vec<(Expr, bool)> {
        window
            .partition
            .iter()
            .map(|expr| (expr.clone(), false))
            .chain(window.order.iter().cloned())
            .collect()
    };
    let all: Vec<Vec<(Expr, bool)>> = windows.iter().map(|(_, window)| sorted(window)).collect();
    let differ = |a: &[(Expr, bool)], b: &[(Expr, bool)]| !a.starts_with(b) && !b.starts_with(a);
    all.iter().any(|begin| {
        let longer: Vec<_> = all.iter().filter(|other| other.starts_with(begin)).collect();
        longer.iter().any(|a| longer.iter().any(|b| differ(a, b)))
    })
}

impl Planner<'_> {
    /// Computes the window functions of the select list and of ORDER BY, and names them there.
    pub(crate) fn windowed(&mut self, (unit, outputs, order): Grouped) -> Result<Grouped> {
        let mut windows: Vec<(Slot, Window)> = Vec::new();
        let mut replace = |expr: &Expr| {
            expr.replaced(&mut |part| {
                let Expr::Window(window) = part else { return None };
                let known = windows.iter().find(|(_, known)| *known == **window);
                let slot = known.map_or_else(|| self.new_slot(), |(slot, _)| *slot);
                if known.is_none() {
                    windows.push((slot, (**window).clone()));
                }
                Some(Expr::Slot(slot, window.kind))
            })
        };
        let outputs: Vec<_> = outputs.iter().map(|(slot, expr)| (*slot, replace(expr))).collect();
        let order: Vec<_> = order.iter().map(|(expr, descends)| (replace(expr), *descends)).collect();
        if windows.is_empty() {
            return Ok((unit, outputs, order));
        }
        if windows
            .iter()
            .flat_map(|(_, window)| window.parts())
            .any(|part| part.has_query() || part.has_window())
        {
            return Err(wrong_plan("a query in a window"));
        }
        if is_mixed_up_by_server(&windows) {
            return Err(wrong_plan("windows that the server sorts once for all"));
        }
        let Unit { plan, mut slots, rows } = unit;
        slots.extend(windows.iter().map(|(slot, _)| *slot));
        Ok((Unit { plan: Plan::Window { input: Box::new(plan), windows }, slots, rows }, outputs, order))
    }
}

impl Run<'_> {
    /// The rows of a plan with what is told of those around each; sorted as the last window sorts them.
    pub(crate) fn with_windows(
        &mut self,
        input: &Plan,
        windows: &[(Slot, Window)],
        needed: &[Slot],
    ) -> Result<(Batch, Vec<(Slot, Kind)>)> {
        let exprs: Vec<&Expr> = windows.iter().flat_map(|(_, window)| window.parts()).collect();
        let wanted = with_slots(needed, &exprs);
        let mut given: Vec<(Slot, Kind)> = input.slots();
        given.retain(|(slot, _)| wanted.contains(slot));
        let mut slots: Vec<Slot> = given.iter().map(|(slot, _)| *slot).collect();
        let own = slots.len();
        let mut batch = self.rows(input, &slots)?;
        // They are sorted, once for each order.
        self.budget.take(batch.bytes() + batch.rows * ROW_BYTES)?;
        let mut left: Vec<&(Slot, Window)> = windows.iter().collect();
        while let Some((_, first)) = left.first() {
            let (now, later): (Vec<_>, Vec<_>) =
                left.iter().copied().partition(|(_, window)| window.is_sorted_as(first));
            left = later;
            let of_rows = Batch { rows: batch.rows, columns: batch.columns[..own].to_vec() };
            let keys = |exprs: &mut dyn Iterator<Item = (&Expr, bool)>| -> Result<Vec<_>> {
                exprs
                    .map(|(expr, descends)| {
                        let bound = expr.bound(&slots[..own]).ok_or(UNSUPPORTED)?;
                        Ok((self.eval().column(&bound, &of_rows)?, expr.kind(), descends))
                    })
                    .collect()
            };
            let partition = keys(&mut first.partition.iter().map(|expr| (expr, false)))?;
            let order = keys(&mut first.order.iter().map(|(expr, descends)| (expr, *descends)))?;
            let both: Vec<_> = partition.iter().chain(&order).cloned().collect();
            let sorted = crate::sort::order(&both, batch.rows, (0, None), self.budget, self.eval())?;
            batch = batch.gather(&sorted);
            let of_rows = Batch { rows: batch.rows, columns: batch.columns[..own].to_vec() };
            let by = match order.as_slice() {
                [(column, kind, descends)] => Some((Arc::new(column.gather(&sorted)), *kind, *descends)),
                _ => None,
            };
            let sorter = |keys| Sorter::new(keys, self.texts, self.budget);
            let places = Places::of(&sorted, &sorter(&partition)?, &sorter(&order)?);
            let seen = seen_of_peers(windows, first, needed).map(|seen| {
                let at = |slot: &Slot| slots[..own].iter().position(|known| known == slot);
                seen.iter().filter_map(at).map(|at| of_rows.columns[at].clone()).collect::<Vec<_>>()
            });
            let are_peers_alike = now.iter().any(|(_, window)| window.tells_peers_apart())
                && seen.is_some_and(|seen| places.have_alike_peers(&seen));
            for (slot, window) in now {
                self.eval().go_on()?;
                let of = match &window.of {
                    None => None,
                    Some(expr) => {
                        let bound = expr.bound(&slots[..own]).ok_or(UNSUPPORTED)?;
                        Some((self.eval().column(&bound, &of_rows)?, expr.kind()))
                    }
                };
                let ranks = match (window.function, &of) {
                    (Function::Min | Function::Max, Some(of)) => {
                        Some(Ranks::of(of, batch.rows, self.budget, self.eval())?)
                    }
                    _ => None,
                };
                let argument = of.iter().map(|(column, _)| column.clone()).collect::<Vec<_>>();
                let is_any_order = are_peers_alike && places.have_alike_peers(&argument);
                let told = Told { window, of, ranks, by: by.as_ref(), places: &places, is_any_order };
                let column = told.column(self.eval())?;
                self.budget.take(column.bytes())?;
                batch.columns.push(Arc::new(column));
                slots.push(*slot);
                given.push((*slot, window.kind));
            }
        }
        Ok((batch, given))
    }
}

/// Rows in their order: where each partition is, and the peers of each row.
struct Places {
    partitions: Vec<Range<usize>>,
    /// Of each row: its peers.
    peers: Vec<Range<usize>>,
}

impl Places {
    fn of(sorted: &[u32], partition: &Sorter, order: &Sorter) -> Places {
        let rows = sorted.len();
        let (mut partitions, mut peers) = (Vec::new(), Vec::with_capacity(rows));
        let (mut begin, mut begin_of_peers) = (0, 0);
        for row in 1..=rows {
            let is_same =
                |sorter: &Sorter| row < rows && sorter.compare(sorted[row - 1], sorted[row]).is_eq();
            let is_inside = is_same(partition);
            if !is_inside || !is_same(order) {
                peers.resize(row, begin_of_peers..row);
                begin_of_peers = row;
            }
            if !is_inside {
                partitions.push(begin..row);
                begin = row;
            }
        }
        Places { partitions, peers }
    }

    fn has_peers(&self, partition: &Range<usize>) -> bool {
        self.peers[partition.clone()].iter().any(|peers| peers.len() > 1)
    }

    /// Whether peers have the same values in all these columns, bit by bit.
    fn have_alike_peers(&self, columns: &[Arc<Column>]) -> bool {
        columns.iter().all(|column| {
            let is_as_first = |(row, peers): (usize, &Range<usize>)| column.is_same(row, peers.start);
            self.peers.iter().enumerate().all(is_as_first)
        })
    }
}

/// Values as numbers in their order, to find the least and the largest.
struct Ranks {
    ranks: Vec<u32>,
    /// A row of each; `NO_ROW`: they are texts that are equal and not the same.
    rows: Vec<u32>,
}

impl Ranks {
    fn of(
        (column, kind): &(Arc<Column>, Kind),
        rows: usize,
        budget: &Budget,
        eval: Eval<'_>,
    ) -> Result<Ranks> {
        let sorter = Sorter::new(&[(column.clone(), *kind, false)], eval.texts, budget)?;
        let mut sorted: Vec<u32> = (0..rows as u32).collect();
        sort_rows(&mut sorted, |a, b| sorter.compare(a, b), eval)?;
        let mut ranks = Ranks { ranks: vec![0; rows], rows: Vec::new() };
        for (at, row) in sorted.iter().enumerate() {
            let is_known = at > 0 && sorter.compare(sorted[at - 1], *row).is_eq();
            if !is_known {
                ranks.rows.push(*row);
            } else if !column.is_same(sorted[at - 1] as usize, *row as usize) {
                ranks.rows.pop();
                ranks.rows.push(NO_ROW);
            }
            ranks.ranks[*row as usize] = ranks.rows.len() as u32 - 1;
        }
        Ok(ranks)
    }
}

/// A window function over rows in their order.
struct Told<'a> {
    window: &'a Window,
    of: Option<(Arc<Column>, Kind)>,
    ranks: Option<Ranks>,
    /// The column that the order is by, if it is one.
    by: Option<&'a (Arc<Column>, Kind, bool)>,
    places: &'a Places,
    /// Any order of peers gives the same.
    is_any_order: bool,
}

impl Told<'_> {
    fn column(&self, eval: Eval<'_>) -> Result<Column> {
        let rows = self.places.peers.len();
        let mut values = Values::new(self.window, rows);
        let mut asked = 0;
        for partition in &self.places.partitions {
            if partition.end - asked >= ROWS_AT_ONCE {
                eval.go_on()?;
                asked = partition.end;
            }
            match self.window.function {
                Function::Sum | Function::Mean if self.window.kind == Kind::Real => {
                    self.reals(partition, &mut values)?
                }
                Function::Rows | Function::Count | Function::Sum => self.sums(partition, &mut values)?,
                Function::Min | Function::Max => self.extremes(partition, &mut values)?,
                Function::First | Function::Last | Function::Nth => self.of_frames(partition, &mut values)?,
                Function::Lag | Function::Lead => self.moved(partition, &mut values)?,
                _ => self.numbers(partition, &mut values)?,
            }
        }
        values.column(self.of.as_ref().map(|(column, _)| &**column))
    }

    /// Where the order of peers decides, it is the server's.
    fn needs_no_peers(&self, partition: &Range<usize>) -> Result<()> {
        match !self.is_any_order && self.places.has_peers(partition) {
            true => Err(Failure::GivenBack(Why::Undetermined)),
            false => Ok(()),
        }
    }

    fn of(&self) -> Result<&Column> {
        self.of.as_ref().map(|(column, _)| &**column).ok_or(UNSUPPORTED)
    }

    fn numbers(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        let count = partition.len();
        if matches!(self.window.function, Function::RowNumber | Function::Tile) {
            self.needs_no_peers(partition)?;
        }
        let (mut dense, mut last) = (0, usize::MAX);
        for row in partition.clone() {
            let peers = &self.places.peers[row];
            if peers.start != last {
                (dense, last) = (dense + 1, peers.start);
            }
            let before = peers.start - partition.start;
            match self.window.function {
                Function::RowNumber => values.number(row, (row - partition.start) as i128 + 1),
                Function::Rank => values.number(row, before as i128 + 1),
                Function::DenseRank => values.number(row, dense),
                Function::Tile => {
                    let parts = usize::try_from(self.window.number).ok().filter(|parts| *parts > 0);
                    let parts = parts.ok_or(UNSUPPORTED)?;
                    // The first ones have one more, if it does not come out even.
                    let (each, more) = (count / parts, count % parts);
                    let at = row - partition.start;
                    let tile = match at < more * (each + 1) {
                        true => at / (each + 1),
                        false => more + (at - more * (each + 1)) / each,
                    };
                    values.number(row, tile as i128 + 1);
                }
                Function::PercentRank => {
                    values.real(row, if count > 1 { before as f64 / (count - 1) as f64 } else { 0.0 });
                }
                Function::Distribution => {
                    values.real(row, (peers.end - partition.start) as f64 / count as f64)
                }
                _ => return Err(UNSUPPORTED),
            }
        }
        Ok(())
    }

    fn moved(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        self.needs_no_peers(partition)?;
        let by = match self.window.function {
            Function::Lag => self.window.number.checked_neg().ok_or(UNSUPPORTED)?,
            _ => self.window.number,
        };
        for row in partition.clone() {
            let from = (row as i64).checked_add(by).and_then(|from| usize::try_from(from).ok());
            values.row(row, from.filter(|from| partition.contains(from)));
        }
        Ok(())
    }

    /// Of each row of a partition: its frame.
    fn frames(&self, partition: &Range<usize>) -> Result<Vec<Range<usize>>> {
        let Frame { is_range, begin, end } = self.window.frame;
        let is_of_rows = |bound| !matches!(bound, Bound::Unbounded);
        if !is_range {
            if is_of_rows(begin) || is_of_rows(end) {
                self.needs_no_peers(partition)?;
            }
            let at = |row: usize, bound: Bound, is_end: bool| -> usize {
                let more = i128::from(is_end);
                let place = match bound {
                    Bound::Unbounded => return if is_end { partition.end } else { partition.start },
                    Bound::Current => row as i128,
                    Bound::Preceding(number) => (row as i128).saturating_sub(number),
                    Bound::Following(number) => (row as i128).saturating_add(number),
                };
                place.saturating_add(more).clamp(partition.start as i128, partition.end as i128) as usize
            };
            let frame = |row| at(row, begin, false)..at(row, end, true);
            return Ok(partition.clone().map(frame).collect());
        }
        let is_of_values = |bound| matches!(bound, Bound::Preceding(_) | Bound::Following(_));
        if is_of_values(begin) || is_of_values(end) {
            let Some((column, kind, _)) = self.by else { return Err(UNSUPPORTED) };
            let is_some = || partition.clone().all(|row| !column.is_null(row));
            if !matches!(kind, Kind::Signed | Kind::Decimal(_)) || !is_some() {
                return Err(UNSUPPORTED);
            }
        }
        let mut all = Vec::with_capacity(partition.len());
        let (mut from, mut to) = (partition.start, partition.start);
        for row in partition.clone() {
            let peers = &self.places.peers[row];
            from = match begin {
                Bound::Unbounded => partition.start,
                Bound::Current => peers.start,
                other => self.first(partition, from, row, other, false)?,
            };
            to = match end {
                Bound::Unbounded => partition.end,
                Bound::Current => peers.end,
                other => self.first(partition, to, row, other, true)?,
            };
            all.push(from..to);
        }
        Ok(all)
    }

    /// The first row, from one on, that is not before what lies so far from a row's value; with `is_behind`: that is behind it.
    fn first(
        &self,
        partition: &Range<usize>,
        from: usize,
        row: usize,
        bound: Bound,
        is_behind: bool,
    ) -> Result<usize> {
        let Some((column, _, descends)) = self.by else { return Err(UNSUPPORTED) };
        let by = match bound {
            Bound::Preceding(by) => -by,
            Bound::Following(by) => by,
            _ => 0,
        };
        // In the direction of the order.
        let value = |row: usize| if *descends { -column.number(row) } else { column.number(row) };
        let end = value(row).checked_add(by).ok_or(OVERFLOW)?;
        let is_before = |row: usize| if is_behind { value(row) <= end } else { value(row) < end };
        Ok((from..partition.end).find(|row| !is_before(*row)).unwrap_or(partition.end))
    }

    fn sums(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        let frames = self.frames(partition)?;
        // How many there are, and their sum, before each row.
        let (mut counts, mut sums) = (Vec::with_capacity(partition.len() + 1), vec![0i128]);
        let (mut count, mut sum) = (0, 0i128);
        counts.push(0);
        for row in partition.clone() {
            if self.window.function == Function::Rows {
                count += 1;
            } else if !self.of()?.is_null(row) {
                count += 1;
                if self.window.function == Function::Sum {
                    sum = sum.checked_add(self.of()?.number(row)).ok_or(OVERFLOW)?;
                }
            }
            counts.push(count);
            if self.window.function == Function::Sum {
                sums.push(sum);
            }
        }
        for (row, frame) in partition.clone().zip(frames) {
            let (begin, end) = (frame.start - partition.start, frame.end.max(frame.start) - partition.start);
            let count = counts[end] - counts[begin];
            match self.window.function {
                Function::Sum if count > 0 => {
                    values.number(row, sums[end].checked_sub(sums[begin]).ok_or(OVERFLOW)?);
                }
                Function::Sum => values.null(row),
                _ => values.number(row, count),
            }
        }
        Ok(())
    }

    /// The server adds DOUBLEs up row by row; where it takes away those that leave a frame, the last digits are its own.
    fn reals(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        self.needs_no_peers(partition)?;
        if self.window.frame.begin != Bound::Unbounded {
            return Err(UNSUPPORTED);
        }
        let Data::Real(of) = &self.of()?.data else { return Err(UNSUPPORTED) };
        let (mut next, mut count, mut sum) = (partition.start, 0u64, 0.0);
        for (row, frame) in partition.clone().zip(self.frames(partition)?) {
            for (at, value) in of.iter().enumerate().take(frame.end).skip(next) {
                if !self.of()?.is_null(at) {
                    count += 1;
                    sum += value;
                }
            }
            next = next.max(frame.end);
            match (count, self.window.function) {
                (0, _) => values.null(row),
                (_, Function::Mean) => values.real(row, sum / count as f64),
                _ => values.real(row, sum),
            }
        }
        Ok(())
    }

    fn extremes(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        let Some(ranks) = &self.ranks else { return Err(UNSUPPORTED) };
        let is_least = self.window.function == Function::Min;
        let better = |a: usize, b: usize| match is_least {
            true => ranks.ranks[a] <= ranks.ranks[b],
            false => ranks.ranks[a] >= ranks.ranks[b],
        };
        // Rows that may become the best of a frame: each is better than those behind it.
        let mut queue: VecDeque<usize> = VecDeque::new();
        let mut next = partition.start;
        for (row, frame) in partition.clone().zip(self.frames(partition)?) {
            for at in next..frame.end {
                if self.of()?.is_null(at) {
                    continue;
                }
                while queue.back().is_some_and(|last| better(at, *last)) {
                    queue.pop_back();
                }
                queue.push_back(at);
            }
            next = next.max(frame.end);
            while queue.front().is_some_and(|first| *first < frame.start) {
                queue.pop_front();
            }
            let best = queue.front().filter(|first| **first < frame.end);
            let best = best.map(|best| ranks.rows[ranks.ranks[*best] as usize]);
            if best == Some(NO_ROW) {
                // Which of both the server shows is a matter of its order.
                return Err(Failure::GivenBack(Why::Undetermined));
            }
            values.row(row, best.map(|best| best as usize));
        }
        Ok(())
    }

    fn of_frames(&self, partition: &Range<usize>, values: &mut Values) -> Result<()> {
        // Peers of which all have the same value.
        let mut alike = 0..0;
        for (row, frame) in partition.clone().zip(self.frames(partition)?) {
            let at = match self.window.function {
                Function::First => frame.start,
                Function::Last => frame.end.wrapping_sub(1),
                _ => {
                    let number = usize::try_from(self.window.number).ok().filter(|number| *number > 0);
                    frame.start.saturating_add(number.ok_or(UNSUPPORTED)? - 1)
                }
            };
            let at = Some(at).filter(|at| frame.contains(at));
            if let Some(at) = at {
                // Any of its peers could be there.
                let of = self.of()?;
                let peers = &self.places.peers[at];
                if alike != *peers && peers.clone().any(|peer| !of.is_same(peer, at)) {
                    return Err(Failure::GivenBack(Why::Undetermined));
                }
                alike = peers.clone();
            }
            values.row(row, at);
        }
        Ok(())
    }
}

/// What was told so far.
enum Values {
    Numbers(Vec<i128>, Vec<bool>),
    Reals(Vec<f64>, Vec<bool>),
    /// The value of another row.
    Rows(Vec<u32>),
}

impl Values {
    fn new(window: &Window, rows: usize) -> Values {
        match window.function {
            Function::Lag
            | Function::Lead
            | Function::First
            | Function::Last
            | Function::Nth
            | Function::Min
            | Function::Max => Values::Rows(vec![NO_ROW; rows]),
            _ if window.kind == Kind::Real => Values::Reals(vec![0.0; rows], vec![false; rows]),
            _ => Values::Numbers(vec![0; rows], vec![false; rows]),
        }
    }

    fn number(&mut self, row: usize, value: i128) {
        if let Values::Numbers(values, _) = self {
            values[row] = value;
        }
    }

    fn real(&mut self, row: usize, value: f64) {
        if let Values::Reals(values, _) = self {
            values[row] = value;
        }
    }

    fn row(&mut self, row: usize, from: Option<usize>) {
        if let Values::Rows(rows) = self {
            rows[row] = from.map_or(NO_ROW, |from| from as u32);
        }
    }

    fn null(&mut self, row: usize) {
        if let Values::Numbers(_, nulls) | Values::Reals(_, nulls) = self {
            nulls[row] = true;
        }
    }

    fn column(self, of: Option<&Column>) -> Result<Column> {
        let some = |nulls: Vec<bool>| nulls.contains(&true).then_some(nulls);
        match self {
            Values::Numbers(values, nulls) => Ok(Column::of_large(values, some(nulls))),
            Values::Reals(values, _) if values.iter().any(|value| !value.is_finite()) => Err(OVERFLOW),
            Values::Reals(values, nulls) => Ok(Column { data: Data::Real(values), nulls: some(nulls) }),
            Values::Rows(rows) => Ok(of.ok_or(UNSUPPORTED)?.gather_or_null(&rows)),
        }
    }
}
