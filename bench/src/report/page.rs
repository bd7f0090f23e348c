//! A report as a page that opens without a network: its charts are drawn into it.

use super::{POINT, Percentiles, Report, Summary, table};
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (900, 340);
const COLOURS: [RGBColor; 4] = [
    RGBColor(0x1f, 0x6f, 0xb2),
    RGBColor(0xd9, 0x6b, 0x1e),
    RGBColor(0x77, 0x77, 0x77),
    RGBColor(0xaa, 0xaa, 0xaa),
];
const PERCENTILES: [&str; 7] = ["p50", "p90", "p95", "p99", "p999", "p9999", "max"];

type Line = (String, Vec<(f64, f64)>);

/// The whole page.
pub fn of(report: &Report) -> anyhow::Result<String> {
    let mut about = Vec::new();
    for (name, value) in [
        ("identifier", &report.options.identifier),
        ("remark", &report.options.remark),
        ("gitref", &report.options.gitref),
    ] {
        about.extend(value.iter().map(|value| format!("{name}: {}", escaped(value))));
    }
    let sides = sides(report);
    let curves: Vec<Line> = sides.iter().map(|(name, side)| (name.clone(), curve(side))).collect();
    let latencies: Vec<Line> = sides
        .iter()
        .map(|(name, side)| (name.clone(), percentiles(&side.averaged)))
        .collect();
    let throughput = chart("Throughput", "seconds", "MB/s", &curves, |x| format!("{x:.0}"))?;
    let label = |x: &f64| {
        let place = PERCENTILES.iter().enumerate();
        let found = place.min_by(|a, b| distance(a.0, *x).total_cmp(&distance(b.0, *x)));
        found
            .filter(|(index, _)| distance(*index, *x) < 0.01)
            .map_or_else(String::new, |(_, name)| (*name).to_owned())
    };
    let latency = chart(
        "Latency of a batch, averaged over the actors",
        "",
        "ms",
        &latencies,
        label,
    )?;
    let (title, table, about) = (report.workload, escaped(&table::of(report)), about.join("<br>"));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body {{ font-family: sans-serif; max-width: 60em; margin: 2em auto; }} pre {{ overflow-x: auto; }}</style>\n\
         <h1>{title}</h1>\n<p>{about}</p>\n{throughput}\n{latency}\n<pre>{table}</pre>\n</html>\n"
    ))
}

#[allow(clippy::cast_precision_loss)]
fn distance(index: usize, x: f64) -> f64 {
    (index as f64 - x).abs()
}

fn sides(report: &Report) -> Vec<(String, &Summary)> {
    let mut sides: Vec<_> = report.sides().map(|(name, side)| (name.to_owned(), side)).collect();
    if let Some(floor) = &report.floor {
        let before = floor.before.iter().flatten();
        sides.extend(before.map(|side| ("floor".to_owned(), side)));
    }
    sides
}

fn curve(side: &Summary) -> Vec<(f64, f64)> {
    let mut seconds = 0.0;
    let point = |rate: &f64| {
        let at = seconds;
        seconds += POINT.as_secs_f64();
        (at, *rate)
    };
    side.curve.iter().map(point).collect()
}

fn percentiles(latency: &Percentiles) -> Vec<(f64, f64)> {
    let values = [
        latency.p50,
        latency.p90,
        latency.p95,
        latency.p99,
        latency.p999,
        latency.p9999,
        latency.max,
    ];
    (0_u8..).map(f64::from).zip(values).collect()
}

fn range(lines: &[Line], value: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
    let values = lines.iter().flat_map(|(_, points)| points).map(value);
    0.0..values.fold(0.0, f64::max).max(1e-3) * 1.05
}

fn chart(
    title: &str,
    x_name: &str,
    y_name: &str,
    lines: &[Line],
    x_label: impl Fn(&f64) -> String,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(34)
            .y_label_area_size(64)
            .build_cartesian_2d(range(lines, |point| point.0), range(lines, |point| point.1))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_name)
            .y_desc(y_name)
            .x_label_formatter(&x_label)
            .draw()?;
        for ((name, points), colour) in lines.iter().zip(COLOURS.into_iter().cycle()) {
            chart
                .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
