//! A listener with bounds: so many connections, each for so long.
//!
//! The metrics page is read every few seconds by one or two scrapers. A peer that opens connections and says nothing
//! can thus hold no more than these, and not for longer than this.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

const CONNECTIONS_MAX: usize = 64;
/// A scraper that keeps its connection reconnects after this.
const LIFETIME: Duration = Duration::from_mins(1);
/// Pause after a failed accept, mostly for lack of file descriptors, which an immediate retry would only spin on.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct BoundedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    lifetime: Duration,
}

impl BoundedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self::with_bounds(listener, CONNECTIONS_MAX, LIFETIME)
    }

    fn with_bounds(listener: TcpListener, connections: usize, lifetime: Duration) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(connections)),
            lifetime,
        }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // The semaphore is never closed; a failure here would mean it was, and there is nothing to accept for.
            let Ok(permit) = self.permits.clone().acquire_owned().await else {
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let deadline = Box::pin(sleep(self.lifetime));
                    return (
                        BoundedStream {
                            stream,
                            deadline,
                            _permit: permit,
                        },
                        address,
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "the metrics listener could not accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

pub(super) struct BoundedStream {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl BoundedStream {
    fn check_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn given_a_silent_connection_should_end_at_its_deadline() {
        let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = inner.local_addr().unwrap();
        let mut listener = BoundedListener::with_bounds(inner, 1, Duration::from_millis(5));
        let _silent = TcpStream::connect(address).await.unwrap();
        let (mut accepted, _) = listener.accept().await;
        let error = accepted.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn given_as_many_connections_as_allowed_should_accept_again_after_one_ends() {
        let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = inner.local_addr().unwrap();
        let mut listener = BoundedListener::with_bounds(inner, 1, LIFETIME);
        let _first = TcpStream::connect(address).await.unwrap();
        let _second = TcpStream::connect(address).await.unwrap();
        let (first, _) = listener.accept().await;
        assert!(futures::poll!(Box::pin(listener.accept())).is_pending());
        drop(first);
        let (_second, _) = listener.accept().await;
    }
}
