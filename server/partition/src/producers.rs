//! Idempotent producers: which batches of whom are already in the log (wire 6.4).

use iggy_protocol::batch::{ProducerSection, next_sequence};
use iggy_protocol::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Batches remembered of one producer.
pub const BATCHES_PER_PRODUCER: usize = 5;
/// Producers remembered by a partition. Beyond it the one that has been idle longest is forgotten.
pub const PRODUCERS_MAX: usize = 4096;
/// Microseconds of idleness after which a producer is forgotten.
pub const IDLE_MAX: u64 = 24 * 60 * 60 * 1_000_000;

/// The producers of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producers {
    producers: BTreeMap<u64, Producer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Producer {
    epoch: u16,
    last_active: u64,
    batches: VecDeque<Batch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    base_sequence: u32,
    count: u32,
    base_offset: u64,
}

/// What a batch is to its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next one.
    Next,
    /// Already in the log at this offset.
    Duplicate {
        /// Offset of its first message.
        base_offset: u64,
    },
}

impl Producers {
    /// Judges a batch of `count` messages at `now` microseconds since the epoch. Refusals write nothing.
    pub fn judge(&self, section: ProducerSection, count: u32, now: u64) -> Result<Verdict, ErrorCode> {
        let known = self.producers.get(&section.producer_id);
        let known = known.filter(|producer| now.saturating_sub(producer.last_active) < IDLE_MAX);
        let Some(producer) = known else {
            return if section.base_sequence == 0 {
                Ok(Verdict::Next)
            } else {
                Err(ErrorCode::ProducerUnknown)
            };
        };
        if section.epoch < producer.epoch {
            return Err(ErrorCode::ProducerEpochFenced);
        }
        if section.epoch > producer.epoch {
            let starts = section.base_sequence == 0;
            return if starts {
                Ok(Verdict::Next)
            } else {
                Err(ErrorCode::ProducerSequenceOutOfOrder)
            };
        }
        let same = |batch: &&Batch| batch.base_sequence == section.base_sequence && batch.count == count;
        if let Some(batch) = producer.batches.iter().find(same) {
            return Ok(Verdict::Duplicate {
                base_offset: batch.base_offset,
            });
        }
        let follows = |last: &Batch| next_sequence(last.base_sequence, last.count) == section.base_sequence;
        match producer.batches.back() {
            Some(last) if follows(last) => Ok(Verdict::Next),
            _ => Err(ErrorCode::ProducerSequenceOutOfOrder),
        }
    }

    /// Whether no producer is remembered.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// Remembers a committed batch.
    pub fn record(&mut self, section: ProducerSection, count: u32, base_offset: u64, now: u64) {
        let producer = self.producers.entry(section.producer_id);
        let producer = producer.or_insert_with(|| Producer {
            epoch: section.epoch,
            last_active: now,
            batches: VecDeque::new(),
        });
        // One that was forgotten for its idleness begins anew: old sequences must not look like duplicates.
        if producer.epoch != section.epoch || now.saturating_sub(producer.last_active) >= IDLE_MAX {
            producer.epoch = section.epoch;
            producer.batches.clear();
        }
        producer.last_active = now;
        if producer.batches.len() == BATCHES_PER_PRODUCER {
            producer.batches.pop_front();
        }
        producer.batches.push_back(Batch {
            base_sequence: section.base_sequence,
            count,
            base_offset,
        });
        if self.producers.len() > PRODUCERS_MAX {
            let idle = self
                .producers
                .iter()
                .min_by_key(|(_, producer)| producer.last_active)
                .map(|(id, _)| *id);
            idle.map(|id| self.producers.remove(&id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn section(epoch: u16, base_sequence: u32) -> ProducerSection {
        ProducerSection {
            producer_id: 80_740_352,
            epoch,
            base_sequence,
        }
    }

    #[test]
    fn given_the_documented_sequence_when_judged_should_answer_as_documented() {
        let mut producers = Producers::default();
        assert_eq!(producers.judge(section(0, 4), 1, 1), Err(ErrorCode::ProducerUnknown));
        assert_eq!(producers.judge(section(0, 0), 3, 1), Ok(Verdict::Next));
        producers.record(section(0, 0), 3, 50, 1);
        assert_eq!(producers.judge(section(0, 3), 2, 2), Ok(Verdict::Next));
        producers.record(section(0, 3), 2, 53, 2);
        assert_eq!(
            producers.judge(section(0, 3), 2, 3),
            Ok(Verdict::Duplicate { base_offset: 53 })
        );
        assert_eq!(
            producers.judge(section(0, 9), 1, 3),
            Err(ErrorCode::ProducerSequenceOutOfOrder)
        );
        assert_eq!(producers.judge(section(1, 0), 1, 3), Ok(Verdict::Next));
        producers.record(section(1, 0), 1, 55, 3);
        assert_eq!(
            producers.judge(section(0, 5), 1, 4),
            Err(ErrorCode::ProducerEpochFenced)
        );
    }

    #[test]
    fn given_the_end_of_the_sequence_space_when_judged_should_wrap_to_zero() {
        let mut producers = Producers::default();
        let last = iggy_protocol::limits::MAX_SEQUENCE;
        producers.record(section(0, last), 1, 1, 1);
        assert_eq!(producers.judge(section(0, 0), 1, 2), Ok(Verdict::Next));
    }

    #[test]
    fn given_a_day_of_idleness_when_judged_should_be_unknown() {
        let mut producers = Producers::default();
        producers.record(section(0, 0), 3, 50, 1);
        assert_eq!(
            producers.judge(section(0, 3), 1, IDLE_MAX + 1),
            Err(ErrorCode::ProducerUnknown)
        );
    }
}
