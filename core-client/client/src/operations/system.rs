//! Ping, statistics, roster, options, snapshot, clients and metadata changes.

use bytes::Bytes;
use iggy_protocol::reply::metadata_changes::MetadataChanges;
use iggy_protocol::reply::system::{
    ClientDetails, ClientSummary, Clients, ClusterMetadata, OptionDescription, OptionDescriptions, Stats,
};
use iggy_protocol::request::Empty;
use iggy_protocol::request::metadata_changes::GetMetadataChanges;
use iggy_protocol::request::system::{DescribeOptions, GetClient, GetSnapshot, SnapshotCompression, SnapshotType};
use iggy_protocol::{Command, Scope};
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::error::IggyError;

impl IggyClient {
    /// Asks the server for a sign of life. Works before login.
    pub async fn ping(&self) -> Result<(), IggyError> {
        self.ask(Command::Ping, &Empty).await.map(drop)
    }

    /// Time between two pings of a link.
    pub fn heartbeat_interval(&self) -> Duration {
        self.core().config.heartbeat_interval
    }

    /// Statistics of the node that answers.
    pub async fn get_stats(&self) -> Result<Stats, IggyError> {
        self.fetch(Command::GetStats, &Empty).await
    }

    /// The nodes of the cluster.
    pub async fn get_cluster_metadata(&self) -> Result<ClusterMetadata, IggyError> {
        self.fetch(Command::GetClusterMetadata, &Empty).await
    }

    /// The options of a scope.
    pub async fn describe_options(&self, scope: Scope) -> Result<Vec<OptionDescription>, IggyError> {
        Ok(self
            .fetch::<OptionDescriptions>(Command::DescribeOptions, &DescribeOptions { scope })
            .await?
            .options)
    }

    /// A diagnostic snapshot as a ZIP file.
    pub async fn snapshot(
        &self,
        compression: SnapshotCompression,
        types: Vec<SnapshotType>,
    ) -> Result<Bytes, IggyError> {
        self.ask(Command::GetSnapshot, &GetSnapshot { compression, types })
            .await
    }

    /// This connection as the server sees it.
    pub async fn get_me(&self) -> Result<ClientDetails, IggyError> {
        self.fetch(Command::GetMe, &Empty).await
    }

    /// A connected client; `None` when there is none of that number.
    pub async fn get_client(&self, client_id: u32) -> Result<Option<ClientDetails>, IggyError> {
        self.fetch_optional(Command::GetClient, &GetClient { client_id }).await
    }

    /// All connected clients.
    pub async fn get_clients(&self) -> Result<Vec<ClientSummary>, IggyError> {
        Ok(self.fetch::<Clients>(Command::GetClients, &Empty).await?.clients)
    }

    /// A page of metadata changes, or of what exists now. Needs root or `manage_servers`.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// let request = GetMetadataChanges {
    ///     start: ChangesStart::Earliest,
    ///     since: None,
    ///     until: None,
    ///     limit: 100,
    ///     groups: Vec::new(),
    /// };
    /// let page = client.get_metadata_changes(&request).await?;
    /// for record in page.records {
    ///     println!("{} {:?}", record.op, record.change);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn get_metadata_changes(&self, request: &GetMetadataChanges) -> Result<MetadataChanges, IggyError> {
        request.validate()?;
        self.fetch(Command::GetMetadataChanges, request).await
    }
}
