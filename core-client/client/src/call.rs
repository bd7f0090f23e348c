//! One call from its first attempt to its end: lanes, routes, attempts, pauses, and what is kept when nobody can say.
//!
//! A frame that may have taken effect is frozen: every later attempt sends exactly it. Writes run in a task of their own,
//! so that dropping the future that waits for one neither interrupts it nor leaves its lane in doubt.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::{Command, Consumer, ErrorCode, Operation, PartitionContext, Plane, RequestHeader};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::{Action, Answer, CallKind, Facts, Refresh, decide};
use crate::backoff::Backoff;
use crate::connection::{ExchangeError, MAX_REPLY_BYTES, Reply};
use crate::core::{Core, Link};
use crate::deferred::{CancelGuard, Timing, cancel_frame};
use crate::error::{IggyError, OperationId, Outcome};
use crate::frame_buffer::FrameBuffer;
use crate::lanes::{Budgeted, LaneGuard, LaneKey, Retained};
use crate::reading::{answer_error, classify, lost_answer};
use crate::routes::RouteKey;
use crate::session::{Bound, random_id};

/// Where a call goes.
#[derive(Debug, Clone)]
pub enum Target {
    /// The metadata primary.
    Metadata,
    /// The primary of a partition.
    Partition(RouteKey),
    /// One node, whose answer is final.
    Replica(u8),
}

/// A call.
#[derive(Debug)]
pub struct Call {
    /// What it asks for.
    pub operation: Operation,
    /// The code in the header; zero for operations of their own.
    pub code: u32,
    /// The body, with room for the header.
    pub frame: FrameBuffer,
    /// Where it goes.
    pub target: Target,
    /// What kind of work it is.
    pub kind: CallKind,
    /// The context the caller captured, if any.
    pub context: Option<PartitionContext>,
    /// What it takes turns in: the progress of consumers whose position it reads or moves.
    pub gates: Vec<LaneKey>,
    /// Ends the wait of a committing read; its reply is awaited all the same.
    pub cancel: Option<CancellationToken>,
    /// Waits of a deferred read, which shrink with each attempt.
    pub timing: Option<Timing>,
    /// Largest reply body.
    pub reply_limit: usize,
    /// When it ends at the latest.
    pub deadline: Instant,
}

impl Call {
    /// A call of a command; its kind and target follow from the operation.
    pub fn new(command: Command, frame: FrameBuffer, deadline: Instant) -> Self {
        let operation = command.operation();
        let kind = if operation == Operation::NonReplicated {
            CallKind::Read
        } else {
            CallKind::Mutation
        };
        Self {
            operation,
            code: command.header_code(),
            frame,
            target: Target::Metadata,
            kind,
            context: None,
            gates: Vec::new(),
            cancel: None,
            timing: None,
            reply_limit: MAX_REPLY_BYTES,
            deadline,
        }
    }

    /// The same call to the primary of a partition.
    pub fn at_partition(mut self, key: RouteKey, context: Option<PartitionContext>) -> Self {
        self.target = Target::Partition(key);
        self.context = context;
        self
    }

    /// The same call in its turn among all that moves the position of this consumer in its partition.
    pub fn in_turn_of(mut self, consumer: &Consumer) -> Self {
        if let Some(partition) = self.partition().cloned() {
            let consumer = consumer.clone();
            self.gates.push(LaneKey::Progress { partition, consumer });
        }
        self
    }

    fn partition(&self) -> Option<&RouteKey> {
        match &self.target {
            Target::Partition(key) => Some(key),
            _ => None,
        }
    }
}

/// A frame of a call, open until it may have been sent.
enum Frame {
    Open(FrameBuffer),
    Sealed {
        bytes: Bytes,
        number: u64,
        epoch: u64,
        sent: bool,
    },
}

struct Progress {
    frame: Option<Frame>,
    facts: Facts,
    backoff: Backoff,
    doubling: Backoff,
    /// The last refusal, for a call that ends by its deadline.
    refusal: Option<IggyError>,
    lane: Option<LaneGuard>,
    gates: Vec<LaneGuard>,
    budget: Option<Budgeted>,
    route: Option<PartitionRoute>,
    /// A call never continues under a session the application signed in to after the call began.
    lineage: u64,
}

/// Carries a call out. Dropping the future of a read cancels it; a write goes on to its end in the background.
pub async fn execute(core: &Arc<Core>, call: Call) -> Result<Bytes, IggyError> {
    if call.kind == CallKind::Read {
        return core.run(call, None).await;
    }
    let gone = call.cancel.clone().unwrap_or_default();
    let _caller = gone.clone().drop_guard();
    let core = core.clone();
    let mut work = Box::pin(async move { core.run(call, Some(gone)).await });
    // As far as it comes without waiting it is the caller who works: the frame is on its way before a task is woken.
    if let Poll::Ready(done) = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return done;
    }
    let task = tokio::spawn(work);
    task.await.unwrap_or_else(|error| {
        let message = format!("the call was interrupted: {error}");
        Err(IggyError::new(ErrorCode::ClientShutdown, message).with_outcome(Outcome::Unknown))
    })
}

impl Core {
    async fn run(&self, mut call: Call, gone: Option<CancellationToken>) -> Result<Bytes, IggyError> {
        self.require_open()?;
        let gone = gone.unwrap_or_default();
        let mut progress = self.begin(&mut call).await?;
        loop {
            let (link, bound) = match self.destination(&call, &mut progress).await {
                Ok(destination) => destination,
                Err(error) => return Err(self.give_up(&call, progress, error)),
            };
            if let Err(error) = self.prepare(&call, &mut progress, bound.as_ref()).await {
                return Err(self.give_up(&call, progress, error));
            }
            if call.kind == CallKind::CommittingRead && gone.is_cancelled() {
                let error = IggyError::new(
                    ErrorCode::TransientNotAccepted,
                    "the read was cancelled before it was sent",
                );
                return Err(self.give_up(&call, progress, error));
            }
            let (answer, payload) = match self.attempt(&call, &mut progress, &link, &gone).await {
                Ok(outcome) => outcome,
                // The deadline passed; nothing more can be learnt in time.
                Err(error) => return Err(self.give_up(&call, progress, error)),
            };
            progress.facts.from_metadata_primary = self.leads_to_metadata_primary(&link);
            let action = decide(call.kind, answer, progress.facts);
            match self.follow(&call, &mut progress, &link, action, answer).await {
                // Only a reply is accepted, so there is a payload.
                Some(Ok(())) => return Ok(payload.unwrap_or_default()),
                Some(Err(error)) => return Err(self.give_up(&call, progress, error)),
                None => {}
            }
        }
    }

    async fn begin(&self, call: &mut Call) -> Result<Progress, IggyError> {
        if call.frame.len() > self.config.max_frame_bytes as usize {
            let message = format!(
                "a request of {} bytes is above the {} a server takes",
                call.frame.len(),
                self.config.max_frame_bytes
            );
            return Err(IggyError::new(ErrorCode::InvalidSizeBytes, message));
        }
        let budget = self.lanes.budget(call.kind, call.frame.len(), call.deadline).await?;
        // Several gates are named in ascending order of their partitions, so that no two calls wait for each other.
        let mut gates = Vec::with_capacity(call.gates.len());
        for key in std::mem::take(&mut call.gates) {
            gates.push(self.lanes.enter(key, call.deadline).await?);
        }
        let lane = match call.operation.plane() {
            Plane::Metadata => Some(self.lanes.enter(LaneKey::Metadata, call.deadline).await?),
            _ => None,
        };
        let facts = Facts {
            caller_context: call.context.is_some(),
            is_send: call.operation == Operation::SendMessages,
            is_next_poll: call.kind == CallKind::Read && call.timing.is_some() && !gates.is_empty(),
            is_fetch: matches!(call.target, Target::Replica(_)),
            ..Facts::default()
        };
        Ok(Progress {
            frame: Some(Frame::Open(std::mem::replace(&mut call.frame, FrameBuffer::new()))),
            facts,
            backoff: Backoff::of_call(),
            doubling: Backoff::of_call(),
            refusal: None,
            lane,
            gates,
            budget,
            route: None,
            lineage: self.session.lineage(),
        })
    }

    /// The link the next attempt goes over, and the session it is bound to.
    async fn destination(&self, call: &Call, progress: &mut Progress) -> Result<(Link, Option<Bound>), IggyError> {
        let link = match &call.target {
            Target::Replica(replica) => self.link_to(*replica, call.deadline).await?,
            Target::Metadata => match self.cluster().and(self.metadata_primary()) {
                Some(primary) if call.kind == CallKind::Mutation => self.link_to(primary, call.deadline).await?,
                _ => self.main_link(call.deadline).await?,
            },
            Target::Partition(key) => {
                if progress.route.is_none() {
                    progress.route = Some(self.find_route(key, call.deadline).await?);
                }
                let primary = progress.route.as_ref().map_or(0, |route| route.primary_replica);
                self.link_to(primary, call.deadline).await?
            }
        };
        let bound = self.session.bound().filter(|bound| bound.epoch == link.epoch);
        if bound.is_none() && call.code != Command::Ping.code() {
            return Err(IggyError::new(
                ErrorCode::Unauthenticated,
                "the client is not signed in",
            ));
        }
        Ok((link, bound))
    }

    /// Makes sure that there is a sealed frame of the current session, in its lane.
    async fn prepare(&self, call: &Call, progress: &mut Progress, bound: Option<&Bound>) -> Result<(), IggyError> {
        let epoch = bound.map_or(0, |bound| bound.epoch);
        if let Some(Frame::Sealed {
            epoch: sealed, sent, ..
        }) = &progress.frame
            && *sealed != epoch
        {
            // A frame that may have been applied can never be recognised under another session; one that was refused for
            // sure, and a read, may begin anew, unless the application signed in to something else meanwhile.
            let moved = *sent && progress.facts.is_next_poll;
            if progress.facts.uncertain || moved || progress.lineage != self.session.lineage() {
                let code = if call.kind == CallKind::Read {
                    ErrorCode::TransientNotCommitted
                } else {
                    ErrorCode::Disconnected
                };
                return Err(IggyError::new(code, "the session ended while the call was under way"));
            }
            progress.reopen();
        }
        if let (CallKind::Mutation, Some(route), Some(key)) = (call.kind, &progress.route, call.partition()) {
            let incarnation = call.context.map_or(route.incarnation, |context| context.incarnation);
            let lane = LaneKey::Partition {
                incarnation,
                partition_id: key.partition_id,
            };
            let frozen = matches!(progress.frame, Some(Frame::Sealed { .. }));
            if !frozen && progress.lane.as_ref().is_none_or(|guard| guard.key != lane) {
                progress.lane = None;
                progress.lane = Some(self.lanes.enter(lane, call.deadline).await?);
            }
        }
        if let Some(Frame::Open(buffer)) = progress.frame.take_if(|frame| matches!(frame, Frame::Open(_))) {
            let header = self.header(call, progress.route.as_ref(), buffer.body_len(), bound)?;
            let number = header.request.get();
            progress.frame = Some(Frame::Sealed {
                bytes: buffer.seal(&header),
                number,
                epoch,
                sent: false,
            });
        }
        Ok(())
    }

    fn header(
        &self,
        call: &Call,
        route: Option<&PartitionRoute>,
        body_len: usize,
        bound: Option<&Bound>,
    ) -> Result<RequestHeader, IggyError> {
        let mut header = RequestHeader::new(call.operation, body_len);
        header.code = call.code.into();
        match bound {
            Some(bound) => {
                header.client = bound.client_id.into();
                header.session = bound.session.into();
                header.request = self.session.next_request()?.into();
            }
            None => header.client = self.session.anonymous_id().into(),
        }
        if call.operation.has_request_identity() {
            header.request_checksum = random_id().into();
        }
        let context = match (call.context, route) {
            (Some(context), _) => context,
            (None, Some(route)) => route.context(),
            (None, None) if call.operation == Operation::NonReplicated && bound.is_some() => PartitionContext {
                metadata_op: self.session.watermark(),
                ..PartitionContext::ZERO
            },
            (None, None) => PartitionContext::ZERO,
        };
        header.set_partition_context(context);
        Ok(header)
    }

    /// Sends the frame once and classifies what comes back. The payload comes without its result section.
    async fn attempt(
        &self,
        call: &Call,
        progress: &mut Progress,
        link: &Link,
        gone: &CancellationToken,
    ) -> Result<(Answer, Option<Bytes>), IggyError> {
        let Some(Frame::Sealed {
            bytes, number, sent, ..
        }) = &mut progress.frame
        else {
            unreachable!("a frame is prepared before it is sent");
        };
        let frame = match &call.timing {
            Some(timing) => timing.shrink(bytes),
            None => bytes.clone(),
        };
        let request = *RequestHeader::view(&frame).map_err(|error| IggyError::new(error.code(), error.to_string()))?;
        let outcome = self.exchange(call, link, frame, *number, gone).await;
        match outcome {
            Ok(reply) => {
                *sent = true;
                let (answer, payload) = classify(&request, &reply);
                if matches!(call.operation.plane(), Plane::Metadata | Plane::Session) && reply.header.committed == 1 {
                    self.session.saw_metadata(reply.header.commit.get());
                }
                Ok((answer, payload))
            }
            Err(ExchangeError::NotSent(_)) => Ok((Answer::LostBeforeSend, None)),
            Err(ExchangeError::Lost(reason)) => {
                *sent = true;
                Ok((lost_answer(&reason), None))
            }
            Err(ExchangeError::Deadline { sent: written }) => {
                *sent |= written;
                progress.facts.uncertain |= written && call.kind != CallKind::Read;
                let refusal = progress.refusal.take();
                Err(refusal.unwrap_or_else(|| {
                    IggyError::new(
                        ErrorCode::TransientNotAccepted,
                        "the server did not answer within the deadline",
                    )
                }))
            }
        }
    }

    async fn exchange(
        &self,
        call: &Call,
        link: &Link,
        frame: Bytes,
        number: u64,
        gone: &CancellationToken,
    ) -> Result<Reply, ExchangeError> {
        if call.timing.is_none() {
            return link.connection.exchange(frame, call.reply_limit, call.deadline).await;
        }
        let cancel = cancel_frame(&frame);
        if call.kind == CallKind::Read {
            let guard = CancelGuard::new(&link.connection, cancel, number);
            let outcome = link.connection.exchange(frame, call.reply_limit, call.deadline).await;
            guard.disarm();
            return outcome;
        }
        // A committing read is cancelled too when its caller goes away, but its reply is awaited: it says what was stored.
        let exchange = link.connection.exchange(frame, call.reply_limit, call.deadline);
        tokio::pin!(exchange);
        tokio::select! {
            // The request goes out before its cancel.
            biased;
            outcome = &mut exchange => outcome,
            () = gone.cancelled() => {
                link.connection.send_unanswered(cancel);
                exchange.await
            }
        }
    }

    /// Does what the table says. `None` means another attempt.
    async fn follow(
        &self,
        call: &Call,
        progress: &mut Progress,
        link: &Link,
        action: Action,
        answer: Answer,
    ) -> Option<Result<(), IggyError>> {
        let error = answer_error(answer, link);
        let not_primary = matches!(
            answer,
            Answer::Refused {
                code: ErrorCode::NotPrimary,
                ..
            }
        );
        progress.facts.refused_as_primary_before = not_primary;
        if let Target::Replica(_) = call.target
            && !matches!(action, Action::Accept | Action::FailProgressUncertain)
        {
            return Some(Err(match answer {
                Answer::LostAfterSend => IggyError::new(ErrorCode::TransientNotCommitted, error.to_string()),
                _ => error,
            }));
        }
        match action {
            Action::Accept => {
                progress.facts.uncertain = false;
                return Some(Ok(()));
            }
            Action::Fail => return Some(Err(error)),
            Action::FailAndDropRoute => {
                if let Some(key) = call.partition() {
                    self.routes.drop_route(key);
                }
                return Some(Err(error));
            }
            Action::FailFinally => {
                progress.facts.uncertain = false;
                return Some(Err(error));
            }
            Action::FailProgressUncertain => {
                progress.facts.uncertain = true;
                return Some(Err(error));
            }
            Action::FailNotCommitted => {
                let message = format!("whether the read was served is unknown: {error}");
                return Some(Err(IggyError::new(ErrorCode::TransientNotCommitted, message)));
            }
            Action::Renumber => {
                progress.reopen();
                let pause = progress.doubling.next_doubling();
                self.pause(call, pause).await;
            }
            Action::Restart => {
                progress.facts.restarted = true;
                progress.reopen();
                if let Some(key) = call.partition() {
                    self.routes.drop_route(key);
                }
                progress.route = None;
            }
            Action::Resend {
                pause,
                refresh,
                uncertain,
                rebind,
            } => {
                progress.facts.uncertain |= uncertain;
                if rebind {
                    link.connection.close("the server no longer accepts this connection");
                }
                self.refresh(call, progress, refresh, not_primary, pause).await;
            }
        }
        progress.refusal = Some(error);
        if Instant::now() >= call.deadline {
            return Some(Err(progress
                .refusal
                .take()
                .unwrap_or_else(|| IggyError::of(ErrorCode::TransientNotAccepted))));
        }
        None
    }

    async fn refresh(&self, call: &Call, progress: &mut Progress, refresh: Refresh, not_primary: bool, pause: bool) {
        if pause {
            let pause = progress.backoff.next_pause();
            self.pause(call, pause).await;
        }
        match (refresh, call.partition()) {
            (Refresh::Nothing, _) => {}
            (Refresh::Route, Some(key)) => {
                if let Some(route) = progress.route.take() {
                    if not_primary {
                        self.routes.refused_by_primary(key, route.view);
                    } else {
                        self.routes.drop_route(key);
                    }
                }
            }
            (Refresh::Route, None) => {
                if self.cluster().is_some() {
                    self.refresh_roster(call.deadline).await;
                }
            }
        }
    }

    async fn pause(&self, call: &Call, pause: std::time::Duration) {
        let until = (Instant::now() + pause).min(call.deadline);
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.ended.cancelled() => {}
        }
    }

    /// Ends a call that failed. One that may have been applied becomes an uncertain operation that keeps its lanes.
    fn give_up(&self, call: &Call, progress: Progress, error: IggyError) -> IggyError {
        if !progress.facts.uncertain {
            return error;
        }
        let Some(Frame::Sealed {
            bytes, number, epoch, ..
        }) = progress.frame
        else {
            return error;
        };
        let operation = OperationId(number);
        let (code, message, frame) = match call.kind {
            CallKind::Mutation => (
                ErrorCode::OperationUncertain,
                "whether the write was applied is unknown",
                Some(bytes),
            ),
            _ => (
                ErrorCode::FetchProgressUncertain,
                "whether the read stored an offset is unknown",
                None,
            ),
        };
        // The guards are dropped after the lanes are blocked, so that no waiting call slips in between.
        let guards: Vec<LaneGuard> = progress.lane.into_iter().chain(progress.gates).collect();
        let lanes = guards.iter().map(|guard| guard.key.clone()).collect();
        let live = self.session.bound().is_some_and(|bound| bound.epoch == epoch);
        // A write of a session that is gone cannot be replayed; keeping its lane would block it for nothing.
        if live || frame.is_none() {
            let partition = call.partition().cloned();
            self.lanes.retain(
                operation,
                Retained {
                    frame,
                    epoch,
                    lanes,
                    partition,
                    _budget: progress.budget,
                },
            );
        }
        drop(guards);
        IggyError::new(code, format!("{message}: {error}"))
            .with_operation(operation)
            .with_source(error)
    }
}

impl Progress {
    /// Opens a frame that was not applied, so that it gets a number and a context anew.
    fn reopen(&mut self) {
        if let Some(Frame::Sealed { bytes, .. }) = self.frame.take_if(|frame| matches!(frame, Frame::Sealed { .. })) {
            self.frame = Some(Frame::Open(FrameBuffer::reopen(bytes)));
        }
    }
}
