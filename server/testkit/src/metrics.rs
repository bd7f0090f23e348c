//! What a running server counts, read from its metrics page.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::TestServer;

/// How long a number may take to become what a test waits for.
const DEADLINE: Duration = Duration::from_secs(30);

impl TestServer {
    /// A whole number of the metrics page, by its name and labels as the page spells them.
    ///
    /// # Errors
    /// The page cannot be read, or has no such number.
    pub async fn metric(&self, name: &str) -> Result<u64> {
        let address = self.endpoint("metrics").context("the server has no metrics page")?;
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /metrics HTTP/1.0\r\nhost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        ensure!(page.contains(" 200 "), "the metrics page answers {page}");
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.with_context(|| format!("no {name} on the metrics page:\n{page}"))?;
        Ok(value.parse()?)
    }

    /// Waits until a number of the metrics page fulfils `wanted`.
    ///
    /// # Errors
    /// It does not within 30 s, or the page cannot be read.
    pub async fn until_metric(&self, name: &str, wanted: impl Fn(u64) -> bool) -> Result<()> {
        let looks = async {
            while !wanted(self.metric(name).await?) {}
            Ok(())
        };
        let outcome = timeout(DEADLINE, looks).await;
        outcome.with_context(|| format!("{name} did not become what was wanted within {DEADLINE:?}"))?
    }
}
