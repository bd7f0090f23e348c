//! Looking up where a partition is served (wire 7.2 and 14.3).

use bytes::Bytes;
use iggy_protocol::codec::Decode;
use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::request::message::GetPartitionRoute;
use iggy_protocol::{Command, ErrorCode, Operation, PartitionContext, RequestHeader};
use tokio::time::Instant;

use crate::answer::{Action, Answer, CallKind, Facts, decide};
use crate::backoff::Backoff;
use crate::connection::{ExchangeError, MAX_REPLY_BYTES};
use crate::core::{Core, Link};
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::routes::RouteKey;
use crate::session::Bound;

impl Core {
    /// A usable route, from the cache or from the nodes, asked one at a time.
    pub async fn find_route(&self, key: &RouteKey, deadline: Instant) -> Result<PartitionRoute, IggyError> {
        let mut backoff = Backoff::of_call();
        loop {
            let main = self.main_link(deadline).await?;
            let bound = self.require_session()?;
            if let Some(route) = self.routes.usable(key, bound.epoch, self.session.watermark()) {
                return Ok(route);
            }
            let mut last = None;
            for replica in self.candidates(key) {
                // A node that cannot be reached knows nothing; the next one is asked.
                let link = match replica {
                    None => main.clone(),
                    Some(replica) => match self.link_to(replica, deadline).await {
                        Ok(link) => link,
                        Err(error) => {
                            last = Some(error);
                            continue;
                        }
                    },
                };
                match self.ask_route(&link, &bound, key, deadline).await {
                    Ok(route) => {
                        if let Some(route) = self.routes.merge(key, route, bound.epoch) {
                            return Ok(route);
                        }
                    }
                    Err(LookupError::Final(error)) => return Err(error),
                    Err(LookupError::Another(error)) => last = Some(error),
                }
            }
            let pause = Instant::now() + backoff.next_pause();
            if pause >= deadline {
                let last = last.unwrap_or_else(|| {
                    IggyError::new(
                        ErrorCode::TransientNotAccepted,
                        "no node knows a newer route of the partition",
                    )
                });
                return Err(last);
            }
            tokio::time::sleep_until(pause).await;
        }
    }

    /// The nodes to ask, one at a time: the one that refused as it no longer leads, as it knows a later view; then the
    /// metadata primary, then the others by id. With one node, whoever is connected.
    fn candidates(&self, key: &RouteKey) -> Vec<Option<u8>> {
        let Some(roster) = self.cluster() else {
            return vec![None];
        };
        let (hint, primary) = (self.routes.hint(key), self.metadata_primary());
        let mut ids: Vec<_> = roster
            .nodes
            .iter()
            .filter(|node| node.tcp != 0)
            .map(|node| Some(node.replica_id))
            .collect();
        ids.sort_unstable_by_key(|id| (*id != hint, *id != primary, *id));
        ids
    }

    async fn ask_route(
        &self,
        link: &Link,
        bound: &Bound,
        key: &RouteKey,
        deadline: Instant,
    ) -> Result<PartitionRoute, LookupError> {
        let body = GetPartitionRoute {
            stream: key.stream.clone(),
            topic: key.topic.clone(),
            partition_id: key.partition_id,
        };
        let frame = self
            .lookup_frame(bound, FrameBuffer::of(&body))
            .map_err(LookupError::Final)?;
        let reply = match link.connection.exchange(frame, MAX_REPLY_BYTES, deadline).await {
            Ok(reply) => reply,
            Err(ExchangeError::NotSent(reason) | ExchangeError::Lost(reason)) => {
                return Err(LookupError::Another(IggyError::new(
                    ErrorCode::Disconnected,
                    reason.to_string(),
                )));
            }
            Err(ExchangeError::Deadline { .. }) => {
                let message = "the route of the partition was not found within the deadline";
                return Err(LookupError::Final(IggyError::new(
                    ErrorCode::TransientNotAccepted,
                    message,
                )));
            }
        };
        if reply.header.status.get() == 0 {
            return PartitionRoute::from_bytes(&reply.body).map_err(|error| LookupError::Final(error.into()));
        }
        let code = ErrorCode::from_u32(reply.header.status.get());
        let error = IggyError::new(
            code,
            format!("{} has no route of partition {}", link.endpoint, key.partition_id),
        );
        let facts = Facts {
            from_metadata_primary: self.leads_to_metadata_primary(link),
            ..Facts::default()
        };
        match decide(CallKind::Read, Answer::Refused { code, proven: false }, facts) {
            Action::Resend { rebind, .. } => {
                if rebind {
                    link.connection.close("the server no longer accepts this connection");
                }
                Err(LookupError::Another(error))
            }
            _ => Err(LookupError::Final(error)),
        }
    }

    fn lookup_frame(&self, bound: &Bound, frame: FrameBuffer) -> Result<Bytes, IggyError> {
        let mut header = RequestHeader::new(Operation::NonReplicated, frame.body_len());
        header.client = bound.client_id.into();
        header.session = bound.session.into();
        header.request = self.session.next_request()?.into();
        header.code = Command::GetPartitionRoute.code().into();
        header.set_partition_context(PartitionContext {
            metadata_op: self.session.watermark(),
            ..PartitionContext::ZERO
        });
        Ok(frame.seal(&header))
    }
}

enum LookupError {
    /// Another node, or another try, may know.
    Another(IggyError),
    /// The answer is final.
    Final(IggyError),
}
