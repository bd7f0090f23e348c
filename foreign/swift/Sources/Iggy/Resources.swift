// What the server answers about streams, topics, partitions, consumer groups and stored offsets. Times are microseconds since
// the Unix epoch, sizes bytes.

/// A stream.
public struct Stream: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let createdAt: UInt64
    public let sizeBytes: UInt64
    public let messagesCount: UInt64
    public let topicsCount: UInt32
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
}

/// A stream and its topics.
public struct StreamDetails: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let createdAt: UInt64
    public let sizeBytes: UInt64
    public let messagesCount: UInt64
    public let topicsCount: UInt32
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
    public let topics: [Topic]
}

/// A topic.
public struct Topic: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let createdAt: UInt64
    public let sizeBytes: UInt64
    public let messagesCount: UInt64
    public let partitionsCount: UInt32
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
}

/// A topic and its partitions.
public struct TopicDetails: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let createdAt: UInt64
    public let sizeBytes: UInt64
    public let messagesCount: UInt64
    public let partitionsCount: UInt32
    /// Settings that were made, as text.
    public let options: [String: String]
    /// Settings that follow from those of the server, as text.
    public let derivedOptions: [String: String]
    public let partitions: [Partition]
}

/// A partition of a topic.
public struct Partition: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let createdAt: UInt64
    public let segmentsCount: UInt32
    public let currentOffset: UInt64
    public let sizeBytes: UInt64
    public let messagesCount: UInt64
    /// Its history.
    public let incarnation: UInt64
    /// The replicas that hold it.
    public let members: [UInt8]
    /// Those of them that are up to date.
    public let inSync: [UInt8]
}

/// A consumer group.
public struct ConsumerGroup: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let partitionsCount: UInt32
    public let membersCount: UInt32
}

/// A member of a consumer group.
public struct GroupMember: Sendable, Hashable, Decodable {
    public let id: UInt32
    /// What it owns.
    public let partitions: [UInt32]
}

/// A consumer group and its members.
public struct ConsumerGroupDetails: Sendable, Hashable, Decodable {
    public let id: UInt32
    public let name: String
    public let partitionsCount: UInt32
    public let membersCount: UInt32
    public let members: [GroupMember]
}

/// What a member of a group owns now.
public struct Assignment: Sendable, Hashable, Decodable {
    public let generation: UInt64
    public let partitions: [UInt32]
}

/// How far a consumer stored that it read.
public struct ConsumerOffset: Sendable, Hashable, Decodable {
    public let partitionID: UInt32
    /// The newest offset of the partition.
    public let currentOffset: UInt64
    public let storedOffset: UInt64
}
