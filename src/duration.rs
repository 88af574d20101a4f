//! Lengths of time as people write them.

use std::time::Duration;

/// The longest deadline.
const MAX_DEADLINE: Duration = Duration::from_hours(24);

/// Reads a duration: digits, perhaps with a fraction, and one of the units `ms`, `s`, `m`, `h`.
///
/// # Errors
/// What is wrong with it. Zero, and more than 24 hours, are refused.
pub fn parse_deadline(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("needs a number and a unit, such as 500ms, 30s or 2m".to_owned()),
    };
    let well_formed = number.starts_with(|c: char| c.is_ascii_digit()) && !number.ends_with('.');
    let duration = number
        .parse::<f64>()
        .ok()
        .filter(|_| well_formed)
        .and_then(|number| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or("needs a number and a unit, such as 500ms, 30s or 2m")?;
    if duration.is_zero() {
        return Err("must be more than zero".to_owned());
    }
    if duration > MAX_DEADLINE {
        return Err("must be at most 24h".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines() {
        let ms = |ms| Ok(Duration::from_millis(ms));
        for (text, expected) in [
            ("500ms", ms(500)),
            ("30s", ms(30_000)),
            ("2m", ms(120_000)),
            ("24h", ms(86_400_000)),
            ("1.5s", ms(1500)),
            ("1ms", ms(1)),
        ] {
            assert_eq!(parse_deadline(text), expected, "{text}");
        }
        for text in [
            "",
            "0s",
            "0ms",
            "-1s",
            "NaN",
            "NaNs",
            "inf",
            "infs",
            "30",
            "1e3s",
            "24.1h",
            "25h",
            "1d",
            "99999999999999999999h",
            "2147483648s",
            ".5s",
            "5.s",
            "1..2s",
            "1 s",
            "+1s",
            "s",
            "1S",
            "0.0000000001ms",
        ] {
            assert!(parse_deadline(text).is_err(), "{text}");
        }
    }
}
