//! Spans of time in microseconds, with their text form.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A span of time in whole microseconds. Its text form is a sum of units: `7 days`, `1h 30m`, `500ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IggyDuration(u64);

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no duration, expected numbers with units us, ms, s, m, h, d, w such as '7 days' or '1h 30m'")]
pub struct DurationTextError(String);

impl IggyDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// One second.
    pub const ONE_SECOND: Self = Self(1_000_000);

    /// From microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// From seconds, saturating.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// In microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// As a standard duration.
    pub const fn get_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<Duration> for IggyDuration {
    /// Saturates at 2^64-1 microseconds.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<IggyDuration> for Duration {
    fn from(duration: IggyDuration) -> Self {
        duration.get_duration()
    }
}

impl From<u64> for IggyDuration {
    fn from(micros: u64) -> Self {
        Self(micros)
    }
}

fn unit_micros(unit: &str) -> Option<u64> {
    const SECOND: u64 = 1_000_000;
    Some(match unit {
        "us" | "usec" | "µs" | "micros" | "microseconds" => 1,
        "ms" | "msec" | "millis" | "milliseconds" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        "w" | "week" | "weeks" => 7 * 86_400 * SECOND,
        "month" | "months" | "M" => 2_630_016 * SECOND,
        "y" | "year" | "years" => 31_557_600 * SECOND,
        _ => return None,
    })
}

impl FromStr for IggyDuration {
    type Err = DurationTextError;

    fn from_str(text: &str) -> Result<Self, DurationTextError> {
        let wrong = || DurationTextError(text.to_owned());
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        let mut rest = text.trim();
        let mut micros = 0_u64;
        while !rest.is_empty() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = rest[digits..].trim_start();
            let end = rest
                .find(|letter: char| letter.is_ascii_digit() || letter.is_whitespace())
                .unwrap_or(rest.len());
            let unit = unit_micros(&rest[..end]).ok_or_else(wrong)?;
            micros = number
                .checked_mul(unit)
                .and_then(|part| micros.checked_add(part))
                .ok_or_else(wrong)?;
            rest = rest[end..].trim_start();
        }
        if text.trim().is_empty() {
            Err(wrong())
        } else {
            Ok(Self(micros))
        }
    }
}

impl fmt::Display for IggyDuration {
    /// The largest units first: `1day 2h 3m 4s 5ms`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return out.write_str("0s");
        }
        let mut rest = self.0;
        let mut first = true;
        let units = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "m"),
            (1_000_000, "s"),
            (1_000, "ms"),
            (1, "us"),
        ];
        for (size, unit) in units {
            let count = rest / size;
            rest %= size;
            if count > 0 {
                write!(out, "{}{count}{unit}", if first { "" } else { " " })?;
                first = false;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_texts_when_parsed_should_sum_their_units() {
        for (text, micros) in [
            ("7 days", 604_800_000_000),
            ("1h 30m", 5_400_000_000),
            ("500ms", 500_000),
            ("1s", 1_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(IggyDuration(micros)), "{text}");
        }
        for text in [
            "",
            "7",
            "days",
            "7 fortnights",
            "99999999999999999999s",
            "20000000 years",
            "1.5s",
            "-1s",
        ] {
            assert!(text.parse::<IggyDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn given_a_duration_when_shown_should_parse_back() {
        for micros in [0, 1, 999, 1_000, 61_000_000, 90_061_001_001, 604_800_000_000] {
            let duration = IggyDuration(micros);
            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
