//! What the server counts, and the page that Prometheus reads it from.
//!
//! Counters are cheap clones: a shard takes the ones it needs once and adds to them without a lock. Gauges are sampled
//! when the page is read, so that nobody has to keep them true in between.

mod listener;
mod page;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;

pub use page::{Access, Sampler, TokenCheck, serve};

/// Label of counters that are kept per command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabel {
    command: &'static str,
}

/// Label of counters that are kept per error or reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// How many of each thing there are, sampled when the page is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Streams.
    pub streams: u64,
    /// Topics of all streams.
    pub topics: u64,
    /// Partitions of all topics.
    pub partitions: u64,
    /// Segments of all partitions of this node.
    pub segments: u64,
    /// Messages of all partitions of this node.
    pub messages: u64,
    /// Bytes of all segments of this node.
    pub messages_bytes: u64,
    /// Users.
    pub users: u64,
    /// Connections that are logged in.
    pub clients: u64,
    /// Consumer groups of all topics.
    pub consumer_groups: u64,
    /// Polls and fetches that wait for messages; a fetch counts once on each shard at which it waits.
    pub waiting_reads: u64,
    /// Messages appended since the process started.
    pub appended: u64,
    /// Messages sent to consumers since the process started.
    pub polled: u64,
}

/// Every metric of the node. Clones count into the same numbers.
#[derive(Clone, Default)]
pub struct Metrics {
    /// Connections accepted, over every listener.
    pub connections_accepted: Counter,
    /// Bytes of request frames read, headers included.
    pub received_bytes: Counter,
    /// Bytes of reply frames written, headers included.
    pub sent_bytes: Counter,
    /// Messages appended to partitions of this node.
    pub appended_messages: Counter,
    /// Messages sent to consumers by this node.
    pub polled_messages: Counter,
    /// Requests for the metrics page.
    pub http_requests: Counter,
    requests: Family<CommandLabel, Counter>,
    refusals: Family<ReasonLabel, Counter>,
    evictions: Family<ReasonLabel, Counter>,
    gauges: Gauges,
}

#[derive(Clone, Default)]
struct Gauges {
    streams: Gauge,
    topics: Gauge,
    partitions: Gauge,
    segments: Gauge,
    messages: Gauge,
    messages_bytes: Gauge,
    users: Gauge,
    clients: Gauge,
    consumer_groups: Gauge,
    waiting_reads: Gauge,
}

impl Metrics {
    /// Counter of requests of one command (`stream.create`). Takes a lock; keep the counter.
    pub fn requests(&self, command: &'static str) -> Counter {
        self.requests.get_or_create_owned(&CommandLabel { command })
    }

    /// Counter of requests answered with one error (`stream_name_not_found`). Takes a lock; keep the counter.
    pub fn refusals(&self, error: &'static str) -> Counter {
        self.refusals.get_or_create_owned(&ReasonLabel { reason: error })
    }

    /// Counter of sessions evicted for one reason. Takes a lock; keep the counter.
    pub fn evictions(&self, reason: &'static str) -> Counter {
        self.evictions.get_or_create_owned(&ReasonLabel { reason })
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register(
            "connections_accepted",
            "Connections accepted",
            self.connections_accepted.clone(),
        );
        registry.register("received_bytes", "Bytes of request frames", self.received_bytes.clone());
        registry.register("sent_bytes", "Bytes of reply frames", self.sent_bytes.clone());
        registry.register("appended_messages", "Messages appended", self.appended_messages.clone());
        registry.register(
            "polled_messages",
            "Messages sent to consumers",
            self.polled_messages.clone(),
        );
        registry.register(
            "http_requests",
            "Requests for the metrics page",
            self.http_requests.clone(),
        );
        registry.register("requests", "Requests by command", self.requests.clone());
        registry.register(
            "refusals",
            "Requests answered with an error, by error",
            self.refusals.clone(),
        );
        registry.register("evictions", "Sessions evicted, by reason", self.evictions.clone());
        let gauges = &self.gauges;
        registry.register("streams", "Streams", gauges.streams.clone());
        registry.register("topics", "Topics", gauges.topics.clone());
        registry.register("partitions", "Partitions", gauges.partitions.clone());
        registry.register("segments", "Segments of this node", gauges.segments.clone());
        registry.register("messages", "Messages of this node", gauges.messages.clone());
        registry.register(
            "messages_bytes",
            "Bytes of the segments of this node",
            gauges.messages_bytes.clone(),
        );
        registry.register("users", "Users", gauges.users.clone());
        registry.register("clients", "Connections that are logged in", gauges.clients.clone());
        registry.register("consumer_groups", "Consumer groups", gauges.consumer_groups.clone());
        registry.register(
            "waiting_reads",
            "Polls and fetches that wait for messages",
            gauges.waiting_reads.clone(),
        );
        registry
    }

    fn record(&self, sample: &Sample) {
        self.appended_messages.inner().store(sample.appended, Ordering::Relaxed);
        self.polled_messages.inner().store(sample.polled, Ordering::Relaxed);
        let set = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.gauges.streams, sample.streams);
        set(&self.gauges.topics, sample.topics);
        set(&self.gauges.partitions, sample.partitions);
        set(&self.gauges.segments, sample.segments);
        set(&self.gauges.messages, sample.messages);
        set(&self.gauges.messages_bytes, sample.messages_bytes);
        set(&self.gauges.users, sample.users);
        set(&self.gauges.clients, sample.clients);
        set(&self.gauges.consumer_groups, sample.consumer_groups);
        set(&self.gauges.waiting_reads, sample.waiting_reads);
    }
}

fn render(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    text::encode(&mut page, registry)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_counts_and_a_sample_should_render_both() {
        let metrics = Metrics::default();
        let registry = metrics.registry();
        metrics.requests("stream.create").inc();
        metrics.clone().requests("stream.create").inc();
        metrics.received_bytes.inc_by(256);
        metrics.record(&Sample {
            streams: 3,
            messages: u64::MAX,
            ..Sample::default()
        });
        let page = render(&registry).unwrap();
        for line in [
            "requests_total{command=\"stream.create\"} 2",
            "received_bytes_total 256",
            "streams 3",
            "messages 9223372036854775807",
        ] {
            assert!(page.lines().any(|found| found == line), "no `{line}` in\n{page}");
        }
    }
}
