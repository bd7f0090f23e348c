//! What the primary checks before a request enters the log. A refusal writes nothing.

use crate::operation::{ConsumerKey, Member};
use crate::producers::Verdict;
use crate::state::PartitionState;
use iggy_protocol::batch::ProducerSection;
use iggy_protocol::error_code::ErrorCode;

/// Offsets one partition stores (wire 8.1 leaves the number to the server).
pub const CONSUMER_OFFSETS_MAX: usize = 65_536;

impl PartitionState {
    /// Judges the batch of an idempotent producer; others are always the next.
    pub fn admit_batch(&self, section: Option<ProducerSection>, count: u32, now: u64) -> Result<Verdict, ErrorCode> {
        section.map_or(Ok(Verdict::Next), |section| self.producers.judge(section, count, now))
    }

    /// Binds a request to the ownership of its consumer: the generation to write into the log and to name in replies.
    ///
    /// `captured` is what the request carries, 0 when it has captured none.
    pub fn bind_owner(&self, consumer: &ConsumerKey, member: Member, captured: u64) -> Result<u64, ErrorCode> {
        match consumer {
            ConsumerKey::Group(group) => match self.owners.get(group) {
                Some(owner) if owner.member == Some(member) && (captured == 0 || captured == owner.generation) => {
                    Ok(owner.generation)
                }
                _ => Err(ErrorCode::ConsumerGroupPartitionNotOwned),
            },
            ConsumerKey::Consumer(_) | ConsumerKey::External(_) if captured != 0 => {
                Err(ErrorCode::ConsumerGroupPartitionNotOwned)
            }
            ConsumerKey::Consumer(_) | ConsumerKey::External(_) => Ok(0),
        }
    }

    /// Whether `offset` may be stored for `consumer`.
    pub fn admit_store(&self, consumer: &ConsumerKey, offset: u64) -> Result<(), ErrorCode> {
        let in_range = matches!(consumer, ConsumerKey::External(_)) || offset < self.next_offset;
        if !in_range {
            return Err(ErrorCode::InvalidOffset);
        }
        if self.offsets.len() >= CONSUMER_OFFSETS_MAX && !self.offsets.contains_key(consumer) {
            return Err(ErrorCode::TooManyConsumerOffsets);
        }
        Ok(())
    }

    /// Whether there is an offset of `consumer` to delete.
    pub fn admit_delete(&self, consumer: &ConsumerKey) -> Result<(), ErrorCode> {
        self.offsets
            .contains_key(consumer)
            .then_some(())
            .ok_or(ErrorCode::ConsumerOffsetNotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Owner;
    use iggy_protocol::identifier::Identifier;

    const ME: Member = Member { client: 1, session: 2 };

    fn state() -> PartitionState {
        let mut state = PartitionState {
            next_offset: 10,
            ..PartitionState::default()
        };
        state.owners.insert(
            3,
            Owner {
                generation: 40,
                member: Some(ME),
            },
        );
        state
    }

    #[test]
    fn given_a_group_when_bound_should_admit_its_owner_alone() {
        let state = state();
        let group = ConsumerKey::Group(3);
        let refused = Err(ErrorCode::ConsumerGroupPartitionNotOwned);
        assert_eq!(state.bind_owner(&group, ME, 0), Ok(40));
        assert_eq!(state.bind_owner(&group, ME, 40), Ok(40));
        assert_eq!(state.bind_owner(&group, ME, 39), refused);
        assert_eq!(state.bind_owner(&group, Member { session: 9, ..ME }, 0), refused);
        assert_eq!(state.bind_owner(&ConsumerKey::Group(4), ME, 0), refused);
        let plain = ConsumerKey::Consumer(Identifier::numeric(3));
        assert_eq!(state.bind_owner(&plain, ME, 0), Ok(0));
        assert_eq!(state.bind_owner(&plain, ME, 40), refused);
    }

    #[test]
    fn given_an_offset_when_stored_should_lie_within_the_log_unless_the_group_is_external() {
        let state = state();
        let plain = ConsumerKey::Consumer(Identifier::numeric(3));
        assert_eq!(state.admit_store(&plain, 9), Ok(()));
        assert_eq!(state.admit_store(&plain, 10), Err(ErrorCode::InvalidOffset));
        assert_eq!(
            state.admit_store(&ConsumerKey::External(Identifier::numeric(3)), 10),
            Ok(())
        );
        assert_eq!(state.admit_delete(&plain), Err(ErrorCode::ConsumerOffsetNotFound));
    }
}
