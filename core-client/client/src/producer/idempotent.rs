//! Idempotent sends: a producer id, an epoch, and a sequence per partition (wire 6.4).

use std::collections::HashMap;

use iggy_protocol::batch::next_sequence;
use iggy_protocol::limits::MAX_PRODUCER_EPOCH;
use iggy_protocol::reply::message::SendConfirmation;
use iggy_protocol::{ErrorCode, Identifier, ProducerSection};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::message::IggyMessage;

/// Times a chunk of unknown outcome is sent again with the same sequence.
const RESENDS: u32 = 3;

#[derive(Debug, Default)]
struct Identity {
    producer_id: u64,
    epoch: u16,
    /// Next sequence by partition.
    next: HashMap<u32, u32>,
    /// Another instance took over with a later epoch.
    fenced: bool,
}

impl Identity {
    /// Everything starts again at sequence 0, in the next epoch or under a new id.
    fn next_epoch(&mut self, client: &IggyClient) -> Result<(), IggyError> {
        self.next.clear();
        if self.epoch < MAX_PRODUCER_EPOCH {
            self.epoch += 1;
        } else {
            self.producer_id = client.next_producer_id()?;
            self.epoch = 0;
        }
        Ok(())
    }
}

type Place = (Identifier, Identifier);

/// The sequences of a producer: one identity per stream and topic as spelled.
#[derive(Debug, Default)]
pub struct Sequences {
    identities: tokio::sync::Mutex<HashMap<Place, Identity>>,
}

impl Sequences {
    /// Checks that ids can be made: the client must be signed in.
    pub async fn begin(&self, client: &IggyClient) -> Result<(), IggyError> {
        let _one_at_a_time = self.identities.lock().await;
        client.next_producer_id().map(drop)
    }

    /// Sends a chunk to one partition. While its outcome is unknown it is sent again with the same sequence, which the
    /// partition writes once.
    pub async fn send(
        &self,
        client: &IggyClient,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let mut identities = self.identities.lock().await;
        let place = (stream.clone(), topic.clone());
        if !identities.contains_key(&place) {
            let producer_id = client.next_producer_id()?;
            identities.insert(
                place.clone(),
                Identity {
                    producer_id,
                    ..Identity::default()
                },
            );
        }
        let identity = identities.entry(place).or_default();
        if identity.fenced {
            let message = "another instance of this producer took over with a later epoch";
            return Err(IggyError::new(ErrorCode::ProducerEpochFenced, message));
        }
        let outcome = send_chunk(client, identity, stream, topic, partition_id, messages).await;
        match &outcome {
            Ok(_) => {}
            Err(error) if error.code() == ErrorCode::ProducerEpochFenced => identity.fenced = true,
            // What was not written leaves a gap in the sequence; the next chunk starts a new epoch.
            Err(_) => identity.next_epoch(client)?,
        }
        outcome
    }
}

async fn send_chunk(
    client: &IggyClient,
    identity: &mut Identity,
    stream: &Identifier,
    topic: &Identifier,
    partition_id: u32,
    messages: &[IggyMessage],
) -> Result<Vec<SendConfirmation>, IggyError> {
    let mut uncertain = None;
    for attempt in 0..=RESENDS {
        let base_sequence = identity.next.get(&partition_id).copied().unwrap_or(0);
        let section = ProducerSection {
            producer_id: identity.producer_id,
            epoch: identity.epoch,
            base_sequence,
        };
        match client
            .send_to(stream, topic, partition_id, Some(section), messages)
            .await
        {
            Ok(confirmations) => {
                let count = messages.len() as u32;
                identity.next.insert(partition_id, next_sequence(base_sequence, count));
                return Ok(confirmations);
            }
            Err(error) if error.code() == ErrorCode::OperationUncertain && attempt < RESENDS => {
                // The sequence protects the next send, so nothing needs this operation's lane any more.
                if let Some(operation) = error.operation() {
                    let _ = client.abandon_operation(operation);
                }
                uncertain = Some(error);
            }
            Err(error) if error.code() == ErrorCode::ProducerUnknown => match uncertain {
                Some(uncertain) => return Err(uncertain),
                None if attempt < RESENDS => identity.next_epoch(client)?,
                None => return Err(error),
            },
            Err(error) => return Err(uncertain.unwrap_or(error)),
        }
    }
    Err(uncertain.unwrap_or_else(|| IggyError::of(ErrorCode::OperationUncertain)))
}
