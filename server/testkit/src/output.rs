//! Drains a server's output into a bounded log and watches it for the ready line.
//!
//! Threads drain, not tasks: a test that blocks its runtime must never fill the pipe and so block the server.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::watch;

/// Lines kept of one server's output; older ones are dropped.
const KEPT_LINES: usize = 4_000;
/// Longer lines are cut, so that a server that never ends a line cannot take all memory.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The addresses of one ready line, by name.
pub(crate) type Endpoints = BTreeMap<String, SocketAddr>;

/// The last lines that a server printed.
#[derive(Clone, Default)]
pub(crate) struct Log {
    lines: Arc<Mutex<VecDeque<String>>>,
    grown: watch::Sender<()>,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
        drop(lines);
        self.grown.send_replace(());
    }

    /// Waits until a line holds `text`.
    pub(crate) async fn until(&self, text: &str) {
        let mut grown = self.grown.subscribe();
        while !self.lock().iter().any(|line| line.contains(text)) {
            // Ends only with the log itself.
            let _ = grown.changed().await;
        }
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.lock();
        lines.iter().fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        })
    }
}

/// Drains `source` into `log` on a thread of its own, until the server closes it.
pub(crate) fn drain(source: impl Read + Send + 'static, log: Log) {
    thread::spawn(move || each_line(source, |line| log.push(line)));
}

/// As [`drain`], and reports the endpoints of the first ready line. The channel closes when the output ends.
pub(crate) fn drain_until_ready(source: impl Read + Send + 'static, log: Log) -> watch::Receiver<Option<Endpoints>> {
    let (sender, receiver) = watch::channel(None);
    thread::spawn(move || {
        each_line(source, |line| {
            if sender.borrow().is_none()
                && let Some(endpoints) = parse_ready_line(&line)
            {
                sender.send_replace(Some(endpoints));
            }
            log.push(line);
        });
    });
    receiver
}

fn each_line(source: impl Read, mut take: impl FnMut(String)) {
    let mut reader = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => take(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }
}

/// Reads `ready name=address name=address ...`; words of another shape are passed over, so that the server may print
/// more there than a test needs.
fn parse_ready_line(line: &str) -> Option<Endpoints> {
    let mut words = line.split_whitespace();
    (words.next() == Some("ready")).then(|| {
        words
            .filter_map(|word| {
                let (name, address) = word.split_once('=')?;
                Some((name.to_owned(), address.parse().ok()?))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_ready_line_should_name_its_endpoints() {
        let endpoints = parse_ready_line("ready tcp=127.0.0.1:4100 metrics=[::1]:4101 replica=0").unwrap();
        assert_eq!(endpoints.len(), 2);
        assert_eq!(endpoints["tcp"], "127.0.0.1:4100".parse().unwrap());
        assert_eq!(endpoints["metrics"], "[::1]:4101".parse().unwrap());
    }

    #[test]
    fn given_another_line_should_see_no_ready_line() {
        assert_eq!(parse_ready_line("already tcp=127.0.0.1:4100"), None);
        assert_eq!(parse_ready_line(""), None);
    }

    #[test]
    fn given_more_lines_than_kept_should_drop_the_oldest() {
        let log = Log::default();
        for number in 0..=KEPT_LINES {
            log.push(number.to_string());
        }
        let text = log.text();
        assert!(text.starts_with("1\n"));
        assert!(text.ends_with(&format!("{KEPT_LINES}\n")));
    }

    #[test]
    fn given_a_line_without_end_should_cut_it() {
        let mut lines = Vec::new();
        each_line(std::io::repeat(b'a').take(LINE_BYTES_MAX + 5), |line| {
            lines.push(line.len() as u64);
        });
        assert_eq!(lines, [LINE_BYTES_MAX, 5]);
    }
}
