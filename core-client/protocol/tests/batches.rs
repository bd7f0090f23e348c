//! Laws of batches, for any messages: what is built verifies, any flipped bit is found, and slices partition a batch.

use iggy_protocol::{BatchBuilder, BatchView, ProducerSection, batch, slice};
use proptest::prelude::*;

type Message = (u128, Vec<u8>, Vec<u8>, u32);

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (
        any::<u128>(),
        prop::collection::vec(any::<u8>(), 1..64),
        prop::collection::vec(any::<u8>(), 0..32),
        any::<u32>(),
    );
    prop::collection::vec(message, 1..12)
}

fn build(messages: &[Message], producer: Option<ProducerSection>) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (id, payload, headers, time) in messages {
        builder.push(*id, payload, headers, u64::from(*time)).unwrap();
    }
    builder.finish(producer).unwrap().to_vec()
}

proptest! {
    #[test]
    fn given_any_messages_when_built_and_stamped_should_verify(messages in messages(), offset in 0..u64::MAX / 2, idempotent: bool) {
        let producer = idempotent.then_some(ProducerSection { producer_id: 7, epoch: 1, base_sequence: 9 });
        let mut bytes = build(&messages, producer);
        BatchView::parse(&bytes).unwrap().verify().unwrap();
        batch::stamp(&mut bytes, 3, offset, 5).unwrap();
        let view = BatchView::parse(&bytes).unwrap();
        view.verify().unwrap();
        prop_assert_eq!(view.header().producer(), producer);
        prop_assert_eq!(view.last_offset(), offset + messages.len() as u64 - 1);
        for (frame, (id, payload, headers, _)) in view.frames().zip(&messages) {
            prop_assert_eq!((frame.id(), frame.payload(), frame.user_headers()), (*id, &payload[..], &headers[..]));
        }
    }

    #[test]
    fn given_any_flipped_bit_when_verified_should_be_found(messages in messages(), at: prop::sample::Index, bit in 0..8_u8) {
        let mut bytes = build(&messages, None);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(BatchView::parse(&bytes).and_then(|batch| batch.verify()).is_err(), "byte {} bit {}", at, bit);
    }

    #[test]
    fn given_any_limits_when_sliced_should_return_the_messages_once_and_in_order(messages in messages(), count in 1..5_u32, room in 256..600_usize) {
        let mut bytes = build(&messages, None);
        batch::stamp(&mut bytes, 0, 100, 1).unwrap();
        let mut next = 100;
        while let Some(cut) = slice(&bytes, next, count, room, true).unwrap() {
            prop_assert_eq!(cut.first_offset, next);
            prop_assert!(cut.message_count <= count);
            prop_assert!(cut.len() <= room || cut.message_count == 1);
            let mut alone = cut.header.to_vec();
            alone.extend_from_slice(&bytes[cut.body.clone()]);
            let view = BatchView::parse(&alone).unwrap();
            view.verify().unwrap();
            prop_assert_eq!(view.last_offset(), cut.last_offset);
            next = cut.last_offset + 1;
        }
        prop_assert_eq!(next, 100 + messages.len() as u64);
    }
}
