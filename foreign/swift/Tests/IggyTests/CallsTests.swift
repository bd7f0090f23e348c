// Calls side by side, callbacks that throw, panics, and servers that go away.

import Foundation
import Iggy
import Testing

@testable import IggyNative

@Suite(.timeLimit(.minutes(10))) struct CallsTests {
    // dtolnay/cxx#1326, napi-rs#2047
    @Test func given_a_panic_in_the_core_when_called_should_be_an_error() async throws {
        for _ in 0..<3 {
            do {
                try await nativePanics(call: NativeCall())
                Issue.record("nothing was thrown")
            } catch let NativeError.Failed(failure) {
                #expect(failure.class == "internal")
                #expect(failure.message.contains("on purpose"))
            }
        }
    }

    struct NoSuchLuck: Error {}

    @Test func given_a_partitioner_that_throws_when_sent_should_fail_the_send_and_nothing_else() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let asked = Counter()
        let producer = try client.producer(
            streamID: stream, topicID: "t",
            configuration: ProducerConfiguration(partitioner: { name, topic, messages in
                guard name == stream.description, topic == "t", messages.map(\.payloadString) == ["x"] else { return 9 }
                if asked.next() == 1 { throw NoSuchLuck() }
                return 1
            }))
        try await producer.initialize()
        let error = await failure { try await producer.send("x") }
        #expect(error?.message.contains("NoSuchLuck") == true)
        #expect(error?.outcome == .notApplied)
        #expect(try await producer.send("x").map(\.partitionID) == [1])
        try await producer.shutdown()
        try await client.shutdown()
    }

    @Test func given_a_background_send_that_fails_when_listened_to_should_be_heard_once() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let heard = Counter()
        let producer = try client.producer(
            streamID: stream, topicID: "t",
            configuration: ProducerConfiguration(
                partitioning: .partition(9), sending: .background(), onError: { error in
                    if error.errorClass == .notFound { _ = heard.next() }
                }))
        try await producer.initialize()
        try await producer.send("lost")
        // It may also say what was lost.
        try? await producer.shutdown()
        #expect(heard.count == 1)
        try await client.shutdown()
    }

    @Test func given_what_is_missing_when_named_should_be_an_error_of_its_class() async throws {
        let client = try await Node.shared.client()
        let error = await failure { try await client.deleteStream(streamID: "nowhere") }
        #expect(error?.errorClass == .notFound)
        #expect(error?.name == "stream_name_not_found")
        #expect(error?.code == 1010)
        #expect(error?.retryable == false)
        #expect(error?.outcome == .notApplied)
        #expect(try await client.getStream(streamID: "nowhere") == nil)
        try await client.shutdown()
    }

    // valkey-glide#7122, valkey-glide#5458
    @Test func given_many_tasks_on_many_clients_when_they_call_should_not_wait_for_a_long_poll() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let waiting = Task { try await client.longPoll(stream) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let own = try await Node.shared.client()
                    try await withThrowingTaskGroup(of: Void.self) { calls in
                        for _ in 0..<25 {
                            calls.addTask { try await own.send("side by side", to: stream, partition: 1) }
                            calls.addTask { try await client.ping() }
                        }
                        try await calls.waitForAll()
                    }
                    try await own.shutdown()
                }
            }
            try await group.waitForAll()
        }
        #expect(try await client.getTopic(streamID: stream, topicID: "t")?.messagesCount == 200)
        waiting.cancel()
        _ = await waiting.result
        try await client.shutdown()
    }

    // kafkajs#702, nats.rs#182
    @Test func given_a_server_that_is_away_when_it_comes_back_should_be_served() async throws {
        let node = Node()
        let (client, stream) = try await node.clientAndStream()
        let events = try client.subscribeEvents()
        try await client.send("before", to: stream)
        node.tell("kill")
        let sending = Task { try await client.send("while away", to: stream) }
        try await Task.sleep(for: .seconds(times("IGGY_TEST_AWAY", 1)))
        node.tell("start")
        do {
            try await sending.value
        } catch let error as IggyError {
            #expect(error.retryable || error.outcome == .unknown)
        }
        try await client.ping()
        while let event = try await events.next(), event.event != "disconnected" {}
        try await client.shutdown()
        while let event = try await events.next(), event.event != "shutdown" {}
        events.close()
        #expect(try await events.next() == nil)
    }

    private var residentPages: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    }

    // opendal#8250
    @Test func given_many_polls_of_a_large_message_when_let_go_should_keep_memory_flat() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let size = 1 << 20
        try await client.send(String(repeating: "x", count: size), to: stream)
        func poll() async throws {
            let polled = try await client.pollMessages(
                streamID: stream, topicID: "t", partitionID: 0, consumer: "c", strategy: .first,
                options: PollOptions(count: 1, maxBytes: 2 << 20))
            #expect(polled[0].payload.count == size)
        }
        for _ in 0..<50 { try await poll() }
        let before = residentPages
        for _ in 0..<times("IGGY_TEST_POLLS", 500) { try await poll() }
        #expect((residentPages - before) * Int(getpagesize()) < 64 << 20)
        try await client.shutdown()
    }

    @Test func given_headers_of_every_kind_when_sent_should_arrive_as_they_were() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let headers: Headers = [
            "raw": .raw([0, 255]), "string": "text", "bool": true, "int8": .int8(-1), "int16": .int16(-2),
            "int32": .int32(-3), "int64": .int64(.min), "int128": .int128(.min), "uint8": .uint8(255),
            "uint16": .uint16(65535), "uint32": .uint32(.max), "uint64": .uint64(.max), "uint128": .uint128(.max),
            "float32": .float32(0.5), "float64": .float64(-0.25), .uint64(7): .raw([1]),
        ]
        let message = IggyMessage(
            payload: Data([1, 0, 255]), id: MessageID(high: 1, low: 2), headers: headers, originTimestamp: 5)
        try await client.sendMessages(
            streamID: stream, topicID: "t", partitioning: .partition(0), messages: [message])
        try await client.send("plain", to: stream)
        let found = try await client.pollMessages(
            streamID: stream, topicID: "t", partitionID: 0, consumer: "c", strategy: .first)
        #expect(try found[0].headers() == headers)
        #expect(found[0].payload == Data([1, 0, 255]))
        #expect(found[0].id == MessageID(high: 1, low: 2))
        #expect(found[0].originTimestamp == 5)
        #expect(try found[1].headers().isEmpty && !found[1].hasHeaders)
        #expect(found[1].id != 0)
        #expect(headers["int128"]?.int128 == .min && headers["uint128"]?.uint128 == .max)
        #expect(headers["int64"]?.int64 == .min && headers["float32"]?.float32 == 0.5)
        #expect(headers["bool"]?.bool == true && headers["string"]?.string == "text" && headers["string"]?.int8 == nil)
        try await client.shutdown()
    }

    @Test func given_a_checkpoint_that_was_encoded_when_decoded_should_store_the_same_position() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        for text in ["a", "b", "c"] { try await client.send(text, to: stream) }
        let found = try await client.pollMessages(
            streamID: stream, topicID: "t", partitionID: 0, consumer: "c", strategy: .first)
        let checkpoint = try #require(found.checkpoint(at: 1))
        let decoded = try JSONDecoder().decode(Checkpoint.self, from: JSONEncoder().encode(checkpoint))
        #expect(decoded == checkpoint)
        try await client.storeConsumerPosition(consumer: "c", streamID: stream, topicID: "t", checkpoint: decoded)
        let rest = try await client.pollMessages(streamID: stream, topicID: "t", partitionID: 0, consumer: "c")
        #expect(rest.map(\.payloadString) == ["c"])
        let after = try await client.pollMessages(
            streamID: stream, topicID: "t", partitionID: 0, consumer: "c",
            strategy: .continuation(checkpoint.at(offset: 0).continuation))
        #expect(after.map(\.offset) == [1, 2])
        try await client.shutdown()
    }

    @Test func given_a_handler_that_throws_when_consumed_again_should_get_its_message_again() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        for index in 0..<5 { try await client.send("\(index)", to: stream) }
        let consumer = try client.consumer(
            name: "c", streamID: stream, topicID: "t",
            configuration: ConsumerConfiguration(partitions: [0], start: .first))
        try await consumer.initialize()
        var read = ""
        await #expect(throws: NoSuchLuck.self) {
            try await consumer.consumeMessages { received in
                if read.count == 2 { throw NoSuchLuck() }
                read += received.message.payloadString
            }
        }
        try await consumer.consumeMessages { received in
            read += received.message.payloadString
            if read.count == 5 { try await consumer.shutdown() }
        }
        #expect(read == "01234")
        for try await _ in consumer { Issue.record("it is closed") }
        try await client.shutdown()
    }
}

/// Counts from 1.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var last = 0

    var count: Int { lock.withLock { last } }
    func next() -> Int {
        lock.withLock {
            last += 1
            return last
        }
    }
}
