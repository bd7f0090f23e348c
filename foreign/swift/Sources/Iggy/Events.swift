// What happens to a client, a reader or a consumer.

internal import IggyNative

/// Something that happened to a client.
public struct ClientEvent: Sendable, Hashable, Decodable {
    /// `connected`, `disconnected`, `signed_in`, `signed_out` or `shutdown`.
    public let event: String
}

/// Something that happened to a reader or consumer.
public struct ReaderEvent: Sendable, Hashable, Decodable {
    /// `assigned`, `revoked`, `membership_lost`, `stopped`, `sought`, `read_uncertain`, `commit_failed` or `closed`.
    public let event: String
    /// The partition it concerns.
    public let partitionID: UInt32?
    /// The partitions it concerns.
    public let partitions: [UInt32]?
    /// Of an assignment.
    public let generation: UInt64?
    /// The code on the wire of what went wrong.
    public let code: UInt32?
    /// Its name.
    public let name: String?
}

/// A subscription to what happens. One that falls 64 events behind loses the oldest.
public final class Events<Event: Sendable & Decodable>: AsyncSequence, Sendable {
    public typealias Element = Event

    private let native: NativeEvents

    init(_ native: NativeEvents) { self.native = native }

    /// The next event; nil when nothing can happen any more, or it was closed. A cancelled wait loses nothing.
    public func next() async throws(IggyError) -> Event? {
        let native = native
        guard let text = try await awaiting({ try await native.next(call: $0) }) else { return nil }
        return try decoded(text)
    }

    /// Ends the wait for the next event, and all later ones.
    public func close() { try? native.close() }

    /// Goes over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let events: Events

        public func next() async throws(IggyError) -> Event? { try await events.next() }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(events: self) }
}
