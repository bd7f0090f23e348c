//! TLS between nodes: version 1.3 alone, both sides with a certificate of the cluster's own authority.

use crate::handshake::Channel;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// What both sides must speak.
const PROTOCOL: &[u8] = b"iggy-replica";
/// Names what the handshake proves of the connection.
const CHANNEL_LABEL: &[u8] = b"EXPORTER-iggy-replica-link";

/// Certificate, key and authority of a node, ready for either side.
#[derive(Clone)]
pub struct LinkTls {
    acceptor: Arc<ServerConfig>,
    connector: Arc<ClientConfig>,
}

/// Why TLS cannot be spoken between nodes.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {what} from {}: {source}", path.display())]
    Pem {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: pem::Error,
    },
    /// They do not fit together.
    #[error("certificate, key and authority of links between nodes cannot be used: {0}")]
    Unusable(String),
}

impl LinkTls {
    /// From PEM files: the node's certificate chain, which must name its address, its key, and the authority that all
    /// nodes are certified by.
    ///
    /// # Errors
    ///
    /// See [`TlsError`].
    pub fn from_files(certificate: &Path, key: &Path, authority: &Path) -> Result<Self, TlsError> {
        let chain = certificates(certificate, "a certificate (cluster.tls.cert_file)")?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem {
            what: "a private key (cluster.tls.key_file)",
            path: key.to_owned(),
            source,
        })?;
        let mut roots = RootCertStore::empty();
        for root in certificates(authority, "an authority (cluster.tls.ca_file)")? {
            roots.add(root).map_err(|error| TlsError::Unusable(error.to_string()))?;
        }
        let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier
            .build()
            .map_err(|error| TlsError::Unusable(error.to_string()))?;
        let mut acceptor = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(unusable)?;
        acceptor.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut connector = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        connector.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self {
            acceptor: Arc::new(acceptor),
            connector: Arc::new(connector),
        })
    }
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.and_then(|found| {
        if found.is_empty() {
            Err(pem::Error::NoItemsFound)
        } else {
            Ok(found)
        }
    });
    found.map_err(|source| TlsError::Pem {
        what,
        path: path.to_owned(),
        source,
    })
}

/// The side that was dialed.
pub async fn accept(tls: &LinkTls, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Channel)> {
    let stream = TlsAcceptor::from(Arc::clone(&tls.acceptor)).accept(stream).await?;
    let (_, connection) = stream.get_ref();
    let channel = check(connection.alpn_protocol(), |channel| {
        connection.export_keying_material(channel, CHANNEL_LABEL, None)
    })?;
    Ok((stream.into(), channel))
}

/// The side that dialed `peer`.
pub async fn connect(tls: &LinkTls, stream: TcpStream, peer: IpAddr) -> io::Result<(TlsStream<TcpStream>, Channel)> {
    let connector = TlsConnector::from(Arc::clone(&tls.connector));
    let stream = connector.connect(ServerName::IpAddress(peer.into()), stream).await?;
    let (_, connection) = stream.get_ref();
    let channel = check(connection.alpn_protocol(), |channel| {
        connection.export_keying_material(channel, CHANNEL_LABEL, None)
    })?;
    Ok((stream.into(), channel))
}

/// Both sides speak links, and what only they know of the connection.
fn check(
    protocol: Option<&[u8]>,
    export: impl FnOnce(Channel) -> Result<Channel, rustls::Error>,
) -> io::Result<Channel> {
    if protocol != Some(PROTOCOL) {
        return Err(io::Error::other("the other side does not speak links between nodes"));
    }
    export(Channel::default()).map_err(io::Error::other)
}
