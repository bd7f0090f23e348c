//! The table of steps against the feature files.

use std::collections::BTreeSet;
use std::path::Path;

use iggy_bdd_driver::features;
use iggy_bdd_driver::patterns::Matchers;
use iggy_bdd_driver::steps::STEPS;

#[test]
fn given_every_step_of_the_features_when_matched_should_fit_exactly_one_pattern_and_every_pattern_a_step() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../features");
    let runs = features::read(&folder, None).unwrap();
    assert!(runs.len() > 100, "only {} runs", runs.len());
    let matchers = Matchers::new(STEPS).unwrap();
    let mut used = BTreeSet::new();
    for run in &runs {
        for step in &run.steps {
            if let Err(error) = matchers.find(step) {
                panic!("{}: {error}", run.place);
            }
            let fits = matchers.iter().find(|matcher| matcher.matched(step).unwrap().is_some());
            used.insert(fits.unwrap().pattern.text);
        }
    }
    let unused: Vec<_> = STEPS.iter().filter(|step| !used.contains(step.text)).collect();
    assert!(unused.is_empty(), "no scenario says {unused:?}");
}
