//! What a run found, as it goes to JSON (`format` 1).

use serde::{Deserialize, Serialize};

use crate::measure::{median, Histogram};

/// The format's number; a reader refuses others.
pub const FORMAT: u32 = 1;

/// One run of one workload on some engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `FORMAT`.
    pub format: u32,
    /// Name of the workload.
    pub workload: String,
    /// What was done, in a sentence or two.
    pub about: String,
    /// When it ended, UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// What it ran on.
    pub machine: Machine,
    /// Sizes, seeds and such, in the order in which they are shown.
    pub parameters: Vec<(String, String)>,
    /// What was found for each engine; the first is the one that others are compared with.
    pub engines: Vec<EngineReport>,
    /// Answers that should have been equal and were not. Empty in a good run.
    pub differences: Vec<String>,
}

/// The machine, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// How many of them.
    pub processors: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Load average over a minute when the run began: what else the machine did.
    pub load_before: f64,
}

/// One engine's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Name as in ENGINE=.
    pub engine: String,
    /// The server's version.
    pub server: String,
    /// Options or variables that set cache and durability.
    pub settings: Vec<String>,
    /// Single figures.
    pub metrics: Vec<Metric>,
    /// Figures over the course of the run; of the last repetition.
    pub curves: Vec<Curve>,
    /// Distributions of durations; of all repetitions.
    pub timings: Vec<Timing>,
    /// Digests of answers that must be equal in all engines.
    pub answers: Vec<Answer>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// Where a figure belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Bringing rows in.
    Load,
    /// Changing the table's definition.
    Schema,
    /// Answering.
    Query,
    /// Changing rows.
    Change,
    /// Work per time.
    Throughput,
    /// Time per piece of work.
    Latency,
    /// Bytes on disk.
    Size,
    /// Bytes to disk.
    Written,
    /// Bytes in memory.
    Memory,
}

impl Group {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Group; 9] = [
        Group::Load,
        Group::Schema,
        Group::Throughput,
        Group::Latency,
        Group::Query,
        Group::Change,
        Group::Size,
        Group::Written,
        Group::Memory,
    ];

    /// A heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Load => "Load",
            Group::Schema => "Schema changes",
            Group::Query => "Queries",
            Group::Change => "Changes",
            Group::Throughput => "Throughput",
            Group::Latency => "Latency",
            Group::Size => "Size on disk",
            Group::Written => "Written to disk",
            Group::Memory => "Memory",
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Time.
    Seconds,
    /// Size.
    Bytes,
    /// Size for each row.
    BytesPerRow,
    /// Speed.
    RowsPerSecond,
    /// Speed.
    PerMinute,
    /// Just a number.
    Count,
    /// One number over another.
    Ratio,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less.
    Lower,
    /// More.
    Higher,
}

impl Unit {
    /// Which way is good for numbers of this unit.
    pub fn better(self) -> Better {
        match self {
            Unit::Seconds | Unit::Bytes | Unit::BytesPerRow => Better::Lower,
            Unit::RowsPerSecond | Unit::PerMinute | Unit::Count | Unit::Ratio => Better::Higher,
        }
    }
}

/// One figure, with a sample for each time it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Where it belongs.
    pub group: Group,
    /// What it is, the same for all engines.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// As measured, in order.
    pub samples: Vec<f64>,
}

impl Metric {
    /// What is shown.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }
}

/// A line over the rows in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is, the same for all engines.
    pub name: String,
    /// What its values count.
    pub unit: Unit,
    /// Rows in the table, value.
    pub points: Vec<(f64, f64)>,
}

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What took so long, the same for all engines.
    pub name: String,
    /// How long.
    pub histogram: Histogram,
}

/// What a query gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which query.
    pub name: String,
    /// How many rows.
    pub rows: usize,
    /// Digest of all cells.
    pub digest: String,
}

impl EngineReport {
    /// An engine of which nothing is known yet.
    pub fn new(engine: &str) -> EngineReport {
        EngineReport { engine: engine.to_owned(), ..EngineReport::default() }
    }

    /// One more sample.
    pub fn add(&mut self, group: Group, name: &str, unit: Unit, value: f64) {
        match self.metrics.iter_mut().find(|metric| metric.name == name && metric.group == group) {
            Some(metric) => metric.samples.push(value),
            None => self.metrics.push(Metric { group, name: name.to_owned(), unit, samples: vec![value] }),
        }
    }

    /// Durations, to those of earlier repetitions.
    pub fn add_timing(&mut self, name: &str, histogram: &Histogram) {
        match self.timings.iter_mut().find(|timing| timing.name == name) {
            Some(timing) => timing.histogram.merge(histogram),
            None => self.timings.push(Timing { name: name.to_owned(), histogram: histogram.clone() }),
        }
    }

    /// A curve, in place of that of an earlier repetition.
    pub fn set_curve(&mut self, curve: Curve) {
        self.curves.retain(|old| old.name != curve.name);
        self.curves.push(curve);
    }

    /// Something to know, once.
    pub fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The figure of this name.
    pub fn metric(&self, group: Group, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.group == group && metric.name == name)
    }
}

impl Report {
    /// Groups and names of all figures, in the order in which they are shown.
    pub fn figures(&self) -> Vec<(Group, String, Unit)> {
        let mut figures: Vec<(Group, String, Unit)> = Vec::new();
        for group in Group::ALL {
            for metric in self.engines.iter().flat_map(|engine| &engine.metrics) {
                let known = figures.iter().any(|(had, name, _)| *had == group && *name == metric.name);
                if metric.group == group && !known {
                    figures.push((group, metric.name.clone(), metric.unit));
                }
            }
        }
        figures
    }

    /// Compares the answers of all engines, and of repetitions, and notes what differs.
    pub fn compare_answers(&mut self) {
        let mut expected: Vec<(&str, &Answer)> = Vec::new();
        let mut differences = Vec::new();
        for engine in &self.engines {
            for answer in &engine.answers {
                match expected.iter().find(|(_, first)| first.name == answer.name) {
                    None => expected.push((&engine.engine, answer)),
                    Some((_, first)) if first == &answer => {}
                    Some((other, first)) => differences.push(format!(
                        "{}: {} ({} rows) and {} ({} rows) answer differently",
                        answer.name, other, first.rows, engine.engine, answer.rows
                    )),
                }
            }
        }
        self.differences.extend(differences);
    }

    /// As JSON for people and programs.
    pub fn to_json(&self) -> String {
        // Plain structs with text keys: nothing in them that JSON could refuse.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what `to_json` wrote. Errors: no such JSON, or another format.
    pub fn from_json(text: &str) -> Result<Report, String> {
        let report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if report.format != FORMAT {
            return Err(format!("format {} instead of {FORMAT}", report.format));
        }
        Ok(report)
    }
}
