//! A partition dies at every step of its disk, by a crash of the process or a loss of power, again and again.
//!
//! Whatever the seed, after each recovery: nothing acknowledged under its policy is lost, or what may be lost is said to
//! be, under a new history; nothing is in the log twice or unbidden; offsets have no gaps and every byte is the one that
//! was sent; a request that is asked again gets its first answer; stored offsets stay within the log.
//!
//! `IGGY_TEST_SEEDS=n` runs n seeds of each kind instead of a few. A failure prints the line that repeats it.

mod history;
mod node;
mod oracle;

use history::{Death, History};
use iggy_consensus::Durability;
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

/// A long history: several lives, each ending anywhere, recoveries that die as well.
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
        }
        if !history.disk.is_dead() {
            let steps = history.random.random_range(0..400);
            history.disk.die_after(steps);
        }
        for _ in 0..300 {
            if history.disk.is_dead() {
                break;
            }
            history.act()?;
        }
        let death = if history.random.random() {
            Death::Crash
        } else {
            Death::Power
        };
        history.die(death);
    }
    history.start()?;
    history.resolve()?;
    history.inspect()?;
    Ok(history.trace)
}

#[test]
fn given_any_history_when_the_node_dies_again_and_again_should_keep_every_promise() {
    for seed in seeds(60) {
        for policy in 0..POLICIES.len() {
            if let Err(broken) = lives(seed, policy) {
                panic!(
                    "{broken}\n{:?}; repeat: IGGY_TEST_SEED={seed} cargo test -p iggy-driver --test crash again_and_again",
                    POLICIES[policy]
                );
            }
        }
    }
}
