//! Personal access tokens.

use iggy_protocol::reply::user::{PersonalAccessToken, PersonalAccessTokens, RawPersonalAccessToken};
use iggy_protocol::request::Empty;
use iggy_protocol::request::token::{CreatePersonalAccessToken, DeletePersonalAccessToken};
use iggy_protocol::{Command, ErrorCode, Secret};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::operations::resource_name;
use crate::resource_options::IggyExpiry;

impl IggyClient {
    /// The tokens of the signed-in user, without their values.
    pub async fn get_personal_access_tokens(&self) -> Result<Vec<PersonalAccessToken>, IggyError> {
        Ok(self
            .fetch::<PersonalAccessTokens>(Command::GetPersonalAccessTokens, &Empty)
            .await?
            .tokens)
    }

    /// Creates a token with a name of 3..=30 bytes. Its value is shown this once. When the reply is lost, the replay
    /// answers [`iggy_protocol::ErrorCode::PersonalAccessTokenAlreadyExists`]: the token exists and its value is lost.
    pub async fn create_personal_access_token(&self, name: &str, expiry: IggyExpiry) -> Result<Secret, IggyError> {
        let body = CreatePersonalAccessToken {
            name: resource_name(name, ErrorCode::InvalidPersonalAccessTokenName)?,
            expiry: expiry.as_micros(),
        };
        let raw: RawPersonalAccessToken = self.fetch(Command::CreatePersonalAccessToken, &body).await?;
        Ok(Secret::new(raw.token))
    }

    /// Deletes a token.
    pub async fn delete_personal_access_token(&self, name: &str) -> Result<(), IggyError> {
        let body = DeletePersonalAccessToken {
            name: resource_name(name, ErrorCode::InvalidPersonalAccessTokenName)?,
        };
        self.ask(Command::DeletePersonalAccessToken, &body).await.map(drop)
    }
}
