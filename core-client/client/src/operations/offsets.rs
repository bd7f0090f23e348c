//! Stored consumer offsets.

use iggy_protocol::reply::offset::ConsumerOffset;
use iggy_protocol::request::offset::{ACK_QUORUM, DeleteConsumerOffset, GetConsumerOffset, StoreConsumerOffset};
use iggy_protocol::{Command, Consumer, Encode, Identifier, PartitionContext};

use crate::call::{Call, execute};
use crate::client::IggyClient;
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::operations::read_payload;
use crate::poll::Checkpoint;
use crate::routes::RouteKey;

impl IggyClient {
    /// Stores a position: every message up to its offset was processed. A position of an older history of the partition
    /// is refused with [`iggy_protocol::ErrorCode::HistoryUnavailable`] instead of being applied to the new one.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient, consumer: iggy::Consumer, stream_id: iggy::Identifier, topic_id: iggy::Identifier,
    /// #     checkpoint: iggy::Checkpoint) -> Result<(), iggy::IggyError> {
    /// client.store_consumer_position(&consumer, &stream_id, &topic_id, &checkpoint).await?;
    /// # Ok(()) }
    /// ```
    pub async fn store_consumer_position(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        checkpoint: &Checkpoint,
    ) -> Result<(), IggyError> {
        let partition = place(stream, topic, checkpoint.partition_id);
        self.store(consumer, partition, checkpoint.offset, Some(checkpoint.context))
            .await
    }

    /// Stores the offset of the last processed message, in whatever history the partition has.
    pub async fn store_consumer_offset(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        offset: u64,
    ) -> Result<(), IggyError> {
        self.store(consumer, place(stream, topic, partition_id), offset, None)
            .await
    }

    async fn store(
        &self,
        consumer: &Consumer,
        partition: RouteKey,
        offset: u64,
        context: Option<PartitionContext>,
    ) -> Result<(), IggyError> {
        let body = StoreConsumerOffset {
            consumer: consumer.clone(),
            stream: partition.stream.clone(),
            topic: partition.topic.clone(),
            partition_id: Some(partition.partition_id),
            offset,
            ack: ACK_QUORUM,
        };
        let stored = self.on_offset(Command::StoreConsumerOffset, &body, consumer, partition, context);
        stored.await.map(drop)
    }

    /// The stored offset; `None` when there is none.
    pub async fn get_consumer_offset(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
    ) -> Result<Option<ConsumerOffset>, IggyError> {
        let body = GetConsumerOffset {
            consumer: consumer.clone(),
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id: Some(partition_id),
        };
        let partition = place(stream, topic, partition_id);
        let payload = self
            .on_offset(Command::GetConsumerOffset, &body, consumer, partition, None)
            .await?;
        if payload.is_empty() {
            Ok(None)
        } else {
            read_payload(&payload).map(Some)
        }
    }

    /// Deletes the stored offset.
    pub async fn delete_consumer_offset(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
    ) -> Result<(), IggyError> {
        self.delete(consumer, place(stream, topic, partition_id), None).await
    }

    /// Deletes the stored offset of the history a position belongs to.
    pub async fn delete_consumer_position(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        checkpoint: &Checkpoint,
    ) -> Result<(), IggyError> {
        let partition = place(stream, topic, checkpoint.partition_id);
        self.delete(consumer, partition, Some(checkpoint.context)).await
    }

    async fn delete(
        &self,
        consumer: &Consumer,
        partition: RouteKey,
        context: Option<PartitionContext>,
    ) -> Result<(), IggyError> {
        let body = DeleteConsumerOffset {
            consumer: consumer.clone(),
            stream: partition.stream.clone(),
            topic: partition.topic.clone(),
            partition_id: Some(partition.partition_id),
            ack: ACK_QUORUM,
        };
        let deleted = self.on_offset(Command::DeleteConsumerOffset, &body, consumer, partition, context);
        deleted.await.map(drop)
    }

    async fn on_offset(
        &self,
        command: Command,
        body: &impl Encode,
        consumer: &Consumer,
        partition: RouteKey,
        context: Option<PartitionContext>,
    ) -> Result<bytes::Bytes, IggyError> {
        let call = Call::new(command, FrameBuffer::of(body), self.core().default_deadline())
            .at_partition(partition, context)
            .in_turn_of(consumer);
        execute(self.core(), call).await
    }
}

fn place(stream: &Identifier, topic: &Identifier, partition_id: u32) -> RouteKey {
    RouteKey {
        stream: stream.clone(),
        topic: topic.clone(),
        partition_id,
    }
}
