// What the server answers about users, permissions and tokens. Times are microseconds since the Unix epoch.

/// What a user may do everywhere.
public enum GlobalPermission: String, Sendable, Hashable, CaseIterable {
    case manageServers = "manage_servers"
    case readServers = "read_servers"
    case manageUsers = "manage_users"
    case readUsers = "read_users"
    case manageStreams = "manage_streams"
    case readStreams = "read_streams"
    case manageTopics = "manage_topics"
    case readTopics = "read_topics"
    case pollMessages = "poll_messages"
    case sendMessages = "send_messages"
}

/// What a user may do with one stream.
public enum StreamPermission: String, Sendable, Hashable, CaseIterable {
    case manageStream = "manage_stream"
    case readStream = "read_stream"
    case manageTopics = "manage_topics"
    case readTopics = "read_topics"
    case pollMessages = "poll_messages"
    case sendMessages = "send_messages"
}

/// What a user may do with one topic.
public enum TopicPermission: String, Sendable, Hashable, CaseIterable {
    case manageTopic = "manage_topic"
    case readTopic = "read_topic"
    case pollMessages = "poll_messages"
    case sendMessages = "send_messages"
}

/// What a user may do with one stream, and with its topics by their number.
public struct StreamPermissions: Sendable, Hashable {
    /// With all of the stream.
    public var granted: Set<StreamPermission>
    /// With single topics.
    public var topics: [UInt32: Set<TopicPermission>]

    /// Nothing but this.
    public init(granted: Set<StreamPermission> = [], topics: [UInt32: Set<TopicPermission>] = [:]) {
        self.granted = granted
        self.topics = topics
    }
}

/// What a user may do.
public struct Permissions: Sendable, Hashable {
    /// Everywhere.
    public var global: Set<GlobalPermission>
    /// With streams by their number.
    public var streams: [UInt32: StreamPermissions]

    /// Nothing but this.
    public init(global: Set<GlobalPermission> = [], streams: [UInt32: StreamPermissions] = [:]) {
        self.global = global
        self.streams = streams
    }
}

private func names(_ granted: Set<some RawRepresentable<String>>) -> [String] { granted.map(\.rawValue).sorted() }

private func byNumber<V>(_ values: [UInt32: V]) -> [String: V] {
    Dictionary(uniqueKeysWithValues: values.map { (String($0.key), $0.value) })
}

extension StreamPermissions: SettingValue, Decodable {
    var setting: String {
        Settings().with("granted", names(granted)).with("topics", byNumber(topics.mapValues(names))).setting
    }

    private enum CodingKeys: CodingKey { case granted, topics }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        granted = Set(try values.decode([String].self, forKey: .granted).compactMap(StreamPermission.init))
        let topics = try values.decode([String: [String]].self, forKey: .topics)
        self.topics = numbered(topics) { Set($0.compactMap(TopicPermission.init)) }
    }
}

private func numbered<V, R>(_ values: [String: V], _ read: (V) -> R) -> [UInt32: R] {
    var numbered: [UInt32: R] = [:]
    for (key, value) in values {
        if let number = UInt32(key) { numbered[number] = read(value) }
    }
    return numbered
}

extension Permissions: SettingValue, Decodable {
    var setting: String {
        Settings().with("global", names(global)).with("streams", byNumber(streams)).setting
    }

    private enum CodingKeys: CodingKey { case global, streams }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        global = Set(try values.decode([String].self, forKey: .global).compactMap(GlobalPermission.init))
        streams = numbered(try values.decode([String: StreamPermissions].self, forKey: .streams)) { $0 }
    }
}

/// Whether a user may sign in.
public enum UserStatus: String, Sendable, Hashable, Decodable {
    case active
    case inactive
}

/// A user.
public struct User: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let username: String
    public let status: UserStatus
    public let createdAt: UInt64
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
}

/// A user and what it may do.
public struct UserDetails: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let username: String
    public let status: UserStatus
    public let createdAt: UInt64
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
    public let permissions: Permissions?
}

/// A personal access token, without its text.
public struct PersonalAccessToken: Sendable, Hashable, Decodable {
    public let name: String
    /// Nil for never.
    public let expiryAt: UInt64?
}

/// Who signed in.
public struct Identity: Sendable, Hashable, Decodable {
    public let userID: UInt32
    public let session: UInt64
}
