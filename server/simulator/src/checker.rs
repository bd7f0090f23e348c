//! Watches the replicas.
//!
//! | Invariant | What is checked here |
//! |---|---|
//! | S1, S5, S12 | every replica that applies an op of a group applies the same prepare, and it follows the one before |
//! | S3 | a restarted replica is in no older view than it has spoken of |
//! | S4 | what is applied and committed never goes back in one life, and commit never passes the head |
//! | S14, L2 | at the end all replicas have the same state, the same bytes and nothing in flight |
//! | S16 | timestamps rise with the log |

use crate::node::Node;
use iggy_consensus::{GroupId, LogEnd, Replica};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Chain {
    /// The committed prepare at each position.
    ends: BTreeMap<u64, LogEnd>,
    /// The history they belong to.
    history: u64,
}

/// What is known of all groups.
#[derive(Debug, Default)]
pub struct Checker {
    chains: BTreeMap<GroupId, Chain>,
    /// What each life of a node has applied, by node and group.
    seen: BTreeMap<(u8, GroupId), (u64, u64)>,
    /// Prepares that were committed.
    pub commits: u64,
}

impl Checker {
    /// Looks at every replica of a node.
    pub fn observe(&mut self, node: &Node) -> Result<(), String> {
        let Some(process) = &node.process else { return Ok(()) };
        // What is not surely on disk may still be gone after a loss of power, and nobody was told of it.
        if let Some(group) = process.shard.metadata().filter(|group| group.is_open()) {
            let applied = group.state().applied();
            let end = LogEnd {
                op: applied.op,
                checksum: applied.checksum,
                timestamp: applied.timestamp,
            };
            self.replica(node, group.replica(), end)?;
        }
        for group in process.shard.partitions().filter(|group| group.is_open()) {
            self.replica(node, group.replica(), group.applied())?;
        }
        Ok(())
    }

    fn replica(&mut self, node: &Node, replica: &Replica, applied: LogEnd) -> Result<(), String> {
        let group = replica.group();
        let place = (node.index, group);
        let (life, last) = self.seen.get(&place).copied().unwrap_or((0, 0));
        if life == node.life && last == applied.op {
            return Ok(());
        }
        let named = || format!("group {:x} at node {}", group.namespace, node.index);
        if life == node.life && applied.op < last && replica.counters().state_transfers == 0 {
            return Err(format!("S4: {}: applied {last} and then {}", named(), applied.op));
        }
        if replica.commit() > replica.op() {
            return Err(format!("S4: {}: commit beyond the head", named()));
        }
        let chain = self.chains.entry(group).or_default();
        if replica.state().history < chain.history {
            // It has yet to learn that its history has ended.
            return Ok(());
        }
        self.seen.insert(place, (node.life, applied.op));
        let from = if life == node.life { last + 1 } else { applied.op };
        for op in from.min(applied.op)..=applied.op {
            let end = match replica.prepare(op) {
                Some(prepare) => {
                    let header = &prepare.header;
                    if let Some(parent) = op.checked_sub(1).and_then(|op| chain.ends.get(&op))
                        && (parent.checksum != header.parent.get() || parent.timestamp >= header.timestamp.get())
                    {
                        return Err(format!("S1 S16: {}: op {op} does not follow op {}", named(), op - 1));
                    }
                    prepare.end()
                }
                None if op == applied.op => applied,
                None => continue,
            };
            if op == 0 {
                continue;
            }
            let known = chain.ends.entry(op).or_insert_with(|| {
                self.commits += 1;
                end
            });
            if *known != end {
                return Err(format!(
                    "S1: {}: op {op} is {:032x} here and {:032x} elsewhere",
                    named(),
                    end.checksum,
                    known.checksum
                ));
            }
        }
        Ok(())
    }

    /// A group goes on under a new history with the log of this replica: what was committed after it may be gone, and
    /// what was only written may stand in its place.
    pub fn history_lost(&mut self, replica: &Replica) {
        let group = replica.group();
        let chain = self.chains.entry(group).or_default();
        chain.history = chain.history.max(replica.state().history);
        let mut kept = replica.view_start();
        while let Some(own) = replica.prepare(kept) {
            match chain.ends.get(&kept) {
                Some(end) if *end == own.end() => break,
                _ => kept -= 1,
            }
        }
        chain.ends.split_off(&(kept + 1));
        for ((_, seen), (_, last)) in &mut self.seen {
            if *seen == group {
                *last = (*last).min(kept);
            }
        }
    }

    /// A process has started: it must remember every view it has spoken of.
    pub fn restarted(node: &Node) -> Result<(), String> {
        for state in node.durable_states() {
            let spoken = node.spoken.get(&state.group).copied().unwrap_or(0);
            let trusted = state.ending != iggy_consensus::Ending::Amnesia;
            if trusted && state.view < spoken {
                return Err(format!(
                    "S3: group {:x} at node {} spoke of view {spoken} and came back in view {}",
                    state.group.namespace, node.index, state.view
                ));
            }
        }
        Ok(())
    }
}
