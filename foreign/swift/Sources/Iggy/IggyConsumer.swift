// The consumer: of its own, or a member of a group.

internal import IggyNative

/// Reads message by message: named partitions, or those a group assigns to this member. It may be used from many tasks at
/// once: reads wait for each other, commits and seeks wait for nobody.
///
/// `for try await` goes over the messages until the consumer is shut down. Leaving the loop early, by `break`, by an error
/// of its body or because the task was cancelled, shuts the consumer down, so that a member leaves its group at once; so
/// does letting go of the consumer. An error of a read ends the loop but not the consumer: the next read goes on.
public final class IggyConsumer: AsyncSequence, Sendable {
    public typealias Element = ReceivedMessage

    fileprivate let native: NativeConsumer
    /// Who it is.
    public let consumer: Consumer
    /// What it reads.
    public let streamID: Identifier
    /// What it reads.
    public let topicID: Identifier

    init(_ native: NativeConsumer, consumer: Consumer, streamID: Identifier, topicID: Identifier) {
        self.native = native
        self.consumer = consumer
        self.streamID = streamID
        self.topicID = topicID
    }

    deinit { native.leave() }

    /// Its name.
    public var name: Identifier { consumer.id }
    /// Whether it is a member of a group.
    public var isGroupMember: Bool { consumer.isGroup }

    /// Joins the group, or looks the partitions up. Must succeed before anything else; may be called again.
    public func initialize() async throws(IggyError) {
        let native = native
        try await awaiting { try await native.`init`(call: $0) }
    }

    /// The next message; nil once the consumer was shut down, or every named partition stopped. A cancelled wait loses and
    /// repeats nothing. An error that names a partition concerns that partition alone: read on.
    public func next() async throws(IggyError) -> ReceivedMessage? {
        let native = native
        return try await awaiting { try await native.next(call: $0) }.map(ReceivedMessage.init)
    }

    /// The next messages of one partition at once, as ``next()``.
    public func nextBatch() async throws(IggyError) -> PolledMessages? {
        let native = native
        return try await awaiting { try await native.nextBatch(call: $0) }.map(PolledMessages.init)
    }

    /// Goes over what a consumer reads. Not for use by several tasks at once.
    public struct Iterator<Read: Sendable>: AsyncIteratorProtocol {
        let read: @Sendable () async throws(IggyError) -> Read?
        let loop: Loop

        public func next() async throws(IggyError) -> Read? {
            do {
                let read = try await read()
                if read == nil { loop.leaves = false }
                return read
            } catch {
                loop.leaves = error.errorClass == .cancelled
                throw error
            }
        }
    }

    /// A loop over a consumer: it shuts the consumer down when it is left early.
    final class Loop {
        private let native: NativeConsumer
        var leaves = true

        init(_ native: NativeConsumer) { self.native = native }
        deinit { if leaves { native.leave() } }
    }

    public func makeAsyncIterator() -> Iterator<ReceivedMessage> {
        let consumer = self
        return Iterator(read: { () async throws(IggyError) in try await consumer.next() }, loop: Loop(native))
    }

    /// Goes over whole batches, each of one partition, in the same way as over messages.
    public struct Batches: AsyncSequence, Sendable {
        public typealias Element = PolledMessages

        let consumer: IggyConsumer

        public func makeAsyncIterator() -> Iterator<PolledMessages> {
            let consumer = consumer
            return Iterator(
                read: { () async throws(IggyError) in try await consumer.nextBatch() }, loop: Loop(consumer.native))
        }
    }

    /// The batches of this consumer, as an asynchronous sequence.
    public var batches: Batches { Batches(consumer: self) }

    /// Calls `handle` with each message until the consumer is shut down or the task is cancelled. Errors of single
    /// partitions and those that pass are passed over.
    ///
    /// - Throws: ``IggyError`` when it concerns the whole consumer, and what `handle` throws; its message is read again.
    public func consumeMessages(_ handle: (ReceivedMessage) async throws -> Void) async throws {
        while true {
            let received: ReceivedMessage?
            do {
                received = try await next()
            } catch {
                if error.errorClass == .cancelled { return }
                if error.retryable || error.partitionID != nil { continue }
                throw error
            }
            guard let received else { return }
            do {
                try await handle(received)
            } catch {
                try seek(partitionID: received.partitionID, to: .offset(received.message.offset))
                throw error
            }
        }
    }

    /// Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing.
    public func commit(_ checkpoint: Checkpoint) async throws(IggyError) {
        let native = native
        try await awaiting { try await native.commit(call: $0, checkpoint: checkpoint.native) }
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    public func mark(_ checkpoint: Checkpoint) throws(IggyError) {
        try calling { try native.mark(checkpoint: checkpoint.native) }
    }

    /// Stores an offset, whatever was read.
    public func storeOffset(partitionID: UInt32, offset: UInt64) async throws(IggyError) {
        let native = native
        try await awaiting { try await native.storeOffset(call: $0, partitionId: partitionID, offset: offset) }
    }

    /// Forgets the stored offset of a partition.
    public func deleteOffset(partitionID: UInt32) async throws(IggyError) {
        let native = native
        try await awaiting { try await native.deleteOffset(call: $0, partitionId: partitionID) }
    }

    /// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
    public func seek(partitionID: UInt32, to start: ReadStart) throws(IggyError) {
        try calling { try native.seek(partitionId: partitionID, to: start.native) }
    }

    /// Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
    /// assignment came since.
    public func isCurrent(_ checkpoint: Checkpoint) -> Bool {
        (try? native.isCurrent(checkpoint: checkpoint.native)) ?? false
    }

    /// The partitions it reads now, ascending.
    public var partitions: [UInt32] { (try? native.partitions()) ?? [] }
    /// The partitions that wait for a seek, ascending.
    public var stopped: [UInt32] { (try? native.stopped()) ?? [] }
    /// The partition of the message handed out last.
    public var partitionID: UInt32? { (try? native.partitionId()) ?? nil }
    /// The offset of the last message of a partition that was handed out.
    public func lastConsumedOffset(partitionID: UInt32) -> UInt64? {
        (try? native.lastConsumedOffset(partitionId: partitionID)) ?? nil
    }
    /// The last offset of a partition that this consumer stored.
    public func lastStoredOffset(partitionID: UInt32) -> UInt64? {
        (try? native.lastStoredOffset(partitionId: partitionID)) ?? nil
    }

    /// Subscribes to what happens from now on. Only after ``initialize()``.
    public func subscribeEvents() throws(IggyError) -> Events<ReaderEvent> {
        Events(try calling { try native.subscribeEvents() })
    }

    /// Ends the reads, stores what automatic commits still owe, leaves the group. May be called again.
    public func shutdown() async throws(IggyError) {
        let native = native
        try await awaiting { try await native.shutdown(call: $0) }
    }
}

extension NativeConsumer {
    /// Shuts down without anybody waiting for it.
    fileprivate func leave() {
        Task.detached { try? await self.shutdown(call: NativeCall()) }
    }
}
