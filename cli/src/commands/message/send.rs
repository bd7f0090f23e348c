//! Sending: a thread reads and cuts batches, this task sends them, and a short queue between both keeps memory bounded
//! however large the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use iggy::prelude::*;
use tokio::sync::mpsc;

use crate::arguments::{HeaderArgument, SendArguments};
use crate::commands::Session;
use crate::message_text::{Lines, Outgoing, check_payload, parse_json_line};
use crate::output::{Cell, Form, Record};
use crate::progress::Progress;

/// A batch is also cut at this size, so that lines of any length make requests of moderate size.
const BATCH_BYTES: usize = 4 << 20;
const QUEUED_BATCHES: usize = 4;
const LINE_BYTES_MAX: u64 = 64_000_000;
/// A payload in JSON and base64, with headers around it.
const JSON_LINE_BYTES_MAX: u64 = 2 * LINE_BYTES_MAX;
const STANDARD_INPUT: &str = "-";

type Source = Box<dyn Iterator<Item = Result<Outgoing>> + Send>;

pub(super) async fn run(session: &Session, arguments: SendArguments) -> Result<()> {
    let partitioning = match (arguments.partition_id, &arguments.message_key) {
        (Some(partition), _) => Partitioning::partition_id(partition),
        (None, Some(key)) => Partitioning::messages_key_str(key)?,
        (None, None) => Partitioning::balanced(),
    };
    let (stream, topic) = (arguments.stream.clone(), arguments.topic.clone());
    let mut batches = read_batches(source(&arguments)?, arguments.batch_length as usize);
    let progress = Progress::start("sent", session.output);
    let (mut messages_count, mut bytes) = (0_u64, 0_u64);
    while let Some(batch) = batches.recv().await {
        let batch = batch.with_context(|| sent_before(messages_count))?;
        let sent = session
            .client
            .send_messages(&stream, &topic, &partitioning, &batch)
            .await;
        sent.with_context(|| sent_before(messages_count))?;
        messages_count += batch.len() as u64;
        bytes += batch.iter().map(|message| message.payload.len() as u64).sum::<u64>();
        progress.add(batch.len() as u64);
    }
    drop(progress);
    if session.output.is_json() {
        let record = Record::new()
            .with("messages_count", messages_count)
            .with("payload_bytes", Cell::Size(bytes));
        session.output.record(&record, Form::Json)?;
    }
    Ok(session
        .output
        .confirm(&format!("sent {messages_count} messages with {bytes} bytes"))?)
}

/// Part of an error: where to go on when only the beginning of a file was sent.
fn sent_before(messages: u64) -> String {
    format!("after {messages} messages that were sent")
}

fn source(arguments: &SendArguments) -> Result<Source> {
    let headers = HeaderArgument::collect(&arguments.headers);
    if !arguments.messages.is_empty() {
        let messages = arguments.messages.clone().into_iter();
        return Ok(Box::new(messages.map(move |text| {
            outgoing(text.into_bytes(), &headers).map_err(|error| anyhow!(error))
        })));
    }
    if let Some(path) = &arguments.input_file {
        let lines = Lines::new(open(path)?, false, JSON_LINE_BYTES_MAX);
        let name = path.display().to_string();
        return Ok(Box::new(each_line(lines, name, move |line| {
            let text = std::str::from_utf8(&line).map_err(|error| error.to_string())?;
            let mut message = parse_json_line(text)?;
            for (key, value) in headers.iter() {
                message.headers.insert(key.clone(), value.clone());
            }
            Ok(message)
        })));
    }
    let path = arguments.lines.as_deref().unwrap_or(Path::new(STANDARD_INPUT));
    let lines = Lines::new(open(path)?, arguments.keep_line_ends, LINE_BYTES_MAX);
    Ok(Box::new(each_line(lines, path.display().to_string(), move |line| {
        outgoing(line, &headers)
    })))
}

fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

fn outgoing(payload: Vec<u8>, headers: &UserHeaders) -> Result<Outgoing, String> {
    check_payload(&payload)?;
    Ok(Outgoing {
        id: 0,
        headers: headers.clone(),
        payload: Bytes::from(payload),
    })
}

/// Errors name the file and the line.
fn each_line<R: BufRead + Send>(
    mut lines: Lines<R>,
    name: String,
    read: impl Fn(Vec<u8>) -> Result<Outgoing, String> + Send,
) -> impl Iterator<Item = Result<Outgoing>> + Send {
    std::iter::from_fn(move || match lines.next() {
        Ok(None) => None,
        Ok(Some((number, line))) => Some(read(line).map_err(|error| anyhow!("{name}, line {number}: {error}"))),
        Err(error) => Some(Err(anyhow!("{name}: {error}"))),
    })
}

/// Cuts batches on a thread of its own. The first error ends it; what was read before the error is sent first.
fn read_batches(source: Source, length: usize) -> mpsc::Receiver<Result<Vec<IggyMessage>>> {
    let (sender, receiver) = mpsc::channel(QUEUED_BATCHES);
    std::thread::spawn(move || {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for outgoing in source {
            let message = match outgoing.and_then(message) {
                Ok(message) => message,
                Err(error) => {
                    if batch.is_empty() || sender.blocking_send(Ok(batch)).is_ok() {
                        let _ = sender.blocking_send(Err(error));
                    }
                    return;
                }
            };
            if !batch.is_empty() && (batch.len() == length || bytes + message.size() > BATCH_BYTES) {
                bytes = 0;
                // The other side is gone only after an error that it reports.
                if sender.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
                    return;
                }
            }
            bytes += message.size();
            batch.push(message);
        }
        if !batch.is_empty() {
            let _ = sender.blocking_send(Ok(batch));
        }
    });
    receiver
}

fn message(outgoing: Outgoing) -> Result<IggyMessage> {
    let builder = IggyMessage::builder()
        .id(outgoing.id)
        .payload(outgoing.payload)
        .user_headers(outgoing.headers);
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize, bytes: usize) -> Source {
        let headers = UserHeaders::new();
        Box::new((0..count).map(move |_| outgoing(vec![b'x'; bytes], &headers).map_err(|error| anyhow!(error))))
    }

    async fn lengths(mut batches: mpsc::Receiver<Result<Vec<IggyMessage>>>) -> Vec<Result<usize, String>> {
        let mut found = Vec::new();
        while let Some(batch) = batches.recv().await {
            found.push(batch.map(|batch| batch.len()).map_err(|error| error.to_string()));
        }
        found
    }

    #[tokio::test]
    async fn given_many_messages_should_cut_by_count_and_by_size() {
        assert_eq!(
            lengths(read_batches(numbered(25, 10), 10)).await,
            [Ok(10), Ok(10), Ok(5)]
        );
        assert_eq!(
            lengths(read_batches(numbered(5, (2 << 20) + 1), 10)).await,
            [Ok(1), Ok(1), Ok(1), Ok(1), Ok(1)]
        );
        assert_eq!(lengths(read_batches(numbered(0, 1), 10)).await, []);
    }

    #[tokio::test]
    async fn given_a_bad_line_should_send_what_stands_before_it_and_name_it() {
        let lines = Lines::new(&b"one\ntwo\n\nfour\n"[..], false, 100);
        let headers = UserHeaders::new();
        let source = each_line(lines, "file".to_owned(), move |line| outgoing(line, &headers));
        let expected = [Ok(2), Err("file, line 3: a message cannot be empty".to_owned())];
        assert_eq!(lengths(read_batches(Box::new(source), 10)).await, expected);
    }
}
