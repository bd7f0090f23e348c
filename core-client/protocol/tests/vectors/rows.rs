//! Reads the vector files.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// One row of a vector file.
#[derive(Debug, Deserialize)]
pub struct Row {
    pub name: String,
    pub kind: String,
    pub value: Value,
    hex: Option<String>,
}

impl Row {
    pub fn bytes(&self) -> Vec<u8> {
        unhex(self.hex.as_deref().unwrap_or_default())
    }

    /// A number of the value, given as a number or as decimal text.
    pub fn number(&self, path: &str) -> u128 {
        number(
            self.value
                .pointer(path)
                .unwrap_or_else(|| panic!("{}: no {path}", self.name)),
        )
    }
}

pub fn number(value: &Value) -> u128 {
    match value {
        Value::String(text) => text.parse().expect("a decimal number"),
        other => other.as_u64().expect("a number").into(),
    }
}

pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "whole bytes");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bdd/vectors")
}

pub fn load(file: &str) -> Vec<Row> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows: Vec<Row> = serde_json::from_str(&text).expect("a vector file");
    assert!(!rows.is_empty(), "{file} holds rows");
    rows
}
