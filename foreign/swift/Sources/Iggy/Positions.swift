// Where a read starts, where it goes on, and how far messages were processed.

import Foundation
internal import IggyNative

/// Where a read starts, in whatever history the partition has.
public enum PollingStrategy: Sendable, Hashable {
    /// At the oldest message.
    case first
    /// At the newest messages.
    case last
    /// After the stored offset of the consumer.
    case next
    /// At this offset.
    case offset(UInt64)
    /// At the first message that the server took at or after this time, in microseconds since the Unix epoch.
    case timestamp(UInt64)

    /// At the first message that the server took at or after this time; before 1970 is the oldest.
    public static func timestamp(_ date: Date) -> Self {
        .timestamp(UInt64(max(0, date.timeIntervalSince1970 * 1_000_000)))
    }
}

extension PollingStrategy: SettingValue {
    var setting: String {
        switch self {
        case .first: "first".setting
        case .last: "last".setting
        case .next: "next".setting
        case .offset(let offset): Settings().with("offset", offset).setting
        case .timestamp(let micros): Settings().with("timestamp", micros).setting
        }
    }

    var native: NativeStrategy {
        switch self {
        case .first: .first
        case .last: .last
        case .next: .next
        case .offset(let offset): .offset(offset: offset)
        case .timestamp(let micros): .timestamp(micros: micros)
        }
    }

    init(_ native: NativeStrategy) {
        self = switch native {
        case .first: .first
        case .last: .last
        case .next: .next
        case .offset(let offset): .offset(offset)
        case .timestamp(let micros): .timestamp(micros)
        }
    }
}

/// A history of a partition: one that was deleted and made again has another.
struct History: Sendable, Hashable {
    let incarnation: UInt64
    let ownerGeneration: UInt64
    let metadataOp: UInt64
}

/// Where the next read of a partition starts, in the history that was read.
public struct Continuation: Sendable, Hashable {
    /// The partition it belongs to.
    public let partitionID: UInt32
    /// Where in it.
    public let strategy: PollingStrategy
    let history: History?

    /// The offset it starts at, when it starts at one.
    public var offset: UInt64? {
        if case .offset(let offset) = strategy { offset } else { nil }
    }

    init(_ native: NativeContinuation) {
        partitionID = native.partitionId
        strategy = PollingStrategy(native.strategy)
        history = native.history.map {
            History(incarnation: $0.incarnation, ownerGeneration: $0.ownerGeneration, metadataOp: $0.metadataOp)
        }
    }

    var native: NativeContinuation {
        let history = history.map {
            NativeHistory(incarnation: $0.incarnation, ownerGeneration: $0.ownerGeneration, metadataOp: $0.metadataOp)
        }
        return NativeContinuation(partitionId: partitionID, strategy: strategy.native, history: history)
    }
}

/// Where a read starts: by strategy, or where another read ended.
public enum ReadStart: Sendable, Hashable {
    /// In whatever history the partition has.
    case strategy(PollingStrategy)
    /// In the history of the other read; another one is refused.
    case continuation(Continuation)

    /// At the oldest message.
    public static let first = ReadStart.strategy(.first)
    /// At the newest messages.
    public static let last = ReadStart.strategy(.last)
    /// After the stored offset of the consumer.
    public static let next = ReadStart.strategy(.next)
    /// At this offset.
    public static func offset(_ offset: UInt64) -> Self { .strategy(.offset(offset)) }
    /// At the first message that the server took at or after this time, in microseconds since the Unix epoch.
    public static func timestamp(_ micros: UInt64) -> Self { .strategy(.timestamp(micros)) }
    /// At the first message that the server took at or after this time.
    public static func timestamp(_ date: Date) -> Self { .strategy(.timestamp(date)) }

    var native: NativeStart {
        switch self {
        case .strategy(let strategy): .strategy(strategy: strategy.native)
        case .continuation(let continuation): .continuation(continuation: continuation.native)
        }
    }
}

/// A position to commit: every message up to its offset was processed. One that was encoded and decoded again has lost from
/// which reader it came, and is otherwise the same.
public struct Checkpoint: Sendable {
    let native: NativeCheckpoint
    private let position: NativePosition

    init(_ native: NativeCheckpoint) {
        self.native = native
        position = native.position()
    }

    /// From its parts, as an application kept them.
    public init(partitionID: UInt32, offset: UInt64, incarnation: UInt64, ownerGeneration: UInt64 = 0) {
        self.init(NativeCheckpoint(
            partitionId: partitionID, offset: offset, incarnation: incarnation, ownerGeneration: ownerGeneration))
    }

    /// The partition.
    public var partitionID: UInt32 { position.partitionId }
    /// The offset of the last processed message.
    public var offset: UInt64 { position.offset }
    /// The history it belongs to: a partition that was deleted and made again has another.
    public var incarnation: UInt64 { position.incarnation }
    /// The ownership within its group; 0 for none.
    public var ownerGeneration: UInt64 { position.ownerGeneration }
    /// The same position at another message of the same read.
    public func at(offset: UInt64) -> Checkpoint { Checkpoint(native.at(offset: offset)) }
    /// Where a read goes on after it.
    public var continuation: Continuation { Continuation(native.continuation()) }
}

extension Checkpoint: Hashable {
    private var parts: [UInt64] { [UInt64(partitionID), offset, incarnation, ownerGeneration] }

    public static func == (one: Checkpoint, other: Checkpoint) -> Bool { one.parts == other.parts }
    public func hash(into hasher: inout Hasher) { hasher.combine(parts) }
}

extension Checkpoint: Codable {
    private enum CodingKeys: String, CodingKey {
        case partitionID = "partition_id"
        case offset
        case incarnation
        case ownerGeneration = "owner_generation"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            partitionID: try values.decode(UInt32.self, forKey: .partitionID),
            offset: try values.decode(UInt64.self, forKey: .offset),
            incarnation: try values.decode(UInt64.self, forKey: .incarnation),
            ownerGeneration: try values.decode(UInt64.self, forKey: .ownerGeneration))
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(partitionID, forKey: .partitionID)
        try values.encode(offset, forKey: .offset)
        try values.encode(incarnation, forKey: .incarnation)
        try values.encode(ownerGeneration, forKey: .ownerGeneration)
    }
}
