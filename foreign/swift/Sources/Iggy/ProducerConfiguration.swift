// How a producer works.

import Foundation
internal import IggyNative

/// How a send finds its partition.
public enum Partitioning: Sendable, Hashable {
    /// Each in turn.
    case balanced
    /// This one.
    case partition(UInt32)
    /// By a key of 1 to 255 bytes: the same key leads to the same partition, whichever language sends it.
    case key(Data)

    /// By the bytes of a text.
    public static func key(_ text: String) -> Self { .key(Data(text.utf8)) }
    /// By the eight bytes of a number, lowest first.
    public static func key(_ number: UInt64) -> Self { .key(withUnsafeBytes(of: number.littleEndian) { Data($0) }) }
}

extension Partitioning: SettingValue {
    var setting: String {
        switch self {
        case .balanced: "balanced".setting
        case .partition(let id): Settings().with("partition", id).setting
        case .key(let key): Settings().with("key", key).setting
        }
    }

    var native: NativePartitioning {
        switch self {
        case .balanced: .balanced
        case .partition(let id): .partition(id: id)
        case .key(let key): .key(key: key)
        }
    }
}

/// Sends as part of the call.
public struct DirectSending: Sendable, Hashable {
    /// Most messages of one request; a longer send is split; 0 for as many as fit. Default 1000.
    public var batchLength: UInt32?
    /// Least time between two sends. Default none.
    public var lingerTime: Duration?

    /// With the defaults of the client for what is nil.
    public init(batchLength: UInt32? = nil, lingerTime: Duration? = nil) {
        self.batchLength = batchLength
        self.lingerTime = lingerTime
    }
}

extension DirectSending: SettingValue {
    var setting: String { Settings().with("batch_length", batchLength).with("linger_time", lingerTime).setting }
}

/// Which worker takes a send.
public enum Sharding: String, Sendable, Hashable {
    /// The same for each topic.
    case ordered
    /// Each in turn.
    case balanced
}

/// What a send does when the buffer is full.
public enum Backpressure: Sendable, Hashable {
    /// Waits; the default.
    case block
    /// Waits so long and fails then.
    case blockWithTimeout(Duration)
    /// Fails.
    case failImmediately
}

extension Backpressure: SettingValue {
    var setting: String {
        switch self {
        case .block: "block".setting
        case .blockWithTimeout(let limit): Settings().with("block_with_timeout", limit).setting
        case .failImmediately: "fail_immediately".setting
        }
    }
}

/// Sends in the background.
public struct BackgroundSending: Sendable, Hashable {
    /// Workers. Default 1.
    public var shardCount: UInt32?
    /// Default ordered.
    public var sharding: Sharding?
    /// Bytes that are sent without waiting for more; 0 for no such threshold. Default 1 MiB.
    public var batchSize: UInt64?
    /// Sends that are sent without waiting for more; 0 for no such threshold. Default 1000.
    public var batchLength: UInt64?
    /// How long a worker waits for more. Default 1 ms.
    public var lingerTime: Duration?
    /// Bytes all buffered sends may take; 0 for no limit but the queues. Default 32 MiB.
    public var maxBufferSize: UInt64?
    /// Default to block.
    public var failureMode: Backpressure?
    /// Requests a worker has under way at once; above 1 their order is not kept. Default 1.
    public var maxInFlight: UInt32?

    /// With the defaults of the client for what is nil.
    public init(
        shardCount: UInt32? = nil, sharding: Sharding? = nil, batchSize: UInt64? = nil, batchLength: UInt64? = nil,
        lingerTime: Duration? = nil, maxBufferSize: UInt64? = nil, failureMode: Backpressure? = nil,
        maxInFlight: UInt32? = nil
    ) {
        self.shardCount = shardCount
        self.sharding = sharding
        self.batchSize = batchSize
        self.batchLength = batchLength
        self.lingerTime = lingerTime
        self.maxBufferSize = maxBufferSize
        self.failureMode = failureMode
        self.maxInFlight = maxInFlight
    }
}

extension BackgroundSending: SettingValue {
    var setting: String {
        Settings()
            .with("num_shards", shardCount)
            .with("sharding", sharding?.rawValue)
            .with("batch_size", batchSize)
            .with("batch_length", batchLength)
            .with("linger_time", lingerTime)
            .with("max_buffer_size", maxBufferSize)
            .with("failure_mode", failureMode)
            .with("max_in_flight", maxInFlight)
            .setting
    }
}

/// Whether sends are part of the call or go on in the background.
public enum Sending: Sendable, Hashable {
    /// A send ends when the server has answered.
    case direct(DirectSending = DirectSending())
    /// A send ends when it is buffered.
    case background(BackgroundSending = BackgroundSending())
}

/// What the acknowledgement of a message promises.
public enum Durability: String, Sendable, Hashable {
    /// It survives the crash of a process.
    case replicated
    /// It survives the loss of power.
    case persisted
}

/// How a producer creates a topic that is missing.
public struct NewTopic: Sendable, Hashable {
    /// Default 1.
    public var partitionsCount: UInt32?
    /// 0 for never. Default that of the server.
    public var messageExpiry: Duration?
    /// Bytes; 0 for unlimited. Default that of the server.
    public var maxTopicSize: UInt64?
    /// Default replicated.
    public var durability: Durability?

    /// With defaults for what is nil.
    public init(
        partitionsCount: UInt32? = nil, messageExpiry: Duration? = nil, maxTopicSize: UInt64? = nil,
        durability: Durability? = nil
    ) {
        self.partitionsCount = partitionsCount
        self.messageExpiry = messageExpiry
        self.maxTopicSize = maxTopicSize
        self.durability = durability
    }
}

extension NewTopic: SettingValue {
    var setting: String {
        Settings()
            .with("partitions_count", partitionsCount)
            .with("message_expiry", messageExpiry)
            .with("max_topic_size", maxTopicSize)
            .with("durability", durability?.rawValue)
            .setting
    }
}

/// Which encryption something has that the client may have another of.
public enum EncryptionChoice: Sendable, Hashable {
    /// That of the client, or none when it has none; the default.
    case ofClient
    /// None.
    case none
    /// This one.
    case own(Encryption)

    func added(to settings: Settings) -> Settings {
        switch self {
        case .ofClient: settings
        case .none: settings.with("without_encryption", true)
        case .own(let encryption): settings.with("encryption", encryption)
        }
    }
}

/// How a producer works.
public struct ProducerConfiguration: Sendable {
    /// How sends find their partition. Default balanced.
    public var partitioning: Partitioning?
    /// Chooses the partition of each send instead. Default none.
    public var partitioner: Partitioner?
    /// Whether a missing stream is created. Default true.
    public var createStream: Bool
    /// How a missing topic is created; nil for not at all. Default with one partition.
    public var createTopic: NewTopic?
    /// Whether the partition writes each batch once, however often it is sent. Default false.
    public var idempotent: Bool
    /// Default direct.
    public var sending: Sending
    /// Hears of each background send that failed, on a thread of the client. It must not block.
    public var onError: (@Sendable (IggyError) -> Void)?
    /// Default that of the client.
    public var encryption: EncryptionChoice

    /// With defaults for what is left out.
    public init(
        partitioning: Partitioning? = nil, partitioner: Partitioner? = nil, createStream: Bool = true,
        createTopic: NewTopic? = NewTopic(), idempotent: Bool = false, sending: Sending = .direct(),
        onError: (@Sendable (IggyError) -> Void)? = nil, encryption: EncryptionChoice = .ofClient
    ) {
        self.partitioning = partitioning
        self.partitioner = partitioner
        self.createStream = createStream
        self.createTopic = createTopic
        self.idempotent = idempotent
        self.sending = sending
        self.onError = onError
        self.encryption = encryption
    }
}

extension ProducerConfiguration: SettingValue {
    var setting: String {
        var settings = Settings().with("partitioning", partitioning).with("create_stream", createStream)
        settings = createTopic.map { settings.with("create_topic", $0) } ?? settings.with("create_topic", false)
        settings = settings.with("idempotent", idempotent)
        switch sending {
        case .direct(let direct): settings = settings.with("direct", direct)
        case .background(let background): settings = settings.with("background", background)
        }
        return encryption.added(to: settings).setting
    }
}
