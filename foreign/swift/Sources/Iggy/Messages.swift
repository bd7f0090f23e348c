// Messages to send, and messages that came. Each payload is copied once on its way out, and lies where it arrived until the
// last value that stands for its batch is gone.

import Foundation
internal import IggyNative

/// A message to send.
public struct IggyMessage: Sendable, Hashable {
    /// 1 to 64000000 bytes.
    public var payload: Data
    /// The client makes one when it is 0.
    public var id: MessageID
    /// Its headers.
    public var headers: Headers
    /// When it was made, in microseconds since the Unix epoch; 0 for when it is sent.
    public var originTimestamp: UInt64

    /// A message of bytes.
    public init(payload: Data, id: MessageID = 0, headers: Headers = [:], originTimestamp: UInt64 = 0) {
        self.payload = payload
        self.id = id
        self.headers = headers
        self.originTimestamp = originTimestamp
    }

    /// A message of text.
    public init(_ text: String, id: MessageID = 0, headers: Headers = [:], originTimestamp: UInt64 = 0) {
        self.init(payload: Data(text.utf8), id: id, headers: headers, originTimestamp: originTimestamp)
    }
}

extension IggyMessage: ExpressibleByStringInterpolation {
    public init(stringLiteral text: String) { self.init(text) }
}

/// Bytes before each message in the block that the native library reads: see `bindings/swift/src/messages.rs`.
private let prefixSize = 32

/// Writes messages into one block of the native library.
func outgoing(_ messages: [IggyMessage]) throws(IggyError) -> NativeOutgoing {
    let headers = messages.map { $0.headers.isEmpty ? [] : $0.headers.encoded }
    var size = 0
    for (message, headers) in zip(messages, headers) { size += prefixSize + headers.count + message.payload.count }
    guard let count = UInt32(exactly: messages.count), messages.allSatisfy({ $0.payload.count <= UInt32.max }) else {
        throw IggyError(.invalidInput, "a send has at most \(UInt32.max) messages of as many bytes each")
    }
    let outgoing = try calling { try NativeOutgoing(count: count, size: UInt64(size)) }
    guard size > 0, let start = UnsafeMutableRawPointer(bitPattern: UInt(outgoing.address())) else { return outgoing }
    // The block is `size` bytes long, ours until it is sent, and alive for as long as `outgoing` is.
    withExtendedLifetime(outgoing) {
        var place = start
        for (message, headers) in zip(messages, headers) {
            for number in [message.id.low, message.id.high, message.originTimestamp] {
                place.storeBytes(of: number.littleEndian, as: UInt64.self)
                place += 8
            }
            for length in [headers.count, message.payload.count] {
                place.storeBytes(of: UInt32(length).littleEndian, as: UInt32.self)
                place += 4
            }
            headers.withUnsafeBytes { place.copy(from: $0) }
            message.payload.withUnsafeBytes { place.copy(from: $0) }
        }
    }
    return outgoing
}

extension UnsafeMutableRawPointer {
    fileprivate mutating func copy(from bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        copyMemory(from: base, byteCount: bytes.count)
        self += bytes.count
    }
}

/// Where the messages of a batch lie, and what keeps them there.
final class Batch: Sendable {
    let messages: NativeMessages
    let count: Int
    let partitionID: UInt32
    let currentOffset: UInt64
    private let table: UInt

    init(_ native: NativeBatch) {
        messages = native.messages
        count = Int(native.count)
        partitionID = native.partitionId
        currentOffset = native.currentOffset
        table = UInt(native.address)
    }

    /// A number of a row of the table. The table is as long as the batch, and alive for as long as `messages` is.
    func number(_ index: Int, _ column: Column) -> UInt64 {
        guard index >= 0, index < count, let rows = UnsafePointer<UInt64>(bitPattern: table) else { return 0 }
        return withExtendedLifetime(messages) { rows[index * Column.allCases.count + column.rawValue] }
    }

    enum Column: Int, CaseIterable {
        case payload, length, idLow, idHigh, offset, timestamp, originTimestamp, checksum, headersLength
    }
}

/// A message that came.
public struct PolledMessage: Sendable {
    let batch: Batch
    let index: Int

    /// Calls `body` with the payload where it lies, without copying it. The pointer must not leave `body`.
    public func withPayload<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        let start = UnsafeRawPointer(bitPattern: UInt(batch.number(index, .payload)))
        return try withExtendedLifetime(batch) {
            try body(UnsafeRawBufferPointer(start: start, count: payloadCount))
        }
    }

    /// The payload, copied now.
    public var payload: Data { withPayload { Data($0) } }
    /// The payload as text; what is no UTF-8 is replaced.
    public var payloadString: String { withPayload { String(decoding: $0, as: UTF8.self) } }
    /// How many bytes the payload has.
    public var payloadCount: Int { Int(batch.number(index, .length)) }
    /// Its id.
    public var id: MessageID { MessageID(high: batch.number(index, .idHigh), low: batch.number(index, .idLow)) }
    /// Its place in its partition.
    public var offset: UInt64 { batch.number(index, .offset) }
    /// When the server took it: microseconds since the Unix epoch.
    public var timestamp: UInt64 { batch.number(index, .timestamp) }
    /// When the sender made it: microseconds since the Unix epoch.
    public var originTimestamp: UInt64 { batch.number(index, .originTimestamp) }
    /// Of its frame.
    public var checksum: UInt64 { batch.number(index, .checksum) }
    /// Whether it has headers.
    public var hasHeaders: Bool { batch.number(index, .headersLength) > 0 }

    /// Its headers, decoded now.
    ///
    /// - Throws: ``IggyError`` of the class ``ErrorClass/invalidInput`` when what came is malformed.
    public func headers() throws(IggyError) -> Headers {
        guard hasHeaders else { return [:] }
        return Headers(encoded: try calling { try batch.messages.headers(index: UInt64(index)) })
    }
}

/// Messages in a row.
public struct MessageList: RandomAccessCollection, Sendable {
    let batch: Batch

    public var startIndex: Int { 0 }
    public var endIndex: Int { batch.count }
    public subscript(index: Int) -> PolledMessage {
        precondition(indices.contains(index), "a message of this batch")
        return PolledMessage(batch: batch, index: index)
    }
}

/// What one read returned: messages of one partition, in order.
public struct PolledMessages: RandomAccessCollection, Sendable {
    let batch: Batch

    init(_ native: NativeBatch) { batch = Batch(native) }

    public var startIndex: Int { 0 }
    public var endIndex: Int { batch.count }
    public subscript(index: Int) -> PolledMessage {
        precondition(indices.contains(index), "a message of this batch")
        return PolledMessage(batch: batch, index: index)
    }

    /// The partition.
    public var partitionID: UInt32 { batch.partitionID }
    /// The newest offset of the partition.
    public var currentOffset: UInt64 { batch.currentOffset }
    /// The position after the last message; nil when nothing came.
    public var checkpoint: Checkpoint? { isEmpty ? nil : checkpoint(at: count - 1) }
    /// The position after the message of this place; nil beyond the end.
    public func checkpoint(at index: Int) -> Checkpoint? {
        guard indices.contains(index) else { return nil }
        return batch.messages.checkpoint(index: UInt64(index)).map(Checkpoint.init)
    }
    /// Where the next read of the partition starts.
    public var continuation: Continuation {
        guard let found = batch.messages.continuation() else { preconditionFailure("what was read has a continuation") }
        return Continuation(found)
    }
}

/// A message as a consumer hands it out.
public struct ReceivedMessage: Sendable {
    private let batch: Batch

    init(_ native: NativeBatch) { batch = Batch(native) }

    /// The message.
    public var message: PolledMessage { PolledMessage(batch: batch, index: 0) }
    /// The partition.
    public var partitionID: UInt32 { batch.partitionID }
    /// The newest offset of the partition when it was read.
    public var currentOffset: UInt64 { batch.currentOffset }
    /// The position after it.
    public var checkpoint: Checkpoint {
        guard let found = batch.messages.checkpoint(index: 0) else { preconditionFailure("a batch of one message") }
        return Checkpoint(found)
    }
}

/// Where sent messages are.
public struct SendConfirmation: Sendable, Hashable {
    public let streamID: UInt32
    public let topicID: UInt32
    public let partitionID: UInt32
    /// The offset of the first message.
    public let baseOffset: UInt64

    init(_ native: NativeConfirmation) {
        streamID = native.streamId
        topicID = native.topicId
        partitionID = native.partitionId
        baseOffset = native.baseOffset
    }
}
