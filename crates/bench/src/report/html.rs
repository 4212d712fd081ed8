//! The report as one page: no script, no font, no picture from anywhere else.

use std::fmt::Write as _;

use super::chart::{self, escape, Bars, Series};
use super::model::{Group, Report, Unit};
use super::text::{first_is_better, times, value};
use super::units;

const STYLE: &str = "\
:root{--paper:#f6f7f9;--card:#fff;--ink:#1c2430;--dim:#667085;--edge:#e4e7ec;--good:#0f766e;--bad:#b42318}\
@media(prefers-color-scheme:dark){:root{--paper:#0e1116;--card:#161b22;--ink:#e6e9ef;--dim:#98a2b3;--edge:#2c3440;\
--good:#2dd4bf;--bad:#f97066}}\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);\
font:15px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}\
main{max-width:960px;margin:0 auto;padding:40px 24px 80px}h1{font-size:30px;margin:0 0 6px;letter-spacing:-.02em}\
h2{font-size:19px;margin:0 0 14px}p{margin:0 0 10px}.dim{color:var(--dim)}\
section{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:22px 24px;margin-top:22px}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px;margin-top:24px}\
.tile{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:16px 18px}\
.tile b{display:block;font-size:25px;letter-spacing:-.02em;margin:2px 0}.good{color:var(--good)}.bad{color:var(--bad)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--edge);white-space:nowrap}\
th:first-child,td:first-child{text-align:left;white-space:normal}th{color:var(--dim);font-weight:600}\
tr.group td{font-weight:600;padding-top:18px}code{font:12.5px ui-monospace,Menlo,Consolas,monospace;\
overflow-wrap:anywhere}svg{max-width:100%;height:auto;display:block}svg+svg{margin-top:18px}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:0}dt{color:var(--dim)}dd{margin:0}\
.wrong{border-color:var(--bad)}ul{margin:0;padding-left:20px}";

/// The whole page.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>pando-bench {}</title><style>{STYLE}{}</style></head><body><main>",
        escape(&report.workload),
        chart::STYLE
    );
    head(report, &mut page);
    for group in Group::ALL {
        if group == Group::Throughput {
            curves(report, &mut page);
        }
        figures(report, group, &mut page);
        if group == Group::Latency {
            tails(report, &mut page);
        }
    }
    numbers(report, &mut page);
    conditions(report, &mut page);
    page.push_str("</main></body></html>\n");
    page
}

fn head(report: &Report, page: &mut String) {
    let names: Vec<String> = report.engines.iter().map(|engine| escape(&engine.engine)).collect();
    let _ = write!(
        page,
        "<h1>{}: {}</h1><p>{}</p><p class=\"dim\">{} · {} × {} · {} memory</p>",
        escape(&report.workload),
        names.join(" · "),
        escape(&report.about),
        escape(&report.date),
        report.machine.processors,
        escape(&report.machine.processor),
        units::bytes(report.machine.memory_bytes as f64)
    );
    if !report.differences.is_empty() {
        page.push_str("<section class=\"wrong\"><h2 class=\"bad\">Wrong answers</h2><ul>");
        for difference in &report.differences {
            let _ = write!(page, "<li>{}</li>", escape(difference));
        }
        page.push_str("</ul></section>");
    }
    tiles(report, page);
}

/// The first figure of each of the first groups: first engine against the best of the others.
fn tiles(report: &Report, page: &mut String) {
    const TILES: usize = 4;
    let Some(first) = report.engines.first() else { return };
    let figures = report.figures();
    page.push_str("<div class=\"tiles\">");
    let mut shown = 0;
    for group in Group::ALL {
        let Some((_, name, unit)) = figures.iter().find(|(one, _, _)| *one == group) else { continue };
        let Some(mine) = value(first, group, name) else { continue };
        if shown == TILES {
            break;
        }
        shown += 1;
        let _ = write!(
            page,
            "<div class=\"tile\"><span class=\"dim\">{}</span><b>{}</b>",
            escape(name),
            escape(&units::show(mine, *unit))
        );
        for engine in &report.engines[1..] {
            let Some(theirs) = value(engine, group, name) else { continue };
            if mine <= 0.0 {
                continue;
            }
            let class = if first_is_better(*unit, theirs / mine) { "good" } else { "bad" };
            let _ = write!(
                page,
                "<div>{} <span class=\"{class}\">{}</span></div>",
                escape(&engine.engine),
                times(theirs / mine)
            );
        }
        page.push_str("</div>");
    }
    page.push_str("</div>");
}

fn figures(report: &Report, group: Group, page: &mut String) {
    let blocks: Vec<Bars> = report
        .figures()
        .into_iter()
        .filter(|(one, _, _)| *one == group)
        .map(|(_, name, unit)| {
            let first = report.engines.first().and_then(|engine| value(engine, group, &name));
            let bars = report.engines.iter().enumerate().filter_map(|(place, engine)| {
                let value = value(engine, group, &name)?;
                let remark = match first {
                    Some(first) if place > 0 && first > 0.0 && unit != Unit::Ratio => times(value / first),
                    _ => String::new(),
                };
                Some((engine.engine.clone(), place, value, remark))
            });
            Bars { bars: bars.collect(), name, unit }
        })
        .collect();
    if !blocks.is_empty() {
        let _ = write!(page, "<section><h2>{}</h2>{}</section>", group.title(), chart::bars(&blocks));
    }
}

fn curves(report: &Report, page: &mut String) {
    let charts = chart::curves(report);
    if !charts.is_empty() {
        let _ = write!(page, "<section><h2>Over the course of the run</h2>{}</section>", charts.concat());
    }
}

fn tails(report: &Report, page: &mut String) {
    let mut names: Vec<&str> = Vec::new();
    for timing in report.engines.iter().flat_map(|engine| &engine.timings) {
        if !names.contains(&timing.name.as_str()) {
            names.push(&timing.name);
        }
    }
    if names.is_empty() {
        return;
    }
    page.push_str("<section><h2>Distribution of times</h2>");
    for name in names {
        let series: Vec<Series> = report
            .engines
            .iter()
            .enumerate()
            .filter_map(|(place, engine)| {
                let timing = engine.timings.iter().find(|timing| timing.name == name)?;
                let total = timing.histogram.count as f64;
                let mut longer = total;
                let mut points: Vec<(f64, f64)> = Vec::new();
                for (upper, count) in timing.histogram.buckets() {
                    longer -= count as f64;
                    points.push((upper.min(timing.histogram.longest_seconds), longer / total));
                }
                // The last point is the longest one itself.
                if let Some(last) = points.last_mut() {
                    last.1 = 1.0 / total;
                }
                Some(Series { name: &engine.engine, place, points })
            })
            .collect();
        page.push_str(&chart::tails(name, &series));
    }
    page.push_str("</section>");
}

fn numbers(report: &Report, page: &mut String) {
    page.push_str("<section><h2>All figures</h2><div class=\"scroll\"><table><tr><th></th>");
    for engine in &report.engines {
        let _ = write!(page, "<th>{}</th>", escape(&engine.engine));
    }
    page.push_str("</tr>");
    let mut last = None;
    for (group, name, unit) in report.figures() {
        if last != Some(group) {
            last = Some(group);
            let _ = write!(
                page,
                "<tr class=\"group\"><td colspan=\"{}\">{}</td></tr>",
                report.engines.len() + 1,
                group.title()
            );
        }
        let _ = write!(page, "<tr><td>{}</td>", escape(&name));
        for engine in &report.engines {
            match engine.metric(group, &name) {
                None => page.push_str("<td class=\"dim\">–</td>"),
                Some(metric) => {
                    let all: Vec<String> = metric.samples.iter().map(|one| units::show(*one, unit)).collect();
                    let _ = write!(
                        page,
                        "<td title=\"{}\">{}</td>",
                        escape(&all.join(", ")),
                        escape(&units::show(metric.median(), unit))
                    );
                }
            }
        }
        page.push_str("</tr>");
    }
    page.push_str(
        "</table></div><p class=\"dim\" style=\"margin-top:12px\">Medians; the samples are shown when the \
                   pointer rests on a cell.</p></section>",
    );
}

fn conditions(report: &Report, page: &mut String) {
    page.push_str("<section><h2>Conditions</h2><dl>");
    let mut line = |name: &str, text: &str, code: bool| {
        let text = escape(text);
        let text = if code { format!("<code>{text}</code>") } else { text };
        let _ = write!(page, "<dt>{}</dt><dd>{text}</dd>", escape(name));
    };
    line("command", &report.command, true);
    line("kernel", &report.machine.kernel, false);
    line("load before", &format!("{:.2}", report.machine.load_before), false);
    for (name, text) in &report.parameters {
        line(name, text, false);
    }
    for engine in &report.engines {
        line(&engine.engine, &format!("{}: {}", engine.server, engine.settings.join(" ")), true);
        for note in &engine.notes {
            line("", note, false);
        }
    }
    let compared: Vec<&str> =
        report.engines.iter().flat_map(|engine| &engine.answers).map(|a| a.name.as_str()).collect();
    if !compared.is_empty() {
        let verdict = if report.differences.is_empty() { "all equal" } else { "NOT all equal" };
        line("answers", &format!("{} answers compared, {verdict}", compared.len()), false);
    }
    page.push_str("</dl></section>");
}
