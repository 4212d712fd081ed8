//! The table at the end.

use std::fmt::Write as _;

use super::model::{Better, EngineReport, Group, Report, Unit};
use super::units;

/// Everything that belongs on the screen.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\n{}: {}", report.workload, report.about);
    for engine in &report.engines {
        let _ = writeln!(text, "  {:10} {}", engine.engine, engine.settings.join(" "));
    }
    let figures = report.figures();
    for group in Group::ALL {
        let of_group: Vec<_> = figures.iter().filter(|(one, _, _)| *one == group).collect();
        if of_group.is_empty() {
            continue;
        }
        let mut rows = vec![header(report, group)];
        for (_, name, unit) in of_group {
            rows.push(line(report, group, name, *unit));
        }
        let _ = writeln!(text);
        align(&rows, &mut text);
    }
    text.push_str(&foot(report));
    text
}

fn header(report: &Report, group: Group) -> Vec<String> {
    let mut cells = vec![group.title().to_owned()];
    cells.extend(report.engines.iter().map(|engine| engine.engine.clone()));
    cells
}

fn line(report: &Report, group: Group, name: &str, unit: Unit) -> Vec<String> {
    let mut cells = vec![format!("  {name}")];
    cells.extend(report.engines.iter().enumerate().map(|(number, engine)| {
        let Some(value) = value(engine, group, name) else { return "-".to_owned() };
        let first = report.engines.first().and_then(|first| self::value(first, group, name));
        match first {
            Some(first) if number > 0 && first > 0.0 && unit != Unit::Ratio => {
                format!("{} ({})", units::show(value, unit), times(value / first))
            }
            _ => units::show(value, unit),
        }
    }));
    cells
}

/// The figure of an engine, if it was measured.
pub(super) fn value(engine: &EngineReport, group: Group, name: &str) -> Option<f64> {
    engine.metric(group, name).map(super::Metric::median)
}

/// "2.41x", with fewer digits the larger it is.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0}x"),
        r if r >= 10.0 => format!("{r:.1}x"),
        r if r >= 0.1 => format!("{r:.2}x"),
        r => format!("{r:.3}x"),
    }
}

/// Is the first engine's value better than this one's?
pub(super) fn first_is_better(unit: Unit, ratio: f64) -> bool {
    match unit.better() {
        Better::Lower => ratio > 1.0,
        Better::Higher => ratio < 1.0,
    }
}

fn align(rows: &[Vec<String>], text: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ =
                if column == 0 { write!(line, "  {cell:width$}") } else { write!(line, "  {cell:>width$}") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn foot(report: &Report) -> String {
    let mut text = String::new();
    if report.engines.len() > 1 {
        let _ = writeln!(text, "\n  medians; (x) is the value over that of {}", report.engines[0].engine);
    }
    for engine in &report.engines {
        for note in &engine.notes {
            let _ = writeln!(text, "  {}: {note}", engine.engine);
        }
    }
    let compared = report.engines.iter().filter(|engine| !engine.answers.is_empty()).count();
    if report.differences.is_empty() && compared > 1 {
        let _ = writeln!(text, "  answers: {} compared, all equal", report.engines[0].answers.len());
    }
    for difference in &report.differences {
        let _ = writeln!(text, "  WRONG: {difference}");
    }
    text
}
