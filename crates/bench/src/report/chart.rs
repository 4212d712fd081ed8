//! Charts as SVG, for the page and for the documentation.
//!
//! Colours and fonts are classes (`STYLE`), so that the page can follow the reader's light or dark theme; a
//! picture by itself (`picture`) brings the style along. Engines keep their colour by their place in the report.

use std::fmt::Write as _;

use super::model::{Report, Unit};
use super::units;
use crate::server::engines::keeps_nothing;

/// Classes of the charts, for light and dark.
pub const STYLE: &str = "\
.chart{--ink:#1c2430;--dim:#667085;--grid:#e4e7ec;--c0:#0f766e;--c1:#d9722b;--c2:#3b6fd4;--c3:#a043a8;\
--c4:#8a6d1d;--c5:#c23b52;--c6:#5b6472;font:13px system-ui,-apple-system,'Segoe UI',sans-serif}\
@media(prefers-color-scheme:dark){.chart{--ink:#e6e9ef;--dim:#98a2b3;--grid:#2c3440;--c0:#2dd4bf;--c1:#fb923c;\
--c2:#7aa2f7;--c3:#d78be0;--c4:#d9b84a;--c5:#f4788c;--c6:#a5afbd}}\
.chart text{fill:var(--ink)}.chart .dim{fill:var(--dim);font-size:12px}.chart .end{text-anchor:end}\
.chart .middle{text-anchor:middle}.chart .head{font-weight:600}.chart .grid{stroke:var(--grid)}\
.chart .axis{stroke:var(--dim)}.chart .line{fill:none;stroke-width:2.5;stroke-linejoin:round}\
.chart .name{font-weight:600}";

const COLOURS: usize = 7;
const WIDTH: f64 = 860.0;

/// A named line.
pub struct Series<'a> {
    /// The engine.
    pub name: &'a str,
    /// Its place in the report: its colour.
    pub place: usize,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// What the axes of a chart are called and how their numbers are shown.
pub struct Axes<'a> {
    /// Above the chart.
    pub title: &'a str,
    /// Below the chart.
    pub x_label: &'a str,
    /// Unit of the values.
    pub unit: Unit,
}

const LEFT: f64 = 84.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 40.0;
const PLOT_HEIGHT: f64 = 250.0;

/// Lines over rows, both axes linear and from 0.
pub fn lines(axes: &Axes, series: &[Series]) -> String {
    let (x_max, y_max) = series
        .iter()
        .flat_map(|one| &one.points)
        .fold((0.0f64, 0.0f64), |(x, y), point| (x.max(point.0), y.max(point.1)));
    let (y_step, y_steps) = steps(y_max);
    let (x_step, _) = steps(x_max);
    let (right, bottom) = (WIDTH - RIGHT, TOP + PLOT_HEIGHT);
    let x_of = |value: f64| LEFT + (right - LEFT) * value / x_max.max(f64::MIN_POSITIVE);
    let y_of = |value: f64| bottom - PLOT_HEIGHT * value / (y_step * y_steps as f64);
    let mut svg = open(WIDTH, bottom + 46.0, axes.title);
    for number in 0..=y_steps {
        let value = y_step * number as f64;
        rule(&mut svg, LEFT, right, y_of(value), number == 0);
        label(&mut svg, "dim end", LEFT - 8.0, y_of(value) + 4.0, &axis_value(value, axes.unit));
    }
    let mut value = 0.0;
    while value <= x_max * 1.0001 {
        label(&mut svg, "dim middle", x_of(value), bottom + 18.0, &units::short(value));
        value += x_step;
    }
    label(&mut svg, "dim middle", (LEFT + right) / 2.0, bottom + 38.0, axes.x_label);
    for one in series {
        let points: Vec<_> = one.points.iter().map(|&(x, y)| (x_of(x), y_of(y))).collect();
        polyline(&mut svg, &points, one.place);
        for (&(x, y), &(rows, value)) in points.iter().zip(&one.points) {
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" fill=\"var(--c{})\"><title>{}: {} at {}</title></circle>",
                one.place % COLOURS,
                escape(one.name),
                escape(&units::show(value, axes.unit)),
                units::short(rows)
            );
        }
    }
    end_labels(&mut svg, series, bottom, |point| (right, y_of(point.1)));
    svg.push_str("</svg>");
    svg
}

/// How large a share took longer than a time: both axes logarithmic, so that the rare long ones are seen.
pub fn tails(title: &str, series: &[Series]) -> String {
    // Nothing has a logarithm below 0, and a share of 0 is no point of the line.
    let drawable = |one: &Series| one.points.iter().copied().filter(|&(x, y)| x > 0.0 && y > 0.0).collect();
    let series: Vec<Series> =
        series.iter().map(|one| Series { name: one.name, place: one.place, points: drawable(one) }).collect();
    let all = || series.iter().flat_map(|one| &one.points);
    let decades = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return (-1.0, 0.0);
        }
        (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0))
    };
    let (x_low, x_high) = decades(&mut all().map(|point| point.0));
    let (y_low, y_high) = (decades(&mut all().map(|point| point.1)).0.min(-1.0), 0.0);
    let (right, bottom) = (WIDTH - RIGHT, TOP + PLOT_HEIGHT);
    let x_of = |value: f64| LEFT + (right - LEFT) * (value.log10() - x_low) / (x_high - x_low);
    let y_of = |share: f64| bottom - PLOT_HEIGHT * (share.log10() - y_low) / (y_high - y_low);
    let mut svg = open(WIDTH, bottom + 46.0, title);
    for decade in y_low as i32..=y_high as i32 {
        let share = 10f64.powi(decade);
        rule(&mut svg, LEFT, right, y_of(share), decade == y_low as i32);
        label(&mut svg, "dim end", LEFT - 8.0, y_of(share) + 4.0, &format!("{}%", units::short_share(share)));
    }
    for decade in x_low as i32..=x_high as i32 {
        let seconds = 10f64.powi(decade);
        label(&mut svg, "dim middle", x_of(seconds), bottom + 18.0, &round_seconds(decade));
    }
    label(
        &mut svg,
        "dim middle",
        (LEFT + right) / 2.0,
        bottom + 38.0,
        "time; the line shows how many took longer",
    );
    for one in &series {
        let points: Vec<_> = one.points.iter().map(|&(x, y)| (x_of(x), y_of(y))).collect();
        polyline(&mut svg, &points, one.place);
    }
    end_labels(&mut svg, &series, bottom, |point| (x_of(point.0), y_of(point.1)));
    svg.push_str("</svg>");
    svg
}

/// One figure of all engines.
pub struct Bars {
    /// The figure's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Engine, its place in the report, its value, and a remark.
    pub bars: Vec<(String, usize, f64, String)>,
}

const BAR_HEIGHT: f64 = 20.0;
const BAR_STEP: f64 = 24.0;
const BAR_LEFT: f64 = 96.0;
const BAR_RIGHT: f64 = 190.0;

/// Bars, a block for each figure, each block on a scale of its own.
pub fn bars(figures: &[Bars]) -> String {
    let height: f64 = figures.iter().map(|one| 32.0 + BAR_STEP * one.bars.len() as f64).sum();
    let mut svg = open(WIDTH, height + 4.0, "");
    let mut y = 0.0;
    for figure in figures {
        y += 20.0;
        label(&mut svg, "head", 0.0, y, &figure.name);
        y += 8.0;
        let largest = figure.bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
        for (engine, place, value, remark) in &figure.bars {
            let width = if largest > 0.0 { (WIDTH - BAR_LEFT - BAR_RIGHT) * value / largest } else { 0.0 };
            label(&mut svg, "dim end", BAR_LEFT - 8.0, y + 15.0, engine);
            let _ = write!(
                svg,
                "<rect x=\"{BAR_LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\" rx=\"3\" fill=\"var(--c{})\"/>",
                width.max(1.5),
                place % COLOURS
            );
            let shown = units::show(*value, figure.unit);
            let text = if remark.is_empty() { shown } else { format!("{shown}  ·  {remark}") };
            label(&mut svg, "", BAR_LEFT + width.max(1.5) + 8.0, y + 15.0, &text);
            y += BAR_STEP;
        }
        y += 4.0;
    }
    svg.push_str("</svg>");
    svg
}

/// The report's curves as a picture by itself; `None` if it has none.
pub fn picture(report: &Report) -> Option<String> {
    let charts = curves(report);
    if charts.is_empty() {
        return None;
    }
    let height = (TOP + PLOT_HEIGHT + 46.0) + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\">\
         <style>{STYLE}</style><style>.paper{{fill:#fff}}@media(prefers-color-scheme:dark)\
         {{.paper{{fill:#14181f}}}}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>",
        height * charts.len() as f64
    );
    for (number, chart) in charts.iter().enumerate() {
        let _ = write!(svg, "<g transform=\"translate(0 {})\">{chart}</g>", height * number as f64);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// A chart for each curve of the report.
pub fn curves(report: &Report) -> Vec<String> {
    let mut names: Vec<(&str, Unit)> = Vec::new();
    let kept = report.engines.iter().filter(|engine| !keeps_nothing(&engine.engine));
    for curve in kept.flat_map(|engine| &engine.curves) {
        if !names.iter().any(|(name, _)| *name == curve.name) {
            names.push((&curve.name, curve.unit));
        }
    }
    names
        .into_iter()
        .map(|(name, unit)| {
            let series: Vec<Series> = report
                .engines
                .iter()
                .enumerate()
                // Where nothing is kept there is no course to see, and its speed would flatten all others.
                .filter(|(_, engine)| !keeps_nothing(&engine.engine))
                .filter_map(|(place, engine)| {
                    let curve = engine.curves.iter().find(|curve| curve.name == name)?;
                    Some(Series { name: &engine.engine, place, points: curve.points.clone() })
                })
                .collect();
            lines(&Axes { title: name, x_label: "rows in the table", unit }, &series)
        })
        .collect()
}

/// For text between tags and in attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(width: f64, height: f64, title: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">"
    );
    if !title.is_empty() {
        label(&mut svg, "head", 0.0, 18.0, title);
    }
    svg
}

fn label(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let _ = write!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text));
}

fn rule(svg: &mut String, left: f64, right: f64, y: f64, axis: bool) {
    let class = if axis { "axis" } else { "grid" };
    let _ = write!(svg, "<line class=\"{class}\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
}

fn polyline(svg: &mut String, points: &[(f64, f64)], place: usize) {
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        svg,
        "<polyline class=\"line\" stroke=\"var(--c{})\" points=\"{}\"/>",
        place % COLOURS,
        path.join(" ")
    );
}

/// Names at the ends of the lines; where they would touch, the upper one goes up, so none leaves the chart.
fn end_labels(
    svg: &mut String,
    series: &[Series],
    bottom: f64,
    place_of: impl Fn(&(f64, f64)) -> (f64, f64),
) {
    const WIDTH_MAX: f64 = 100.0;
    const HEIGHT: f64 = 17.0;
    let mut names: Vec<((f64, f64), &Series)> =
        series.iter().filter_map(|one| Some((place_of(one.points.last()?), one))).collect();
    names.sort_by(|one, other| other.0 .1.total_cmp(&one.0 .1));
    let mut put: Vec<(f64, f64)> = Vec::new();
    for ((x, y), one) in names {
        let mut y = y.min(bottom - 2.0);
        while let Some(below) =
            put.iter().find(|had| (had.0 - x).abs() < WIDTH_MAX && (had.1 - y).abs() < HEIGHT - 0.5)
        {
            y = below.1 - HEIGHT;
        }
        put.push((x, y));
        let _ = write!(
            svg,
            "<text class=\"name\" style=\"fill:var(--c{})\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            one.place % COLOURS,
            x + 10.0,
            y + 4.0,
            escape(one.name)
        );
    }
}

/// A round step and how many of them reach the largest value.
fn steps(largest: f64) -> (f64, usize) {
    const STEPS_MAX: f64 = 6.0;
    if largest <= 0.0 || !largest.is_finite() {
        return (1.0, 1);
    }
    let mut decade = 10f64.powf((largest / STEPS_MAX).log10().floor());
    loop {
        for factor in [1.0, 2.0, 5.0] {
            let step = decade * factor;
            if step * STEPS_MAX >= largest * 0.999_999 {
                return (step, ((largest / step * 0.999_999).ceil() as usize).max(1));
            }
        }
        decade *= 10.0;
    }
}

fn axis_value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value > 0.0 => units::seconds(value),
        Unit::Bytes if value > 0.0 => units::bytes(value),
        _ => units::short(value),
    }
}

fn round_seconds(decade: i32) -> String {
    match decade {
        ..=-4 => format!("{} µs", 10f64.powi(decade + 6)),
        -3..=-1 => format!("{} ms", 10f64.powi(decade + 3)),
        _ => format!("{} s", 10f64.powi(decade)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_few_and_reach_the_top() {
        for largest in [0.003, 0.7, 1.0, 6.0, 60.0, 61.0, 117_644.0, 9.9e9] {
            let (step, count) = steps(largest);
            assert!(step * count as f64 >= largest * 0.999_9, "{largest}: {step} x {count}");
            assert!((1..=6).contains(&count), "{largest}: {step} x {count}");
            let lead = step / 10f64.powf(step.log10().floor());
            assert!(
                [1.0, 2.0, 5.0].iter().any(|round| (lead - round).abs() < 1e-6 * round),
                "{largest}: {step}"
            );
        }
        assert_eq!(steps(0.0), (1.0, 1));
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        let bars = bars(&[Bars {
            name: "<script>".to_owned(),
            unit: Unit::Seconds,
            bars: vec![("a&b".to_owned(), 0, 1.0, "\"".to_owned())],
        }]);
        assert!(!bars.contains("<script>") && bars.contains("a&amp;b"), "{bars}");
    }

    #[test]
    fn names_of_lines_that_end_together_stay_apart_and_inside() {
        let axes = Axes { title: "t", x_label: "x", unit: Unit::RowsPerSecond };
        let names = ["A", "B", "C", "D"];
        let series: Vec<Series> = names
            .iter()
            .enumerate()
            .map(|(place, name)| Series { name, place, points: vec![(1.0, 9.0), (2.0, 0.1 * place as f64)] })
            .collect();
        let svg = lines(&axes, &series);
        let mut heights: Vec<f64> = names
            .iter()
            .map(|name| {
                let end = svg.find(&format!(">{name}</text>")).unwrap();
                let start = svg[..end].rfind(" y=\"").unwrap() + 4;
                svg[start..end - 1].parse().unwrap()
            })
            .collect();
        heights.sort_by(f64::total_cmp);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 16.4), "{heights:?}");
        assert!(heights[3] <= TOP + PLOT_HEIGHT + 4.0, "{heights:?}");
    }

    #[test]
    fn a_flat_or_empty_line_is_still_a_chart() {
        let axes = Axes { title: "t", x_label: "x", unit: Unit::RowsPerSecond };
        for points in [vec![], vec![(0.0, 0.0)], vec![(10.0, 0.0), (20.0, 0.0)]] {
            let svg = lines(&axes, &[Series { name: "A", place: 0, points: points.clone() }]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let svg = tails("t", &[Series { name: "A", place: 0, points }]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
