//! The TLS side of a listener: certificates from files, or one made at start.
//!
//! Faults tolerated: none silently. A file that is missing, unreadable, without a certificate or with a key that does
//! not fit stops the boot with its name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use crate::config::Tls;

/// Where a certificate made at start is written, below the data directory.
pub const SELF_SIGNED_FILE: &str = "runtime/self_signed.pem";

/// Names that a certificate made at start is good for, besides the advertised one.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why TLS cannot be served. Every variant stops the boot.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read a {what} from {} (`{key}`): {source}", path.display())]
    Pem {
        /// What the file should hold.
        what: &'static str,
        /// The configuration key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: pem::Error,
    },
    /// The certificate and the key cannot be used together.
    #[error("the certificate {} and the key {} cannot be used: {source}", certificate.display(), key.display())]
    Unusable {
        /// Certificate chain.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
        /// What was wrong.
        source: rustls::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate for {names:?}: {reason}")]
    SelfSigned {
        /// The names it should have been good for.
        names: Vec<String>,
        /// What was wrong.
        reason: String,
    },
    /// The certificate made at start cannot be written.
    #[error("cannot write the certificate made at start to {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The rustls configuration of a listener, or `None` when it speaks plain text.
///
/// With `self_signed` and no existing `cert_file`, a certificate for the local names and `advertised` is made; its
/// public part is written to [`SELF_SIGNED_FILE`] below `data_directory`.
///
/// # Errors
/// See [`TlsError`].
pub fn server_config(
    settings: &Tls,
    data_directory: &Path,
    advertised: Option<&str>,
) -> Result<Option<Arc<ServerConfig>>, TlsError> {
    if !settings.enabled {
        return Ok(None);
    }
    let files = settings.cert_file.as_deref().zip(settings.key_file.as_deref());
    let config = match files {
        Some((certificate, key)) if certificate.exists() || !settings.self_signed => from_files(certificate, key)?,
        _ => self_signed(data_directory, advertised)?,
    };
    Ok(Some(Arc::new(config)))
}

fn from_files(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let refuse_certificate = |source| TlsError::Pem {
        what: "certificate",
        key: "tcp.tls.cert_file",
        path: certificate.to_owned(),
        source,
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| {
            if chain.is_empty() {
                Err(pem::Error::NoItemsFound)
            } else {
                Ok(chain)
            }
        })
        .map_err(refuse_certificate)?;
    let private_key = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem {
        what: "private key",
        key: "tcp.tls.key_file",
        path: key.to_owned(),
        source,
    })?;
    assemble(chain, private_key).map_err(|source| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })
}

fn self_signed(data_directory: &Path, advertised: Option<&str>) -> Result<ServerConfig, TlsError> {
    let names: Vec<String> = LOCAL_NAMES.into_iter().chain(advertised).map(str::to_owned).collect();
    let made = rcgen::generate_simple_self_signed(names.clone()).map_err(|error| TlsError::SelfSigned {
        names: names.clone(),
        reason: error.to_string(),
    })?;
    let path = data_directory.join(SELF_SIGNED_FILE);
    write_certificate(&path, &made.cert.pem()).map_err(|source| TlsError::Unwritable { path, source })?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    assemble(vec![made.cert.der().clone()], key.into()).map_err(|error| TlsError::SelfSigned {
        names,
        reason: error.to_string(),
    })
}

/// Through a temporary name, so that a client never reads half a certificate.
fn write_certificate(path: &Path, pem: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension("pem.new");
    std::fs::write(&unfinished, pem)?;
    std::fs::rename(unfinished, path)
}

fn assemble(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, rustls::Error> {
    // Named rather than taken from the process-wide default, which any library could have set.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    fn settings(self_signed: bool, files: Option<(&Path, &Path)>) -> Tls {
        Tls {
            enabled: true,
            self_signed,
            cert_file: files.map(|(certificate, _)| certificate.to_owned()),
            key_file: files.map(|(_, key)| key.to_owned()),
        }
    }

    fn trusting(pem_file: &Path) -> TlsConnector {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(pem_file).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    async fn round_trip(server: Arc<ServerConfig>, connector: TlsConnector, name: &str) -> io::Result<Vec<u8>> {
        let (client_end, server_end) = tokio::io::duplex(16 * 1024);
        let serve = async move {
            let mut stream = TlsAcceptor::from(server).accept(server_end).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        };
        let name = name.to_owned().try_into().unwrap();
        let ask = async move {
            let mut stream = connector.connect(name, client_end).await?;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await?;
            Ok(received)
        };
        tokio::join!(serve, ask).1
    }

    #[tokio::test]
    async fn given_no_files_when_self_signed_should_serve_what_the_written_certificate_verifies() {
        let data = tempfile::tempdir().unwrap();
        let config = server_config(&settings(true, None), data.path(), Some("broker.example"))
            .unwrap()
            .unwrap();
        for name in ["localhost", "127.0.0.1", "broker.example"] {
            let connector = trusting(&data.path().join(SELF_SIGNED_FILE));
            assert_eq!(
                round_trip(config.clone(), connector, name).await.unwrap(),
                b"hello",
                "{name}"
            );
        }
        let connector = trusting(&data.path().join(SELF_SIGNED_FILE));
        assert!(round_trip(config, connector, "another.example").await.is_err());
    }

    #[tokio::test]
    async fn given_files_should_serve_their_certificate_even_when_self_signed_is_on() {
        let data = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["files.example".to_owned()]).unwrap();
        let (certificate, key) = (data.path().join("c.pem"), data.path().join("k.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let config = server_config(&settings(true, Some((&certificate, &key))), data.path(), None)
            .unwrap()
            .unwrap();
        let received = round_trip(config, trusting(&certificate), "files.example")
            .await
            .unwrap();
        assert_eq!(received, b"hello");
        assert!(!data.path().join(SELF_SIGNED_FILE).exists());
    }

    #[test]
    fn given_bad_files_should_name_the_file() {
        let data = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(vec!["b.example".to_owned()]).unwrap();
        let path = |name: &str| data.path().join(name);
        std::fs::write(path("good.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("good.key"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(path("other.key"), other.signing_key.serialize_pem()).unwrap();
        std::fs::write(path("empty.pem"), "no certificate here").unwrap();
        for (certificate, key, named) in [
            ("absent.pem", "good.key", "absent.pem"),
            ("empty.pem", "good.key", "empty.pem"),
            ("good.pem", "absent.key", "absent.key"),
            ("good.pem", "empty.pem", "empty.pem"),
            ("good.pem", "other.key", "other.key"),
        ] {
            let files = (path(certificate), path(key));
            let error = server_config(&settings(false, Some((&files.0, &files.1))), data.path(), None).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn given_tls_off_should_serve_plain_text() {
        let off = Tls {
            enabled: false,
            ..settings(true, None)
        };
        assert!(server_config(&off, Path::new("/nowhere"), None).unwrap().is_none());
    }
}
