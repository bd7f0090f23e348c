// A node for tests, and what they share.

import Foundation
import Iggy
import Testing

/// How often something is repeated; more in the long run.
func times(_ variable: String, _ usually: Int) -> Int {
    ProcessInfo.processInfo.environment[variable].flatMap(Int.init) ?? usually
}

/// A program that was built beside the tests.
func built(_ name: String) -> URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name)
}

/// A running node; its address survives restarts. It ends with the process.
final class Node: @unchecked Sendable {
    /// One for all tests that do not stop it.
    static let shared = Node()

    let address: String
    let directory: String
    private let process = Process()
    private let words = Pipe()
    private let answers = Pipe()
    private let lock = NSLock()

    init(_ settings: String...) {
        guard let programs = ProcessInfo.processInfo.environment["IGGY_PROGRAMS"] else {
            fatalError("IGGY_PROGRAMS names the folder of iggy-test-node")
        }
        process.executableURL = URL(fileURLWithPath: programs + "/iggy-test-node")
        process.arguments = settings
        process.standardInput = words
        process.standardOutput = answers
        do {
            try process.run()
        } catch {
            fatalError("iggy-test-node does not run: \(error)")
        }
        let ready = Self.exchange("start", words, answers).split(separator: " ")
        (address, directory) = (String(ready[1]), String(ready[2]))
    }

    var connectionString: String { "iggy://iggy:iggy@\(address)" }

    /// Tells the node what to do and returns what it answers.
    @discardableResult
    func tell(_ word: String) -> String { lock.withLock { Self.exchange(word, words, answers) } }

    private static func exchange(_ word: String, _ words: Pipe, _ answers: Pipe) -> String {
        words.fileHandleForWriting.write(Data((word + "\n").utf8))
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let more = answers.fileHandleForReading.readData(ofLength: 1)
            if more.isEmpty { fatalError("the node ended") }
            line += more
        }
        let answer = String(decoding: line.dropLast(), as: UTF8.self)
        if answer.hasPrefix("failed") { fatalError(answer) }
        return answer
    }

    /// A client that is signed in.
    func client(_ configure: (inout ClientConfiguration) -> Void = { _ in }) async throws -> IggyClient {
        var configuration = ClientConfiguration(connectionString: connectionString)
        configure(&configuration)
        let client = try IggyClient(configuration: configuration)
        try await client.connect()
        return client
    }

    /// A client, and the name of a new stream with an empty topic `t` of two partitions.
    func clientAndStream() async throws -> (IggyClient, Identifier) {
        let (client, name) = (try await client(), UUID().uuidString)
        try await client.createStream(name: name)
        try await client.createTopic(
            streamID: .named(name), name: "t", options: TopicCreateOptions(partitionsCount: 2))
        return (client, .named(name))
    }
}

extension IggyClient {
    func send(_ text: String, to stream: Identifier, partition: UInt32 = 0) async throws {
        try await sendMessages(
            streamID: stream, topicID: "t", partitioning: .partition(partition), messages: [IggyMessage(text)])
    }

    /// A poll that finds nothing for a minute.
    func longPoll(_ stream: Identifier) async throws -> PolledMessages {
        try await pollMessages(
            streamID: stream, topicID: "t", partitionID: 0, consumer: "c", strategy: .offset(1_000_000),
            options: PollOptions(maxWait: .seconds(60)))
    }
}

/// The error that `call` throws.
func failure(_ call: () async throws -> Void, at place: SourceLocation = #_sourceLocation) async -> IggyError? {
    do {
        try await call()
        Issue.record("nothing was thrown", sourceLocation: place)
    } catch let error as IggyError {
        return error
    } catch {
        Issue.record("another error: \(error)", sourceLocation: place)
    }
    return nil
}

func pauseAtRandom() async { try? await Task.sleep(for: .microseconds(.random(in: 0..<3000))) }
