//! What earlier lives left behind: it is removed once nothing names it, and never before.

use bytes::Bytes;
use iggy_consensus::{self as consensus, GroupId, LogEnd, Prepare, PrepareHeader, VsrState};
use iggy_journal::{Checkpoint, FileNumbers, Policy, Recovered, recover};
use iggy_storage::image::Image;
use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use iggy_storage::{IoToken, Job, LaneId, Storage};
use zerocopy::little_endian::{U64, U128};

const DIRECTORY: &str = "groups/g";

struct Group {
    disk: MemoryDisk,
    storage: MemoryStorage,
    recovered: Recovered,
    numbers: FileNumbers,
    end: LogEnd,
}

impl Group {
    fn open(disk: &MemoryDisk, seed: u64) -> Self {
        let policy = Policy {
            boot: 1,
            volatile: false,
            discard: false,
        };
        let fresh = VsrState::new(9, GroupId::METADATA, 0, 1);
        let mut numbers = FileNumbers::new(0);
        let recovered = recover(disk, DIRECTORY, fresh, policy, &mut numbers, &mut |_, _| Ok(true));
        let recovered = recovered.expect("the directory can be used");
        Self {
            disk: disk.clone(),
            storage: disk.storage(seed),
            end: recovered.end,
            recovered,
            numbers,
        }
    }

    fn run(&mut self, job: Job) -> bool {
        self.storage.submit(LaneId(1), IoToken(1), job);
        self.storage
            .run_one()
            .is_some_and(|completion| completion.result.is_ok())
    }

    /// Runs what recovery asked for.
    fn start(&mut self) -> bool {
        let open = std::mem::take(&mut self.recovered.open);
        self.run(open)
    }

    fn append(&mut self) -> bool {
        let header = PrepareHeader {
            op: U64::new(self.end.op + 1),
            parent: U128::new(self.end.checksum),
            timestamp: U64::new(self.end.timestamp + 1),
            commit: U64::new(self.end.op),
            ..PrepareHeader::zeroed()
        };
        let prepare = Prepare::seal(header, consensus::Body::Inline(Bytes::from_static(b"change")));
        self.end = LogEnd {
            op: prepare.header.op.get(),
            checksum: prepare.header.checksum.get(),
            timestamp: prepare.header.timestamp.get(),
        };
        let file = self.recovered.journal.files().active;
        let step = self.recovered.journal.append(&prepare, None);
        self.run(vec![step, iggy_storage::Step::Sync(vec![file])])
    }

    fn checkpoint(&mut self) -> bool {
        let rotation = self.recovered.journal.rotate(&mut self.numbers);
        if !self.run(rotation) {
            return false;
        }
        let at = Checkpoint {
            op: self.end.op,
            prepare_checksum: self.end.checksum,
            timestamp: self.end.timestamp,
            ..Checkpoint::default()
        };
        let job = self
            .recovered
            .journal
            .checkpoint(at, Bytes::from_static(b"state"), &mut self.numbers);
        self.run(job)
    }

    fn names(&self) -> Vec<String> {
        let entries = self.disk.list(DIRECTORY).expect("a memory disk lists");
        entries.into_iter().map(|entry| entry.name).collect()
    }
}

/// Two checkpoints with a change before, between and after them; `die_at` steps into the second one the disk dies.
fn interrupted(disk: &MemoryDisk, die_at: Option<u64>) -> bool {
    let mut group = Group::open(disk, 1);
    let whole = group.start() && group.append() && group.checkpoint() && group.append();
    assert!(whole);
    if let Some(steps) = die_at {
        disk.die_after(steps);
    }
    group.checkpoint() && group.append()
}

/// S18, D5.
#[test]
fn given_a_checkpoint_cut_short_anywhere_when_recovered_should_leave_one_of_each_and_lose_nothing() {
    for die_at in 0..40 {
        for power in [None, Some(0), Some(1), Some(2)] {
            let disk = MemoryDisk::new();
            let finished = interrupted(&disk, Some(die_at));
            match power {
                None => disk.crash(),
                Some(seed) => disk.lose_power(seed),
            }
            let mut group = Group::open(&disk, 2);
            assert!(group.end.op >= 2 + u64::from(finished), "died at {die_at}");
            assert!(group.start() && group.append() && group.checkpoint());
            drop(group);
            // The last checkpoint has removed what it replaced; what earlier lives left is gone since they opened.
            let names = Group::open(&disk, 3).names();
            let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
            assert_eq!(
                (count("checkpoint."), count("journal.")),
                (1, 1),
                "{names:?}, died at {die_at}"
            );
        }
    }
}

/// D5.
#[test]
fn given_a_recovery_cut_short_anywhere_when_power_is_lost_should_still_find_what_the_superblock_names() {
    for die_at in 0..40 {
        for again in 0..25 {
            for seed in 0..3 {
                let disk = MemoryDisk::new();
                interrupted(&disk, Some(die_at));
                disk.crash();
                let mut group = Group::open(&disk, 2);
                disk.die_after(again);
                group.start();
                drop(group);
                disk.lose_power(seed);
                assert!(Group::open(&disk, 3).end.op >= 2, "died at {die_at} and {again}");
            }
        }
    }
}
