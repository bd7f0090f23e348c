//! Sizes in bytes, with their text form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A size in bytes. Its text form is a number and a unit: `128 MiB`, `1 GB`, `512`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IggyByteSize(u64);

/// A text that is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no size, expected a number and B, KB, MB, GB, TB, KiB, MiB, GiB or TiB such as '128 MiB'")]
pub struct ByteSizeTextError(String);

const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

impl IggyByteSize {
    /// From bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub const fn as_bytes_u64(self) -> u64 {
        self.0
    }
}

impl From<u64> for IggyByteSize {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl FromStr for IggyByteSize {
    type Err = ByteSizeTextError;

    fn from_str(text: &str) -> Result<Self, ByteSizeTextError> {
        let wrong = || ByteSizeTextError(text.to_owned());
        let text_trimmed = text.trim();
        let digits = text_trimmed.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '_');
        let (number, unit) = text_trimmed.split_at(digits.unwrap_or(text_trimmed.len()));
        let number = number.replace('_', "");
        let unit = unit.trim().to_ascii_lowercase();
        let factor = match unit.as_str() {
            "" => 1,
            unit => UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, factor)| *factor)
                .ok_or_else(wrong)?,
        };
        scaled(&number, factor).map(Self).ok_or_else(wrong)
    }
}

/// A decimal number times a factor, exactly; `None` when it is not whole or does not fit.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 || number.ends_with('.') {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(u128::from(factor))?;
    product
        .is_multiple_of(scale)
        .then(|| u64::try_from(product / scale).ok())?
}

impl fmt::Display for IggyByteSize {
    /// In the largest binary unit that divides it, else with two decimals.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in [
            ("TiB", 1_u64 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ] {
            if self.0 >= size {
                if self.0.is_multiple_of(size) {
                    return write!(out, "{} {unit}", self.0 / size);
                }
                let hundredths = u128::from(self.0) * 100 / u128::from(size);
                return write!(out, "{}.{:02} {unit}", hundredths / 100, hundredths % 100);
            }
        }
        write!(out, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_texts_when_parsed_should_scale_exactly() {
        let sizes = [
            ("128 MiB", 128 << 20),
            ("1 GB", 1_000_000_000),
            ("512", 512),
            ("1.5KiB", 1536),
            ("10 B", 10),
            ("1_000", 1000),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse(), Ok(IggyByteSize(bytes)), "{text}");
        }
        for text in ["", "MiB", "1 XB", "1.0001 B", "99999999999 TiB", "-1", "1..2"] {
            assert!(text.parse::<IggyByteSize>().is_err(), "{text}");
        }
    }
}
