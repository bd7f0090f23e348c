//! Serves the metrics page over HTTP.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::listener::BoundedListener;
use super::{Metrics, Sample, render};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts what there is at this moment. It runs on the thread that serves the page and must not block.
pub type Sampler = Arc<dyn Fn() -> Sample + Send + Sync>;

/// Whether a text is a valid personal access token of some user.
pub type TokenCheck = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Who may read the page.
#[derive(Clone)]
pub enum Access {
    /// Anyone who reaches the address.
    Open,
    /// Whoever sends a valid personal access token as bearer token.
    Bearer(TokenCheck),
}

impl Access {
    /// Open on a loopback address, by bearer token on any other.
    pub fn of(address: SocketAddr, check: TokenCheck) -> Self {
        if address.ip().is_loopback() {
            Self::Open
        } else {
            Self::Bearer(check)
        }
    }

    async fn allows(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Open => true,
            Self::Bearer(check) => match bearer_token(headers) {
                Some(token) => check(token).await,
                None => false,
            },
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

struct Page {
    metrics: Metrics,
    registry: Registry,
    sampler: Sampler,
    access: Access,
}

/// Serves `endpoint` on `listener` until `stop` is cancelled, then lets requests in progress finish.
///
/// # Errors
/// The listener failed for good.
///
/// # Cancel safety
/// A dropped call closes the listener and its connections.
pub async fn serve(
    listener: TcpListener,
    endpoint: &str,
    metrics: Metrics,
    sampler: Sampler,
    access: Access,
    stop: CancellationToken,
) -> io::Result<()> {
    let registry = metrics.registry();
    let page = Arc::new(Page {
        metrics,
        registry,
        sampler,
        access,
    });
    let router = Router::new().route(endpoint, get(answer)).with_state(page);
    axum::serve(BoundedListener::new(listener), router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn answer(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response {
    page.metrics.http_requests.inc();
    if !page.access.allows(&headers).await {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        let reason = "a personal access token is needed as bearer token\n";
        return (StatusCode::UNAUTHORIZED, challenge, reason).into_response();
    }
    page.metrics.record(&(page.sampler)());
    match render(&page.registry) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    fn check_for(token: &'static str) -> TokenCheck {
        Arc::new(move |given| Box::pin(async move { given == token }))
    }

    async fn ask(access: Access, path: &str, extra: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let sampler: Sampler = Arc::new(|| Sample {
            topics: 7,
            ..Sample::default()
        });
        let server = serve(listener, "/metrics", Metrics::default(), sampler, access, stop.clone());
        let client = async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{extra}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            stop.cancel();
            reply
        };
        let (served, reply) = tokio::join!(server, client);
        served.unwrap();
        reply
    }

    #[tokio::test]
    async fn given_open_access_should_sample_and_answer() {
        let reply = ask(Access::Open, "/metrics", "").await;
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        assert!(reply.contains("\ntopics 7\n"), "{reply}");
        assert!(reply.contains("\nhttp_requests_total 1\n"), "{reply}");
        assert!(ask(Access::Open, "/other", "").await.starts_with("HTTP/1.1 404"));
    }

    #[tokio::test]
    async fn given_bearer_access_should_answer_only_a_valid_token() {
        let access = || Access::of("192.0.2.1:3000".parse().unwrap(), check_for("good"));
        for (extra, status) in [
            ("", "401"),
            ("authorization: Bearer bad\r\n", "401"),
            ("authorization: Basic good\r\n", "401"),
            ("authorization: bearer good\r\n", "200"),
        ] {
            let reply = ask(access(), "/metrics", extra).await;
            assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{extra} -> {reply}");
        }
    }

    #[test]
    fn given_a_loopback_address_should_be_open() {
        for (address, open) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("10.0.0.1:1", false),
        ] {
            let access = Access::of(address.parse().unwrap(), check_for("good"));
            assert_eq!(matches!(access, Access::Open), open, "{address}");
        }
    }
}
