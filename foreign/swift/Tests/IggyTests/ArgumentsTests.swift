// What is wrong is refused by name, and what is configured arrives.

import Foundation
import Iggy
import Testing

@Suite(.timeLimit(.minutes(5))) struct ArgumentsTests {
    @Test func given_settings_that_cannot_be_when_a_client_is_made_should_say_what_is_wrong() async throws {
        let text = await failure { _ = try IggyClient(connectionString: "http://nowhere") }
        #expect(text?.errorClass == .invalidInput)
        var configuration = ClientConfiguration()
        configuration.username = "alone"
        let alone = await failure { [configuration] in _ = try IggyClient(configuration: configuration) }
        #expect(alone?.message.contains("password") == true)
        configuration = ClientConfiguration()
        configuration.requestTimeout = .seconds(-1)
        let negative = await failure { [configuration] in _ = try IggyClient(configuration: configuration) }
        #expect(negative?.message.contains("-1000000") == true)
        configuration = ClientConfiguration()
        configuration.encryption = .aes256Gcm(key: Data([1, 2, 3]))
        let short = await failure { [configuration] in _ = try IggyClient(configuration: configuration) }
        #expect(short?.errorClass == .invalidInput)
    }

    @Test func given_every_setting_when_a_client_is_made_should_take_it() async throws {
        let client = try await Node.shared.client {
            $0.noDelay = true
            $0.reconnectionMaxRetries = 3
            $0.reconnectionInterval = .milliseconds(10)
            $0.reestablishAfter = .seconds(1)
            $0.heartbeatInterval = .seconds(2)
            $0.requestTimeout = .seconds(20)
            $0.maxPendingOperations = 8
            $0.maxPendingOperationBytes = 1 << 20
            $0.maxFrameBytes = 1 << 20
            $0.encryption = .aes256GcmSiv(key: Data(repeating: 7, count: 32))
            $0.partitioner = { _, _, _ in 0 }
        }
        #expect(try await client.heartbeatInterval() == .seconds(2))
        try await client.shutdown()
    }

    @Test func given_arguments_out_of_bounds_when_called_should_be_refused() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let name = await failure { _ = try await client.getStream(streamID: "") }
        #expect(name?.errorClass == .invalidInput)
        let empty = await failure { try await client.send("", to: stream) }
        #expect(empty?.errorClass == .invalidInput)
        for bytes in [0, 256, 70_000] {
            let header = IggyMessage("x", headers: ["key": .string(String(repeating: "x", count: bytes))])
            let refused = await failure {
                try await client.sendMessages(
                    streamID: stream, topicID: "t", partitioning: .balanced, messages: [header])
            }
            #expect(refused?.errorClass == .invalidInput)
        }
        let key = await failure {
            try await client.sendMessages(streamID: stream, topicID: "t", partitioning: .key(""), messages: ["x"])
        }
        #expect(key?.errorClass == .invalidInput)
        let count = await failure {
            _ = try await client.pollMessages(
                streamID: stream, topicID: "t", partitionID: 0, consumer: "c", options: PollOptions(count: 0))
        }
        #expect(count?.name == "invalid_messages_count")
        try await client.shutdown()
    }

    @Test func given_typed_options_when_a_topic_is_made_should_arrive() async throws {
        let (client, stream) = try await Node.shared.clientAndStream()
        let options = TopicCreateOptions(
            partitionsCount: 3, replicationFactor: 1, messageExpiry: .seconds(3600), maxTopicSize: 1 << 30,
            segmentSize: 1 << 20, durability: .persisted, options: ["consumer_offset_durability": "persisted"])
        let topic = try await client.createTopic(streamID: stream, name: "typed", options: options)
        #expect(topic.partitions.count == 3)
        #expect(topic.options["durability"] == "persisted")
        #expect(topic.options["consumer_offset_durability"] == "persisted")
        #expect(topic.options["message_expiry"] == "3600000000")
        #expect(topic.options["segment_size"] == "1048576")
        try await client.updateTopic(
            streamID: stream, topicID: "typed", options: ["message_expiry": "2 h"], reset: ["max_topic_size"])
        let updated = try await client.getTopic(streamID: stream, topicID: "typed")
        #expect(updated?.options["message_expiry"] == "7200000000")
        #expect(updated?.options["max_topic_size"] == nil)
        try await client.shutdown()
    }
}
