//! Polling: once, to the end, or on and on.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result};
use iggy::prelude::*;

use crate::arguments::{Moment, PollArguments};
use crate::commands::{Session, now};
use crate::message_text::Incoming;
use crate::output::{Cell, Form, Record, print_bytes, print_text};
use crate::progress::Progress;

/// One wait of `--follow`; a new message ends it at once.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);
/// Bytes of one reply of `--all` and `--follow`.
const BULK_REPLY_BYTES: u32 = 8 << 20;

pub(super) async fn run(session: &Session, arguments: PollArguments) -> Result<()> {
    let mut sink = Sink::new(session, &arguments)?;
    let interrupted = tokio::signal::ctrl_c();
    tokio::select! {
        biased;
        outcome = read(session, &arguments, &mut sink) => outcome?,
        // Everything shown so far has been committed; being interrupted is how --follow ends well.
        _ = interrupted => {}
    }
    sink.finish(session)
}

async fn read(session: &Session, arguments: &PollArguments, sink: &mut Sink) -> Result<()> {
    let consumer = Consumer::new(arguments.consumer.clone());
    let (stream, topic) = (&arguments.stream, &arguments.topic);
    let unbounded = arguments.all || arguments.follow;
    let mut start = ReadStart::Strategy(strategy(arguments));
    let mut left = arguments.message_count;
    loop {
        let options = options(arguments, left);
        let polled = session
            .client
            .poll_messages(stream, topic, arguments.partition, &consumer, start, options)
            .await?;
        sink.write(session, arguments, &polled)?;
        // After it was shown: a message that was never shown must be polled again.
        if arguments.auto_commit
            && let Some(checkpoint) = polled.checkpoint()
        {
            session
                .client
                .store_consumer_position(&consumer, stream, topic, &checkpoint)
                .await?;
        }
        if polled.is_empty() && !arguments.follow {
            return Ok(());
        }
        if !unbounded {
            left = left.saturating_sub(polled.count);
            // A reply also ends at its size, so fewer messages than asked for do not mean that there are no more.
            if left == 0 || arguments.last {
                return Ok(());
            }
        }
        start = ReadStart::Continuation(polled.continuation());
    }
}

fn strategy(arguments: &PollArguments) -> PollingStrategy {
    if let Some(offset) = arguments.offset {
        PollingStrategy::offset(offset)
    } else if arguments.first {
        PollingStrategy::first()
    } else if arguments.last {
        PollingStrategy::last()
    } else if let Some(moment) = arguments.timestamp {
        PollingStrategy::timestamp(match moment {
            Moment::At(micros) => micros,
            Moment::Ago(time) => now().saturating_sub(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        })
    } else {
        PollingStrategy::next()
    }
}

fn options(arguments: &PollArguments, count: u32) -> PollOptions {
    let mut options = PollOptions {
        count,
        ..PollOptions::default()
    };
    if arguments.all || arguments.follow {
        options.max_bytes = BULK_REPLY_BYTES;
    }
    let wait = if arguments.follow {
        Some(arguments.wait.unwrap_or(FOLLOW_WAIT))
    } else {
        arguments.wait
    };
    if let Some(wait) = wait {
        options.max_wait = wait.into();
    }
    options
}

/// Where messages go.
struct Sink {
    file: Option<BufWriter<File>>,
    progress: Option<Progress>,
    messages_count: u64,
    shown: Vec<Record>,
}

impl Sink {
    fn new(session: &Session, arguments: &PollArguments) -> Result<Self> {
        let create = |path: &std::path::PathBuf| {
            File::create(path)
                .map(BufWriter::new)
                .with_context(|| format!("cannot write {}", path.display()))
        };
        let file = arguments.output_file.as_ref().map(create).transpose()?;
        // What is printed is its own progress.
        let progress = file.is_some().then(|| Progress::start("read", session.output));
        Ok(Self {
            file,
            progress,
            messages_count: 0,
            shown: Vec::new(),
        })
    }

    fn write(&mut self, session: &Session, arguments: &PollArguments, polled: &PolledMessages) -> Result<()> {
        let mut lines = String::new();
        for message in &polled.messages {
            if arguments.raw {
                continue;
            }
            let incoming = incoming(polled.partition_id, message)?;
            if self.file.is_some() || session.output.is_json() {
                lines.push_str(&incoming.json().to_string());
                lines.push('\n');
            } else if arguments.follow || arguments.all {
                lines.push_str(&one_line(&incoming, arguments.show_headers));
            } else {
                self.shown.push(record(&incoming, arguments.show_headers));
            }
        }
        if arguments.raw {
            let payloads: Vec<_> = polled.messages.iter().map(|message| message.payload.as_ref()).collect();
            print_bytes(&payloads.concat())?;
        } else if let Some(file) = &mut self.file {
            file.write_all(lines.as_bytes())?;
        } else {
            print_text(&lines)?;
        }
        self.messages_count += u64::from(polled.count);
        if let Some(progress) = &self.progress {
            progress.add(u64::from(polled.count));
        }
        Ok(())
    }

    fn finish(mut self, session: &Session) -> Result<()> {
        self.progress = None;
        if let Some(mut file) = self.file {
            file.flush()?;
            return Ok(session
                .output
                .confirm(&format!("wrote {} messages", self.messages_count))?);
        }
        if !self.shown.is_empty() {
            session.output.records(&self.shown, Form::Table)?;
        } else if self.messages_count == 0 {
            session.output.note("no messages");
        }
        Ok(())
    }
}

fn incoming(partition_id: u32, message: &IggyMessage) -> Result<Incoming> {
    let header = &message.header;
    Ok(Incoming {
        partition_id,
        offset: header.offset,
        id: header.id,
        timestamp: header.timestamp,
        origin_timestamp: header.origin_timestamp,
        headers: message.user_headers_map()?.unwrap_or_default(),
        payload: message.payload.clone(),
    })
}

fn payload_text(message: &Incoming) -> String {
    match std::str::from_utf8(&message.payload) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{} bytes that are no text", message.payload.len()),
    }
}

fn headers_text(message: &Incoming) -> String {
    message
        .headers
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn record(message: &Incoming, headers: bool) -> Record {
    let record = Record::new()
        .with("offset", message.offset)
        .with("timestamp", Cell::Moment(message.timestamp))
        .with("id", format!("{:032x}", message.id));
    let record = if headers {
        record.with("headers", headers_text(message))
    } else {
        record
    };
    record.with("payload", payload_text(message))
}

/// One message of a stream of them: offset, headers when asked for, payload.
fn one_line(message: &Incoming, headers: bool) -> String {
    let payload = payload_text(message);
    let payload = payload.strip_suffix('\n').unwrap_or(&payload);
    if headers {
        format!("{}\t{}\t{payload}\n", message.offset, headers_text(message))
    } else {
        format!("{}\t{payload}\n", message.offset)
    }
}
