//! Signing in and out.

use iggy_protocol::request::session::Credentials;
use iggy_protocol::{Name, Secret};

use crate::client::IggyClient;
use crate::error::IggyError;

/// Who the client is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityInfo {
    /// The user.
    pub user_id: u32,
    /// The session.
    pub session: u64,
}

impl IggyClient {
    /// Signs in by name and password, connecting if need be. A client that is signed in logs out first.
    ///
    /// # Errors
    /// [`iggy_protocol::ErrorCode::InvalidCredentials`] and whatever [`Self::connect`] fails with.
    pub async fn login_user(&self, username: &str, password: &str) -> Result<IdentityInfo, IggyError> {
        let credentials = Credentials::Password {
            username: Name::new(username)?,
            password: Secret::new(password),
        };
        self.sign_in(credentials).await
    }

    /// Signs in by personal access token, as [`Self::login_user`] does.
    ///
    /// # Errors
    /// [`iggy_protocol::ErrorCode::InvalidPersonalAccessToken`] and whatever [`Self::connect`] fails with.
    pub async fn login_with_personal_access_token(&self, token: &str) -> Result<IdentityInfo, IggyError> {
        self.sign_in(Credentials::Token(Secret::new(token))).await
    }

    async fn sign_in(&self, credentials: Credentials) -> Result<IdentityInfo, IggyError> {
        let bound = self.core().login(credentials, self.core().default_deadline()).await?;
        Ok(IdentityInfo {
            user_id: bound.user_id,
            session: bound.session,
        })
    }

    /// Signs out: the session ends in the whole cluster and its group memberships with it. The connection stays open.
    ///
    /// # Errors
    /// The client is not signed in, or the server did not answer; the session is over for this client all the same.
    ///
    /// A future that is dropped once it was polled leaves a client that may or may not be signed in, and that does not
    /// sign in again by itself.
    pub async fn logout_user(&self) -> Result<(), IggyError> {
        self.core().logout(self.core().default_deadline()).await
    }

    /// The user this client is signed in as.
    pub fn user_id(&self) -> Option<u32> {
        self.core().session.bound().map(|bound| bound.user_id)
    }
}
