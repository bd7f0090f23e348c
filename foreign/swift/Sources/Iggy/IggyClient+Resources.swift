// Streams, topics, partitions, segments, consumer groups and stored offsets.

import Foundation

/// A setting of a resource. The server converts it: a number of a duration is microseconds, of a size bytes; text may have
/// a unit, as `7 days` or `64 MiB`.
public enum OptionValue: Sendable, Hashable {
    case text(String)
    case number(UInt64)
    case bool(Bool)
}

extension OptionValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public init(stringLiteral text: String) { self = .text(text) }
    public init(integerLiteral number: UInt64) { self = .number(number) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension OptionValue: SettingValue {
    var setting: String {
        switch self {
        case .text(let text): text.setting
        case .number(let number): number.setting
        case .bool(let value): value.setting
        }
    }
}

/// Settings of a resource by their names: ``IggyClient/describeOptions(_:)`` lists them.
public typealias ResourceOptions = [String: OptionValue]

/// How a stream is created.
public struct StreamCreateOptions: Sendable, Hashable {
    /// 32 bytes: messages at rest are encrypted with it.
    public var encryptionKey: Data?
    /// Other settings by name.
    public var options: ResourceOptions

    /// With the settings of the server for what is left out.
    public init(encryptionKey: Data? = nil, options: ResourceOptions = [:]) {
        self.encryptionKey = encryptionKey
        self.options = options
    }
}

/// How a topic is created.
public struct TopicCreateOptions: Sendable, Hashable {
    /// Default 1.
    public var partitionsCount: UInt32?
    /// How many nodes hold each partition, 1 to 32 and at most as many as there are.
    public var replicationFactor: UInt8?
    /// How long messages are kept.
    public var messageExpiry: Duration?
    /// Bytes.
    public var maxTopicSize: UInt64?
    /// Bytes.
    public var segmentSize: UInt64?
    /// What an acknowledgement of messages promises. Default replicated.
    public var durability: Durability?
    /// Other settings by name; they give way to those above.
    public var options: ResourceOptions

    /// With the settings of the server for what is left out.
    public init(
        partitionsCount: UInt32? = nil, replicationFactor: UInt8? = nil, messageExpiry: Duration? = nil,
        maxTopicSize: UInt64? = nil, segmentSize: UInt64? = nil, durability: Durability? = nil,
        options: ResourceOptions = [:]
    ) {
        self.partitionsCount = partitionsCount
        self.replicationFactor = replicationFactor
        self.messageExpiry = messageExpiry
        self.maxTopicSize = maxTopicSize
        self.segmentSize = segmentSize
        self.durability = durability
        self.options = options
    }

    var all: ResourceOptions {
        var all = options
        all["replication_factor"] = replicationFactor.map { .number(UInt64($0)) } ?? all["replication_factor"]
        all["message_expiry"] = messageExpiry.map { .text(micros($0).setting) } ?? all["message_expiry"]
        all["max_topic_size"] = maxTopicSize.map { .number($0) } ?? all["max_topic_size"]
        all["segment_size"] = segmentSize.map { .number($0) } ?? all["segment_size"]
        all["durability"] = durability.map { .text($0.rawValue) } ?? all["durability"]
        return all
    }
}

extension Settings {
    fileprivate static func of(_ streamID: Identifier) -> Settings { Settings().with("stream", streamID) }

    fileprivate static func of(_ streamID: Identifier, _ topicID: Identifier) -> Settings {
        of(streamID).with("topic", topicID)
    }

    fileprivate static func of(
        _ consumer: Consumer, _ streamID: Identifier, _ topicID: Identifier, _ partitionID: UInt32
    ) -> Settings {
        of(streamID, topicID).with("consumer", consumer).with("partition_id", partitionID)
    }

    fileprivate func changing(_ name: String?, _ options: ResourceOptions, _ reset: [String]) -> Settings {
        var options = options
        if let name { options["name"] = .text(name) }
        return with("options", options).with("reset", reset)
    }
}

extension IggyClient {
    // MARK: Streams

    /// All streams.
    public func getStreams() async throws(IggyError) -> [Stream] { try await invoke("get_streams") }

    /// A stream and its topics; nil when there is none.
    public func getStream(streamID: Identifier) async throws(IggyError) -> StreamDetails? {
        try await invoke("get_stream", .of(streamID))
    }

    /// Creates a stream, whose name has 1 to 255 bytes.
    @discardableResult
    public func createStream(
        name: String, options: StreamCreateOptions = StreamCreateOptions()
    ) async throws(IggyError) -> StreamDetails {
        let arguments = Settings().with("name", name).with("encryption_key", options.encryptionKey)
        return try await invoke("create_stream", arguments.with("options", options.options))
    }

    /// Changes a stream: its name, settings, and those that go back to their defaults.
    public func updateStream(
        streamID: Identifier, name: String? = nil, options: ResourceOptions = [:], reset: [String] = []
    ) async throws(IggyError) {
        try await perform("update_stream", .of(streamID).changing(name, options, reset))
    }

    /// Deletes a stream with all it holds.
    public func deleteStream(streamID: Identifier) async throws(IggyError) {
        try await perform("delete_stream", .of(streamID))
    }

    // MARK: Topics, partitions, segments

    /// The topics of a stream.
    public func getTopics(streamID: Identifier) async throws(IggyError) -> [Topic] {
        try await invoke("get_topics", .of(streamID))
    }

    /// A topic and its partitions; nil when there is none.
    public func getTopic(streamID: Identifier, topicID: Identifier) async throws(IggyError) -> TopicDetails? {
        try await invoke("get_topic", .of(streamID, topicID))
    }

    /// Creates a topic, whose name has 1 to 255 bytes.
    @discardableResult
    public func createTopic(
        streamID: Identifier, name: String, options: TopicCreateOptions = TopicCreateOptions()
    ) async throws(IggyError) -> TopicDetails {
        let arguments = Settings.of(streamID).with("name", name).with("partitions_count", options.partitionsCount)
        return try await invoke("create_topic", arguments.with("options", options.all))
    }

    /// Changes a topic: its name, settings, and those that go back to their defaults.
    public func updateTopic(
        streamID: Identifier, topicID: Identifier, name: String? = nil, options: ResourceOptions = [:],
        reset: [String] = []
    ) async throws(IggyError) {
        try await perform("update_topic", .of(streamID, topicID).changing(name, options, reset))
    }

    /// Deletes a topic with all it holds.
    public func deleteTopic(streamID: Identifier, topicID: Identifier) async throws(IggyError) {
        try await perform("delete_topic", .of(streamID, topicID))
    }

    /// Adds partitions.
    public func createPartitions(streamID: Identifier, topicID: Identifier, count: UInt32) async throws(IggyError) {
        try await perform("create_partitions", .of(streamID, topicID).with("count", count))
    }

    /// Removes the last partitions with all they hold.
    public func deletePartitions(streamID: Identifier, topicID: Identifier, count: UInt32) async throws(IggyError) {
        try await perform("delete_partitions", .of(streamID, topicID).with("count", count))
    }

    /// Deletes the oldest segments of a partition, never the one in use.
    public func deleteSegments(
        streamID: Identifier, topicID: Identifier, partitionID: UInt32, count: UInt32
    ) async throws(IggyError) {
        let arguments = Settings.of(streamID, topicID).with("partition_id", partitionID).with("count", count)
        try await perform("delete_segments", arguments)
    }

    // MARK: Consumer groups

    /// The groups of a topic.
    public func getConsumerGroups(streamID: Identifier, topicID: Identifier) async throws(IggyError) -> [ConsumerGroup] {
        try await invoke("get_consumer_groups", .of(streamID, topicID))
    }

    /// A group and its members; nil when there is none.
    public func getConsumerGroup(
        streamID: Identifier, topicID: Identifier, groupID: Identifier
    ) async throws(IggyError) -> ConsumerGroupDetails? {
        try await invoke("get_consumer_group", .of(streamID, topicID).with("group", groupID))
    }

    /// Creates a group, whose name has 1 to 255 bytes.
    @discardableResult
    public func createConsumerGroup(
        streamID: Identifier, topicID: Identifier, name: String
    ) async throws(IggyError) -> ConsumerGroupDetails {
        try await invoke("create_consumer_group", .of(streamID, topicID).with("name", name))
    }

    /// Deletes a group with its stored offsets.
    public func deleteConsumerGroup(
        streamID: Identifier, topicID: Identifier, groupID: Identifier
    ) async throws(IggyError) {
        try await perform("delete_consumer_group", .of(streamID, topicID).with("group", groupID))
    }

    /// Makes this client a member. An ``IggyConsumer`` does that by itself.
    public func joinConsumerGroup(
        streamID: Identifier, topicID: Identifier, groupID: Identifier
    ) async throws(IggyError) {
        try await perform("join_consumer_group", .of(streamID, topicID).with("group", groupID))
    }

    /// Ends the membership of this client.
    public func leaveConsumerGroup(
        streamID: Identifier, topicID: Identifier, groupID: Identifier
    ) async throws(IggyError) {
        try await perform("leave_consumer_group", .of(streamID, topicID).with("group", groupID))
    }

    /// What this client owns now; nil when it is no member.
    public func syncConsumerGroup(
        streamID: Identifier, topicID: Identifier, groupID: Identifier
    ) async throws(IggyError) -> Assignment? {
        try await invoke("sync_consumer_group", .of(streamID, topicID).with("group", groupID))
    }

    // MARK: Stored offsets

    /// How far a consumer stored that it read; nil when it stored nothing.
    public func getConsumerOffset(
        consumer: Consumer, streamID: Identifier, topicID: Identifier, partitionID: UInt32
    ) async throws(IggyError) -> ConsumerOffset? {
        try await invoke("get_consumer_offset", .of(consumer, streamID, topicID, partitionID))
    }

    /// Stores the offset of the last message that was processed.
    public func storeConsumerOffset(
        consumer: Consumer, streamID: Identifier, topicID: Identifier, partitionID: UInt32, offset: UInt64
    ) async throws(IggyError) {
        let arguments = Settings.of(consumer, streamID, topicID, partitionID).with("offset", offset)
        try await perform("store_consumer_offset", arguments)
    }

    /// Forgets a stored offset.
    public func deleteConsumerOffset(
        consumer: Consumer, streamID: Identifier, topicID: Identifier, partitionID: UInt32
    ) async throws(IggyError) {
        try await perform("delete_consumer_offset", .of(consumer, streamID, topicID, partitionID))
    }
}
