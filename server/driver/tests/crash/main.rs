//! A partition dies at every step of its disk, by a crash of the process or a loss of power, again and again.
//!
//! Whatever the seed, after each recovery: nothing acknowledged under its policy is lost, or what may be lost is said to
//! be, under a new history; nothing is in the log twice or unbidden; offsets have no gaps and every byte is the one that
//! was sent; a request that is asked again gets its first answer; stored offsets stay within the log.
//!
//! `IGGY_TEST_SEEDS=n` runs n seeds of each kind instead of a few. A failure prints the line that repeats it.

mod history;
mod metadata;
mod node;
mod oracle;

use history::{Death, History};
use iggy_consensus::Durability;
use iggy_journal::planted::{self, Bug};
use metadata::MetadataHistory;
use oracle::Broken;
use rand::Rng;

const POLICIES: [(Durability, Durability); 4] = [
    (Durability::Replicated, Durability::Replicated),
    (Durability::Replicated, Durability::Persisted),
    (Durability::Persisted, Durability::Replicated),
    (Durability::Persisted, Durability::Persisted),
];

/// Seeds to run: a few, or what the environment says; one alone to repeat a failure.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("IGGY_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("IGGY_TEST_SEEDS").unwrap_or(few),
    }
}

/// A long history: several lives, each ending anywhere, recoveries that die as well, and disks that fail.
fn lives(seed: u64, policy: usize) -> Result<u64, Broken> {
    let (messages, offsets) = POLICIES[policy];
    let mut history = History::new(seed << 2 | policy as u64, messages, offsets);
    for _ in 0..6 {
        if history.random.random_ratio(1, 3) {
            let steps = history.random.random_range(0..40);
            history.disk.die_after(steps);
        }
        history.start()?;
        if history.random.random() {
            history.inspect_unless_dead()?;
        } else {
            for _ in 0..4 {
                history.resend()?;
            }
        }
        if !history.disk.is_dead() {
            let most = if history.random.random() { 30 } else { 400 };
            let steps = history.random.random_range(0..most);
            history.disk.die_after(steps);
        }
        let hurt_at = history.random.random_range(0..1_200);
        for action in 0..300 {
            if history.disk.is_dead() {
                break;
            }
            if action == hurt_at {
                history.hurt();
            }
            history.act()?;
        }
        if history.random.random_ratio(1, 3) {
            history.stop()?;
        }
        history.die_either_way();
    }
    history.start()?;
    history.resolve()?;
    history.inspect()?;
    Ok(history.trace)
}

/// A short history that dies at one step, and again while it recovers.
fn short_life(seed: u64, policy: usize, step: Option<u64>, death: Death) -> Result<u64, Broken> {
    let (messages, offsets) = POLICIES[policy];
    let mut history = History::new(seed << 2 | policy as u64, messages, offsets);
    if let Some(step) = step {
        history.disk.die_after(step);
    }
    history.start()?;
    for _ in 0..160 {
        if history.disk.is_dead() {
            break;
        }
        history.act()?;
    }
    let steps = history.disk.steps();
    history.die(death);
    let again = history.random.random_range(0..30);
    history.disk.die_after(again);
    history.start()?;
    history.inspect_unless_dead()?;
    history.die_either_way();
    history.start()?;
    history.inspect()?;
    history.resolve()?;
    history.inspect()?;
    Ok(steps)
}

fn repeat(seed: u64, policy: usize, test: &str, broken: &str) -> ! {
    panic!(
        "{broken}\n{:?}; repeat: IGGY_TEST_SEED={seed} cargo test -p iggy-driver --test crash {test}",
        POLICIES[policy]
    );
}

/// S15, S20, D3 to D9.
#[test]
fn given_any_history_when_the_node_dies_again_and_again_should_keep_every_promise() {
    for seed in seeds(150) {
        for policy in 0..POLICIES.len() {
            if let Err(broken) = lives(seed, policy) {
                repeat(seed, policy, "again_and_again", &broken);
            }
        }
    }
}

/// S18, D5.
#[test]
fn given_a_short_history_when_the_node_dies_at_each_step_of_its_disk_should_keep_every_promise() {
    for seed in seeds(6) {
        for policy in 0..POLICIES.len() {
            let broken = |broken: Broken| -> u64 { repeat(seed, policy, "at_each_step", &broken) };
            let steps = short_life(seed, policy, None, Death::Crash).unwrap_or_else(broken);
            for step in 0..steps {
                for death in [Death::Crash, Death::Power] {
                    if let Err(text) = short_life(seed, policy, Some(step), death) {
                        broken(format!("{text}, after {death:?} at step {step}"));
                    }
                }
            }
        }
    }
}

#[test]
fn given_a_seed_when_run_twice_should_do_and_say_the_same() {
    for seed in 0..5 {
        for policy in 0..POLICIES.len() {
            assert_eq!(lives(seed, policy), lives(seed, policy), "seed {seed}");
        }
    }
}

#[test]
fn given_a_planted_bug_when_histories_are_run_should_be_found() {
    let missed: Vec<Bug> = Bug::ALL
        .into_iter()
        .filter(|bug| !is_found(*bug, 1_000, lives_of_all))
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

fn lives_of_all(seed: u64) -> Result<(), Broken> {
    (0..POLICIES.len()).try_for_each(|policy| lives(seed, policy).map(drop))
}

fn metadata_lives(seed: u64) -> Result<(), Broken> {
    let mut history = MetadataHistory::new(seed)?;
    for _ in 0..6 {
        history.die_after(120);
        for _ in 0..250 {
            if history.is_dead() {
                break;
            }
            history.act()?;
        }
        history.die();
        history.die_after(12);
        history.start()?;
        history.inspect()?;
        history.settle()?;
        history.die();
        history.start()?;
        history.inspect()?;
    }
    history.settle()
}

/// D3, C5.
#[test]
fn given_metadata_when_the_node_dies_again_and_again_should_hold_everything_that_was_answered() {
    for seed in seeds(25) {
        if let Err(broken) = metadata_lives(seed) {
            panic!("{broken}\nrepeat: IGGY_TEST_SEED={seed} cargo test -p iggy-driver --test crash given_metadata");
        }
    }
}

#[test]
fn given_a_planted_bug_when_metadata_is_run_should_be_found() {
    let bugs = [
        Bug::AckBeforeSync,
        Bug::IgnoreFailedSync,
        Bug::ForgetDirectorySync,
        Bug::KeepTornTail,
        Bug::OneSuperblock,
        Bug::RemoveBeforeCheckpoint,
    ];
    let missed: Vec<Bug> = bugs
        .into_iter()
        .filter(|bug| !is_found(*bug, 300, metadata_lives))
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Whether one of the first `seeds` histories breaks something under a planted bug; a panic of the code counts.
fn is_found(bug: Bug, seeds: u64, history: fn(u64) -> Result<(), Broken>) -> bool {
    planted::plant(Some(bug));
    let found = (0..seeds).find(|seed| !matches!(std::panic::catch_unwind(|| history(*seed)), Ok(Ok(()))));
    planted::plant(None);
    if let Some(seed) = found {
        println!("{bug:?} found by seed {seed}");
    }
    found.is_some()
}
