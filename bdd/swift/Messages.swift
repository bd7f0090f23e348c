// Sending, headers, producers and encryption.

import Foundation
import Iggy

private func header(_ kind: String, _ text: String) throws -> HeaderValue {
    let value: HeaderValue? = switch kind {
    case "raw": .raw(text.utf8)
    case "string": .string(text)
    case "bool": .bool(text == "true")
    case "int8": Int8(text).map(HeaderValue.int8)
    case "int16": Int16(text).map(HeaderValue.int16)
    case "int32": Int32(text).map(HeaderValue.int32)
    case "int64": Int64(text).map(HeaderValue.int64)
    case "int128": Int128(text).map(HeaderValue.int128)
    case "uint8": UInt8(text).map(HeaderValue.uint8)
    case "uint16": UInt16(text).map(HeaderValue.uint16)
    case "uint32": UInt32(text).map(HeaderValue.uint32)
    case "uint64": UInt64(text).map(HeaderValue.uint64)
    case "uint128": UInt128(text).map(HeaderValue.uint128)
    case "float32": Float(text).map(HeaderValue.float32)
    case "float64": Double(text).map(HeaderValue.float64)
    default: nil
    }
    guard let value else { throw StepFailed("a header of the kind \(kind) with the value \(text)") }
    return value
}

extension World {
    fileprivate func send(_ count: Int, by partitioning: Partitioning) async throws {
        let messages = (0..<count).map { Sent.numbered(0, $0).message }
        try await client().sendMessages(
            streamID: stream, topicID: topic, partitioning: partitioning, messages: messages)
    }

    fileprivate func send(headers: Headers) async throws {
        let plain = Sent.numbered(0, sent[0, default: []].count)
        try await send([Sent(id: plain.id, payload: plain.payload, headers: headers)], to: 0, by: client())
    }

    /// Numbered as if they all went to partition 0, where those scenarios look that care.
    fileprivate func forProducer(_ count: Int) -> [IggyMessage] {
        let messages = nextMessages(0, count)
        sent[0, default: []] += messages
        return messages.map(\.message)
    }

    fileprivate func running() throws -> IggyProducer {
        guard let producer else { throw StepFailed("there is no producer") }
        return producer
    }

    fileprivate func encrypting() throws -> IggyClient {
        guard let found = clients["encrypting"] else { throw StepFailed("there is no encrypting client") }
        return found
    }
}

@MainActor let messageSteps: [String: Step] = [
    "send": { world, told in
        world.confirmation = try await world.send(told.number("partition"), told.int("count")).first
    },
    "send_one_of_bytes": { world, told in
        try await world.send(told.number("partition"), 1, size: told.int("bytes"))
    },
    "send_singly_of_bytes": { world, told in
        for _ in 0..<(try told.int("count")) {
            try await world.send(told.number("partition"), 1, size: told.int("bytes"))
        }
    },
    "send_bytes": { world, told in
        for _ in stride(from: 0, to: try told.int("bytes"), by: 100_000) {
            try await world.send(told.number("partition"), 10, size: 10_000)
        }
    },
    "send_to_each": { world, told in
        for partition in try await world.topicDetails().partitions {
            try await world.send(partition.id, told.int("count"))
        }
    },
    "send_balanced": { world, told in
        for index in 0..<(try told.int("count")) {
            try await world.client().sendMessages(
                streamID: world.stream, topicID: world.topic, partitioning: .balanced,
                messages: [Sent.numbered(0, index).message])
        }
    },
    "send_with_key": { try await $0.send($1.int("count"), by: .key($1.text("key"))) },
    "send_with_key_number": { try await $0.send($1.int("count"), by: .key($1.wide("key"))) },
    "send_header": { world, told in
        let value = try header(told.text("kind"), told.text("value"))
        try await world.send(headers: [.string(told.text("header")): value])
    },
    "send_header_of_bytes": { world, told in
        let value = HeaderValue.string(String(repeating: "x", count: try told.int("bytes")))
        try await world.send(headers: [.string(told.text("header")): value])
    },
    "send_headers": { world, told in
        var headers: Headers = [:]
        for index in 0..<(try told.number("count")) { headers["header-\(index)"] = .uint32(index) }
        try await world.send(headers: headers)
    },
    "header_is": { world, told in
        let found = try world.polled()[told.int("message")].headers()
        try same(header(told.text("kind"), told.text("value")), found[.string(told.text("header"))])
    },
    "confirmation_is": { world, told in
        try world.expectNoError()
        try same(told.number("partition"), world.confirmation?.partitionID ?? .max)
        try same(told.wide("offset"), world.confirmation?.baseOffset ?? .max)
    },
    "start_sending": { world, told in
        let (partition, client) = (try told.number("partition"), try world.client())
        let messages = try world.nextMessages(partition, told.int("count"))
        let (stream, topic) = (world.stream, world.topic)
        world.sending = Task {
            try await client.sendMessages(
                streamID: stream, topicID: topic, partitioning: .partition(partition),
                messages: messages.map(\.message))
        }
        world.sent[partition, default: []] += messages
    },
    "sending_arrives_once": { world, _ in
        try world.expectNoError()
        guard let sending = world.sending else { throw StepFailed("nothing is being sent") }
        _ = try await sending.value
        world.sending = nil
        for (partition, sent) in world.sent {
            let found = try await world.client().pollMessages(
                streamID: world.stream, topicID: world.topic, partitionID: partition, consumer: "arrived",
                strategy: .first, options: PollOptions(count: 10_000, maxBytes: 16 << 20))
            try same(sent.map(\.payload), found.map(\.payloadString))
        }
    },
    "use_producer": { world, told in
        if let stream = try told.ifPresent("stream", told.text) { world.stream = .named(stream) }
        if let topic = try told.ifPresent("topic", told.text) { world.topic = .named(topic) }
        var configuration = ProducerConfiguration()
        if let key = try told.ifPresent("key", told.text) { configuration.partitioning = .key(key) }
        if try told.ifPresent("create", told.truth) == false {
            configuration.createStream = false
            configuration.createTopic = nil
        }
        if let length = try told.ifPresent("batch_length", told.number) {
            configuration.sending = .direct(DirectSending(batchLength: length))
        }
        if try told.ifPresent("background", told.truth) == true { configuration.sending = .background() }
        configuration.idempotent = try told.ifPresent("idempotent", told.truth) ?? false
        if let chosen = try told.ifPresent("partitioner", told.number) {
            configuration.partitioner = { _, _, _ in chosen }
        }
        let producer = try world.client().producer(
            streamID: world.stream, topicID: world.topic, configuration: configuration)
        world.producer = producer
        try await producer.initialize()
    },
    "producer_sends": { world, told in
        _ = try await world.running().send(world.forProducer(told.int("count")))
    },
    "producer_sends_singly": { world, told in
        for message in world.forProducer(try told.int("count")) { _ = try await world.running().send(message) }
    },
    "close_producer": { world, _ in try await world.running().shutdown() },
    "use_encrypting_client": { world, told in
        let key = Data(try told.text("key").utf8)
        let cipher = try told.text("cipher").lowercased()
        let encryption: Encryption = cipher == "aes-256-gcm" ? .aes256Gcm(key: key) : .aes256GcmSiv(key: key)
        world.clients["encrypting"] = try await world.connect("iggy:iggy", encryption: encryption)
    },
    "encrypting_client_sends": { world, told in
        let partition = try told.number("partition")
        try await world.send(
            world.nextMessages(partition, told.int("count")), to: partition, by: world.encrypting())
    },
    "encrypting_client_polls": { world, told in
        try await world.poll(world.encrypting(), told.number("partition"), Arguments(values: [:]), .first)
    },
]
