//! Lanes: one write at a time where order matters, and a hold on the lane of a write whose outcome is unknown.
//!
//! Metadata writes share one lane, sends and offset writes have one per partition history, and reads that move a stored
//! position have a gate per partition and consumer. A lane stays blocked by an uncertain operation until that operation is
//! resolved or abandoned, so that nothing overtakes a write that may still be applied.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use iggy_protocol::{Consumer, ErrorCode};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::answer::CallKind;
use crate::error::{IggyError, OperationId};
use crate::routes::RouteKey;

/// What is done one at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LaneKey {
    /// All metadata writes.
    Metadata,
    /// Writes to one history of one partition.
    Partition {
        /// The history.
        incarnation: u64,
        /// The partition.
        partition_id: u32,
    },
    /// What moves the position of one consumer in one partition.
    Progress {
        /// The partition as the caller spells it.
        partition: RouteKey,
        /// The consumer.
        consumer: Consumer,
    },
}

impl LaneKey {
    const fn blocked_code(&self) -> ErrorCode {
        match self {
            Self::Metadata | Self::Partition { .. } => ErrorCode::LaneBlocked,
            Self::Progress { .. } => ErrorCode::PartitionLaneBlocked,
        }
    }
}

/// An operation whose outcome is unknown, kept until it is resolved or abandoned.
#[derive(Debug)]
pub struct Retained {
    /// The frozen frame; `None` for a read, which cannot be replayed.
    pub frame: Option<Bytes>,
    /// The session it belongs to: under another one it cannot be resolved.
    pub epoch: u64,
    /// The lanes it blocks.
    pub lanes: Vec<LaneKey>,
    /// Where the frame goes.
    pub partition: Option<RouteKey>,
    /// Its share of the budget.
    pub _budget: Option<Budgeted>,
}

/// A share of the budget of pending writes.
#[derive(Debug)]
pub struct Budgeted {
    _operation: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

/// What became of an operation whose outcome was unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It was applied.
    Applied,
    /// It was refused with this code and not applied.
    Refused(ErrorCode),
}

#[derive(Debug, Default)]
struct Table {
    lanes: HashMap<LaneKey, Arc<tokio::sync::Mutex<()>>>,
    blocked: HashMap<LaneKey, OperationId>,
    retained: HashMap<OperationId, Retained>,
    /// Outcomes proved by replays, oldest first.
    resolved: VecDeque<(OperationId, Resolution)>,
}

/// Room for calls that are under way or unresolved.
#[derive(Debug)]
struct Room {
    what: &'static str,
    operations: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    max_operations: u32,
    max_bytes: u32,
}

impl Room {
    fn new(what: &'static str, max_operations: u32, max_bytes: u32) -> Self {
        let permits = |count: u32| Arc::new(Semaphore::new((count as usize).min(Semaphore::MAX_PERMITS)));
        let (operations, bytes) = (permits(max_operations), permits(max_bytes));
        Self {
            what,
            operations,
            bytes,
            max_operations,
            max_bytes,
        }
    }

    /// A frame above the whole room takes all of it.
    async fn take(&self, bytes: usize, deadline: Instant) -> Result<Budgeted, IggyError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max_bytes);
        let take = async {
            let operation = self.operations.clone().acquire_owned().await;
            let bytes = self.bytes.clone().acquire_many_owned(bytes).await;
            Some(Budgeted {
                _operation: operation.ok()?,
                _bytes: bytes.ok()?,
            })
        };
        if let Ok(Some(budget)) = tokio::time::timeout_at(deadline, take).await {
            return Ok(budget);
        }
        let Self {
            what,
            max_operations,
            max_bytes,
            ..
        } = self;
        let message = format!("no room among {max_operations} pending {what} and {max_bytes} bytes of their frames");
        Err(IggyError::new(ErrorCode::TransientNotAccepted, message))
    }
}

/// All lanes of a client.
#[derive(Debug)]
pub struct Lanes {
    table: Mutex<Table>,
    writes: Room,
    committing_reads: Room,
    remembered: usize,
}

/// The right to work in a lane.
#[derive(Debug)]
pub struct LaneGuard {
    /// The lane.
    pub key: LaneKey,
    _guard: OwnedMutexGuard<()>,
}

/// Idle lanes above this number are forgotten.
const IDLE_LANES: usize = 4096;

impl Lanes {
    /// Lanes with room for pending writes, and as much again for reads that commit.
    pub fn new(max_operations: u32, max_bytes: u32) -> Self {
        Self {
            table: Mutex::default(),
            writes: Room::new("writes", max_operations, max_bytes),
            committing_reads: Room::new("committing reads", max_operations, max_bytes),
            remembered: max_operations as usize,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for a call with a frame of `bytes`; reads that commit nothing need none.
    pub async fn budget(&self, kind: CallKind, bytes: usize, deadline: Instant) -> Result<Option<Budgeted>, IggyError> {
        match kind {
            CallKind::Mutation => self.writes.take(bytes, deadline).await.map(Some),
            CallKind::CommittingRead => self.committing_reads.take(bytes, deadline).await.map(Some),
            CallKind::Read => Ok(None),
        }
    }

    /// Waits for a lane. A lane that an uncertain operation holds refuses at once.
    pub async fn enter(&self, key: LaneKey, deadline: Instant) -> Result<LaneGuard, IggyError> {
        self.check(&key)?;
        let lane = {
            let mut table = self.table();
            if table.lanes.len() >= IDLE_LANES {
                table.lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            }
            table.lanes.entry(key.clone()).or_default().clone()
        };
        let Ok(guard) = tokio::time::timeout_at(deadline, lane.lock_owned()).await else {
            let message = "the calls before this one in its lane took until its deadline";
            return Err(IggyError::new(ErrorCode::TransientNotAccepted, message));
        };
        // While we waited, the call before us may have ended uncertain.
        self.check(&key)?;
        Ok(LaneGuard { key, _guard: guard })
    }

    fn check(&self, key: &LaneKey) -> Result<(), IggyError> {
        match self.table().blocked.get(key) {
            None => Ok(()),
            Some(operation) => {
                let message = "an earlier operation in this lane has an unknown outcome: resolve or abandon it first";
                Err(IggyError::new(key.blocked_code(), message).with_operation(*operation))
            }
        }
    }

    /// Keeps an operation and blocks its lanes.
    pub fn retain(&self, operation: OperationId, retained: Retained) {
        let mut table = self.table();
        for key in &retained.lanes {
            table.blocked.insert(key.clone(), operation);
        }
        table.retained.insert(operation, retained);
    }

    /// What is needed to replay an operation.
    pub fn replayable(&self, operation: OperationId) -> Option<(Option<Bytes>, u64, Option<RouteKey>)> {
        let table = self.table();
        let retained = table.retained.get(&operation)?;
        Some((retained.frame.clone(), retained.epoch, retained.partition.clone()))
    }

    /// Lets go of an operation and frees its lanes. False when it is not kept.
    pub fn release(&self, operation: OperationId) -> bool {
        let mut table = self.table();
        let Some(retained) = table.retained.remove(&operation) else {
            return false;
        };
        for key in &retained.lanes {
            if table.blocked.get(key) == Some(&operation) {
                table.blocked.remove(key);
            }
        }
        true
    }

    /// An operation was resolved: its lanes are free and its outcome is remembered for a while.
    pub fn resolve(&self, operation: OperationId, resolution: Resolution) {
        if self.release(operation) {
            let limit = self.remembered;
            let resolved = &mut self.table().resolved;
            resolved.push_back((operation, resolution));
            while resolved.len() > limit {
                resolved.pop_front();
            }
        }
    }

    /// The outcome an earlier replay proved.
    pub fn resolution(&self, operation: OperationId) -> Option<Resolution> {
        self.table()
            .resolved
            .iter()
            .rev()
            .find(|(known, _)| *known == operation)
            .map(|(_, resolution)| *resolution)
    }

    /// A session ended: its writes can no longer be replayed. Reads that may have stored something stay.
    pub fn forget_session(&self, epoch: u64) {
        let lost: Vec<_> = {
            let table = self.table();
            let of_session = |retained: &Retained| retained.epoch == epoch && retained.frame.is_some();
            table
                .retained
                .iter()
                .filter(|(_, retained)| of_session(retained))
                .map(|(id, _)| *id)
                .collect()
        };
        for operation in lost {
            self.release(operation);
        }
    }

    /// Operations that are kept, ascending.
    pub fn uncertain(&self) -> Vec<OperationId> {
        let mut operations: Vec<_> = self.table().retained.keys().copied().collect();
        operations.sort_unstable();
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + std::time::Duration::from_secs(10)
    }

    fn retained(lanes: Vec<LaneKey>) -> Retained {
        Retained {
            frame: Some(Bytes::from_static(b"frame")),
            epoch: 1,
            lanes,
            partition: None,
            _budget: None,
        }
    }

    #[tokio::test]
    async fn given_an_uncertain_operation_when_entering_its_lane_should_be_refused_until_released() {
        let lanes = Lanes::new(4, 1000);
        lanes.retain(OperationId(7), retained(vec![LaneKey::Metadata]));
        let error = lanes.enter(LaneKey::Metadata, soon()).await.unwrap_err();
        assert_eq!(
            (error.code(), error.operation()),
            (ErrorCode::LaneBlocked, Some(OperationId(7)))
        );
        let other = LaneKey::Partition {
            incarnation: 1,
            partition_id: 0,
        };
        lanes.enter(other, soon()).await.unwrap();
        assert!(lanes.release(OperationId(7)));
        assert!(!lanes.release(OperationId(7)));
        lanes.enter(LaneKey::Metadata, soon()).await.unwrap();
    }

    #[tokio::test]
    async fn given_a_waiter_when_the_call_before_it_ends_uncertain_should_be_refused() {
        let lanes = Arc::new(Lanes::new(4, 1000));
        let first = lanes.enter(LaneKey::Metadata, soon()).await.unwrap();
        let waiter = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.enter(LaneKey::Metadata, soon()).await.map(|_| ()) }
        });
        tokio::task::yield_now().await;
        lanes.retain(OperationId(3), retained(vec![LaneKey::Metadata]));
        drop(first);
        assert_eq!(waiter.await.unwrap().unwrap_err().operation(), Some(OperationId(3)));
        lanes.forget_session(1);
        assert_eq!(lanes.uncertain(), []);
        lanes.enter(LaneKey::Metadata, soon()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn given_a_full_budget_when_another_write_begins_should_name_the_limit() {
        let lanes = Lanes::new(2, 100);
        let write = |bytes| lanes.budget(CallKind::Mutation, bytes, soon());
        let _first = write(1_000_000).await.unwrap();
        let error = write(1).await.unwrap_err();
        assert!(error.message().contains("2 pending writes and 100 bytes"), "{error}");
        assert!(
            lanes
                .budget(CallKind::CommittingRead, 1, soon())
                .await
                .unwrap()
                .is_some(),
            "reads have room of their own"
        );
        assert!(lanes.budget(CallKind::Read, 1, soon()).await.unwrap().is_none());
    }
}
