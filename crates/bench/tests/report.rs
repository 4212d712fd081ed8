//! Reports: shown, kept and read again.

use pando_bench::measure::Histogram;
use pando_bench::report::{chart, html, text, Answer, Curve, EngineReport, Group, Machine, Report, Unit};

fn engine(name: &str, factor: f64) -> EngineReport {
    let mut engine = EngineReport::new(name);
    engine.server = "10.11.18-MariaDB".to_owned();
    engine.settings = vec!["--cache=1M".to_owned()];
    for sample in [1.0, 3.0, 2.0] {
        engine.add(Group::Load, "load, no keys", Unit::Seconds, sample * factor);
    }
    engine.add(Group::Throughput, "inserts", Unit::RowsPerSecond, 50_000.0 / factor);
    engine.add(Group::Size, "with keys", Unit::Bytes, 3e6 * factor);
    let mut times = Histogram::default();
    (1..500).for_each(|number| times.add(f64::from(number) * 1e-4 * factor));
    engine.add_timing("INSERT statements", &times);
    engine.set_curve(Curve {
        name: "rows inserted per second".to_owned(),
        unit: Unit::RowsPerSecond,
        points: vec![(1e6, 9e4 / factor), (2e6, 8e4 / factor)],
    });
    engine.answers = vec![Answer { name: "q1".to_owned(), rows: 7, digest: "abc".to_owned() }];
    engine.note("a <note>".to_owned());
    engine
}

fn report() -> Report {
    Report {
        format: 1,
        workload: "test".to_owned(),
        about: "A & B".to_owned(),
        date: "2026-11-21 12:00 UTC".to_owned(),
        command: "pando-bench run test".to_owned(),
        machine: Machine {
            processor: "P".to_owned(),
            processors: 2,
            memory_bytes: 1 << 34,
            ..Machine::default()
        },
        parameters: vec![("rows".to_owned(), "7".to_owned())],
        engines: vec![engine("PANDO", 1.0), engine("InnoDB", 2.5)],
        differences: Vec::new(),
    }
}

#[test]
fn a_report_comes_back_from_json_as_it_went() {
    let report = report();
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
}

#[test]
fn json_of_another_format_or_of_something_else_is_refused() {
    let other = report().to_json().replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(Report::from_json(&other).unwrap_err().contains("format 2"));
    assert!(Report::from_json("{}").is_err() && Report::from_json("no").is_err());
}

#[test]
fn the_table_has_medians_and_ratios_against_the_first_engine() {
    let shown = text::render(&report());
    let line = shown.lines().find(|line| line.contains("load, no keys")).unwrap();
    assert!(line.contains("2.00 s") && line.ends_with("5.00 s (2.50x)"), "{line}");
    assert!(shown.contains("20,000/s (0.40x)"), "{shown}");
    assert!(shown.contains("1 compared, all equal"), "{shown}");
}

#[test]
fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
    let page = html::render(&report());
    for wanted in
        ["<!doctype html>", "PANDO", "InnoDB", "rows inserted per second", "Size on disk", "</html>"]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
    for unwanted in ["<script", "src=", "href=", "url(", "@import", "NaN", "a <note>"] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    let tags = |tag: &str| page.matches(tag).count();
    for (open, close) in
        [("<svg", "</svg>"), ("<section", "</section>"), ("<table", "</table>"), ("<div", "</div>")]
    {
        assert_eq!(tags(open), tags(close), "{open}");
    }
    assert!(page.contains("A &amp; B") && page.contains("a &lt;note&gt;"));
}

#[test]
fn the_picture_has_the_curves_and_there_is_none_without_them() {
    let mut report = report();
    let picture = chart::picture(&report).unwrap();
    assert!(picture.starts_with("<svg xmlns") && picture.contains("InnoDB"), "{picture}");
    report.engines.iter_mut().for_each(|engine| engine.curves.clear());
    assert!(chart::picture(&report).is_none());
}

#[test]
fn a_wrong_answer_is_told_in_the_table_and_on_the_page() {
    let mut report = report();
    report.compare_answers();
    assert!(report.differences.is_empty());
    report.engines[1].answers[0].digest = "abd".to_owned();
    report.compare_answers();
    assert_eq!(report.differences.len(), 1);
    assert!(
        text::render(&report).contains("WRONG: q1: PANDO (7 rows) and InnoDB (7 rows) answer differently")
    );
    assert!(html::render(&report).contains("Wrong answers"));
}

#[test]
fn an_engine_that_changes_its_answer_between_repetitions_is_told() {
    let mut report = report();
    report.engines.truncate(1);
    report.engines[0].answers.push(Answer { name: "q1".to_owned(), rows: 6, digest: "x".to_owned() });
    report.compare_answers();
    assert_eq!(report.differences.len(), 1);
}
