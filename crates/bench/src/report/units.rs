//! Numbers for people.

use super::model::Unit;

/// A value in its unit, with three figures or so.
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => seconds(value),
        Unit::Bytes => bytes(value),
        Unit::BytesPerRow => format!("{} B/row", figures(value)),
        Unit::RowsPerSecond => format!("{}/s", grouped(value)),
        Unit::PerMinute => format!("{}/min", grouped(value)),
        Unit::Count => grouped(value),
        Unit::Ratio => format!("{value:.2}"),
    }
}

/// Seconds in the unit that suits them.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{} µs", figures(v * 1e6)),
        v if v < 1.0 => format!("{} ms", figures(v * 1e3)),
        v => format!("{} s", figures(v)),
    }
}

/// Bytes in powers of 1024.
pub fn bytes(value: f64) -> String {
    let (mut value, mut unit) = (value, 0);
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", figures(value), UNITS[unit])
}

/// A whole number with commas; small ones keep a decimal.
pub fn grouped(value: f64) -> String {
    if value.abs() < 100.0 && value.fract() != 0.0 {
        return figures(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" {
        text.insert(0, '-');
    }
    text
}

/// For axes: 2M, 500k, 0.2.
pub fn short(value: f64) -> String {
    match value {
        v if v.abs() >= 1e9 => format!("{}G", trimmed(v / 1e9)),
        v if v.abs() >= 1e6 => format!("{}M", trimmed(v / 1e6)),
        v if v.abs() >= 1e3 => format!("{}k", trimmed(v / 1e3)),
        v => trimmed(v),
    }
}

/// A share in per cent, as short as it goes.
pub fn short_share(share: f64) -> String {
    let text = format!("{:.7}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn figures(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => grouped_whole(value),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn grouped_whole(value: f64) -> String {
    grouped(value.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_their_units() {
        for (value, unit, shown) in [
            (0.000_012_3, Unit::Seconds, "12.3 µs"),
            (0.2347, Unit::Seconds, "235 ms"),
            (12.345, Unit::Seconds, "12.3 s"),
            (2467.4, Unit::Seconds, "2,467 s"),
            (913.0 * 1_048_576.0, Unit::Bytes, "913 MiB"),
            (488.2, Unit::BytesPerRow, "488 B/row"),
            (66_514.2, Unit::RowsPerSecond, "66,514/s"),
            (1_000_000.0, Unit::Count, "1,000,000"),
            (0.8, Unit::Ratio, "0.80"),
            (7.0, Unit::Count, "7"),
        ] {
            assert_eq!(show(value, unit), shown);
        }
    }

    #[test]
    fn axes_have_short_numbers() {
        assert_eq!([0.0, 0.25, 500.0, 1500.0, 2e6].map(short), ["0", "0.25", "500", "1.5k", "2M"]);
    }
}
