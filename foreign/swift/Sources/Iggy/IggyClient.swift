// The client: itself, messages, and what is made of it.

import Foundation
internal import IggyNative

/// A client of the server. One serves any number of tasks at once; a forked child makes its own.
///
/// Letting go of it closes nothing that producers, consumers and readers use, and never waits: await ``shutdown()``.
///
/// Every call that waits ends soon when its task is cancelled, with an ``IggyError`` of the class
/// ``ErrorClass/cancelled``. A read that was cancelled loses nothing; a write that was cancelled may have been applied.
public final class IggyClient: Sendable {
    let native: NativeClient

    /// From its settings; it connects with ``connect()``.
    ///
    /// - Throws: ``IggyError`` when a setting is wrong or contradicts another; says which and what is allowed.
    public init(configuration: ClientConfiguration = ClientConfiguration()) throws(IggyError) {
        native = try calling {
            try NativeClient(
                settings: configuration.setting, choose: CalledPartitioner(configuration.partitioner))
        }
    }

    /// From `iggy://user:password@host:port?key=value`, or with a token instead of user and password.
    ///
    /// - Throws: ``IggyError`` when it is wrong; says where and what is allowed.
    public convenience init(connectionString: String) throws(IggyError) {
        try self.init(configuration: ClientConfiguration(connectionString: connectionString))
    }

    /// Runs an operation whose result is read as `R`.
    func invoke<R: Decodable>(_ operation: String, _ arguments: Settings = Settings()) async throws(IggyError) -> R {
        let native = native
        let text = try await awaiting {
            try await native.invoke(call: $0, operation: operation, arguments: arguments.setting)
        }
        return try decoded(text)
    }

    /// Runs an operation that answers nothing.
    func perform(_ operation: String, _ arguments: Settings = Settings()) async throws(IggyError) {
        let native = native
        _ = try await awaiting {
            try await native.invoke(call: $0, operation: operation, arguments: arguments.setting)
        }
    }

    // MARK: The client itself

    /// Connects, and signs in whoever is configured. Ends at once when that is done already.
    public func connect() async throws(IggyError) { try await perform("connect") }
    /// Closes every connection; the server keeps the session until it expires.
    public func disconnect() async throws(IggyError) { try await perform("disconnect") }
    /// Closes the client for good. May be called again.
    public func shutdown() async throws(IggyError) { try await perform("shutdown") }

    /// Subscribes to what happens to the client from now on.
    public func subscribeEvents() throws(IggyError) -> Events<ClientEvent> {
        Events(try calling { try native.subscribeEvents() })
    }

    // MARK: Messages

    /// Sends one batch and says where it is. Its error says whether it was stored; a send that was cancelled may have been.
    @discardableResult
    public func sendMessages(
        streamID: Identifier, topicID: Identifier, partitioning: Partitioning, messages: [IggyMessage]
    ) async throws(IggyError) -> [SendConfirmation] {
        let (native, outgoing) = (native, try outgoing(messages))
        return try await awaiting {
            try await native.sendMessages(
                call: $0, stream: streamID.native, topic: topicID.native, partitioning: partitioning.native,
                messages: outgoing)
        }.map(SendConfirmation.init)
    }

    /// Sends a batch of an idempotent producer: the partition writes it once, however often it is sent. Sequences count
    /// the messages of a producer in a partition; an epoch ends those before it.
    @discardableResult
    public func sendProducerMessages(
        streamID: Identifier, topicID: Identifier, partitionID: UInt32, producerID: UInt64, epoch: UInt16,
        baseSequence: UInt32, messages: [IggyMessage]
    ) async throws(IggyError) -> [SendConfirmation] {
        let (native, outgoing) = (native, try outgoing(messages))
        let section = NativeSection(producerId: producerID, epoch: epoch, baseSequence: baseSequence)
        return try await awaiting {
            try await native.sendProducerMessages(
                call: $0, stream: streamID.native, topic: topicID.native, partitionId: partitionID, section: section,
                messages: outgoing)
        }.map(SendConfirmation.init)
    }

    /// The id of a new idempotent producer.
    public func nextProducerID() async throws(IggyError) -> UInt64 { try await invoke("next_producer_id") }

    /// Reads messages of one partition. With ``PollOptions/maxWait`` the server answers when enough messages are there or
    /// the wait is over, which is no error; cancelling the task ends the wait on the server. A cancelled poll that commits
    /// on read may have stored its offset.
    public func pollMessages(
        streamID: Identifier, topicID: Identifier, partitionID: UInt32, consumer: Consumer, strategy: ReadStart = .next,
        options: PollOptions = PollOptions()
    ) async throws(IggyError) -> PolledMessages {
        let native = native
        let batch = try await awaiting {
            try await native.pollMessages(
                call: $0, stream: streamID.native, topic: topicID.native, partitionId: partitionID,
                consumer: consumer.native, start: strategy.native, options: options.setting)
        }
        return PolledMessages(batch)
    }

    /// Stores the position of messages that were read. One of an older history is refused.
    public func storeConsumerPosition(
        consumer: Consumer, streamID: Identifier, topicID: Identifier, checkpoint: Checkpoint
    ) async throws(IggyError) {
        let native = native
        try await awaiting {
            try await native.storeConsumerPosition(
                call: $0, consumer: consumer.native, stream: streamID.native, topic: topicID.native,
                checkpoint: checkpoint.native)
        }
    }

    /// Forgets the stored offset of the partition and history of a position.
    public func deleteConsumerPosition(
        consumer: Consumer, streamID: Identifier, topicID: Identifier, checkpoint: Checkpoint
    ) async throws(IggyError) {
        let native = native
        try await awaiting {
            try await native.deleteConsumerPosition(
                call: $0, consumer: consumer.native, stream: streamID.native, topic: topicID.native,
                checkpoint: checkpoint.native)
        }
    }

    /// A raw request: its body in and the body of the reply out.
    ///
    /// - Parameters:
    ///   - code: The command.
    ///   - replicaID: The node that answers; nil for whoever must.
    ///   - deadline: Default that of the client.
    public func sendBinaryRequest(
        code: UInt32, payload: Data = Data(), replicaID: UInt8? = nil, deadline: Duration? = nil
    ) async throws(IggyError) -> Data {
        let native = native
        let limit = deadline.map { UInt64(clamping: micros($0)) }
        return try await awaiting {
            try await native.sendBinaryRequest(
                call: $0, code: code, payload: payload, replicaId: replicaID, deadline: limit)
        }
    }

    // MARK: Producers, consumers, readers

    /// A producer of a topic; it starts with ``IggyProducer/initialize()``.
    public func producer(
        streamID: Identifier, topicID: Identifier, configuration: ProducerConfiguration = ProducerConfiguration()
    ) throws(IggyError) -> IggyProducer {
        let made = try calling {
            try native.producer(
                stream: streamID.native, topic: topicID.native, settings: configuration.setting,
                choose: CalledPartitioner(configuration.partitioner), hear: CalledListener(configuration.onError))
        }
        return IggyProducer(made, streamID: streamID, topicID: topicID)
    }

    /// A consumer of its own, which reads the partitions its configuration names; it starts with
    /// ``IggyConsumer/initialize()``.
    public func consumer(
        name: Identifier, streamID: Identifier, topicID: Identifier, configuration: ConsumerConfiguration
    ) throws(IggyError) -> IggyConsumer {
        try consumer(.single(name), streamID, topicID, configuration)
    }

    /// A member of a consumer group, which reads the partitions the group assigns to it; it starts with
    /// ``IggyConsumer/initialize()``.
    public func consumerGroup(
        name: Identifier, streamID: Identifier, topicID: Identifier,
        configuration: ConsumerConfiguration = ConsumerConfiguration()
    ) throws(IggyError) -> IggyConsumer {
        try consumer(.group(name), streamID, topicID, configuration)
    }

    private func consumer(
        _ who: Consumer, _ streamID: Identifier, _ topicID: Identifier, _ configuration: ConsumerConfiguration
    ) throws(IggyError) -> IggyConsumer {
        let made = try calling {
            try native.consumer(
                name: who.id.native, stream: streamID.native, topic: topicID.native, isGroup: who.isGroup,
                settings: configuration.setting)
        }
        return IggyConsumer(made, consumer: who, streamID: streamID, topicID: topicID)
    }

    /// A reader of many partitions of a topic.
    public func reader(
        streamID: Identifier, topicID: Identifier, consumer: Consumer, configuration: ReaderConfiguration
    ) async throws(IggyError) -> PartitionReader {
        let native = native
        let made = try await awaiting {
            try await native.reader(
                call: $0, stream: streamID.native, topic: topicID.native, consumer: consumer.native,
                settings: configuration.setting)
        }
        return PartitionReader(made)
    }
}
