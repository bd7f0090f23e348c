//! Which keys exist, which existed once, and which known key an unknown one most resembles.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

/// Names less alike than this are not suggested.
const SUGGESTION_FLOOR: f64 = 0.75;

/// Keys and whole sections of older generations, each with what to do instead.
const REMOVED: [(&str, &str); 2] = [
    (
        "consumer_group.session_timeout",
        "the lease of a session is fixed; `heartbeat.interval` closes silent connections",
    ),
    (
        "system",
        "its sections stand at the top level now; write `logging.level` for `system.logging.level`",
    ),
];

/// The known keys, taken from the embedded defaults.
pub(super) struct KnownKeys {
    defaults: BTreeMap<String, Value>,
    sections: BTreeSet<String>,
}

impl KnownKeys {
    pub(super) fn new(defaults: &Table) -> Self {
        let defaults = flatten(defaults);
        let sections = defaults
            .keys()
            .filter_map(|key| key.split_once('.').map(|(section, _)| section.to_owned()))
            .collect();
        Self { defaults, sections }
    }

    /// The default of `key`, which also tells its kind.
    pub(super) fn default_of(&self, key: &str) -> Option<&Value> {
        self.defaults.get(key)
    }

    /// The key that an environment variable names, given the part of its name after `IGGY_` in lower case.
    pub(super) fn of_variable(&self, name: &str) -> Option<&str> {
        self.defaults
            .keys()
            .find(|key| key.replace('.', "_") == name)
            .map(String::as_str)
    }

    /// Whether a variable of that name can only mean a configuration key: its first words are a section's.
    pub(super) fn names_section(&self, name: &str) -> bool {
        self.sections.iter().any(|section| {
            name.strip_prefix(section.as_str())
                .is_some_and(|rest| rest.starts_with('_'))
        })
    }

    /// The known key most like `key`. Compared as variables write it, since only dots and underscores may differ.
    pub(super) fn nearest(&self, key: &str) -> Option<String> {
        let wanted = key.replace('.', "_");
        let likeness = |known: &String| strsim::jaro_winkler(&wanted, &known.replace('.', "_"));
        let best = self
            .defaults
            .keys()
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
        (likeness(best) >= SUGGESTION_FLOOR).then(|| best.clone())
    }
}

/// What replaces a removed key; `key` is a dotted path or the lower-case name of a variable.
pub(super) fn replacement(key: &str) -> Option<&'static str> {
    let key = key.replace('.', "_");
    REMOVED.iter().find_map(|(removed, instead)| {
        let removed = removed.replace('.', "_");
        let rest = key.strip_prefix(&removed)?;
        (rest.is_empty() || rest.starts_with('_')).then_some(*instead)
    })
}

/// All values by dotted path. An empty table counts as a value, so that an unknown empty section is seen too.
pub(super) fn flatten(table: &Table) -> BTreeMap<String, Value> {
    fn walk(prefix: &str, table: &Table, out: &mut BTreeMap<String, Value>) {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            match value {
                Value::Table(inner) if !inner.is_empty() => walk(&key, inner, out),
                other => {
                    out.insert(key, other.clone());
                }
            }
        }
    }
    let mut out = BTreeMap::new();
    walk("", table, &mut out);
    out
}
