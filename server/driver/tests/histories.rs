//! A request acts on the history it was made for, or on none: the metadata it was resolved with may be older or newer than
//! what its partition has been told.

#[path = "support/partition.rs"]
mod partition;

use iggy_driver::Order;
use iggy_metadata::model::topic::History;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::MemoryDisk;
use partition::{KEY, Partition};

const NEW: u64 = KEY.incarnation + 2;

/// A partition with two messages whose second history has begun.
fn begun_again() -> Partition {
    let mut partition = Partition::start(&MemoryDisk::new(), 1 << 20);
    assert!(partition.send(&[10, 20]));
    partition.order(Order::BeginHistory {
        key: KEY,
        history: History {
            losses: 1,
            incarnation: NEW,
        },
    });
    partition
}

fn poll(partition: &mut Partition) -> Result<usize, u32> {
    let polled = partition.try_poll(PollingStrategy::First, 10, 1 << 18);
    polled.map(|messages| messages.len())
}

/// S21, G3.
#[test]
fn given_a_request_resolved_before_a_new_history_when_it_arrives_after_it_should_be_refused_and_change_nothing() {
    let mut partition = begun_again();
    assert_eq!(poll(&mut partition), Err(ErrorCode::HistoryUnavailable.code()));
    assert!(!partition.send(&[30]));
    assert!(!partition.store(1));
    partition.incarnation = NEW;
    assert_eq!(poll(&mut partition), Ok(2));
    let next = partition.try_poll(PollingStrategy::Next, 10, 1 << 18).unwrap();
    assert_eq!(next[0].offset, 0, "no offset was stored");
}

#[test]
fn given_a_request_for_a_history_that_is_still_on_its_way_when_it_arrives_should_be_asked_to_come_again() {
    let mut partition = Partition::start(&MemoryDisk::new(), 1 << 20);
    partition.incarnation = NEW;
    assert_eq!(poll(&mut partition), Err(ErrorCode::TransientNotAccepted.code()));
    assert!(!partition.send(&[30]));
    partition.incarnation = KEY.incarnation;
    assert_eq!(poll(&mut partition), Ok(0));
}
