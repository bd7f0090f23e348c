// Programs as processes of their own: every example, and one that ends with calls in flight.

import Foundation
import Iggy
import Testing

@Suite(.timeLimit(.minutes(10))) struct ProgramsTests {
    /// How a program ended, and what it said on standard error.
    private func run(_ name: String, _ arguments: String...) throws -> (Int32, String) {
        let (process, errors) = (Process(), Pipe())
        process.executableURL = built(name)
        process.arguments = arguments
        process.standardError = errors
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let said = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let ended = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        return (ended, String(decoding: said, as: UTF8.self))
    }

    @Test(arguments: [
        "getting-started", "producer", "consumer-group", "reader-with-checkpoints", "key-partitioning", "headers",
        "encryption",
    ])
    func given_a_node_when_an_example_runs_should_end_well(_ example: String) throws {
        let (ended, said) = try run("iggy-example-\(example)", Node.shared.connectionString)
        #expect(ended == 0, "\(said)")
        #expect(said == "")
    }

    // opendal#5483
    @Test func given_a_node_that_talks_tls_when_the_example_runs_should_end_well() throws {
        let node = Node("tcp.tls.enabled=true", "tcp.tls.self_signed=true")
        let (ended, said) = try run("iggy-example-tls", node.address, node.directory + "/runtime/self_signed.pem")
        #expect(ended == 0, "\(said)")
        #expect(said == "")
    }

    // PyO3/pyo3-async-runtimes#40
    @Test(.serialized, arguments: ["return", "exit"])
    func given_calls_in_flight_when_a_program_ends_should_end_well(_ how: String) async throws {
        let client = try await Node.shared.client()
        if try await client.getStream(streamID: "left") == nil {
            try await client.createStream(name: "left")
            try await client.createTopic(streamID: "left", name: "t")
        }
        for _ in 0..<times("IGGY_TEST_EXITS", 20) {
            let (ended, said) = try run("iggy-leaving", Node.shared.connectionString, how)
            #expect(ended == 0, "\(said)")
            #expect(said == "")
        }
        try await client.shutdown()
    }
}
