//! Recovery of a group's directory: what is cut, what is refused, what is reported.

use bytes::Bytes;
use iggy_consensus::{self as consensus, GroupId, LogEnd, Prepare, PrepareHeader, VsrState};
use iggy_journal::{Body, Checkpoint, FileNumbers, Policy, RecoverError, Recovered, recover};
use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use iggy_storage::{IoToken, Job, LaneId, Storage};
use proptest::prelude::*;
use zerocopy::little_endian::{U64, U128};

const DIRECTORY: &str = "groups/g";
const PERSISTED: Policy = Policy {
    boot: 1,
    volatile: false,
    discard: false,
};
const REBOOTED: Policy = Policy {
    boot: 2,
    volatile: false,
    discard: false,
};
const REBOOTED_VOLATILE: Policy = Policy {
    boot: 2,
    volatile: true,
    discard: false,
};

fn state() -> VsrState {
    VsrState::new(9, GroupId::METADATA, 0, 1)
}

fn reopen(disk: &MemoryDisk, policy: Policy) -> Result<Recovered, RecoverError> {
    recover(
        disk,
        DIRECTORY,
        state(),
        policy,
        &mut FileNumbers::new(0),
        &mut |_, _| Ok(true),
    )
}

struct Group {
    storage: MemoryStorage,
    recovered: Recovered,
    end: LogEnd,
}

impl Group {
    fn open(disk: &MemoryDisk, policy: Policy) -> Self {
        let mut recovered = reopen(disk, policy).unwrap();
        let mut group = Self {
            storage: disk.storage(1),
            end: recovered.end,
            recovered: reopen(disk, policy).unwrap(),
        };
        let open = std::mem::take(&mut recovered.open);
        group.recovered = recovered;
        group.run(open);
        group
    }

    fn run(&mut self, job: Job) -> bool {
        self.storage.submit(LaneId(1), IoToken(1), job);
        self.storage
            .run_one()
            .is_some_and(|completion| completion.result.is_ok())
    }

    fn append(&mut self, body: &[u8], commit: u64) -> bool {
        let header = PrepareHeader {
            op: U64::new(self.end.op + 1),
            parent: U128::new(self.end.checksum),
            timestamp: U64::new(self.end.timestamp + 1),
            commit: U64::new(commit),
            ..PrepareHeader::zeroed()
        };
        let prepare = Prepare::seal(header, consensus::Body::Inline(Bytes::copy_from_slice(body)));
        self.end = LogEnd {
            op: prepare.header.op.get(),
            checksum: prepare.header.checksum.get(),
            timestamp: prepare.header.timestamp.get(),
        };
        let step = self.recovered.journal.append(&prepare, None);
        self.run(vec![step])
    }
}

fn bodies(recovered: &Recovered) -> Vec<Vec<u8>> {
    let inline = |record: &iggy_journal::Record| match &record.body {
        Body::Inline(bytes) => bytes.to_vec(),
        Body::InSegment(_) => panic!("no batches here"),
    };
    recovered.records.iter().map(inline).collect()
}

fn written(disk: &MemoryDisk, count: u8) -> Group {
    let mut group = Group::open(disk, PERSISTED);
    for index in 1..=count {
        assert!(group.append(&vec![index; usize::from(index)], u64::from(index) - 1));
    }
    group
}

fn active_length(group: &Group) -> u64 {
    group.recovered.journal.length()
}

#[test]
fn given_a_new_directory_when_recovered_should_be_fresh_and_empty() {
    let recovered = reopen(&MemoryDisk::new(), PERSISTED).unwrap();
    assert!(recovered.fresh && recovered.records.is_empty() && recovered.loss.is_none());
}

#[test]
fn given_appends_when_the_process_crashes_should_bring_all_back_in_order() {
    let disk = MemoryDisk::new();
    let group = written(&disk, 20);
    let recovered = reopen(&disk, PERSISTED).unwrap();
    assert_eq!(
        bodies(&recovered),
        (1..=20_u8).map(|i| vec![i; usize::from(i)]).collect::<Vec<_>>()
    );
    assert_eq!(recovered.end, group.end);
}

#[test]
fn given_a_checkpoint_when_recovered_should_start_from_it() {
    let disk = MemoryDisk::new();
    let mut group = written(&disk, 5);
    let mut numbers = FileNumbers::new(1);
    let job = group.recovered.journal.rotate(&mut numbers);
    assert!(group.run(job));
    assert!(group.append(b"after", 5));
    let at = Checkpoint {
        op: 5,
        ..checkpoint_of(&disk, 5)
    };
    let job = group
        .recovered
        .journal
        .checkpoint(at, Bytes::from_static(b"state"), &mut numbers);
    assert!(group.run(job));
    let recovered = reopen(&disk, PERSISTED).unwrap();
    assert_eq!(recovered.checkpoint.as_deref(), Some(&b"state"[..]));
    assert_eq!(bodies(&recovered), [b"after".to_vec()]);
    // Damage to the checkpoint must never look like an empty group.
    assert!(disk.flip_bit(&format!("{DIRECTORY}/checkpoint.{:020}", 5), 2, 1));
    assert!(matches!(reopen(&disk, PERSISTED), Err(RecoverError::Checkpoint { .. })));
}

fn checkpoint_of(disk: &MemoryDisk, op: u64) -> Checkpoint {
    let recovered = reopen(disk, PERSISTED).unwrap();
    let record = recovered
        .records
        .iter()
        .find(|record| record.header.op.get() == op)
        .unwrap();
    Checkpoint {
        op,
        prepare_checksum: record.header.checksum.get(),
        timestamp: record.header.timestamp.get(),
        ..Checkpoint::default()
    }
}

/// S20.
#[test]
fn given_one_damaged_superblock_when_recovered_should_use_the_other_and_refuse_without_both() {
    let disk = MemoryDisk::new();
    written(&disk, 3);
    assert!(disk.flip_bit(&format!("{DIRECTORY}/superblock.b"), 40, 3));
    // The only copy so far: the journal proves that this is not an empty group.
    assert!(matches!(reopen(&disk, PERSISTED), Err(RecoverError::Superblock { .. })));
}

/// S19.
#[test]
fn given_another_cluster_when_recovered_should_refuse() {
    let disk = MemoryDisk::new();
    written(&disk, 1);
    let other = VsrState { cluster: 10, ..state() };
    let result = recover(
        &disk,
        DIRECTORY,
        other,
        PERSISTED,
        &mut FileNumbers::new(0),
        &mut |_, _| Ok(true),
    );
    assert!(matches!(result, Err(RecoverError::Foreign { .. })));
}

/// D6.
#[test]
fn given_damage_before_a_proof_of_commitment_when_recovered_should_refuse_and_name_the_place() {
    let disk = MemoryDisk::new();
    written(&disk, 10);
    let path = format!("{DIRECTORY}/journal.{:020}", 1);
    assert!(disk.flip_bit(&path, 330, 0));
    match reopen(&disk, REBOOTED) {
        Err(RecoverError::Damage {
            path: at,
            offset,
            op: 2,
            proved_op: 9,
        }) => {
            assert_eq!((at, offset), (path, 328));
        }
        other => panic!("expected damage, got {other:?}"),
    }
}

/// D2.
#[test]
fn given_damage_in_what_only_memory_promised_when_rebooted_should_report_the_loss_under_a_new_history() {
    let disk = MemoryDisk::new();
    written(&disk, 10);
    assert!(disk.flip_bit(&format!("{DIRECTORY}/journal.{:020}", 1), 330, 0));
    let recovered = reopen(&disk, REBOOTED_VOLATILE).unwrap();
    let loss = recovered.loss.unwrap();
    assert_eq!((loss.from_op, loss.proved_op), (2, Some(9)));
    assert_eq!(recovered.journal.superblock().state.history, 1);
    assert_eq!(recovered.records.len(), 1);
}

#[test]
fn given_an_unclean_stop_when_rebooted_should_report_a_possible_loss_only_if_memory_was_promised() {
    let disk = MemoryDisk::new();
    let mut group = written(&disk, 2);
    assert_eq!(reopen(&disk, REBOOTED).unwrap().loss, None);
    assert!(reopen(&disk, REBOOTED_VOLATILE).unwrap().loss.is_some());
    let job = group.recovered.journal.mark(1, true);
    assert!(group.run(job));
    assert_eq!(reopen(&disk, REBOOTED_VOLATILE).unwrap().loss, None);
}

proptest! {
    /// D6.
    #[test]
    fn given_a_torn_end_when_recovered_should_keep_the_whole_prefix(count in 1_u8..12, cut in 1_u64..400) {
        let disk = MemoryDisk::new();
        let mut group = written(&disk, count);
        let length = active_length(&group);
        let kept = length.saturating_sub(cut);
        let file = group.recovered.journal.files().active;
        group.run(vec![iggy_storage::Step::Truncate { file, length: kept }]);
        let recovered = reopen(&disk, PERSISTED).unwrap();
        let whole = recovered.records.len();
        // Fewer than 8 cut bytes may all be padding, which carries nothing.
        prop_assert!(whole < usize::from(count) || cut < 8);
        prop_assert_eq!(bodies(&recovered), (1..=whole as u8).map(|i| vec![i; usize::from(i)]).collect::<Vec<_>>());
        // The torn rest is gone for good: what is appended next comes back alone.
        let mut again = Group::open(&disk, PERSISTED);
        prop_assert!(again.append(b"next", whole as u64));
        let recovered = reopen(&disk, PERSISTED).unwrap();
        prop_assert_eq!(bodies(&recovered).pop().unwrap(), b"next".to_vec());
    }

    /// S20.
    #[test]
    fn given_any_flipped_bit_when_recovered_should_never_panic_or_invent(count in 1_u8..12, at in 0_u64..4000, bit in 0_u8..8) {
        let disk = MemoryDisk::new();
        written(&disk, count);
        disk.flip_bit(&format!("{DIRECTORY}/journal.{:020}", 1), at, bit);
        if let Ok(recovered) = reopen(&disk, PERSISTED) {
            let found = bodies(&recovered);
            prop_assert_eq!(&found, &(1..=found.len() as u8).map(|i| vec![i; usize::from(i)]).collect::<Vec<_>>());
        }
    }
}
