//! The workloads by name, and who works in each.

use super::actors::Role;
use super::options::Options;
use clap::{Args, Subcommand};
use std::collections::BTreeMap;

/// The workloads.
#[derive(Subcommand, Clone, Debug)]
pub enum Workload {
    /// Producers, each with a stream and a partition of its own
    #[command(visible_alias = "pp")]
    PinnedProducer(Producers),

    /// Consumers, each with a stream and a partition of its own, which are filled first
    #[command(visible_alias = "pc")]
    PinnedConsumer(Consumers),

    /// Producers with streams of their own, and consumers that read these meanwhile
    #[command(visible_alias = "ppc")]
    PinnedProducerAndConsumer(ProducersAndConsumers),

    /// Producers that send to all partitions of shared streams in turn
    #[command(visible_alias = "bp")]
    BalancedProducer(BalancedProducers),

    /// Members of consumer groups that share streams, which are filled first
    #[command(visible_alias = "bcg")]
    BalancedConsumerGroup(Members),

    /// Producers that send to shared streams, and members of groups that read them meanwhile
    #[command(visible_alias = "bpcg")]
    BalancedProducerAndConsumerGroup(ProducersAndMembers),

    /// Actors that send a batch to a stream of their own and read it before they send the next one
    #[command(visible_alias = "e2e")]
    EndToEndProducingConsumer(Producers),

    /// The same through a consumer group
    #[command(visible_alias = "e2ecg")]
    EndToEndProducingConsumerGroup(Producers),
}

/// Actors that send.
#[derive(Args, Clone, Debug)]
pub struct Producers {
    /// Producers, 1 to 1000
    #[arg(long, short = 'p', default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    producers: u32,

    #[command(flatten)]
    options: Options,
}

/// Actors that read.
#[derive(Args, Clone, Debug)]
pub struct Consumers {
    /// Consumers, 1 to 1000
    #[arg(long, short = 'c', default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    consumers: u32,

    #[command(flatten)]
    options: Options,
}

/// Both.
#[derive(Args, Clone, Debug)]
pub struct ProducersAndConsumers {
    /// Consumers, 1 to 1000; one more than producers reads what another one reads, too
    #[arg(long, short = 'c', default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    consumers: u32,

    #[command(flatten)]
    producers: Producers,
}

/// Streams that actors share.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// Streams, 1 to 1000
    #[arg(long, short = 's', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    streams: u32,

    /// Partitions of each stream, 1 to 1000
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    partitions: u32,
}

/// Producers of shared streams.
#[derive(Args, Clone, Debug)]
pub struct BalancedProducers {
    #[command(flatten)]
    shared: Shared,

    #[command(flatten)]
    producers: Producers,
}

/// Groups and their members.
#[derive(Args, Clone, Debug)]
pub struct Groups {
    /// Consumer groups of each stream, 1 to 100
    #[arg(long, short = 'g', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    consumer_groups: u32,
}

/// Members of groups of shared streams.
#[derive(Args, Clone, Debug)]
pub struct Members {
    #[command(flatten)]
    groups: Groups,

    #[command(flatten)]
    shared: Shared,

    #[command(flatten)]
    consumers: Consumers,
}

/// Producers and members of groups of shared streams.
#[derive(Args, Clone, Debug)]
pub struct ProducersAndMembers {
    /// Members, 1 to 1000
    #[arg(long, short = 'c', default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    consumers: u32,

    #[command(flatten)]
    groups: Groups,

    #[command(flatten)]
    balanced: BalancedProducers,
}

/// What one actor does, and where.
#[derive(Clone, Debug)]
pub struct Task {
    /// What it does.
    pub role: Role,
    /// Index of its stream.
    pub stream: u32,
    /// Readers of the same number share what there is to read.
    pub shares: u32,
}

/// Everybody who works.
#[derive(Clone, Debug)]
pub struct Crew {
    /// Streams.
    pub streams: u32,
    /// Partitions of each.
    pub partitions: u32,
    /// Whether what is read is written before.
    pub filled: bool,
    /// Everybody.
    pub tasks: Vec<Task>,
}

impl Workload {
    /// Its name, as on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PinnedProducer(_) => "pinned-producer",
            Self::PinnedConsumer(_) => "pinned-consumer",
            Self::PinnedProducerAndConsumer(_) => "pinned-producer-and-consumer",
            Self::BalancedProducer(_) => "balanced-producer",
            Self::BalancedConsumerGroup(_) => "balanced-consumer-group",
            Self::BalancedProducerAndConsumerGroup(_) => "balanced-producer-and-consumer-group",
            Self::EndToEndProducingConsumer(_) => "end-to-end-producing-consumer",
            Self::EndToEndProducingConsumerGroup(_) => "end-to-end-producing-consumer-group",
        }
    }

    /// What it was told.
    pub const fn options(&self) -> &Options {
        match self {
            Self::PinnedProducer(own)
            | Self::EndToEndProducingConsumer(own)
            | Self::EndToEndProducingConsumerGroup(own) => &own.options,
            Self::PinnedConsumer(own) => &own.options,
            Self::PinnedProducerAndConsumer(own) => &own.producers.options,
            Self::BalancedProducer(own) => &own.producers.options,
            Self::BalancedConsumerGroup(own) => &own.consumers.options,
            Self::BalancedProducerAndConsumerGroup(own) => &own.balanced.producers.options,
        }
    }

    /// Who works in it.
    pub fn crew(&self) -> Crew {
        match self {
            Self::PinnedProducer(own) => Crew::own(own.producers, false, |_| Role::Producer { partition: Some(0) }),
            Self::PinnedConsumer(own) => Crew::own(own.consumers, true, |_| Role::Consumer { partition: 0 }),
            Self::EndToEndProducingConsumer(own) => Crew::own(own.producers, false, |_| Role::Both { partition: 0 }),
            Self::EndToEndProducingConsumerGroup(own) => {
                let role = |actor| Role::BothInGroup {
                    partition: 0,
                    group: format!("group-{actor}"),
                };
                Crew::own(own.producers, false, role)
            }
            Self::PinnedProducerAndConsumer(own) => {
                let producers = own.producers.producers;
                let mut crew = Crew::own(producers, false, |_| Role::Producer { partition: Some(0) });
                crew.tasks.extend((0..own.consumers).map(|consumer| Task {
                    role: Role::Consumer { partition: 0 },
                    stream: consumer % producers,
                    shares: consumer,
                }));
                crew
            }
            Self::BalancedProducer(own) => Crew::shared(&own.shared, false).with_producers(own.producers.producers),
            Self::BalancedConsumerGroup(own) => {
                Crew::shared(&own.shared, true).with_members(own.consumers.consumers, own.groups.consumer_groups)
            }
            Self::BalancedProducerAndConsumerGroup(own) => Crew::shared(&own.balanced.shared, false)
                .with_producers(own.balanced.producers.producers)
                .with_members(own.consumers, own.groups.consumer_groups),
        }
    }
}

impl Crew {
    /// Everybody with a stream of one partition.
    fn own(actors: u32, filled: bool, role: impl Fn(u32) -> Role) -> Self {
        let task = |actor| Task {
            role: role(actor),
            stream: actor,
            shares: actor,
        };
        Self {
            streams: actors,
            partitions: 1,
            filled,
            tasks: (0..actors).map(task).collect(),
        }
    }

    fn shared(shared: &Shared, filled: bool) -> Self {
        Self {
            streams: shared.streams,
            partitions: shared.partitions,
            filled,
            tasks: Vec::new(),
        }
    }

    fn with_producers(mut self, producers: u32) -> Self {
        self.tasks.extend((0..producers).map(|producer| Task {
            role: Role::Producer { partition: None },
            stream: producer % self.streams,
            shares: producer,
        }));
        self
    }

    /// Members go round the streams, and round the groups of each.
    fn with_members(mut self, members: u32, groups: u32) -> Self {
        self.tasks.extend((0..members).map(|member| {
            let (stream, group) = (member % self.streams, member / self.streams % groups);
            Task {
                role: Role::Member {
                    group: format!("group-{group}"),
                },
                stream,
                shares: group * self.streams + stream,
            }
        }));
        self
    }

    /// How many send.
    pub fn senders(&self) -> u32 {
        self.count(true)
    }

    /// How many only read.
    pub fn readers(&self) -> u32 {
        self.count(false)
    }

    /// Whether those who send read it back, too.
    pub fn echoes(&self) -> bool {
        let echoes = |task: &Task| matches!(task.role, Role::Both { .. } | Role::BothInGroup { .. });
        self.tasks.iter().any(echoes)
    }

    fn count(&self, sends: bool) -> u32 {
        let found = self.tasks.iter().filter(|task| task.role.sends() == sends);
        u32::try_from(found.count()).unwrap_or(u32::MAX)
    }

    /// What there is to read, by the number that its readers share: its stream, and how many messages. Everything that is
    /// sent is read once by each group, and by each consumer.
    pub fn to_read(&self, options: &Options) -> BTreeMap<u32, (u32, u64)> {
        let batch = u64::from(options.messages_per_batch.middle());
        let mut all = BTreeMap::new();
        for task in self.tasks.iter().filter(|task| !task.role.sends()) {
            let (_, messages) = all.entry(task.shares).or_insert((task.stream, 0));
            if self.filled {
                *messages += u64::from(options.batches(self.readers())) * batch;
            } else {
                let senders = self.tasks.iter().filter(|other| other.role.sends());
                let senders = senders.filter(|other| other.stream == task.stream).count() as u64;
                *messages = senders * u64::from(options.batches(self.senders())) * batch;
            }
        }
        all
    }

    /// Messages that each stream must hold for its readers.
    pub fn to_fill(&self, options: &Options) -> BTreeMap<u32, u64> {
        let mut streams = BTreeMap::new();
        for (stream, messages) in self.to_read(options).into_values() {
            let most = streams.entry(stream).or_insert(0);
            *most = messages.max(*most);
        }
        streams
    }

    /// Bytes of payload that all move, about.
    pub fn bytes(&self, options: &Options) -> u64 {
        let senders = self.senders();
        let sent = u64::from(senders) * u64::from(options.batches(senders.max(1))) * options.batch_bytes();
        let read: u64 = self.to_read(options).into_values().map(|(_, messages)| messages).sum();
        sent + read * u64::from(options.message_size.middle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        workload: Workload,
    }

    fn crew(line: &str) -> (Crew, Options) {
        let workload = Line::parse_from(["bench"].into_iter().chain(line.split(' '))).workload;
        (workload.crew(), workload.options().clone())
    }

    #[test]
    fn given_consumers_of_producers_when_laid_out_should_read_what_theirs_sends() {
        let (crew, options) = crew("ppc -p 2 -c 3 -b 10 -P 5");
        assert_eq!((crew.streams, crew.senders(), crew.readers()), (2, 2, 3));
        let read: Vec<_> = crew.to_read(&options).into_values().collect();
        assert_eq!(read, [(0, 50), (1, 50), (0, 50)]);
        assert_eq!(crew.bytes(&options), 2 * 50_000 + 3 * 50_000);
    }

    #[test]
    fn given_members_of_groups_when_laid_out_should_share_what_their_group_reads() {
        let (crew, options) = crew("bcg -c 6 -g 2 -s 1 -b 10 -P 5");
        let read: Vec<_> = crew.to_read(&options).into_values().collect();
        assert_eq!(read, [(0, 150), (0, 150)], "three members each");
        assert_eq!(crew.to_fill(&options), BTreeMap::from([(0, 150)]));
    }

    #[test]
    fn given_producers_and_members_of_shared_streams_should_read_once_what_is_sent_to_each() {
        let (crew, options) = crew("bpcg -p 3 -c 2 -s 2 -b 10 -P 5");
        let read: Vec<_> = crew.to_read(&options).into_values().collect();
        assert_eq!(read, [(0, 100), (1, 50)], "two producers of the first stream");
    }
}
