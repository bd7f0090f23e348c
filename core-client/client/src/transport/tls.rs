//! TLS over TCP.

use std::path::Path;
use std::sync::Arc;

use iggy_protocol::ErrorCode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::{Endpoint, TlsConfig};
use crate::error::IggyError;
use crate::transport::DialError;

/// Performs the handshake on a dialled stream.
pub async fn handshake(
    stream: TcpStream,
    endpoint: &Endpoint,
    config: &TlsConfig,
) -> Result<TlsStream<TcpStream>, DialError> {
    let domain = config.domain.clone().unwrap_or_else(|| endpoint.host.clone());
    let name = ServerName::try_from(domain.clone()).map_err(|_| {
        wrong(
            ErrorCode::InvalidTlsDomain,
            format!("'{domain}' is no valid TLS domain"),
        )
    })?;
    let connector = TlsConnector::from(Arc::new(client_config(config)?));
    connector.connect(name, stream).await.map_err(|error| {
        // A certificate that is refused once is refused again; a broken connection is not.
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(refused @ rustls::Error::InvalidCertificate(_)) => {
                let message = format!("the certificate of {endpoint} is not accepted for '{domain}': {refused}");
                wrong(ErrorCode::InvalidTlsCertificate, message)
            }
            _ => DialError::Unreachable(error),
        }
    })
}

fn wrong(code: ErrorCode, message: String) -> DialError {
    DialError::Tls(IggyError::new(code, message))
}

fn client_config(config: &TlsConfig) -> Result<rustls::ClientConfig, DialError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(ErrorCode::FeatureUnavailable, format!("TLS is not available: {error}")))?;
    if !config.validate_certificate {
        let verifier = Arc::new(AcceptAny(provider));
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth());
    }
    Ok(builder
        .with_root_certificates(roots(config.ca_file.as_deref())?)
        .with_no_client_auth())
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, DialError> {
    let mut roots = RootCertStore::empty();
    // Certificates of the system that cannot be read are as good as absent: the handshake then says what is missing.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let invalid = |code, error: &dyn std::fmt::Display| wrong(code, format!("CA file {}: {error}", path.display()));
        let unreadable = |error| invalid(ErrorCode::InvalidTlsCertificatePath, &error);
        let mut found = false;
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            let added = roots.add(certificate.map_err(unreadable)?);
            added.map_err(|error| invalid(ErrorCode::FailedToAddCertificate, &error))?;
            found = true;
        }
        if !found {
            return Err(invalid(ErrorCode::InvalidTlsCertificatePath, &"holds no certificate"));
        }
    }
    Ok(roots)
}

/// Accepts every certificate: only for `validate_certificate = false`. Signatures are still checked.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
