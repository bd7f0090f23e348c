// The limits of a read, and when positions are stored.

/// How many messages make positions be stored that the client counted.
public enum CommitEvery: Sendable, Hashable {
    /// So many; more than 0.
    case messages(UInt32)
    /// Each message.
    case message
    /// Each batch.
    case batch
    /// No number does: by time alone.
    case timeAlone

    var setting: String {
        switch self {
        case .messages(let count): count.setting
        case .message: "message".setting
        case .batch: "batch".setting
        case .timeAlone: 0.setting
        }
    }
}

extension CommitEvery: SettingValue {}

/// What counts as done.
public enum CommitAfter: String, Sendable, Hashable {
    /// The next message was asked for.
    case processing
    /// It was handed out.
    case delivery
    /// It was marked: see ``IggyConsumer/mark(_:)``.
    case marked
}

/// How often positions are stored that the client counted.
public struct AutoCommit: Sendable, Hashable {
    /// 0 for not by time. Default 5 s.
    public var interval: Duration?
    /// Default every 10000 messages.
    public var every: CommitEvery?
    /// Default processing.
    public var after: CommitAfter?

    /// With the defaults of the client for what is nil.
    public init(interval: Duration? = nil, every: CommitEvery? = nil, after: CommitAfter? = nil) {
        self.interval = interval
        self.every = every
        self.after = after
    }

    /// Every 5 s or 10000 messages, once they were processed.
    public static let `default` = AutoCommit()
}

/// When the position of a consumer is stored.
public enum CommitPolicy: Sendable, Hashable {
    /// When the application stores it; the default.
    case manual
    /// By the server as part of the read.
    case onRead
    /// By the client, as it counts. Not for a single poll.
    case auto(AutoCommit)
}

extension CommitPolicy: SettingValue {
    var setting: String {
        switch self {
        case .manual: return "manual".setting
        case .onRead: return "on_read".setting
        case .auto(let auto):
            let how = Settings().with("interval", auto.interval).with("every", auto.every)
                .with("after", auto.after?.rawValue)
            return Settings().with("auto", how).setting
        }
    }
}

/// The limits of one read and its commit policy.
public struct PollOptions: Sendable, Hashable {
    /// Most messages. Default 1000.
    public var count: UInt32?
    /// How long the server waits for `minCount` messages, at most 10 minutes. Default 0; consumers and readers 5 s.
    public var maxWait: Duration?
    /// Messages that end the wait, 1 up to `count`. Default 1.
    public var minCount: UInt32?
    /// Most bytes of the reply, at least 344; a larger first message comes alone. Default 1 MiB.
    public var maxBytes: UInt32?
    /// Default manual.
    public var commit: CommitPolicy?

    /// With the defaults of the client for what is nil.
    public init(
        count: UInt32? = nil, maxWait: Duration? = nil, minCount: UInt32? = nil, maxBytes: UInt32? = nil,
        commit: CommitPolicy? = nil
    ) {
        self.count = count
        self.maxWait = maxWait
        self.minCount = minCount
        self.maxBytes = maxBytes
        self.commit = commit
    }
}

extension PollOptions: SettingValue {
    var setting: String {
        Settings().with("count", count).with("max_wait", maxWait).with("min_count", minCount)
            .with("max_bytes", maxBytes).with("commit", commit).setting
    }
}
