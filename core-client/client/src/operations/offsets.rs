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
        let context = Some(checkpoint.context);
        self.store(
            consumer,
            stream,
            topic,
            checkpoint.partition_id,
            checkpoint.offset,
            context,
        )
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
        self.store(consumer, stream, topic, partition_id, offset, None).await
    }

    async fn store(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        offset: u64,
        context: Option<PartitionContext>,
    ) -> Result<(), IggyError> {
        let body = StoreConsumerOffset {
            consumer: consumer.clone(),
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id: Some(partition_id),
            offset,
            ack: ACK_QUORUM,
        };
        self.on_offset(
            Command::StoreConsumerOffset,
            &body,
            consumer,
            stream,
            topic,
            partition_id,
            context,
        )
        .await
        .map(drop)
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
        let payload = self
            .on_offset(
                Command::GetConsumerOffset,
                &body,
                consumer,
                stream,
                topic,
                partition_id,
                None,
            )
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
        self.delete(consumer, stream, topic, partition_id, None).await
    }

    /// Deletes the stored offset of the history a position belongs to.
    pub async fn delete_consumer_position(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        checkpoint: &Checkpoint,
    ) -> Result<(), IggyError> {
        self.delete(
            consumer,
            stream,
            topic,
            checkpoint.partition_id,
            Some(checkpoint.context),
        )
        .await
    }

    async fn delete(
        &self,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        context: Option<PartitionContext>,
    ) -> Result<(), IggyError> {
        let body = DeleteConsumerOffset {
            consumer: consumer.clone(),
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id: Some(partition_id),
            ack: ACK_QUORUM,
        };
        self.on_offset(
            Command::DeleteConsumerOffset,
            &body,
            consumer,
            stream,
            topic,
            partition_id,
            context,
        )
        .await
        .map(drop)
    }

    #[allow(clippy::too_many_arguments, reason = "each names one thing of the request")]
    async fn on_offset(
        &self,
        command: Command,
        body: &impl Encode,
        consumer: &Consumer,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        context: Option<PartitionContext>,
    ) -> Result<bytes::Bytes, IggyError> {
        let key = RouteKey {
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id,
        };
        let call = Call::new(command, FrameBuffer::of(body), self.core().default_deadline())
            .at_partition(key, context)
            .in_turn_of(consumer);
        execute(self.core(), call).await
    }
}
