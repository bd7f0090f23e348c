// The calls as the SDK table and its Swift section show them.

import Iggy
import Testing

@Suite(.timeLimit(.minutes(5))) struct AnnouncedTests {
    @Test func given_the_calls_that_were_announced_when_made_should_work_as_shown() async throws {
        let client = try IggyClient(connectionString: Node.shared.connectionString)
        try await client.connect()

        let producer = try client.producer(streamID: "orders", topicID: "created")
        try await producer.initialize()
        try await producer.send(["placed", "paid"])

        let consumer = try client.consumerGroup(
            name: "billing", streamID: "orders", topicID: "created",
            configuration: ConsumerConfiguration(
                pollOptions: PollOptions(maxWait: .seconds(5), commit: .auto(.default))))
        try await consumer.initialize()
        var seen: [String] = []
        for try await received in consumer {
            let partition: UInt32 = received.partitionID
            let offset: UInt64 = received.message.offset
            seen.append("\(partition) \(offset) \(received.message.payloadString)")
            if seen.count == 2 { break }
        }
        #expect(seen == ["0 0 placed", "0 1 paid"])
        try await consumer.shutdown()

        for commit in [CommitPolicy.manual, .onRead] {
            let polled = try await client.pollMessages(
                streamID: "orders", topicID: "created", partitionID: 0, consumer: "audit", strategy: .first,
                options: PollOptions(maxWait: .seconds(5), minCount: 2, maxBytes: 1 << 20, commit: commit))
            #expect(polled.count == 2)
        }
        try await client.shutdown()
    }
}
