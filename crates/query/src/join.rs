//! Joins: the rows of the first table with those rows of the others that are equal to them in certain columns.
//!
//! 1. Each other table is read first, its own conditions are applied, and the columns that are needed stay in memory
//!    (`memory.rs`).
//! 2. They are joined one after the other ([`plan`]): of those that an equality connects with what is joined already, the
//!    one whose conditions have left the smallest part of it. One equality finds its rows ([`Map`]), the others are
//!    conditions like any.
//! 3. For each block, numbers of rows are carried along: of the block, and of each table. Columns are picked by them when a
//!    condition, a group or an aggregate asks.

use hashbrown::HashTable;

use crate::cells::{Cells, Entries};
use crate::filter::Prepared;
use crate::frame::{Frame, Slots, Trouble};
use crate::intern::hash_of;

/// Pairs of rows that one step may make of one piece of a block.
const PAIRS_MAX: usize = 1 << 22;
/// Rows of a block that are joined at a time.
pub(crate) const PIECE_ROWS: usize = 1 << 14;
const NONE: u32 = u32::MAX;

/// Where the rows with a key are.
#[derive(Debug)]
pub(crate) struct Map {
    /// For keys from `least` on the first row; or in the table.
    least: i64,
    direct: Vec<u32>,
    table: HashTable<(i64, u32)>,
    /// For each row another one with the same key; empty: keys are unique.
    next: Vec<u32>,
}

/// A table in memory.
#[derive(Debug)]
pub(crate) struct Side {
    pub frame: Frame<'static>,
    /// The part of the table's rows that its conditions have left.
    pub share: f64,
}

/// Joining one table.
#[derive(Debug)]
pub(crate) struct Step {
    table: usize,
    /// The slot, of a table joined before, whose values are looked for.
    probe: usize,
    probe_table: usize,
    map: Map,
    /// Conditions that have all they look at now, and what they look at.
    filters: Vec<(Prepared, Vec<usize>)>,
}

/// A condition on several tables.
#[derive(Debug)]
pub(crate) struct Cross {
    pub prepared: Prepared,
    pub slots: Vec<usize>,
    pub tables: u64,
}

impl Map {
    /// `None`: keys that are not numbers of 64 bits.
    fn new(cells: &Cells<'_>) -> Option<Map> {
        let Entries::Small(values) = &cells.entries else { return None };
        let mut map = Map { least: 0, direct: Vec::new(), table: HashTable::new(), next: Vec::new() };
        let keys = || (0..cells.rows).filter(|row| !cells.is_null(*row)).map(|row| values[cells.code(row)]);
        let (least, most) =
            keys().fold((i64::MAX, i64::MIN), |(least, most), key| (least.min(key), most.max(key)));
        let span = most.checked_sub(least).and_then(|span| usize::try_from(span).ok());
        if let Some(span) = span.filter(|span| *span < 4 * cells.rows + 1024) {
            map.least = least;
            map.direct = vec![NONE; span + 1];
        }
        for row in 0..cells.rows {
            if !cells.is_null(row) {
                map.insert(values[cells.code(row)], row as u32, cells.rows);
            }
        }
        Some(map)
    }

    fn insert(&mut self, key: i64, row: u32, rows: usize) {
        let first = if self.direct.is_empty() {
            let hash = hash_of(key as u64);
            match self.table.find_mut(hash, |(of, _)| *of == key) {
                Some((_, first)) => first,
                None => {
                    self.table.insert_unique(hash, (key, row), |(of, _)| hash_of(*of as u64));
                    return;
                }
            }
        } else {
            let first = &mut self.direct[(key - self.least) as usize];
            if *first == NONE {
                *first = row;
                return;
            }
            first
        };
        if self.next.is_empty() {
            self.next = vec![NONE; rows];
        }
        self.next[row as usize] = *first;
        *first = row;
    }

    #[inline]
    fn first(&self, key: i64) -> u32 {
        if !self.direct.is_empty() {
            let place = key.wrapping_sub(self.least) as u64 as usize;
            return self.direct.get(place).copied().unwrap_or(NONE);
        }
        self.table.find(hash_of(key as u64), |(of, _)| *of == key).map_or(NONE, |(_, first)| *first)
    }

    fn bytes(&self) -> usize {
        (self.direct.len() + self.next.len()) * 4 + self.table.len() * 17
    }
}

/// Says in which order the tables are joined. `None`: something does not connect them, or it is none that can.
pub(crate) fn plan(
    slots: &Slots<'_>,
    sides: &[Option<Side>],
    equalities: &[(usize, usize)],
    mut crosses: Vec<Cross>,
) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut joined = 1u64;
    let mut left: Vec<(usize, usize)> = equalities.to_vec();
    let table_of = |slot: usize| slots.columns.get(slot).map(|column| column.table);
    while steps.len() + 1 < sides.len() {
        // The equalities that connect a new table, seen from what is joined.
        let turned = |(a, b): &(usize, usize)| {
            let (in_a, in_b) = (joined >> table_of(*a)? & 1, joined >> table_of(*b)? & 1);
            match (in_a, in_b) {
                (1, 0) => Some((*a, *b)),
                (0, 1) => Some((*b, *a)),
                _ => None,
            }
        };
        let share = |(_, build): &(usize, usize)| {
            table_of(*build).and_then(|table| sides[table].as_ref()).map_or(1.0, |side| side.share)
        };
        let candidates: Vec<_> = left.iter().filter_map(turned).collect();
        let (probe, build) = candidates.into_iter().min_by(|a, b| share(a).total_cmp(&share(b)))?;
        let table = table_of(build)?;
        left.retain(|pair| *pair != (probe, build) && *pair != (build, probe));
        joined |= 1 << table;
        let map = Map::new(sides.get(table)?.as_ref()?.frame.cells(build))?;
        // What else is equal between tables that are joined is a condition.
        let (done, still): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(a, b)| (slots.tables_of(*a) | slots.tables_of(*b)) & !joined == 0);
        left = still;
        let mut filters: Vec<(Prepared, Vec<usize>)> = Vec::new();
        for (a, b) in done {
            let filter = crate::Filter::CompareColumns(a, crate::Comparison::Equal, b);
            filters.push((filter.prepare(slots, false)?, vec![a, b]));
        }
        let (done, still): (Vec<_>, Vec<_>) =
            crosses.into_iter().partition(|cross| cross.tables & !joined == 0);
        crosses = still;
        filters.extend(done.into_iter().map(|cross| (cross.prepared, cross.slots)));
        steps.push(Step { table, probe, probe_table: table_of(probe)?, map, filters });
    }
    (left.is_empty() && crosses.is_empty()).then_some(steps)
}

/// About how much memory the steps take.
pub(crate) fn bytes(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.map.bytes()).sum()
}

/// Rows of a join: for each table that is joined the number of its row.
struct Tuples {
    count: usize,
    rows: Vec<Vec<u32>>,
}

impl Tuples {
    fn keep(&mut self, selected: &[u32]) {
        self.count = selected.len();
        for rows in self.rows.iter_mut().filter(|rows| !rows.is_empty()) {
            *rows = selected.iter().map(|at| rows[*at as usize]).collect();
        }
    }
}

/// Joins some rows of a block, whose frame has all columns that are needed, with everything else, and gives the result with
/// these slots' columns.
pub(crate) fn join<'a>(
    slots: &Slots<'_>,
    steps: &[Step],
    sides: &'a [Option<Side>],
    block: &'a Frame<'_>,
    selected: Vec<u32>,
    wanted: &[usize],
) -> Result<Option<Frame<'a>>, Trouble> {
    let mut tuples = Tuples { count: selected.len(), rows: vec![Vec::new(); sides.len()] };
    tuples.rows[0] = selected;
    for step in steps {
        probe(step, sides, block, &mut tuples)?;
        for (filter, looked_at) in &step.filters {
            if tuples.count == 0 {
                return Ok(None);
            }
            let mut frame = pick(slots, sides, block, &tuples, looked_at);
            if let Some(selected) = filter.select(slots, &mut frame)? {
                tuples.keep(&selected);
            }
        }
        if tuples.count == 0 {
            return Ok(None);
        }
    }
    Ok(Some(pick(slots, sides, block, &tuples, wanted)))
}

fn cells_of<'a>(
    table: usize,
    slot: usize,
    sides: &'a [Option<Side>],
    block: &'a Frame<'_>,
) -> Option<&'a Cells<'a>> {
    match sides.get(table)? {
        None => block.cells[slot].as_ref(),
        Some(side) => side.frame.cells[slot].as_ref(),
    }
}

fn probe(step: &Step, sides: &[Option<Side>], block: &Frame<'_>, tuples: &mut Tuples) -> Result<(), Trouble> {
    let cells = cells_of(step.probe_table, step.probe, sides, block).ok_or(Trouble::Damaged)?;
    let (mut found, mut found_rows) = (Vec::new(), Vec::new());
    let rows = &tuples.rows[step.probe_table];
    for (at, row) in (0u32..).zip(rows) {
        let row = *row as usize;
        if cells.is_null(row) {
            continue;
        }
        let key = match &cells.entries {
            Entries::Small(values) => values[cells.code(row)],
            // Keys of the other side are numbers of 64 bits.
            _ => match i64::try_from(cells.dense_at(row)) {
                Ok(key) => key,
                Err(_) => continue,
            },
        };
        let mut other = step.map.first(key);
        while other != NONE {
            found.push(at);
            found_rows.push(other);
            other = step.map.next.get(other as usize).copied().unwrap_or(NONE);
        }
        if found.len() > PAIRS_MAX {
            return Err(Trouble::TooMuch);
        }
    }
    if found.len() != tuples.count || !step.map.next.is_empty() {
        tuples.keep(&found);
    }
    tuples.rows[step.table] = found_rows;
    Ok(())
}

/// The columns of these slots.
fn pick<'a>(
    slots: &Slots<'_>,
    sides: &'a [Option<Side>],
    block: &'a Frame<'_>,
    tuples: &Tuples,
    wanted: &[usize],
) -> Frame<'a> {
    let mut columns = Vec::new();
    wanted.iter().for_each(|slot| slots.columns_of(*slot, &mut columns));
    let mut frame = Frame::new(slots, tuples.count);
    for slot in columns {
        let table = slots.columns[slot].table;
        if frame.cells[slot].is_none() {
            let rows = &tuples.rows[table];
            frame.cells[slot] = cells_of(table, slot, sides, block).map(|cells| cells.pick(rows));
        }
    }
    frame
}

/// All rows.
pub(crate) fn all_rows(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}
