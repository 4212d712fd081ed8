//! Statement times as they come, cut into slices of the rows.

use std::time::Instant;

use crate::measure::Histogram;
use crate::report::{Curve, EngineReport, Group, Unit};

/// A million rows a slice, and a tenth of the rows where they are fewer than ten million.
const SLICE_ROWS_MAX: u64 = 1_000_000;
const SLICES_MIN: u64 = 10;

pub(super) struct Recorder {
    rows_wanted: u64,
    slice_rows: u64,
    rows: u64,
    begin: Instant,
    all: Histogram,
    slice_begin_rows: u64,
    slice_begin: Instant,
    slice: Histogram,
    slice_written: Option<u64>,
    slices: Vec<Slice>,
}

struct Slice {
    rows_after: u64,
    rows_per_second: f64,
    longest_seconds: f64,
    p99_seconds: f64,
    written_per_row: Option<f64>,
}

impl Recorder {
    pub(super) fn new(rows_wanted: u64, written: Option<u64>) -> Recorder {
        let now = Instant::now();
        Recorder {
            rows_wanted,
            slice_rows: (rows_wanted / SLICES_MIN).clamp(1, SLICE_ROWS_MAX),
            rows: 0,
            begin: now,
            all: Histogram::default(),
            slice_begin_rows: 0,
            slice_begin: now,
            slice: Histogram::default(),
            slice_written: written,
            slices: Vec::new(),
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// One statement is done; `written` is asked at the end of a slice.
    pub(super) fn statement(&mut self, rows: u64, seconds: f64, written: impl FnOnce() -> Option<u64>) {
        self.rows += rows;
        self.all.add(seconds);
        self.slice.add(seconds);
        // What is left over at the end, less than half a slice, belongs to the last one.
        let left = self.rows_wanted.saturating_sub(self.rows);
        let full = self.rows - self.slice_begin_rows >= self.slice_rows && left > self.slice_rows / 2;
        if full || left == 0 {
            self.close(written());
        }
    }

    fn close(&mut self, written: Option<u64>) {
        let now = Instant::now();
        let rows = (self.rows - self.slice_begin_rows) as f64;
        let bytes = written.zip(self.slice_written).map(|(now, before)| now.saturating_sub(before) as f64);
        self.slices.push(Slice {
            rows_after: self.rows,
            rows_per_second: rows / (now - self.slice_begin).as_secs_f64().max(1e-9),
            longest_seconds: self.slice.longest_seconds,
            p99_seconds: self.slice.percentile(0.99),
            written_per_row: bytes.map(|bytes| bytes / rows),
        });
        self.slice = Histogram::default();
        (self.slice_begin, self.slice_begin_rows, self.slice_written) = (now, self.rows, written);
    }

    /// From the beginning to the end of the last slice.
    fn seconds(&self) -> f64 {
        (self.slice_begin - self.begin).as_secs_f64().max(1e-9)
    }

    pub(super) fn rows_per_second(&self) -> f64 {
        self.rows as f64 / self.seconds()
    }

    pub(super) fn finish(&self, report: &mut EngineReport) {
        report.add(Group::Throughput, "inserts", Unit::RowsPerSecond, self.rows_per_second());
        if let (Some(first), Some(last)) = (self.slices.first(), self.slices.last()) {
            report.add(Group::Throughput, "inserts, first slice", Unit::RowsPerSecond, first.rows_per_second);
            report.add(Group::Throughput, "inserts, last slice", Unit::RowsPerSecond, last.rows_per_second);
            let lasting = last.rows_per_second / first.rows_per_second;
            report.add(Group::Throughput, "last slice / first slice", Unit::Ratio, lasting);
        }
        report.add(Group::Load, "all inserts", Unit::Seconds, self.seconds());
        report.add(Group::Latency, "a statement, median", Unit::Seconds, self.all.percentile(0.5));
        report.add(Group::Latency, "a statement, 99 of 100", Unit::Seconds, self.all.percentile(0.99));
        report.add(Group::Latency, "a statement, longest", Unit::Seconds, self.all.longest_seconds);
        report.add_timing("INSERT statements", &self.all);
        let mut curve = |name: &str, unit: Unit, value: &dyn Fn(&Slice) -> Option<f64>| {
            let point = |slice: &Slice| Some((slice.rows_after as f64, value(slice)?));
            let points: Vec<_> = self.slices.iter().filter_map(point).collect();
            if !points.is_empty() {
                report.set_curve(Curve { name: name.to_owned(), unit, points });
            }
        };
        curve("rows inserted per second", Unit::RowsPerSecond, &|slice| Some(slice.rows_per_second));
        curve("99 of 100 statements are quicker than", Unit::Seconds, &|slice| Some(slice.p99_seconds));
        curve("longest statement", Unit::Seconds, &|slice| Some(slice.longest_seconds));
        curve("bytes written to disk per row", Unit::BytesPerRow, &|slice| slice.written_per_row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(rows: u64, statement: u64) -> Recorder {
        let mut recorder = Recorder::new(rows, Some(0));
        let mut written = 0;
        while recorder.rows() < rows {
            let count = statement.min(rows - recorder.rows());
            recorder.statement(count, 0.001, || {
                written += 1000;
                Some(written)
            });
        }
        recorder
    }

    #[test]
    fn slices_cover_all_rows_and_the_last_is_not_a_splinter() {
        for (rows, statement, slices) in [(10_000, 1000, 10), (10_300, 1000, 5), (25, 10, 3), (1, 1, 1)] {
            let recorder = recorded(rows, statement);
            assert_eq!(recorder.slices.last().map(|slice| slice.rows_after), Some(rows));
            assert_eq!(recorder.slices.len(), slices, "{rows} rows");
        }
    }

    #[test]
    fn the_report_gets_the_curves_and_the_bytes_between_slices() {
        let mut report = EngineReport::new("X");
        recorded(10_000, 1000).finish(&mut report);
        let curve = report.curves.iter().find(|curve| curve.unit == Unit::BytesPerRow).unwrap();
        assert_eq!(curve.points, (1..=10).map(|n| (f64::from(n) * 1000.0, 1.0)).collect::<Vec<_>>());
        assert_eq!(report.timings[0].histogram.count, 10);
    }
}
