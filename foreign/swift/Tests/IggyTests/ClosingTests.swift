// Clients, consumers and readers that are closed in every state.

import Iggy
import Testing

@Suite(.timeLimit(.minutes(10))) struct ClosingTests {
    // confluent-kafka-python#255, #358, #1573
    @Test func given_a_client_that_was_never_connected_when_closed_twice_should_refuse_what_follows() async throws {
        let client = try IggyClient(connectionString: Node.shared.connectionString)
        try await client.shutdown()
        try await client.shutdown()
        let error = await failure { try await client.ping() }
        #expect(error?.errorClass == .closed)
    }

    private func endsClosed(_ call: () async throws -> Void) async {
        do {
            try await call()
        } catch let error as IggyError {
            // A machine that stands still for as long as a deadline.
            #expect([.closed, .cancelled].contains(error.errorClass) || error.retryable, "\(error)")
        } catch {
            Issue.record("another error: \(error)")
        }
    }

    // kafkajs#767, kafkajs#1639
    @Test func given_a_client_in_any_state_when_closed_should_end_every_call() async throws {
        for round in 0..<5 {
            let (client, stream) = try await Node.shared.clientAndStream()
            let member = try client.consumerGroup(name: "g", streamID: stream, topicID: "t")
            let joining = Task { try await member.initialize() }
            if round > 1 { try await joining.value }
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<20 {
                    group.addTask {
                        await endsClosed {
                            if index.isMultiple(of: 2) { _ = try await client.longPoll(stream) }
                            else { while true { try await client.ping() } }
                        }
                    }
                }
                if round > 1 { group.addTask { await endsClosed { _ = try await member.next() } } }
                group.addTask {
                    // It may be closed before it has joined.
                    if round.isMultiple(of: 2) { try? await member.shutdown() }
                    try? await client.shutdown()
                }
            }
            _ = await joining.result
            let closed = await failure { _ = try await client.getStreams() }
            #expect(closed?.errorClass == .closed)
            let late = await failure { try await client.send("late", to: stream) }
            #expect(late?.errorClass == .closed)
        }
    }

    @Test func given_a_reader_and_a_producer_when_closed_twice_should_refuse_what_follows() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let reader = try await client.reader(
            streamID: stream, topicID: "t", consumer: "r", configuration: ReaderConfiguration(partitions: [0]))
        let waiting = Task { try await reader.next() }
        try await reader.close()
        try await reader.close()
        let ended = await failure { _ = try await waiting.value }
        #expect(ended?.errorClass == .closed)
        for try await _ in reader { Issue.record("it is closed") }

        let producer = try client.producer(streamID: stream, topicID: "t")
        try await producer.initialize()
        try await producer.shutdown()
        try await producer.shutdown()
        let refused = await failure { try await producer.send("late") }
        #expect(refused?.errorClass == .closed)
        try await client.shutdown()
    }

    @Test func given_a_consumer_that_did_not_begin_when_used_should_say_so() async throws {
        let client = try await Node.shared.client()
        let member = try client.consumerGroup(name: "g", streamID: "nowhere", topicID: "t")
        let error = await failure { _ = try await member.next() }
        #expect(error != nil)
        let events = await failure { _ = try member.subscribeEvents() }
        #expect(events?.message.contains("init") == true)
        #expect(member.partitions.isEmpty && member.partitionID == nil)
        try await client.shutdown()
    }
}
