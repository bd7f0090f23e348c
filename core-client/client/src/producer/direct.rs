//! Sending from the calling task: split, choose partitions, confirm.

use iggy_protocol::limits::{DEFAULT_MAX_FRAME_BYTES, HEADER_SIZE, MESSAGE_FRAME_SIZE};
use iggy_protocol::reply::message::SendConfirmation;
use iggy_protocol::{ErrorCode, Partitioning};
use tokio::time::{Duration, Instant};

use crate::error::IggyError;
use crate::message::IggyMessage;
use crate::producer::{Job, Plan, SendFailed};

/// Largest batch of one request: what a server accepts by default, less headers and names.
const MAX_CHUNK_BYTES: usize = DEFAULT_MAX_FRAME_BYTES as usize - 2 * HEADER_SIZE - 2048;

/// How long resolving an own uncertain send may take before the next one.
const RESOLVE_LIMIT: Duration = Duration::from_secs(30);

/// Keeps the least time between two sends.
#[derive(Debug, Default)]
pub struct Pace {
    last: tokio::sync::Mutex<Option<Instant>>,
}

impl Pace {
    async fn keep(&self, gap: Duration) {
        if gap.is_zero() {
            return;
        }
        let mut last = self.last.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + gap).await;
        }
        *last = Some(Instant::now());
    }
}

impl Plan {
    /// Sends a job in chunks, one after the other.
    pub(super) async fn send_job(&self, job: Job) -> Result<Vec<SendConfirmation>, IggyError> {
        self.pace.keep(self.direct.linger_time.into()).await;
        let Job {
            place,
            partitioning,
            mut messages,
        } = job;
        let mut committed = Vec::new();
        while !messages.is_empty() {
            let length = chunk_length(&messages, self.direct.batch_length as usize);
            match self.send_chunk(&place, &partitioning, &messages[..length]).await {
                Ok(confirmations) => {
                    committed.extend(confirmations);
                    messages.drain(..length);
                }
                Err(cause) => {
                    self.note_uncertain(&cause);
                    let uncertain = SendFailed::uncertain_of(&cause, length);
                    let (stream, topic) = place;
                    return Err(SendFailed {
                        cause,
                        failed: messages,
                        uncertain,
                        committed,
                        stream,
                        topic,
                    }
                    .into_error());
                }
            }
        }
        Ok(committed)
    }

    async fn send_chunk(
        &self,
        place: &(iggy_protocol::Identifier, iggy_protocol::Identifier),
        partitioning: &Partitioning,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let (stream, topic) = place;
        let chosen = match &self.partitioner {
            Some(partitioner) => Some(partitioner.calculate_partition_id(stream, topic, messages)?),
            None => None,
        };
        if let Some(sequences) = &self.sequences {
            let partition = match chosen {
                Some(partition) => partition,
                None => self.client.choose_partition(stream, topic, partitioning, false).await?,
            };
            return sequences.send(&self.client, stream, topic, partition, messages).await;
        }
        let send = || self.client.send_sealed(stream, topic, partitioning, chosen, messages);
        match send().await {
            // Our own earlier send holds the lane: find out what became of it, never send it again, then go on.
            Err(error) if error.code() == ErrorCode::LaneBlocked => match error.operation() {
                Some(operation) if self.take_own(operation) => {
                    if let Err(unresolved) = self.client.resolve_operation(operation, RESOLVE_LIMIT).await {
                        self.note_uncertain(&unresolved);
                        return Err(error);
                    }
                    send().await
                }
                _ => Err(error),
            },
            outcome => outcome,
        }
    }
}

/// Messages of the next request: at most `limit`, and at most what fits into a frame, but at least one.
fn chunk_length(messages: &[IggyMessage], limit: usize) -> usize {
    let limit = if limit == 0 {
        messages.len()
    } else {
        limit.min(messages.len())
    };
    let mut bytes = 0;
    let fitting = messages[..limit].iter().take_while(|message| {
        bytes += message.size() + MESSAGE_FRAME_SIZE;
        bytes <= MAX_CHUNK_BYTES
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_messages_when_chunked_should_respect_count_and_bytes() {
        let small: Vec<_> = (0..10).map(|_| IggyMessage::new("x").unwrap()).collect();
        assert_eq!(chunk_length(&small, 4), 4);
        assert_eq!(chunk_length(&small, 0), 10);
        let large = IggyMessage::new(vec![0; 40_000_000]).unwrap();
        assert_eq!(chunk_length(&[large.clone(), large.clone()], 0), 1);
        let largest = IggyMessage::new(vec![0; 64_000_000]).unwrap();
        assert_eq!(chunk_length(&[largest], 1000), 1);
    }
}
