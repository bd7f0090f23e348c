//! Requests by code, for what has no function of its own.

use bytes::Bytes;
use iggy_protocol::codec::Decode;
use iggy_protocol::request::message::{DeferredPoll, FetchMessages, PollMessages, SendMessages};
use iggy_protocol::request::offset::{DeleteConsumerOffset, GetConsumerOffset, StoreConsumerOffset};
use iggy_protocol::{Command, Consumer, ErrorCode, Identifier, Operation, PartitionContext, Partitioning};
use tokio::time::{Duration, Instant};

use crate::answer::CallKind;
use crate::call::{Call, Target, execute};
use crate::client::IggyClient;
use crate::deferred::{Times, Timing};
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::operations::fetch::progress_gates;
use crate::routes::RouteKey;

fn refuse(code: u32, why: &str) -> IggyError {
    IggyError::new(ErrorCode::InvalidCommand, format!("command {code} {why}"))
}

impl IggyClient {
    /// Sends a request by its code, routed and retried like a typed one, and returns the payload of the reply.
    ///
    /// # Errors
    /// Session commands (38, 39, 40, 44, 45) and cancel (108) are refused; sends must name their partition.
    pub async fn send_binary_request(&self, code: u32, payload: &[u8]) -> Result<Bytes, IggyError> {
        self.send_binary_request_with_deadline(code, payload, self.core().config.request_timeout)
            .await
    }

    /// As [`Self::send_binary_request`], with a deadline.
    ///
    /// # Errors
    /// As [`Self::send_binary_request`].
    pub async fn send_binary_request_with_deadline(
        &self,
        code: u32,
        payload: &[u8],
        deadline: Duration,
    ) -> Result<Bytes, IggyError> {
        let call = raw_call(code, payload, Instant::now() + deadline)?;
        execute(self.core(), call).await
    }

    /// Sends a read to one node, whose refusal is the answer.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient, payload: &[u8]) -> Result<(), iggy::IggyError> {
    /// let (code, replica_id) = (10, 2);
    /// let reply = client.send_binary_request_to_replica(code, payload, replica_id).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Anything but a read that belongs to no partition is refused; an unknown node is [`ErrorCode::InvalidIdentifier`].
    pub async fn send_binary_request_to_replica(
        &self,
        code: u32,
        payload: &[u8],
        replica_id: u8,
    ) -> Result<Bytes, IggyError> {
        let timeout = self.core().config.request_timeout;
        self.send_binary_request_to_replica_with_deadline(code, payload, replica_id, timeout)
            .await
    }

    /// As [`Self::send_binary_request_to_replica`], with a deadline.
    ///
    /// # Errors
    /// As [`Self::send_binary_request_to_replica`].
    pub async fn send_binary_request_to_replica_with_deadline(
        &self,
        code: u32,
        payload: &[u8],
        replica_id: u8,
        deadline: Duration,
    ) -> Result<Bytes, IggyError> {
        let deadline = Instant::now() + deadline;
        let mut call = raw_call(code, payload, deadline)?;
        if call.operation != Operation::NonReplicated
            || matches!(call.target, Target::Partition(_))
            || code == Command::FetchMessages.code()
        {
            return Err(refuse(
                code,
                "belongs to the primary and cannot be sent to a chosen node",
            ));
        }
        self.core().main_link(deadline).await?;
        let known = self
            .core()
            .links()
            .roster
            .as_ref()
            .is_some_and(|roster| roster.nodes.iter().any(|node| node.replica_id == replica_id));
        if !known {
            return Err(IggyError::new(
                ErrorCode::InvalidIdentifier,
                format!("there is no node {replica_id} in the roster"),
            ));
        }
        call.target = Target::Replica(replica_id);
        execute(self.core(), call).await
    }
}

fn raw_call(code: u32, payload: &[u8], deadline: Instant) -> Result<Call, IggyError> {
    let frame = FrameBuffer::of_bytes(payload);
    let Some(command) = Command::from_u32(code) else {
        // A code this client does not know travels as a read; the server refuses what it does not know either.
        let mut call = Call::new(Command::Ping, frame, deadline);
        call.code = code;
        return Ok(call);
    };
    if matches!(
        command,
        Command::LegacyLogin
            | Command::Logout
            | Command::Login
            | Command::LegacyTokenLogin
            | Command::LoginWithToken
            | Command::CancelDeferred
    ) {
        return Err(refuse(code, "changes the session and has a function of its own"));
    }
    let mut call = Call::new(command, frame, deadline);
    if command == Command::FetchMessages {
        return raw_fetch(call, payload);
    }
    if command == Command::PollMessagesDeferred {
        let poll = DeferredPoll::from_bytes(payload)?;
        call.reply_limit = poll.reply_limit();
        call.timing = Some(timing(Times::POLL, poll.wait_us, poll.request_timeout_us));
    }
    if let Some((key, consumer, commits)) = partition_of(command, payload)? {
        call = call.at_partition(key, None);
        if let Some(consumer) = consumer {
            call = call.in_turn_of(&consumer);
        }
        if commits {
            call.kind = CallKind::CommittingRead;
        }
    }
    Ok(call)
}

fn timing(times: Times, wait_us: u64, request_timeout_us: u64) -> Timing {
    Timing {
        times,
        began: Instant::now(),
        wait: Duration::from_micros(wait_us),
        timeout: Duration::from_micros(request_timeout_us),
    }
}

/// A fetch goes to the primary of its first partition, as it stands: each partition brings its own context along.
fn raw_fetch(mut call: Call, payload: &[u8]) -> Result<Call, IggyError> {
    let fetch = FetchMessages::from_bytes(payload)?;
    let first = fetch.targets.first().map_or(0, |target| target.partition_id);
    let times = Times::of_fetch(fetch.targets.len());
    call.reply_limit = fetch.reply_limit();
    call.timing = Some(timing(times, fetch.wait_us, fetch.request_timeout_us));
    if fetch.auto_commit {
        call.kind = CallKind::CommittingRead;
        call.gates = progress_gates(&fetch);
    }
    let key = RouteKey {
        stream: fetch.stream,
        topic: fetch.topic,
        partition_id: first,
    };
    Ok(call.at_partition(key, Some(PartitionContext::ZERO)))
}

type Place = (RouteKey, Option<Consumer>, bool);

/// The partition a raw body names, whose position it moves, and whether it commits as it reads.
fn partition_of(command: Command, payload: &[u8]) -> Result<Option<Place>, IggyError> {
    let place = |stream: Identifier, topic: Identifier, partition: Option<u32>, consumer, commits| {
        let partition_id = partition.ok_or_else(|| refuse(command.code(), "must name its partition"))?;
        Ok(Some((
            RouteKey {
                stream,
                topic,
                partition_id,
            },
            consumer,
            commits,
        )))
    };
    match command {
        Command::SendMessages => {
            let target = SendMessages::from_bytes(payload)?.target;
            let Partitioning::PartitionId(id) = target.partitioning else {
                let message =
                    "a raw send must name its partition: balanced and key partitioning are resolved by send_messages";
                return Err(IggyError::new(ErrorCode::FeatureUnavailable, message));
            };
            place(target.stream, target.topic, Some(id), None, false)
        }
        Command::PollMessages | Command::PollMessagesDeferred => {
            let poll = match command {
                Command::PollMessages => PollMessages::decode(&mut iggy_protocol::Reader::new(payload))?,
                _ => DeferredPoll::from_bytes(payload)?.poll,
            };
            let moves = poll.auto_commit.then_some(poll.consumer);
            place(poll.stream, poll.topic, poll.partition_id, moves, poll.auto_commit)
        }
        Command::GetConsumerOffset => {
            let body = GetConsumerOffset::from_bytes(payload)?;
            place(body.stream, body.topic, body.partition_id, Some(body.consumer), false)
        }
        Command::StoreConsumerOffset => {
            let body = StoreConsumerOffset::from_bytes(payload)?;
            place(body.stream, body.topic, body.partition_id, Some(body.consumer), false)
        }
        Command::DeleteConsumerOffset => {
            let body = DeleteConsumerOffset::from_bytes(payload)?;
            place(body.stream, body.topic, body.partition_id, Some(body.consumer), false)
        }
        _ => Ok(None),
    }
}
