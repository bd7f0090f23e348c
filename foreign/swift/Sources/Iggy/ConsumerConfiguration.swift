// How consumers and readers work.

/// Further tries of ``IggyConsumer/initialize()`` when something is missing.
public struct Retries: Sendable, Hashable {
    /// How many.
    public var count: UInt32
    /// Before each. Default 1 s.
    public var interval: Duration?

    /// So many, with a pause before each.
    public init(count: UInt32, interval: Duration? = nil) {
        self.count = count
        self.interval = interval
    }
}

extension Retries: SettingValue {
    var setting: String { Settings().with("count", count).with("interval", interval).setting }
}

/// How a consumer works. A consumer of its own names its partitions, a member of a group does not.
public struct ConsumerConfiguration: Sendable {
    /// What it reads.
    public var partitions: [UInt32]?
    /// Where each partition starts. Default next.
    public var start: PollingStrategy?
    /// Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
    public var pollOptions: PollOptions?
    /// Bytes read ahead at most. Default 16 MiB.
    public var prefetchBytes: UInt64?
    /// Messages read ahead at most. Default 16000, or the count of a read.
    public var prefetchMessages: UInt64?
    /// Whether a missing group is created. Default true.
    public var createConsumerGroup: Bool?
    /// Longest pause before a refused partition is read again. Default 1 s.
    public var pollingRetryInterval: Duration?
    /// Default none.
    public var initRetries: Retries?
    /// Hands messages out again that were handed out before a rebalance. Default false.
    public var allowReplay: Bool?
    /// How long positions may take to be stored at the end. Default 5 s.
    public var offsetDrainTimeout: Duration?
    /// Default that of the client.
    public var encryption: EncryptionChoice

    /// With the defaults of the client for what is left out.
    public init(
        partitions: [UInt32]? = nil, start: PollingStrategy? = nil, pollOptions: PollOptions? = nil,
        prefetchBytes: UInt64? = nil, prefetchMessages: UInt64? = nil, createConsumerGroup: Bool? = nil,
        pollingRetryInterval: Duration? = nil, initRetries: Retries? = nil, allowReplay: Bool? = nil,
        offsetDrainTimeout: Duration? = nil, encryption: EncryptionChoice = .ofClient
    ) {
        self.partitions = partitions
        self.start = start
        self.pollOptions = pollOptions
        self.prefetchBytes = prefetchBytes
        self.prefetchMessages = prefetchMessages
        self.createConsumerGroup = createConsumerGroup
        self.pollingRetryInterval = pollingRetryInterval
        self.initRetries = initRetries
        self.allowReplay = allowReplay
        self.offsetDrainTimeout = offsetDrainTimeout
        self.encryption = encryption
    }
}

extension ConsumerConfiguration: SettingValue {
    var setting: String {
        let settings = Settings()
            .with("partitions", partitions)
            .with("start", start)
            .with("poll_options", pollOptions)
            .with("prefetch_bytes", prefetchBytes)
            .with("prefetch_messages", prefetchMessages)
            .with("create_consumer_group", createConsumerGroup)
            .with("polling_retry_interval", pollingRetryInterval)
            .with("init_retries", initRetries)
            .with("allow_replay", allowReplay)
            .with("offset_drain_timeout", offsetDrainTimeout)
        return encryption.added(to: settings).setting
    }
}

/// How a reader works.
public struct ReaderConfiguration: Sendable {
    /// What it reads.
    public var partitions: [UInt32]
    /// Where each partition starts. Default next.
    public var start: PollingStrategy?
    /// Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
    public var pollOptions: PollOptions?
    /// Bytes read ahead at most. Default 16 MiB.
    public var prefetchBytes: UInt64?
    /// Messages read ahead at most. Default 16000, or the count of a read.
    public var prefetchMessages: UInt64?

    /// Of these partitions, with the defaults of the client for what is left out.
    public init(
        partitions: [UInt32], start: PollingStrategy? = nil, pollOptions: PollOptions? = nil,
        prefetchBytes: UInt64? = nil, prefetchMessages: UInt64? = nil
    ) {
        self.partitions = partitions
        self.start = start
        self.pollOptions = pollOptions
        self.prefetchBytes = prefetchBytes
        self.prefetchMessages = prefetchMessages
    }
}

extension ReaderConfiguration: SettingValue {
    var setting: String {
        Settings()
            .with("partitions", partitions)
            .with("start", start)
            .with("options", pollOptions)
            .with("prefetch_bytes", prefetchBytes)
            .with("prefetch_messages", prefetchMessages)
            .setting
    }
}
