//! Lays the file over the defaults and the environment over both.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use toml::{Table, Value};

use super::error::{ConfigError, Origin};
use super::keys::{KnownKeys, flatten, replacement};
use super::settings::Config;

const DEFAULTS: &str = include_str!("../../config.toml");
const VARIABLE_PREFIX: &str = "IGGY_";

/// A checked configuration and its text.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Every key with its effective value, as TOML; what `--print-config` prints.
    pub effective: String,
}

/// Loads the embedded defaults, then `file` when given, then the `IGGY_` variables of this process.
///
/// # Errors
/// Anything that is unknown, removed, of the wrong kind, out of bounds or contradictory; see [`ConfigError`].
pub fn load(file: Option<&Path>) -> Result<Loaded, ConfigError> {
    let file = match file {
        None => None,
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            })?;
            Some((Origin::File(path.to_owned()), text))
        }
    };
    // A name or value that is not UTF-8 cannot be ours: every key and every allowed value is ASCII or a path, and paths
    // that are not UTF-8 can still be given by a relative name.
    let variables =
        env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    merge(file, variables)
}

pub(super) fn merge(
    file: Option<(Origin, String)>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, ConfigError> {
    let defaults = parse(&Origin::Default, DEFAULTS)?;
    let known = KnownKeys::new(&defaults);
    let mut values = Values::default();
    for (key, value) in flatten(&defaults) {
        values.set(key, value, Origin::Default);
    }
    if let Some((origin, text)) = file {
        for (key, value) in flatten(&parse(&origin, &text)?) {
            let Some(default) = known.default_of(&key) else {
                return Err(refuse_key(&known, origin, key));
            };
            check_kind(&origin, &key, default, &value)?;
            values.set(key, value, origin.clone());
        }
    }
    for (name, text) in variables {
        overlay_variable(&known, &mut values, name, text)?;
    }
    let config = Config::from_values(&values)?;
    let effective = toml::to_string_pretty(&values.to_table())
        .map_err(|error| ConfigError::Conflict(format!("the configuration cannot be written as TOML: {error}")))?;
    Ok(Loaded { config, effective })
}

fn parse(origin: &Origin, text: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        origin: origin.clone(),
        message: error.to_string(),
    })
}

fn refuse_key(known: &KnownKeys, origin: Origin, key: String) -> ConfigError {
    match replacement(&key) {
        Some(instead) => ConfigError::RemovedKey {
            origin,
            key,
            instead: instead.to_owned(),
        },
        None => ConfigError::UnknownKey {
            nearest: known.nearest(&key),
            origin,
            key,
        },
    }
}

/// Client variables share the prefix (`IGGY_USERNAME`, `IGGY_TOKEN`), so an unknown variable is refused only when its
/// first words name a section or a removed key.
fn overlay_variable(known: &KnownKeys, values: &mut Values, name: String, text: String) -> Result<(), ConfigError> {
    let Some(suffix) = name.strip_prefix(VARIABLE_PREFIX).map(str::to_lowercase) else {
        return Ok(());
    };
    let origin = Origin::Variable(name);
    let Some(key) = known.of_variable(&suffix).map(str::to_owned) else {
        if known.names_section(&suffix) || replacement(&suffix).is_some() {
            return Err(refuse_key(known, origin, suffix));
        }
        return Ok(());
    };
    // `of_variable` answers with known keys only, and each known key has a default.
    let value = match known.default_of(&key) {
        Some(Value::Boolean(_)) => text.parse().map(Value::Boolean).unwrap_or(Value::String(text)),
        Some(Value::Integer(_)) => text.parse().map(Value::Integer).unwrap_or(Value::String(text)),
        _ => Value::String(text),
    };
    if let Some(default) = known.default_of(&key) {
        check_kind(&origin, &key, default, &value)?;
    }
    values.set(key, value, origin);
    Ok(())
}

/// A text key also takes a number, because `cpu_allocation = 4` and `max_file_size = 1048576` are what one writes.
fn check_kind(origin: &Origin, key: &str, default: &Value, value: &Value) -> Result<(), ConfigError> {
    let fits = matches!(
        (default, value),
        (Value::Boolean(_), Value::Boolean(_))
            | (Value::Integer(_), Value::Integer(_))
            | (Value::String(_), Value::String(_) | Value::Integer(_))
    );
    if fits {
        return Ok(());
    }
    let allowed = match default {
        Value::Boolean(_) => "true or false",
        Value::Integer(_) => "a whole number",
        _ => "a text in quotes",
    };
    Err(ConfigError::Refused {
        origin: origin.clone(),
        key: key.to_owned(),
        value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        allowed: allowed.to_owned(),
    })
}

/// The effective values, each with the place that set it.
#[derive(Default)]
pub(super) struct Values {
    by_key: BTreeMap<String, (Value, Origin)>,
}

impl Values {
    fn set(&mut self, key: String, value: Value, origin: Origin) {
        self.by_key.insert(key, (value, origin));
    }

    /// The value of a key of the embedded defaults.
    ///
    /// # Panics
    /// For a key that the defaults do not hold; a test reads every key once.
    pub(super) fn get(&self, key: &str) -> &Value {
        &self.entry(key).0
    }

    /// Refuses the value of `key`.
    pub(super) fn refused(&self, key: &str, allowed: impl Into<String>) -> ConfigError {
        let (value, origin) = self.entry(key);
        ConfigError::Refused {
            origin: origin.clone(),
            key: key.to_owned(),
            value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            allowed: allowed.into(),
        }
    }

    fn entry(&self, key: &str) -> &(Value, Origin) {
        self.by_key
            .get(key)
            .unwrap_or_else(|| panic!("the embedded defaults hold no key {key}"))
    }

    fn to_table(&self) -> Table {
        let mut root = Table::new();
        for (key, (value, _)) in &self.by_key {
            insert(&mut root, key, value);
        }
        root
    }
}

fn insert(table: &mut Table, key: &str, value: &Value) {
    let Some((section, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value.clone());
        return;
    };
    let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(inner) = inner {
        insert(inner, rest, value);
    }
}
