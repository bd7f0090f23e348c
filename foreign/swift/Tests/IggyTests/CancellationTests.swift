// Tasks that are cancelled at random points. Numbers are those of the threads in which users of other libraries reported
// the fault.

import Iggy
import Testing

@Suite(.timeLimit(.minutes(10))) struct CancellationTests {
    // valkey-glide#5442, connectrpc/connect-swift#333
    @Test func given_calls_cancelled_at_random_when_called_again_should_work_and_lose_nothing() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        var sent = 0
        var ended = 0
        let each = 50
        for _ in 0..<times("IGGY_TEST_CANCELS", 1000) / each {
            var calls = (1..<each).map { _ in Task { try await client.ping() } }
            calls.append(Task { _ = try await client.longPoll(stream) })
            await pauseAtRandom()
            for call in calls { call.cancel() }
            for call in calls {
                do {
                    try await call.value
                } catch let error as IggyError {
                    #expect(error.errorClass == .cancelled)
                }
                ended += 1
            }
            try await client.send("kept", to: stream)
            sent += 1
        }
        #expect(ended == sent * each)
        let found = try await client.pollMessages(
            streamID: stream, topicID: "t", partitionID: 0, consumer: "c", strategy: .first)
        #expect(found.count == sent)
        try await client.shutdown()
    }

    // confluent-kafka-python#807
    @Test func given_a_poll_that_waits_when_its_task_is_cancelled_should_end_and_tell_the_server() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let poll = Task { try await client.longPoll(stream) }
        await Task.yield()
        poll.cancel()
        let error = await failure { _ = try await poll.value }
        #expect(error?.errorClass == .cancelled)
        #expect(error?.outcome == .unknown)
        let before = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await client.ping()
        }
        let cancelled = await failure { try await before.value }
        #expect(cancelled?.errorClass == .cancelled)
        try await client.ping()
        try await client.shutdown()
    }

    // rust-rdkafka#490
    @Test func given_reads_cancelled_at_random_when_read_on_should_lose_and_repeat_nothing() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let reader = try await client.reader(
            streamID: stream, topicID: "t", consumer: "r", configuration: ReaderConfiguration(partitions: [0, 1]))
        let consumer = try client.consumer(
            name: "c", streamID: stream, topicID: "t",
            configuration: ConsumerConfiguration(partitions: [0], start: .first))
        try await consumer.initialize()
        var read: [UInt64] = []
        var received: [UInt64] = []
        let count = 100
        func unlessCancelled<T: Sendable>(_ call: @escaping @Sendable () async throws -> T?) async throws -> T? {
            let task = Task { try await call() }
            await pauseAtRandom()
            task.cancel()
            do {
                return try await task.value
            } catch let error as IggyError where error.errorClass == .cancelled {
                return nil
            }
        }
        for index in 0..<count {
            try await client.send("one", to: stream)
            if let batch = try await unlessCancelled({ try await reader.next() }) { read += batch.map(\.offset) }
            if index.isMultiple(of: 2) {
                if let next = try await unlessCancelled({ try await consumer.next() }) {
                    received.append(next.message.offset)
                }
            } else if let batch = try await unlessCancelled({ try await consumer.nextBatch() }) {
                received += batch.map(\.offset)
            }
        }
        while read.count < count { read += try await reader.next().map(\.offset) }
        while received.count < count, let next = try await consumer.next() { received.append(next.message.offset) }
        #expect(read == (0..<UInt64(count)).map { $0 })
        #expect(received == read)
        try await reader.close()
        try await consumer.shutdown()
        try await client.shutdown()
    }

    struct InTheBody: Error {}

    enum Leaving: CaseIterable { case breaks, throwing, cancelled, letGo }

    // swift-server/swift-kafka-client#136
    @Test(arguments: Leaving.allCases)
    func given_a_member_of_a_group_when_its_loop_is_left_should_leave_the_group(_ how: Leaving) async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        try await client.send("one", to: stream)
        func members() async throws -> Int {
            let found = try await client.getConsumerGroup(streamID: stream, topicID: "t", groupID: "g")
            return found?.members.count ?? 0
        }
        let member = try client.consumerGroup(name: "g", streamID: stream, topicID: "t")
        try await member.initialize()
        #expect(try await members() == 1)
        switch how {
        case .breaks:
            for try await _ in member { break }
        case .throwing:
            await #expect(throws: InTheBody.self) { for try await _ in member { throw InTheBody() } }
        case .cancelled:
            let loop = Task { for try await _ in member { withUnsafeCurrentTask { $0?.cancel() } } }
            let error = await failure { try await loop.value }
            #expect(error?.errorClass == .cancelled)
        case .letGo:
            try await letGo(client, stream)
            try await member.shutdown()
        }
        // Its client stays connected, so nothing else would end its membership.
        while try await members() > 0 {}
        _ = member
        try await client.shutdown()
    }

    private func letGo(_ client: IggyClient, _ stream: Identifier) async throws {
        let other = try await Node.shared.client()
        let member = try other.consumerGroup(name: "g", streamID: stream, topicID: "t")
        try await member.initialize()
    }
}
