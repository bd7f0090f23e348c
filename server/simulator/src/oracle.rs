//! What clients were told, held against what is in the logs (simulator C1, C2, C4, C5, D1 to D3).
//!
//! A write that was acknowledged is in the log once, at the offset that was named. One whose outcome is unknown is there
//! once or not at all. One that was refused every time, or never made, is not there. A partition that has begun a new
//! history may have lost what was acknowledged before without waiting for stable storage, and nothing else.

use bytes::Bytes;
use iggy_consensus::Durability;
use iggy_metadata::PartitionKey;
use std::collections::{BTreeMap, BTreeSet};

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nobody knows.
    Unknown,
    /// Every attempt was refused.
    Refused,
    /// It is in the log from this offset on, in a partition that had lost writes so many times.
    Acknowledged {
        /// Offset of its first message.
        base_offset: u64,
        /// Losses when it was acknowledged.
        losses: u64,
    },
}

/// A batch somebody sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its bytes.
    pub bytes: Bytes,
    /// Ids of its messages.
    pub ids: Vec<u128>,
    /// What became of it.
    pub status: Status,
}

/// What is known of a stored offset.
#[derive(Clone, Debug, Default)]
struct Stored {
    /// The newest acknowledged one, with the losses at that time.
    acknowledged: Option<(u64, u64)>,
    /// Those asked for since then.
    unknown: BTreeSet<u64>,
}

/// What is known of a partition.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    /// Durability of messages and of offsets.
    pub durability: (Durability, Durability),
    /// Every batch.
    pub sent: Vec<Sent>,
    /// What was read at each offset, by losses.
    seen: BTreeMap<(u64, u64), u128>,
    offsets: BTreeMap<u32, Stored>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Partitions by key.
    pub partitions: BTreeMap<PartitionKey, Partition>,
    /// Acknowledged writes.
    pub acknowledged: u64,
}

impl Oracle {
    /// A partition.
    pub fn partition(&mut self, key: PartitionKey) -> &mut Partition {
        self.partitions.entry(key).or_default()
    }

    /// A send was acknowledged.
    pub fn sent(&mut self, key: PartitionKey, batch: usize, base_offset: u64, losses: u64) -> Result<(), String> {
        self.acknowledged += 1;
        let partition = self.partition(key);
        let sent = &mut partition.sent[batch];
        if let Status::Acknowledged {
            base_offset: first,
            losses: then,
        } = sent.status
            && then == losses
            && first != base_offset
        {
            return Err(format!(
                "C2: batch {batch} of {key:?} was acknowledged at {first} and at {base_offset}"
            ));
        }
        sent.status = Status::Acknowledged { base_offset, losses };
        let ids = sent.ids.clone();
        for (place, id) in ids.into_iter().enumerate() {
            Self::saw_one(key, partition, base_offset + place as u64, id, losses)?;
        }
        Ok(())
    }

    /// Messages were read.
    pub fn saw(&mut self, key: PartitionKey, messages: &[(u64, u128)], losses: u64) -> Result<(), String> {
        let partition = self.partition(key);
        for (offset, id) in messages {
            Self::saw_one(key, partition, *offset, *id, losses)?;
        }
        Ok(())
    }

    fn saw_one(key: PartitionKey, partition: &mut Partition, offset: u64, id: u128, losses: u64) -> Result<(), String> {
        let seen = *partition.seen.entry((losses, offset)).or_insert(id);
        if seen == id {
            Ok(())
        } else {
            Err(format!("S15: offset {offset} of {key:?} held {seen:x} and now {id:x}"))
        }
    }

    /// Somebody asks for an offset to be stored.
    pub fn storing(&mut self, key: PartitionKey, consumer: u32, offset: u64) {
        let stored = self.partition(key).offsets.entry(consumer).or_default();
        stored.unknown.insert(offset);
    }

    /// It was.
    pub fn stored(&mut self, key: PartitionKey, consumer: u32, offset: u64, losses: u64) {
        self.acknowledged += 1;
        let stored = self.partition(key).offsets.entry(consumer).or_default();
        stored.acknowledged = Some((offset, losses));
        stored.unknown.clear();
    }

    /// Holds a whole log against the answers. `log` are offsets and ids from `log_start` on.
    pub fn check_log(&self, key: PartitionKey, log: &[(u64, u128)], log_start: u64, losses: u64) -> Result<(), String> {
        let Some(partition) = self.partitions.get(&key) else {
            return Ok(());
        };
        let mut places = BTreeMap::new();
        for (index, (offset, id)) in log.iter().enumerate() {
            if *offset != log_start + index as u64 {
                return Err(format!(
                    "S15: {key:?} has offset {offset} where {} must be",
                    log_start + index as u64
                ));
            }
            if let Some(before) = places.insert(*id, *offset) {
                return Err(format!("C1: {key:?} has message {id:x} at {before} and at {offset}"));
            }
        }
        let mut asked = BTreeSet::new();
        for (number, sent) in partition.sent.iter().enumerate() {
            asked.extend(sent.ids.iter().copied());
            match sent.status {
                Status::Refused => {
                    if let Some(id) = sent.ids.iter().find(|id| places.contains_key(id)) {
                        return Err(format!("C1: {key:?} has message {id:x}, which was refused"));
                    }
                }
                Status::Acknowledged {
                    base_offset,
                    losses: then,
                } => {
                    if base_offset < log_start {
                        continue;
                    }
                    let there = |(place, id): (usize, &u128)| places.get(id) == Some(&(base_offset + place as u64));
                    let may_be_gone = losses > then && partition.durability.0 == Durability::Replicated;
                    if !sent.ids.iter().enumerate().all(there) && !may_be_gone {
                        let found = places.get(&sent.ids[0]);
                        return Err(format!(
                            "C1 D1 D3: batch {number} of {key:?} was acknowledged at {base_offset} with {then} losses; \
                             with {losses} losses it is at {found:?}, and the log is {log_start}..{}",
                            log_start + log.len() as u64
                        ));
                    }
                }
                Status::Unknown => {}
            }
        }
        match places.keys().find(|id| !asked.contains(id)) {
            Some(id) => Err(format!("C1: {key:?} has message {id:x}, which nobody sent")),
            None => Ok(()),
        }
    }

    /// Holds a stored offset against the answers.
    pub fn check_offset(
        &self,
        key: PartitionKey,
        consumer: u32,
        found: Option<u64>,
        next_offset: u64,
        losses: u64,
    ) -> Result<(), String> {
        let Some(partition) = self.partitions.get(&key) else {
            return Ok(());
        };
        if found.is_some_and(|found| found >= next_offset && next_offset > 0) && losses == 0 {
            return Err(format!(
                "D8: consumer {consumer} of {key:?} is at {found:?} of {next_offset} messages"
            ));
        }
        let Some(stored) = partition.offsets.get(&consumer) else {
            return if found.is_none() {
                Ok(())
            } else {
                Err(format!(
                    "C1: consumer {consumer} of {key:?} has an offset nobody stored"
                ))
            };
        };
        let may_be_gone = stored
            .acknowledged
            .is_none_or(|(_, then)| losses > then && partition.durability.1 == Durability::Replicated);
        let fits = match found {
            Some(found) => {
                stored.unknown.contains(&found)
                    || stored.acknowledged.is_some_and(|(offset, _)| offset == found)
                    || may_be_gone
            }
            None => may_be_gone,
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "C1 C6: consumer {consumer} of {key:?} has {found:?}, expected {stored:?}"
        ))
    }
}
