//! Partitions and segments.

use iggy_protocol::request::partition::{CreatePartitions, DeletePartitions};
use iggy_protocol::request::segment::DeleteSegments;
use iggy_protocol::{Command, Identifier};

use crate::client::IggyClient;
use crate::error::IggyError;

impl IggyClient {
    /// Adds 1..=1000 partitions.
    pub async fn create_partitions(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partitions_count: u32,
    ) -> Result<(), IggyError> {
        let body = CreatePartitions {
            stream: stream.clone(),
            topic: topic.clone(),
            partitions_count,
        };
        self.ask(Command::CreatePartitions, &body).await.map(drop)
    }

    /// Removes 1..=1000 partitions, those of the highest ids first, with their messages.
    pub async fn delete_partitions(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partitions_count: u32,
    ) -> Result<(), IggyError> {
        let body = DeletePartitions {
            stream: stream.clone(),
            topic: topic.clone(),
            partitions_count,
        };
        self.ask(Command::DeletePartitions, &body).await.map(drop)
    }

    /// Deletes the oldest sealed segments of a partition.
    pub async fn delete_segments(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        segments_count: u32,
    ) -> Result<(), IggyError> {
        let body = DeleteSegments {
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id,
            segments_count,
        };
        self.ask(Command::DeleteSegments, &body).await.map(drop)
    }
}
