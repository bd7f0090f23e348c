//! Feature files as runs: outlines expanded, backgrounds put before, tags inherited.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use gherkin::{Background, Feature, GherkinEnv, Scenario, StepType, Table};

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `given`, `when` or `then`; what `And` stands for is resolved.
    pub keyword: &'static str,
    /// What it says.
    pub text: String,
    /// Rows of cells.
    pub table: Option<Vec<Vec<String>>>,
    /// The text below it.
    pub doc: Option<String>,
}

/// A scenario as it is run once: one row of its examples, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The feature's name.
    pub feature: String,
    /// The scenario's name.
    pub scenario: String,
    /// Where it is written: `reader.feature:12`, or the line of its example.
    pub place: String,
    /// Its own tags and those of what it stands in.
    pub tags: Vec<String>,
    /// Backgrounds first.
    pub steps: Vec<Step>,
}

/// Every run of the feature files of `folder`, in the order of file names; only those of `feature.feature` when given.
///
/// # Errors
/// A file that cannot be read or parsed, or no file at all.
pub fn read(folder: &Path, feature: Option<&str>) -> Result<Vec<Run>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let named = |wanted: &str| path.file_stem().is_some_and(|stem| stem == wanted);
        if path.extension().is_some_and(|extension| extension == "feature") && feature.is_none_or(named) {
            files.push(path);
        }
    }
    files.sort();
    let wanted = feature.unwrap_or("*");
    ensure!(
        !files.is_empty(),
        "there is no {wanted}.feature in {}",
        folder.display()
    );
    let mut runs = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        runs.extend(parse(&text, &file).with_context(|| format!("parsing {}", path.display()))?);
    }
    Ok(runs)
}

/// The runs of one feature.
///
/// # Errors
/// The text is no feature, or an outline has no examples.
pub fn parse(text: &str, file: &str) -> Result<Vec<Run>> {
    // The parser wants a line to end what stands on it.
    let feature = Feature::parse(format!("{text}\n"), GherkinEnv::default())?;
    let mut runs = Vec::new();
    let outer = [feature.background.as_ref()];
    for scenario in &feature.scenarios {
        expand(&feature, &outer, &feature.tags, scenario, file, &mut runs)?;
    }
    for rule in &feature.rules {
        let backgrounds = [feature.background.as_ref(), rule.background.as_ref()];
        let tags = [feature.tags.clone(), rule.tags.clone()].concat();
        for scenario in &rule.scenarios {
            expand(&feature, &backgrounds, &tags, scenario, file, &mut runs)?;
        }
    }
    Ok(runs)
}

fn expand(
    feature: &Feature,
    backgrounds: &[Option<&Background>],
    tags: &[String],
    scenario: &Scenario,
    file: &str,
    runs: &mut Vec<Run>,
) -> Result<()> {
    let before = backgrounds.iter().flatten().flat_map(|background| &background.steps);
    let before: Vec<_> = before.map(|step| filled(step, &[])).collect();
    let mut run = |cells: &[(&str, &str)], line: usize, more: &[String]| {
        let own = scenario.steps.iter().map(|step| filled(step, cells));
        runs.push(Run {
            feature: feature.name.clone(),
            scenario: replaced(&scenario.name, cells),
            place: format!("{file}:{line}"),
            tags: [tags, &scenario.tags, more].concat(),
            steps: before.iter().cloned().chain(own).collect(),
        });
    };
    if scenario.examples.is_empty() {
        ensure!(
            !scenario.keyword.contains("Outline"),
            "the outline '{}' has no examples",
            scenario.name
        );
        run(&[], scenario.position.line, &[]);
        return Ok(());
    }
    for examples in &scenario.examples {
        let rows = examples.table.as_ref().map_or(&[][..], |table| &table.rows);
        ensure!(rows.len() > 1, "examples of '{}' have no row", scenario.name);
        for (index, row) in rows[1..].iter().enumerate() {
            let cells = rows[0].iter().zip(row);
            let cells: Vec<_> = cells.map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let header = examples.table.as_ref().map_or(0, |table| table.position.line);
            run(&cells, header + 1 + index, &examples.tags);
        }
    }
    Ok(())
}

fn replaced(text: &str, cells: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in cells {
        text = text.replace(&format!("<{name}>"), value);
    }
    text
}

fn filled(step: &gherkin::Step, cells: &[(&str, &str)]) -> Step {
    let rows = |table: &Table| {
        let row = |row: &Vec<String>| row.iter().map(|cell| replaced(cell, cells)).collect();
        table.rows.iter().map(row).collect()
    };
    Step {
        keyword: match step.ty {
            StepType::Given => "given",
            StepType::When => "when",
            StepType::Then => "then",
        },
        text: replaced(&step.value, cells),
        table: step.table.as_ref().map(rows),
        doc: step.docstring.as_ref().map(|doc| replaced(doc, cells)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURE: &str = r#"
@whole
Feature: Things
  Background:
    Given a thing

  @one
  Scenario: Plain
    When it is used
    And it is put down
    Then it works

  Scenario Outline: A <size> thing
    When it weighs <size>
      | weight | <size> |
    Then this is said
      """
      it was <size>
      """

    @light
    Examples:
      | size |
      | 1    |
      | 2    |

  Rule: Of rules
    Background:
      Given a rule

    Scenario: Ruled
      Then it works
"#;

    #[test]
    fn given_a_feature_when_parsed_should_put_backgrounds_first_and_inherit_tags() {
        let runs = parse(FEATURE, "things.feature").unwrap();
        assert_eq!(runs.len(), 4);
        let texts = |run: &Run| run.steps.iter().map(|step| step.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&runs[0]), ["a thing", "it is used", "it is put down", "it works"]);
        let keywords: Vec<_> = runs[0].steps.iter().map(|step| step.keyword).collect();
        assert_eq!(keywords, ["given", "when", "when", "then"]);
        assert_eq!(runs[0].tags, ["whole", "one"]);
        assert_eq!(texts(&runs[3]), ["a thing", "a rule", "it works"]);
    }

    #[test]
    fn given_an_outline_when_parsed_should_fill_names_texts_tables_and_documents() {
        let runs = parse(FEATURE, "things.feature").unwrap();
        assert_eq!(runs[2].scenario, "A 2 thing");
        assert_eq!(runs[2].tags, ["whole", "light"]);
        assert_eq!(
            runs[2].steps[1].table,
            Some(vec![vec!["weight".to_owned(), "2".to_owned()]])
        );
        assert_eq!(runs[2].steps[2].doc.as_deref().map(str::trim), Some("it was 2"));
        assert_ne!(runs[1].place, runs[2].place);
    }

    #[test]
    fn given_an_outline_without_examples_when_parsed_should_be_refused() {
        let text = "Feature: F\n  Scenario Outline: O\n    Given <x>\n";
        assert!(
            parse(text, "f.feature")
                .unwrap_err()
                .to_string()
                .contains("no examples")
        );
    }
}
