// What the steps of one scenario share.

import Foundation
import Iggy

/// Against hanging only.
let deadline = Duration.seconds(90)
let password = "secret123"
let theConsumer = "the consumer"

/// Runs `call` within `limit`; nil when it was not over by then.
func within<T: Sendable>(_ limit: Duration, _ call: @escaping @Sendable () async throws -> T) async throws -> T? {
    let calling = Task { try await call() }
    let ending = Task {
        try await Task.sleep(for: limit)
        calling.cancel()
    }
    defer { ending.cancel() }
    do {
        return try await calling.value
    } catch let error as IggyError where error.errorClass == .cancelled {
        return nil
    }
}

/// A message as it was sent; its place in its partition is its offset.
struct Sent: Sendable {
    let id: MessageID
    let payload: String
    let headers: Headers

    /// The message of this place in its partition, with a payload of at least `size` bytes.
    static func numbered(_ partition: UInt32, _ index: Int, size: Int = 0) -> Sent {
        let text = "message \(index) of partition \(partition)"
        return Sent(
            id: MessageID(high: UInt64(partition), low: UInt64(index + 1)),
            payload: text + String(repeating: ".", count: max(0, size - text.count)),
            headers: ["index": .uint64(UInt64(index)), "origin": "scenario"])
    }

    var message: IggyMessage { IggyMessage(payload, id: id, headers: headers) }

    /// Whether this is what arrived.
    func check(_ arrived: PolledMessage) throws {
        try same(id, arrived.id)
        try same(payload, arrived.payloadString)
        try same(headers, try arrived.headers())
    }
}

/// A consumer and what the application received from it.
@MainActor
final class Receiver {
    let consumer: IggyConsumer
    private(set) var received: [ReceivedMessage] = []

    init(_ consumer: IggyConsumer) { self.consumer = consumer }

    /// Receives so many more.
    func receive(_ count: Int) async throws {
        let wanted = received.count + count
        let end = ContinuousClock.now + deadline
        while received.count < wanted {
            try check(ContinuousClock.now < end, "no message came")
            try await take(.seconds(1))
        }
    }

    /// Receives what comes within a moment: a member has to be listened to for the group to settle.
    func glance() async throws { try await take(.milliseconds(20)) }

    private func take(_ limit: Duration) async throws {
        let consumer = consumer
        do {
            guard let next = try await within(limit, { try await consumer.next() }) else { return }
            guard let message = next else { throw StepFailed("the consumer is closed") }
            received.append(message)
        } catch let error as IggyError {
            // A partition that moved while it was read is read by its new owner.
            try check(error.retryable || error.errorClass == .stale, "\(error)")
        }
    }

    /// Commits the last message of each partition.
    func commitAll() async throws {
        var last: [UInt32: ReceivedMessage] = [:]
        for message in received { last[message.partitionID] = message }
        for message in last.values { try await consumer.commit(message.checkpoint) }
    }
}

@MainActor
final class World {
    let address: String
    private var signedIn: IggyClient?
    private var error: IggyError?
    var clients: [String: IggyClient] = [:]
    var stream: Identifier = ""
    var topic: Identifier = ""
    var group: Identifier = ""
    var sent: [UInt32: [Sent]] = [:]
    var lastPolled: PolledMessages?
    var polledPartition: UInt32 = 0
    var confirmation: SendConfirmation?
    var waiting: (UInt32, Task<PolledMessages, any Error>)?
    var sending: Task<[SendConfirmation], any Error>?
    var notedTime: UInt64 = 0
    var notedChanges = ""
    var producer: IggyProducer?
    var reader: PartitionReader?
    /// Partition, offset and payload of what the reader read.
    var read: [(UInt32, UInt64, String)] = []
    var checkpoints: [Checkpoint] = []
    var reported: [IggyError] = []
    var consumers: [String: Receiver] = [:]
    var tokens: [String: String] = [:]
    var answer = Data()

    init(address: String) { self.address = address }

    /// A client of somebody.
    func connect(_ credentials: String, encryption: Encryption? = nil) async throws -> IggyClient {
        var configuration = ClientConfiguration(connectionString: "iggy://\(credentials)@\(address)")
        configuration.encryption = encryption
        let client = try IggyClient(configuration: configuration)
        do {
            try await client.connect()
        } catch {
            try await client.shutdown()
            throw error
        }
        return client
    }

    /// Removes what the scenario before left at the node.
    func clean() async throws {
        let client = try await connect("iggy:iggy")
        for stream in try await client.getStreams() { try await client.deleteStream(streamID: .numeric(stream.id)) }
        for user in try await client.getUsers() where user.username != "iggy" {
            try await client.deleteUser(userID: .numeric(user.id))
        }
        for token in try await client.getPersonalAccessTokens() {
            try await client.deletePersonalAccessToken(name: token.name)
        }
        try await client.shutdown()
    }

    func signIn() async throws { signedIn = try await connect("iggy:iggy") }

    func client() throws -> IggyClient {
        guard let signedIn else { throw StepFailed("nobody signed in") }
        return signedIn
    }

    /// The client of a user, signed in at first use.
    func client(of user: String) async throws -> IggyClient {
        if let found = clients[user] { return found }
        let made = try await connect("\(user):\(password)")
        clients[user] = made
        return made
    }

    /// Keeps how a request ended. The next step that cares says whether that was right.
    func attempt(_ request: @MainActor () async throws -> Void) async throws {
        try expectNoError()
        do {
            try await request()
        } catch let error as IggyError {
            self.error = error
        }
    }

    /// Nothing may have failed.
    func expectNoError() throws {
        if let error { throw StepFailed("an earlier request failed: \(error)") }
    }

    /// The error of the last request; it counts as looked at.
    func takeError() throws -> IggyError {
        guard let found = error else { throw StepFailed("nothing failed") }
        error = nil
        return found
    }

    func topicDetails() async throws -> TopicDetails {
        guard let found = try await client().getTopic(streamID: stream, topicID: topic) else {
            throw StepFailed("there is no topic \(topic)")
        }
        return found
    }

    func receiver(_ name: String) throws -> Receiver {
        try expectNoError()
        guard let found = consumers[name] else { throw StepFailed("there is no consumer \(name)") }
        return found
    }

    /// The next messages of a partition, numbered on from those that were sent.
    func nextMessages(_ partition: UInt32, _ count: Int, size: Int = 0) -> [Sent] {
        let first = sent[partition, default: []].count
        return (0..<count).map { .numbered(partition, first + $0, size: size) }
    }

    @discardableResult
    func send(_ messages: [Sent], to partition: UInt32, by client: IggyClient) async throws -> [SendConfirmation] {
        let found = try await client.sendMessages(
            streamID: stream, topicID: topic, partitioning: .partition(partition), messages: messages.map(\.message))
        sent[partition, default: []] += messages
        return found
    }

    @discardableResult
    func send(_ partition: UInt32, _ count: Int, size: Int = 0) async throws -> [SendConfirmation] {
        try await send(nextMessages(partition, count, size: size), to: partition, by: client())
    }

    func start(_ start: Arguments) throws -> ReadStart {
        switch try start.text("kind") {
        case "first": .first
        case "last": .last
        case "next": .next
        case "noted_time": .timestamp(notedTime)
        default: .offset(try start.wide("value"))
        }
    }

    func polled() throws -> PolledMessages {
        try expectNoError()
        guard let lastPolled else { throw StepFailed("nothing was polled") }
        return lastPolled
    }

    /// Ends the scenario: nothing may be left that failed and was not looked at.
    func finish() async throws {
        waiting?.1.cancel()
        sending?.cancel()
        for receiver in consumers.values { try await receiver.consumer.shutdown() }
        try await reader?.close()
        try await producer?.shutdown()
        for client in clients.values { try await client.shutdown() }
        try await signedIn?.shutdown()
        try expectNoError()
    }
}
