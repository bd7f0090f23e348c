//! Sizes and times as people write them.

use iggy_protocol::IggyByteSize;
use std::time::Duration;

/// Parses `64 MiB`, `500 MB`, `1.5 GiB` or plain bytes. `None` for anything else, fractions of a byte and overflow.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    text.parse().ok().map(IggyByteSize::as_bytes_u64)
}

/// Parses `30 s`, `1m 30s`, `500ms`.
pub(super) fn parse_time(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok()
}

/// Writes a size with the largest unit that divides it.
pub(super) fn format_size(bytes: u64) -> String {
    let (name, factor) = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .map(|(name, power)| (name, 1_u64 << power))
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .unwrap_or(("B", 1));
    format!("{} {name}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_sizes_should_read_both_families_of_units() {
        for (text, bytes) in [
            ("0", 0),
            ("64 MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("500 MB", 500_000_000),
            ("1.5 GiB", 3 << 29),
            ("10_000", 10_000),
            ("4096 B", 4096),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn given_text_that_is_no_size_should_refuse() {
        for text in [
            "",
            "MiB",
            "-1",
            "1 MB2",
            "1.",
            "1..5 KB",
            "0.3 B",
            "99999999999 TiB",
            "1.5",
            "5 parsecs",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn given_bytes_should_write_what_reads_back() {
        for bytes in [0, 1, 1023, 1 << 10, 64 << 20, 3 << 29, 1 << 40, 500_000_000] {
            assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
        assert_eq!(format_size(64 << 20), "64 MiB");
    }

    #[test]
    fn given_times_should_read_their_units() {
        assert_eq!(parse_time("30 s"), Some(Duration::from_secs(30)));
        assert_eq!(parse_time("1m 30s"), Some(Duration::from_secs(90)));
        assert_eq!(parse_time("30"), None);
    }
}
