// The partition reader.

internal import IggyNative

/// Reads many partitions of one topic in batches. It may be used from many tasks at once: reads wait for each other,
/// everything else waits for nobody. `for try await` goes over the batches.
public final class PartitionReader: AsyncSequence, Sendable {
    public typealias Element = PolledMessages

    private let native: NativeReader

    init(_ native: NativeReader) { self.native = native }

    /// The next batch, all of one partition. A cancelled wait loses and repeats nothing. An error that names a partition
    /// concerns that partition alone: read on. One of the class ``ErrorClass/closed`` says that the reader is.
    public func next() async throws(IggyError) -> PolledMessages {
        let native = native
        guard let batch = try await awaiting({ try await native.next(call: $0) }) else {
            throw IggyError(.internal, "a read of a reader brought nothing", outcome: .unknown)
        }
        return PolledMessages(batch)
    }

    /// Goes over the batches until the reader is closed.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: PartitionReader

        public func next() async throws(IggyError) -> PolledMessages? {
            do {
                return try await reader.next()
            } catch {
                if error.errorClass == .closed { return nil }
                throw error
            }
        }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Stores a position. One at or below the last stored, or of an older history, stores nothing.
    public func commit(_ checkpoint: Checkpoint) async throws(IggyError) {
        let native = native
        try await awaiting { try await native.commit(call: $0, checkpoint: checkpoint.native) }
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    public func mark(_ checkpoint: Checkpoint) throws(IggyError) {
        try calling { try native.mark(checkpoint: checkpoint.native) }
    }

    /// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
    public func seek(partitionID: UInt32, to start: ReadStart) throws(IggyError) {
        try calling { try native.seek(partitionId: partitionID, to: start.native) }
    }

    /// Whether a position belongs to the ordering in which its partition is handed out now: no seek came since.
    public func isCurrent(_ checkpoint: Checkpoint) -> Bool {
        (try? native.isCurrent(checkpoint: checkpoint.native)) ?? false
    }

    /// The partitions it reads, ascending.
    public var partitions: [UInt32] { (try? native.partitions()) ?? [] }
    /// The partitions that wait for a seek, ascending.
    public var stopped: [UInt32] { (try? native.stopped()) ?? [] }

    /// Subscribes to what happens from now on.
    public func subscribeEvents() throws(IggyError) -> Events<ReaderEvent> {
        Events(try calling { try native.subscribeEvents() })
    }

    /// Ends the reads and stores what automatic commits still owe, within a deadline. May be called again.
    public func close() async throws(IggyError) {
        let native = native
        try await awaiting { try await native.close(call: $0) }
    }
}
