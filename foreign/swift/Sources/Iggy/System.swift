// What the server answers about itself, its connections and its cluster. Times are microseconds, sizes bytes.

/// A connection.
public struct ConnectedClient: Sendable, Hashable, Decodable {
    public let clientID: UInt32
    /// Nil before it signed in.
    public let userID: UInt32?
    public let transport: String
    public let address: String
    public let consumerGroupsCount: UInt32
}

/// A group that a connection is a member of.
public struct ConnectedGroup: Sendable, Hashable, Decodable {
    public let streamID: UInt32
    public let topicID: UInt32
    public let groupID: UInt32
}

/// A connection and its groups.
public struct ConnectedClientDetails: Sendable, Hashable, Decodable {
    public let clientID: UInt32
    /// Nil before it signed in.
    public let userID: UInt32?
    public let transport: String
    public let address: String
    public let consumerGroupsCount: UInt32
    public let consumerGroups: [ConnectedGroup]
}

/// A node. The port of a transport that is not served is nil.
public struct Node: Sendable, Hashable, Decodable {
    public let replicaID: UInt8
    public let name: String
    public let address: String
    public let tcp: UInt16?
    public let quic: UInt16?
    public let http: UInt16?
    public let websocket: UInt16?
    /// As `leader`.
    public let role: String
    /// As `healthy`.
    public let status: String
}

/// The nodes.
public struct Cluster: Sendable, Hashable, Decodable {
    public let name: String
    public let nodes: [Node]
}

/// Kinds of resources that have options.
public enum OptionScope: String, Sendable, Hashable {
    case stream
    case topic
    case user
}

/// An option of a kind of resource.
public struct OptionDescription: Sendable, Hashable, Decodable {
    public let key: String
    public let kind: String?
    public let `default`: String?
    public let updatable: Bool
    public let resettable: Bool
    public let secret: Bool
    public let readOnly: Bool
    public let critical: Bool
    public let description: String
}

/// The cache of a partition.
public struct CacheMetrics: Sendable, Hashable, Decodable {
    public let streamID: UInt32
    public let topicID: UInt32
    public let partitionID: UInt32
    public let hits: UInt64
    public let misses: UInt64
    public let hitRatio: Float
}

/// What a node counts about itself. Processor use is percent of one core.
public struct Stats: Sendable, Hashable, Decodable {
    public let processID: UInt32
    public let cpuUsage: Float
    public let totalCpuUsage: Float
    public let memoryUsage: UInt64
    public let totalMemory: UInt64
    public let availableMemory: UInt64
    public let runTime: UInt64
    public let startTime: UInt64
    public let readBytes: UInt64
    public let writtenBytes: UInt64
    public let messagesSizeBytes: UInt64
    public let streamsCount: UInt32
    public let topicsCount: UInt32
    public let partitionsCount: UInt32
    public let segmentsCount: UInt32
    public let messagesCount: UInt64
    public let clientsCount: UInt32
    public let consumerGroupsCount: UInt32
    public let hostname: String
    public let osName: String
    public let osVersion: String
    public let kernelVersion: String
    public let iggyServerVersion: String
    public let threadsCount: UInt32
    public let freeDiskSpace: UInt64
    public let totalDiskSpace: UInt64
    public let openFilesCount: UInt64
    public let openFilesLimit: UInt64
    public let cache: [CacheMetrics]
}

/// The transport, and the node that is talked to.
public struct ConnectionInfo: Sendable, Hashable, Decodable {
    public let `protocol`: String
    public let serverAddress: String
}

/// A diagnostic snapshot.
public struct SnapshotRequest: Sendable, Hashable {
    /// What it holds, as `test` or `server_config`; everything when empty.
    public var types: [String]
    /// As `stored`, `deflated` or `zstd`. Default deflated.
    public var compression: String?

    /// Of everything unless `types` says what.
    public init(types: [String] = [], compression: String? = nil) {
        self.types = types
        self.compression = compression
    }
}

/// Where a page of metadata changes starts.
public enum ChangesStart: Sendable, Hashable {
    /// At the oldest change that is kept.
    case earliest
    /// After the newest.
    case latest
    /// With what exists now; a token goes on with it.
    case current(token: String? = nil)
    /// After another page: its ``MetadataChanges/next``.
    case after(String)
}

/// Which metadata changes are asked for.
public struct ChangesRequest: Sendable, Hashable {
    /// Where the page starts.
    public var start: ChangesStart
    /// Not before this time, in microseconds since the Unix epoch.
    public var since: UInt64?
    /// Not after this time, in microseconds since the Unix epoch.
    public var until: UInt64?
    /// Most records. Default 1000.
    public var limit: UInt32?
    /// Only these groups of changes; all when empty.
    public var groups: [UInt8]

    /// From the oldest change unless `start` says where.
    public init(
        start: ChangesStart = .earliest, since: UInt64? = nil, until: UInt64? = nil, limit: UInt32? = nil,
        groups: [UInt8] = []
    ) {
        self.start = start
        self.since = since
        self.until = until
        self.limit = limit
        self.groups = groups
    }
}

extension ChangesRequest: SettingValue {
    var setting: String {
        let (word, token): (String, String?) = switch start {
        case .earliest: ("earliest", nil)
        case .latest: ("latest", nil)
        case .current(let token): ("current", token)
        case .after(let next): (next, nil)
        }
        return Settings().with("start", word).with("token", token).with("since", since).with("until", until)
            .with("limit", limit).with("groups", groups).setting
    }
}

/// What JSON can say.
public indirect enum JSONValue: Sendable, Hashable, Decodable {
    case null
    case bool(Bool)
    case unsigned(UInt64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() { self = .null }
        else if let found = try? value.decode(Bool.self) { self = .bool(found) }
        else if let found = try? value.decode(UInt64.self) { self = .unsigned(found) }
        else if let found = try? value.decode(Double.self) { self = .number(found) }
        else if let found = try? value.decode(String.self) { self = .string(found) }
        else if let found = try? value.decode([JSONValue].self) { self = .array(found) }
        else { self = .object(try value.decode([String: JSONValue].self)) }
    }
}

/// Something that changed.
public struct MetadataRecord: Sendable, Hashable, Decodable {
    /// The metadata position that changed it.
    public let op: UInt64
    /// Its place among the changes of that position.
    public let ordinal: UInt32
    public let timestamp: UInt64
    /// Who changed it.
    public let actorUserID: UInt32?
    /// As `stream_created`.
    public let kind: String
    /// What is known about it.
    public let change: JSONValue
}

/// A page of metadata changes.
public struct MetadataChanges: Sendable, Hashable, Decodable {
    public let status: String
    public let phase: String
    /// Where the next page starts.
    public let next: String?
    /// Continues a scan of what exists now.
    public let token: String?
    public let hasMore: Bool
    /// What changed, in order.
    public let records: [MetadataRecord]
    /// What exists now, of a scan.
    public let items: [JSONValue]
}

/// Whether a write of unknown outcome was applied.
public struct Resolution: Sendable, Hashable, Decodable {
    /// Never unknown.
    public let outcome: String
    /// Of the refusal, when it was not applied.
    public let code: UInt32?
    /// Its name.
    public let name: String?

    /// Whether it was applied.
    public var isApplied: Bool { outcome == Outcome.applied.rawValue }
}
