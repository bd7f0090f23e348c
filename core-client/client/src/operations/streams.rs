//! Streams.

use iggy_protocol::reply::stream::{Stream, StreamDetails, Streams};
use iggy_protocol::request::Empty;
use iggy_protocol::request::stream::{CreateStream, DeleteStream, GetStream};
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::{Command, ErrorCode, Identifier};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::operations::resource_name;
use crate::resource_options::{StreamCreateOptions, StreamUpdateOptions};

impl IggyClient {
    /// A stream and its topics; `None` when there is none of that name.
    pub async fn get_stream(&self, stream: &Identifier) -> Result<Option<StreamDetails>, IggyError> {
        self.fetch_optional(Command::GetStream, &GetStream { stream: stream.clone() })
            .await
    }

    /// All streams.
    pub async fn get_streams(&self) -> Result<Vec<Stream>, IggyError> {
        Ok(self.fetch::<Streams>(Command::GetStreams, &Empty).await?.streams)
    }

    /// Creates a stream.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// client.create_stream("orders", &StreamCreateOptions::default()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn create_stream(&self, name: &str, options: &StreamCreateOptions) -> Result<StreamDetails, IggyError> {
        let body = CreateStream {
            name: resource_name(name, ErrorCode::InvalidStreamName)?,
            options: options.encode()?,
        };
        self.fetch(Command::CreateStream, &body).await
    }

    /// Changes a stream.
    pub async fn update_stream(&self, stream: &Identifier, options: &StreamUpdateOptions) -> Result<(), IggyError> {
        let (set, reset) = options.encode()?;
        self.update(UpdateResource {
            resource: Resource::Stream(stream.clone()),
            reset,
            set,
        })
        .await
    }

    /// Deletes a stream with everything in it.
    pub async fn delete_stream(&self, stream: &Identifier) -> Result<(), IggyError> {
        self.ask(Command::DeleteStream, &DeleteStream { stream: stream.clone() })
            .await
            .map(drop)
    }

    pub(super) async fn update(&self, update: UpdateResource) -> Result<(), IggyError> {
        iggy_protocol::option_catalog::check_update_shape(update.resource.scope(), &update.set, &update.reset)?;
        if update.reset.len() > 255 {
            let message = format!("an update resets at most 255 keys, this one {}", update.reset.len());
            return Err(IggyError::new(iggy_protocol::ErrorCode::InvalidCommand, message));
        }
        self.ask(Command::UpdateResource, &update).await.map(drop)
    }
}
