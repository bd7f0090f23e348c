//! Step texts against patterns: `{count:int} messages in partition {partition:int}`.

use anyhow::{Result, bail, ensure};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::features::Step;
use crate::values::{Kind, settings};

/// One way to write a step.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// What the agent is told. Several patterns may have one name.
    pub name: &'static str,
    /// The text, with `{argument:kind}` for what varies.
    pub text: &'static str,
    /// Arguments that the text stands for without saying them.
    pub implied: &'static [(&'static str, &'static str)],
    /// Whether a table of settings follows, which becomes the argument `settings`.
    pub settings: bool,
}

/// A pattern that is ready to match.
pub struct Matcher {
    /// What was compiled.
    pub pattern: &'static Pattern,
    expression: Regex,
    arguments: Vec<(&'static str, Kind)>,
}

/// What a step is to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// The name of the step.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

impl Matcher {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// An argument without a kind there is.
    pub fn new(pattern: &'static Pattern) -> Result<Self> {
        let (mut expression, mut arguments) = ("^".to_owned(), Vec::new());
        let mut rest = pattern.text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some(((name, kind), after)) = after
                .split_once('}')
                .and_then(|(argument, after)| argument.split_once(':').zip(Some(after)))
            else {
                bail!("an argument is {{name:kind}}: {}", pattern.text);
            };
            let Some(kind) = Kind::of(kind) else {
                bail!("there is no kind '{kind}': {}", pattern.text)
            };
            expression.push_str(&regex::escape(before));
            expression.push_str(kind.expression());
            arguments.push((name, kind));
            rest = after;
        }
        expression.push_str(&regex::escape(rest));
        expression.push('$');
        let expression = Regex::new(&expression)?;
        Ok(Self {
            pattern,
            expression,
            arguments,
        })
    }

    /// What the step says, if it is written this way.
    ///
    /// # Errors
    /// The text fits and its table does not.
    pub fn matched(&self, step: &Step) -> Result<Option<Matched>> {
        let Some(captures) = self.expression.captures(&step.text) else {
            return Ok(None);
        };
        let mut arguments = Map::new();
        for (name, value) in self.pattern.implied {
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            arguments.insert((*name).to_owned(), value);
        }
        for ((name, kind), found) in self.arguments.iter().zip(captures.iter().skip(1).flatten()) {
            kind.read(name, found.as_str(), &mut arguments);
        }
        ensure!(
            self.pattern.settings == step.table.is_some(),
            "'{}': a table is there or it is not, against its pattern",
            step.text
        );
        if let Some(table) = &step.table {
            let read = settings(table).map_err(anyhow::Error::msg)?;
            arguments.insert("settings".to_owned(), read);
        }
        let name = self.pattern.name;
        Ok(Some(Matched { name, arguments }))
    }

    /// The pattern as an agent's writer reads it.
    pub fn described(&self) -> Value {
        let mut names: Vec<_> = self.arguments.iter().map(|(name, _)| *name).collect();
        names.extend(self.pattern.implied.iter().map(|(name, _)| *name));
        names.extend(self.pattern.settings.then_some("settings"));
        json!({ "name": self.pattern.name, "arguments": names, "text": self.pattern.text })
    }
}

/// Every pattern, ready.
pub struct Matchers(Vec<Matcher>);

impl Matchers {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// One of them is not written right.
    pub fn new(patterns: &'static [Pattern]) -> Result<Self> {
        patterns.iter().map(Matcher::new).collect::<Result<_>>().map(Self)
    }

    /// Every pattern.
    pub fn iter(&self) -> impl Iterator<Item = &Matcher> {
        self.0.iter()
    }

    /// What the step is.
    ///
    /// # Errors
    /// No pattern fits it, or more than one.
    pub fn find(&self, step: &Step) -> Result<Matched> {
        let mut found = Vec::new();
        for matcher in &self.0 {
            found.extend(matcher.matched(step)?);
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => bail!("no step is written '{}'", step.text),
            count => bail!("'{}' can be read in {count} ways", step.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERNS: &[Pattern] = &[
        Pattern {
            name: "send",
            text: "{count:int} messages to \"{not:size}\"",
            implied: &[("commit", "on_read"), ("background", "true")],
            settings: false,
        },
        Pattern {
            name: "either",
            text: "either",
            implied: &[],
            settings: false,
        },
        Pattern {
            name: "either",
            text: "eith{rest:word}",
            implied: &[],
            settings: false,
        },
    ];

    fn step(text: &str) -> Step {
        let text = text.to_owned();
        Step {
            keyword: "when",
            text,
            table: None,
            doc: None,
        }
    }

    #[test]
    fn given_a_text_when_matched_should_have_typed_and_implied_arguments() {
        let matchers = Matchers::new(PATTERNS).unwrap();
        let found = matchers.find(&step("3 messages to \"1KiB\"")).unwrap();
        let wanted = json!({ "commit": "on_read", "background": true, "count": 3, "not": 1024 });
        assert_eq!(Value::Object(found.arguments), wanted);
    }

    #[test]
    fn given_a_text_that_fits_none_or_two_when_matched_should_be_refused() {
        let matchers = Matchers::new(PATTERNS).unwrap();
        assert!(
            matchers
                .find(&step("else"))
                .unwrap_err()
                .to_string()
                .contains("no step")
        );
        assert!(
            matchers
                .find(&step("either"))
                .unwrap_err()
                .to_string()
                .contains("2 ways")
        );
    }

    #[test]
    fn given_a_table_where_none_belongs_when_matched_should_be_refused() {
        let matchers = Matchers::new(PATTERNS).unwrap();
        let with_table = Step {
            table: Some(vec![]),
            ..step("3 messages to \"1KiB\"")
        };
        assert!(matchers.find(&with_table).is_err());
    }
}
