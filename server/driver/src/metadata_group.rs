//! The metadata group: changes in, receipts and events out.

use crate::group_log::{GroupLog, LogEvent};
use iggy_consensus::{
    Barrier, Body, FenceReason, GroupId, LogEnd, Now, PrepareHeader, Proposal, Refusal, Replica, ReplicaConfig,
    VsrState,
};
use iggy_journal::{Body as JournalBody, BootId, FileNumbers, Policy, Recovered};
use iggy_metadata::{Applied, Change, ChangeError, Metadata, Position, RequestKey, SnapshotError};
use iggy_protocol::operation::Operation;
use iggy_storage::image::Image;
use iggy_storage::{Completion, Storage, StorageError};
use std::collections::VecDeque;

use crate::request::{Ticket, operation_of};

/// Directory of the group below the storage root.
pub const DIRECTORY: &str = "metadata";
/// Bytes of bodies that never come due: metadata has no batches, its journal's own length decides.
const BODIES_DUE: u64 = u64::MAX;

/// Operation byte of changes the node itself makes.
const INTERNAL_OPERATION: Operation = Operation::CompleteLifecycle;

/// Why the metadata of a node cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The journal's part.
    #[error(transparent)]
    Journal(#[from] iggy_journal::RecoverError),
    /// The checkpoint.
    #[error("the metadata checkpoint cannot be used: {0}")]
    Snapshot(#[from] SnapshotError),
    /// A change in the journal.
    #[error("op {op} of the metadata journal cannot be used: {source}")]
    Change {
        /// Its position.
        op: u64,
        /// Cause.
        source: ChangeError,
    },
    /// A prepare that is not a metadata change.
    #[error("op {op} of the metadata journal is a batch of messages")]
    Batch {
        /// Its position.
        op: u64,
    },
}

/// What the group does.
#[derive(Debug)]
pub enum MetadataNotice {
    /// A change was applied; the state is already new.
    Applied {
        /// Who proposed it.
        ticket: Ticket,
        /// Answer and consequences.
        applied: Applied,
    },
    /// A change was not taken; nothing was written.
    Refused {
        /// Who proposed it.
        ticket: Ticket,
        /// Why.
        refusal: Refusal,
    },
    /// A change may or may not have been written; the group takes no more.
    Uncertain {
        /// Who proposed it.
        ticket: Ticket,
    },
    /// The group takes no more writes.
    Fenced {
        /// Why.
        reason: FenceReason,
        /// What the disk said.
        cause: StorageError,
    },
    /// The directory could not be opened.
    OpenFailed(StorageError),
    /// Something that nobody waits for failed.
    Trouble(StorageError),
    /// [`MetadataGroup::stop`] is done.
    Stopped,
}

#[derive(Debug)]
struct Pending {
    header: Box<PrepareHeader>,
    request: RequestKey,
    change: Change,
    ticket: Ticket,
}

/// See the module's page.
#[derive(Debug)]
pub struct MetadataGroup {
    log: GroupLog,
    state: Metadata,
    pending: VecDeque<Pending>,
    applied: LogEnd,
    boot: BootId,
    opened: bool,
    stopping: bool,
    finishing: bool,
    notices: Vec<MetadataNotice>,
}

fn position_of(header: &PrepareHeader) -> Position {
    Position {
        op: header.op.get(),
        timestamp: header.timestamp.get(),
        checksum: header.checksum.get(),
        view: header.view.get(),
        replica: header.replica,
    }
}

fn request_of(header: &PrepareHeader) -> RequestKey {
    RequestKey {
        client: header.client.get(),
        session: header.session.get(),
        request: header.request.get(),
        request_checksum: header.request_checksum.get(),
        operation: operation_of(header.operation),
        user_id: header.user_id.get(),
    }
}

impl MetadataGroup {
    /// Opens the group, new or recovered. Metadata is always persisted.
    pub fn open(
        cluster: u128,
        boot: BootId,
        pipeline_max: usize,
        image: &dyn Image,
        storage: &mut dyn Storage,
    ) -> Result<Self, MetadataError> {
        let fresh = VsrState::new(cluster, GroupId::METADATA, 0, 1);
        let policy = Policy { boot, volatile: false };
        let mut numbers = FileNumbers::new(0);
        let found = iggy_journal::recover(image, DIRECTORY, fresh, policy, &mut numbers, &mut |_, _| Ok(false))?;
        let state = Self::replay(&found)?;
        let replica = Replica::recover(
            ReplicaConfig { pipeline_max },
            found.journal.superblock().state,
            found.end,
        )
        .expect("a group of one starts from any state its superblock can hold");
        let log = GroupLog::new(0, replica, found.journal, numbers, BODIES_DUE, found.open, storage);
        Ok(Self {
            log,
            state,
            pending: VecDeque::new(),
            applied: found.end,
            boot,
            opened: false,
            stopping: false,
            finishing: false,
            notices: Vec::new(),
        })
    }

    fn replay(found: &Recovered) -> Result<Metadata, MetadataError> {
        let mut state = match &found.checkpoint {
            Some(bytes) => Metadata::restore(bytes)?,
            None => Metadata::new(),
        };
        for record in &found.records {
            let op = record.header.op.get();
            let JournalBody::Inline(body) = &record.body else {
                return Err(MetadataError::Batch { op });
            };
            let change = Change::decode(body).map_err(|source| MetadataError::Change { op, source })?;
            state.apply(position_of(&record.header), request_of(&record.header), &change);
        }
        Ok(state)
    }

    /// Whether what recovery found is on disk. Until then nothing that follows from it may be undone or removed: a loss
    /// of power could still bring an older state back.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// The applied state.
    pub fn state(&self) -> &Metadata {
        &self.state
    }

    /// Moves what happened since the last call to the end of `out`.
    pub fn take_notices(&mut self, out: &mut Vec<MetadataNotice>) {
        out.append(&mut self.notices);
    }

    /// Orders a change. Its receipt comes as a notice.
    pub fn propose(
        &mut self,
        now: Now,
        ticket: Ticket,
        mut request: RequestKey,
        change: Change,
        storage: &mut dyn Storage,
    ) {
        if request.client == 0 {
            request.operation = INTERNAL_OPERATION;
        }
        let admits = if self.stopping {
            Err(Refusal::Fenced)
        } else {
            self.log.replica().admits()
        };
        if let Err(refusal) = admits {
            return self.notices.push(MetadataNotice::Refused { ticket, refusal });
        }
        let proposal = Proposal {
            client: request.client,
            request_checksum: request.request_checksum,
            session: request.session,
            request: request.request,
            user_id: request.user_id,
            owner_generation: 0,
            operation: request.operation.code(),
            timestamp: self.log.replica().next_timestamp(now),
            body: Body::Inline(change.encode()),
            barrier: Barrier::Sync,
        };
        match self.log.propose(now, proposal, storage, &mut |_, _| None) {
            Ok(header) => self.pending.push_back(Pending {
                header,
                request,
                change,
                ticket,
            }),
            Err(refusal) => self.notices.push(MetadataNotice::Refused { ticket, refusal }),
        }
    }

    /// Takes the end of a job of this group.
    pub fn completed(&mut self, now: Now, completion: Completion, storage: &mut dyn Storage) {
        for event in self.log.completed(now, completion, storage) {
            match event {
                LogEvent::Committed(op) => self.committed(op, storage),
                LogEvent::Fenced { reason, cause } => {
                    self.give_up();
                    self.notices.push(MetadataNotice::Fenced { reason, cause });
                }
                // Old files that stay behind change nothing of what the log promises.
                LogEvent::BackgroundFailed(error) => self.notices.push(MetadataNotice::Trouble(error)),
                LogEvent::OpenFailed(error) => {
                    self.give_up();
                    self.notices.push(MetadataNotice::OpenFailed(error));
                }
                LogEvent::Finished => self.notices.push(MetadataNotice::Stopped),
                LogEvent::Opened => self.opened = true,
                LogEvent::Checkpointed(_) | LogEvent::Read { .. } => {}
            }
        }
        self.finish_when_quiet(storage);
    }

    fn give_up(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            self.notices.push(MetadataNotice::Uncertain { ticket: pending.ticket });
        }
    }

    fn committed(&mut self, op: u64, storage: &mut dyn Storage) {
        while self
            .pending
            .front()
            .is_some_and(|pending| pending.header.op.get() <= op)
        {
            let Some(pending) = self.pending.pop_front() else { break };
            let at = position_of(&pending.header);
            self.applied = LogEnd {
                op: at.op,
                checksum: at.checksum,
                timestamp: at.timestamp,
            };
            let applied = self.state.apply(at, pending.request, &pending.change);
            self.notices.push(MetadataNotice::Applied {
                ticket: pending.ticket,
                applied,
            });
        }
        if self.log.wants_checkpoint(self.applied.op) {
            self.log.checkpoint(self.applied, self.state.snapshot(), storage);
        }
    }

    /// Stops in order: takes no more changes and leaves everything on disk.
    pub fn stop(&mut self, storage: &mut dyn Storage) {
        self.stopping = true;
        self.finish_when_quiet(storage);
    }

    fn finish_when_quiet(&mut self, storage: &mut dyn Storage) {
        if !self.stopping || self.finishing {
            return;
        }
        if self.log.replica().fenced().is_some() {
            self.finishing = true;
            self.notices.push(MetadataNotice::Stopped);
        } else if self.log.is_quiet() {
            self.finishing = true;
            self.log.finish(self.applied, self.state.snapshot(), self.boot, storage);
        }
    }
}
