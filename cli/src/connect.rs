//! Reaching the server: from options and the active context to a connected client.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use iggy::prelude::*;
use iggy::{Endpoint, ReconnectionConfig};

use crate::arguments::ConnectionArguments;
use crate::credentials::Credentials as Chosen;
use crate::store::StoredContext;

const DEFAULT_ADDRESS: &str = "127.0.0.1:8090";
/// A person waits for the command, so it gives up sooner than a program that runs for months.
const DEFAULT_RETRIES: u32 = 3;
/// Longest time for a connect with all its retries.
const CONNECT_DEADLINE: Duration = Duration::from_mins(2);

/// Knows where the server is and how to speak to it.
#[derive(Debug)]
pub struct Connector {
    config: ClientConfig,
    encryption_key: Option<String>,
}

impl Connector {
    /// Puts options over the context and the context over defaults.
    pub fn new(arguments: &ConnectionArguments, context: &StoredContext) -> Result<Self> {
        let address = arguments
            .tcp_server_address
            .as_ref()
            .or(context.tcp_server_address.as_ref());
        let address = address.map_or(DEFAULT_ADDRESS, String::as_str);
        let endpoint = Endpoint::parse(address).with_context(|| format!("`{address}` is no host and port"))?;
        let defaults = ReconnectionConfig::default();
        let stored_interval = context
            .tcp_reconnection_interval
            .as_deref()
            .map(humantime::parse_duration)
            .transpose();
        let stored_interval = stored_interval.context("the context's tcp_reconnection_interval is no time")?;
        let reconnection = ReconnectionConfig {
            max_retries: Some(
                arguments
                    .tcp_reconnection_max_retries
                    .or(context.tcp_reconnection_max_retries)
                    .unwrap_or(DEFAULT_RETRIES),
            ),
            interval: arguments
                .tcp_reconnection_interval
                .or(stored_interval)
                .unwrap_or(defaults.interval),
            ..defaults
        };
        let config = ClientConfig {
            endpoint,
            tls: tls(arguments, context),
            nodelay: true,
            reconnection,
            ..ClientConfig::default()
        };
        let encryption_key = arguments
            .encryption_key
            .clone()
            .or_else(|| context.encryption_key.clone());
        Ok(Self { config, encryption_key })
    }

    /// Address of the server as text; tokens are stored under it.
    pub fn server(&self) -> String {
        self.config.endpoint.to_string()
    }

    /// Connects without signing in.
    pub async fn connect(&self) -> Result<IggyClient> {
        self.open(self.config.clone()).await
    }

    /// Connects and signs in.
    pub async fn sign_in(&self, chosen: Chosen) -> Result<IggyClient> {
        let credentials = match chosen {
            Chosen::Password { username, password } => Credentials::Password {
                username: username.parse()?,
                password: password.into(),
            },
            Chosen::Token(token) => Credentials::Token(token.into()),
        };
        credentials
            .check()
            .map_err(|error| anyhow!("the credentials cannot be used: {error}"))?;
        self.open(ClientConfig {
            credentials: Some(credentials),
            ..self.config.clone()
        })
        .await
    }

    async fn open(&self, config: ClientConfig) -> Result<IggyClient> {
        let mut builder = IggyClient::builder().with_config(config);
        if let Some(key) = &self.encryption_key {
            let encryptor =
                Aes256GcmEncryptor::from_base64_key(key).context("--encryption-key is no base64 of 32 bytes")?;
            builder = builder.with_encryptor(Arc::new(encryptor));
        }
        let client = builder.build();
        let connected = tokio::time::timeout(CONNECT_DEADLINE, client.connect()).await;
        let connected = connected.map_err(|_| anyhow!("no connection within {CONNECT_DEADLINE:?}"));
        connected
            .and_then(|result| Ok(result?))
            .with_context(|| format!("cannot connect to {}", self.server()))?;
        Ok(client)
    }
}

fn tls(arguments: &ConnectionArguments, context: &StoredContext) -> Option<TlsConfig> {
    let enabled = arguments.tcp_tls_enabled.or(context.tcp_tls_enabled).unwrap_or(false);
    enabled.then(|| TlsConfig {
        domain: arguments
            .tcp_tls_domain
            .clone()
            .or_else(|| context.tcp_tls_domain.clone()),
        ca_file: arguments
            .tcp_tls_ca_file
            .clone()
            .or_else(|| context.tcp_tls_ca_file.clone()),
        ..TlsConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_options_and_a_context_should_let_the_options_win() {
        let arguments = ConnectionArguments {
            tcp_server_address: Some("flag:1".to_owned()),
            tcp_tls_enabled: Some(true),
            ..ConnectionArguments::default()
        };
        let context = StoredContext {
            tcp_server_address: Some("context:2".to_owned()),
            tcp_reconnection_max_retries: Some(9),
            tcp_reconnection_interval: Some("5s".to_owned()),
            tcp_tls_enabled: Some(false),
            tcp_tls_domain: Some("broker.example".to_owned()),
            ..StoredContext::default()
        };
        let connector = Connector::new(&arguments, &context).unwrap();
        assert_eq!(connector.server(), "flag:1");
        assert_eq!(connector.config.reconnection.max_retries, Some(9));
        assert_eq!(connector.config.reconnection.interval, Duration::from_secs(5));
        assert_eq!(connector.config.tls.unwrap().domain.as_deref(), Some("broker.example"));
    }

    #[test]
    fn given_nothing_should_dial_the_local_server_in_plain_text() {
        let connector = Connector::new(&ConnectionArguments::default(), &StoredContext::default()).unwrap();
        assert_eq!(connector.server(), DEFAULT_ADDRESS);
        assert!(connector.config.tls.is_none());
        assert_eq!(connector.config.reconnection.max_retries, Some(DEFAULT_RETRIES));
    }
}
