//! The writing side: which steps put a prepare, a checkpoint or a superblock on disk.

use crate::planted::{self, Bug};
use crate::record::{BodyLocation, encode, encode_rewind};
use crate::recover::store_again;
use crate::superblock::{BootId, Checkpoint, SUPERBLOCK_LEN, Superblock};
use crate::{checkpoint_path, journal_path, superblock_path};
use bytes::Bytes;
use iggy_consensus::{LogEnd, Prepare, VsrState};
use iggy_storage::{FileId, Job, Step};
use xxhash_rust::xxh3::xxh3_128;

/// Hands out file numbers that no other group of the same storage uses.
#[derive(Clone, Copy, Debug)]
pub struct FileNumbers {
    next: u64,
}

impl FileNumbers {
    /// Numbers for the group in `slot`; slots of one storage are below 2^32.
    pub const fn new(slot: u32) -> Self {
        Self {
            next: (slot as u64) << 32,
        }
    }

    /// A number that was not handed out before.
    pub fn take(&mut self) -> FileId {
        self.next += 1;
        FileId(self.next)
    }
}

/// The open files of a journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalFiles {
    /// Generation that takes appends.
    pub active: FileId,
    superblocks: [FileId; 2],
}

/// The writing side of a group's directory. Holds positions, never bytes.
#[derive(Debug)]
pub struct Journal {
    directory: String,
    files: JournalFiles,
    generation: u64,
    /// Bytes of the active generation.
    length: u64,
    superblock: Superblock,
    /// Generation from which a checkpoint that is being taken starts.
    rotated_to: Option<u64>,
}

impl Journal {
    /// The journal of a recovered directory, and the steps that open its superblocks; the caller opens the active file. `length` bytes of `generation` are kept.
    pub(crate) fn open(
        directory: &str,
        superblock: Superblock,
        generation: u64,
        length: u64,
        numbers: &mut FileNumbers,
    ) -> (Self, Job) {
        let files = JournalFiles {
            active: numbers.take(),
            superblocks: [numbers.take(), numbers.take()],
        };
        let job = vec![
            Step::CreateDirectory(directory.to_owned()),
            Step::Open {
                file: files.superblocks[0],
                path: superblock_path(directory, 0),
                create: true,
            },
            Step::Open {
                file: files.superblocks[1],
                path: superblock_path(directory, 1),
                create: true,
            },
        ];
        let journal = Self {
            directory: directory.to_owned(),
            files,
            generation,
            length,
            superblock,
            rotated_to: None,
        };
        (journal, job)
    }

    /// Its open files.
    pub fn files(&self) -> JournalFiles {
        self.files
    }

    /// Bytes of the active generation.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The superblock last written or being written.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Appends a prepare. Its batch, if it has one, lies at `location`.
    pub fn append(&mut self, prepare: &Prepare, location: Option<BodyLocation>) -> Step {
        let pieces = encode(prepare, location, self.generation);
        let offset = self.length;
        self.length += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Step::Write {
            file: self.files.active,
            offset,
            pieces,
        }
    }

    /// Records that the log ends at `to`, whatever was appended after it. It must be synced before anything it voids is
    /// overwritten elsewhere.
    pub fn rewind(&mut self, to: LogEnd) -> Step {
        let piece = encode_rewind(to, self.generation);
        let offset = self.length;
        self.length += piece.len() as u64;
        Step::Write {
            file: self.files.active,
            offset,
            pieces: vec![piece],
        }
    }

    /// Starts a new generation for everything appended from now on; part of taking a checkpoint, which is over when
    /// [`checkpoint`](Self::checkpoint) was called, or begun again for the state of another replica. The file it leaves must be synced before the checkpoint counts.
    pub fn rotate(&mut self, numbers: &mut FileNumbers) -> Job {
        self.generation += 1;
        self.length = 0;
        self.files.active = numbers.take();
        self.rotated_to = Some(self.generation);
        let mut job = vec![Step::Open {
            file: self.files.active,
            path: journal_path(&self.directory, self.generation),
            create: true,
        }];
        if !planted::has(Bug::ForgetDirectorySync) {
            job.push(Step::SyncDirectory(self.directory.clone()));
        }
        job
    }

    /// Makes `state` the checkpoint at `at.op`, which is at or after the end of the generation that was left, and
    /// removes what it replaces. Everything the checkpoint stands for must be synced before these steps run.
    pub fn checkpoint(&mut self, mut at: Checkpoint, state: Bytes, numbers: &mut FileNumbers) -> Job {
        at.state_checksum = xxh3_128(&state);
        at.length = state.len() as u64;
        let replaced = self.superblock.checkpoint.op;
        let oldest = self.superblock.generation;
        let kept = self.rotated_to.take().unwrap_or(self.generation);
        self.superblock.checkpoint = at;
        self.superblock.generation = kept;
        let file = numbers.take();
        let mut job = vec![
            Step::Open {
                file,
                path: checkpoint_path(&self.directory, at.op),
                create: true,
            },
            Step::Truncate { file, length: 0 },
            Step::Write {
                file,
                offset: 0,
                pieces: vec![state],
            },
            Step::Sync(vec![file]),
            Step::Close(file),
            Step::SyncDirectory(self.directory.clone()),
        ];
        if planted::has(Bug::RemoveBeforeCheckpoint) {
            job.push(Step::Remove(checkpoint_path(&self.directory, replaced)));
        }
        job.extend(self.write_superblock());
        if replaced != 0 && replaced != at.op {
            job.push(Step::Remove(checkpoint_path(&self.directory, replaced)));
        }
        job.extend((oldest..kept).map(|generation| Step::Remove(journal_path(&self.directory, generation))));
        job
    }

    /// Records a new state of the replica.
    pub fn persist_state(&mut self, state: VsrState) -> Job {
        self.superblock.state = state;
        self.write_superblock()
    }

    /// Records that this boot now writes here, or with `clean` that everything is synced and nothing more will come.
    pub fn mark(&mut self, boot: BootId, clean: bool) -> Job {
        self.superblock.boot = boot;
        self.superblock.clean = clean;
        self.write_superblock()
    }

    /// Steps that make the copy of the superblock that counts durable, whoever wrote it.
    pub(crate) fn store_superblock_again(&self) -> [Step; 2] {
        let file = self.files.superblocks[(self.superblock.sequence % 2) as usize];
        store_again(file, 0, SUPERBLOCK_LEN as u64)
    }

    fn write_superblock(&mut self) -> Job {
        self.superblock.sequence += 1;
        let copy = if planted::has(Bug::OneSuperblock) {
            0
        } else {
            self.superblock.sequence % 2
        };
        let file = self.files.superblocks[copy as usize];
        let pieces = vec![Bytes::from(self.superblock.encode())];
        vec![
            Step::Write {
                file,
                offset: 0,
                pieces,
            },
            Step::Sync(vec![file]),
            Step::SyncDirectory(self.directory.clone()),
        ]
    }

    /// Closes every file of the journal.
    pub fn close(&self) -> Job {
        let [first, second] = self.files.superblocks;
        vec![Step::Close(self.files.active), Step::Close(first), Step::Close(second)]
    }
}
