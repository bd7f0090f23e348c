// The producer.

internal import IggyNative

/// Sends messages to one topic. It may be used from many tasks at once.
///
/// A background producer that nobody holds any more may lose what it buffers: await ``shutdown()``.
public final class IggyProducer: Sendable {
    private let native: NativeProducer
    /// Where it sends to.
    public let streamID: Identifier
    /// Where it sends to.
    public let topicID: Identifier

    init(_ native: NativeProducer, streamID: Identifier, topicID: Identifier) {
        self.native = native
        self.streamID = streamID
        self.topicID = topicID
    }

    /// Creates what is missing, unless told otherwise. Must succeed before the first send; may be called again.
    public func initialize() async throws(IggyError) {
        let native = native
        try await awaiting { try await native.`init`(call: $0) }
    }

    /// Sends messages in order per partition, by the partitioning of the producer or another, and says where they are;
    /// nothing when sent in the background. The outcome of its error says whether anything was stored; a send that was
    /// cancelled may have been.
    @discardableResult
    public func send(
        _ messages: [IggyMessage], partitioning: Partitioning? = nil
    ) async throws(IggyError) -> [SendConfirmation] {
        let (native, outgoing) = (native, try outgoing(messages))
        return try await awaiting {
            try await native.send(call: $0, messages: outgoing, partitioning: partitioning?.native)
        }.map(SendConfirmation.init)
    }

    /// Sends one message, as ``send(_:partitioning:)``.
    @discardableResult
    public func send(
        _ message: IggyMessage, partitioning: Partitioning? = nil
    ) async throws(IggyError) -> [SendConfirmation] {
        try await send([message], partitioning: partitioning)
    }

    /// Sends messages to another topic, as ``send(_:partitioning:)``.
    @discardableResult
    public func send(
        _ messages: [IggyMessage], streamID: Identifier, topicID: Identifier, partitioning: Partitioning? = nil
    ) async throws(IggyError) -> [SendConfirmation] {
        let (native, outgoing) = (native, try outgoing(messages))
        return try await awaiting {
            try await native.sendTo(
                call: $0, stream: streamID.native, topic: topicID.native, messages: outgoing,
                partitioning: partitioning?.native)
        }.map(SendConfirmation.init)
    }

    /// Sends what is buffered and waits for it, within a deadline. May be called again.
    public func shutdown() async throws(IggyError) {
        let native = native
        try await awaiting { try await native.shutdown(call: $0) }
    }
}
