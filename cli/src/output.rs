//! Results on standard output: tables and lists for people, JSON and TOML for programs.
//!
//! A command says its result once, as named cells; each form is made from that. Columns keep one name in all forms, and
//! numbers stay numbers in JSON where tables show `1.5 GiB`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Map, Value};

use crate::arguments::{ListMode, StatsFormat};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number that is shown as it is.
    Number(u64),
    /// A number with a fraction.
    Fraction(f64),
    /// Yes or no.
    Flag(bool),
    /// Bytes.
    Size(u64),
    /// Microseconds since the epoch.
    Moment(u64),
    /// Microseconds.
    Time(u64),
    /// Several values.
    Several(Vec<Cell>),
    /// Records of their own, one table below the other fields.
    Records(Vec<Record>),
    /// No value.
    Nothing,
}

impl Cell {
    /// Text of anything that can be shown.
    pub fn text(value: &impl ToString) -> Self {
        Self::Text(value.to_string())
    }

    /// A value that may be missing.
    pub fn optional(value: Option<impl Into<Self>>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Fraction(number) => format!("{number:.2}"),
            Self::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Self::Size(bytes) => shown_size(*bytes),
            Self::Moment(micros) => shown_moment(*micros),
            Self::Time(micros) => humantime::format_duration(Duration::from_micros(*micros)).to_string(),
            Self::Several(cells) => cells.iter().map(Self::shown).collect::<Vec<_>>().join(", "),
            Self::Records(records) => records.len().to_string(),
            Self::Nothing => "-".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) | Self::Size(number) | Self::Moment(number) | Self::Time(number) => {
                Value::from(*number)
            }
            Self::Fraction(number) => Value::from(*number),
            Self::Flag(flag) => Value::from(*flag),
            Self::Several(cells) => cells.iter().map(Self::json).collect(),
            Self::Records(records) => records.iter().map(|record| Value::Object(record.json())).collect(),
            Self::Nothing => Value::Null,
        }
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Named values in the order in which they are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record(Vec<(&'static str, Cell)>);

impl Record {
    /// Without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; the name is `snake_case`.
    #[must_use]
    pub fn with(mut self, name: &'static str, cell: impl Into<Cell>) -> Self {
        self.0.push((name, cell.into()));
        self
    }

    /// As one JSON object.
    pub fn json(&self) -> Map<String, Value> {
        self.0
            .iter()
            .map(|(name, cell)| ((*name).to_owned(), cell.json()))
            .collect()
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables.
    Table,
    /// Lines of `name: value`.
    List,
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

impl From<ListMode> for Form {
    fn from(mode: ListMode) -> Self {
        match mode {
            ListMode::Table => Self::Table,
            ListMode::List => Self::List,
        }
    }
}

impl From<StatsFormat> for Form {
    fn from(format: StatsFormat) -> Self {
        match format {
            StatsFormat::Table => Self::Table,
            StatsFormat::List => Self::List,
            StatsFormat::Json => Self::Json,
            StatsFormat::Toml => Self::Toml,
        }
    }
}

/// Where and how this run prints.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// `--json` and `--quiet`.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether results are JSON.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Whether confirmations and progress are left out.
    pub fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Says that a command without a result did its work.
    pub fn confirm(self, text: &str) -> io::Result<()> {
        if self.quiet || self.json {
            return Ok(());
        }
        print_text(&format!("{text}\n"))
    }

    /// Says something beside the result, on standard error.
    pub fn note(self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Prints one record.
    pub fn record(self, record: &Record, form: Form) -> io::Result<()> {
        print_text(&match self.form(form) {
            Form::Json => format!("{}\n", Value::Object(record.json())),
            Form::Toml => toml_text(record)?,
            Form::List => list_text(record),
            Form::Table => record_tables(record),
        })
    }

    /// Prints a list of records.
    pub fn records(self, records: &[Record], form: Form) -> io::Result<()> {
        print_text(&match self.form(form) {
            Form::Json => {
                format!(
                    "{}\n",
                    Value::Array(records.iter().map(|record| Value::Object(record.json())).collect())
                )
            }
            Form::Toml => records
                .iter()
                .map(toml_text)
                .collect::<io::Result<Vec<_>>>()?
                .join("\n"),
            Form::List => records.iter().map(list_text).collect::<Vec<_>>().join("\n"),
            Form::Table if records.is_empty() => "none\n".to_owned(),
            Form::Table => records_table(records),
        })
    }

    fn form(self, form: Form) -> Form {
        if self.json { Form::Json } else { form }
    }
}

/// Writes to standard output; a reader that has gone away ends the program's work and is no fault of it.
pub fn print_text(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// As [`print_text`], for payloads.
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn record_tables(record: &Record) -> String {
    let mut table = new_table();
    let mut below = String::new();
    for (name, cell) in &record.0 {
        table.add_row([title(name), cell.shown()]);
        if let Cell::Records(records) = cell
            && !records.is_empty()
        {
            let _ = write!(below, "\n{}\n{}", title(name), records_table(records));
        }
    }
    format!("{table}\n{below}")
}

fn records_table(records: &[Record]) -> String {
    let mut table = new_table();
    if let Some(first) = records.first() {
        table.set_header(first.0.iter().map(|(name, _)| title(name)));
    }
    for record in records {
        table.add_row(record.0.iter().map(|(_, cell)| cell.shown()));
    }
    format!("{table}\n")
}

fn list_text(record: &Record) -> String {
    record.0.iter().fold(String::new(), |mut text, (name, cell)| {
        let _ = match cell {
            Cell::Records(records) => {
                let inner: String = records.iter().map(list_text).collect::<Vec<_>>().join("\n");
                let indented: Vec<_> = inner.lines().map(|line| format!("  {line}")).collect();
                writeln!(text, "{}: {}\n{}", title(name), records.len(), indented.join("\n"))
            }
            other => writeln!(text, "{}: {}", title(name), other.shown()),
        };
        text
    })
}

fn toml_text(record: &Record) -> io::Result<String> {
    // TOML knows no null: a value that is missing is left out.
    let object: Map<String, Value> = record
        .json()
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    toml::to_string(&object).map_err(io::Error::other)
}

/// `messages_count` as `Messages count`.
fn title(name: &str) -> String {
    let spaced = name.replace('_', " ");
    let mut letters = spaced.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn shown_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss)] // Two digits are shown.
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.2} {}", UNITS[unit])
}

fn shown_moment(micros: u64) -> String {
    // The year 9999 is the last that RFC 3339 can write.
    match UNIX_EPOCH.checked_add(Duration::from_micros(micros)) {
        Some(time) if micros < 253_402_300_800_000_000 => humantime::format_rfc3339_micros(time).to_string(),
        _ => micros.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        Record::new()
            .with("id", 7_u32)
            .with("name", "orders")
            .with("size", Cell::Size(1536))
            .with("created_at", Cell::Moment(1_000_000))
            .with("expiry", Cell::Nothing)
            .with(
                "partitions",
                Cell::Records(vec![Record::new().with("id", 0_u32).with("messages_count", 3_u64)]),
            )
    }

    #[test]
    fn given_a_record_should_keep_types_in_json_and_units_in_tables() {
        let json = Value::Object(sample().json());
        assert_eq!(json["size"], 1536);
        assert_eq!(json["created_at"], 1_000_000);
        assert_eq!(json["expiry"], Value::Null);
        assert_eq!(json["partitions"][0]["messages_count"], 3);
        let table = record_tables(&sample());
        for part in [
            "1.50 KiB",
            "1970-01-01T00:00:01.000000Z",
            "Created at",
            "Messages count",
        ] {
            assert!(table.contains(part), "no {part} in\n{table}");
        }
    }

    #[test]
    fn given_a_list_should_indent_inner_records() {
        let text = list_text(&sample());
        assert!(text.contains("Name: orders\n"), "{text}");
        assert!(text.contains("Partitions: 1\n  Id: 0\n  Messages count: 3\n"), "{text}");
    }

    #[test]
    fn given_toml_should_leave_out_what_is_missing() {
        let text = toml_text(&sample()).unwrap();
        assert!(!text.contains("expiry"), "{text}");
        assert!(text.contains("name = \"orders\""), "{text}");
    }

    #[test]
    fn given_sizes_should_choose_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(shown_size(bytes), text);
        }
        assert_eq!(shown_moment(u64::MAX), u64::MAX.to_string());
    }
}
