//! A sample of runs, and what makes them worth something: they are reproducible, and they find what is planted.

use iggy_simulator::bugs::Bug;
use iggy_simulator::{Faults, Mode, run};

/// Seeds of the sample. Others follow in `scripts/simulate`.
const SAMPLE: u64 = 60;

#[test]
fn given_seeds_of_every_mode_when_run_should_break_no_promise() {
    let mut faults = Faults::default();
    for seed in 1..=SAMPLE {
        let report = run(seed, Mode::of(seed), None, false);
        assert_eq!(
            report.failure,
            None,
            "cargo run -p iggy-simulator -- --seed {seed} --mode {}",
            report.mode.name()
        );
        faults.add(&report.faults);
    }
    assert!(faults.all().filter(|(_, count)| *count > 0).count() > 30);
}

#[test]
fn given_one_seed_when_run_twice_should_give_the_same_trace() {
    for seed in 100..106 {
        let mode = Mode::of(seed);
        let (first, second) = (run(seed, mode, None, false), run(seed, mode, None, false));
        assert_eq!(
            (first.trace, first.events),
            (second.trace, second.events),
            "seed {seed}"
        );
        assert!(first.events > 100);
    }
}

/// Planted faults that many seeds find; the whole list is in `scripts/simulate --planted`.
const QUICK: [usize; 5] = [1, 4, 5, 8, 14];

#[test]
fn given_a_planted_bug_when_run_should_be_found() {
    for number in QUICK {
        let bug = Bug::numbered(number).expect("there is one");
        let found = (1..=200).find(|seed| run(*seed, Mode::of(*seed), Some(bug), false).failure.is_some());
        assert!(found.is_some(), "{bug:?} was not found");
    }
}
