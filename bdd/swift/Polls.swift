// Polling and stored offsets.

import Iggy

private func options(_ told: Arguments) throws -> PollOptions {
    let commit: CommitPolicy? = switch try told.ifPresent("commit", told.text) {
    case nil: nil
    case "on_read": .onRead
    default: .auto(.default)
    }
    return PollOptions(
        count: try told.ifPresent("count", told.number) ?? 10_000,
        maxWait: try told.ifPresent("max_wait_ms", told.int).map(Duration.milliseconds),
        minCount: try told.ifPresent("min_count", told.number),
        maxBytes: try told.ifPresent("max_bytes", told.number) ?? 16 << 20,
        commit: commit)
}

private func returned(_ found: PolledMessages, _ told: Arguments) throws {
    let (first, last) = (try told.wide("first"), try told.wide("last"))
    try same(first <= last ? Array(first...last) : [], found.map(\.offset))
}

extension World {
    func poll(_ client: IggyClient, _ partition: UInt32, _ told: Arguments, _ start: ReadStart) async throws {
        let consumer = try told.ifPresent("consumer", told.text) ?? "reader"
        lastPolled = try await client.pollMessages(
            streamID: stream, topicID: topic, partitionID: partition, consumer: .single(.named(consumer)),
            strategy: start, options: options(told))
        polledPartition = partition
    }

    fileprivate func storedOffset(_ told: Arguments) async throws -> UInt64? {
        try await client().getConsumerOffset(
            consumer: .single(.named(told.text("consumer"))), streamID: stream, topicID: topic,
            partitionID: told.number("partition"))?.storedOffset
    }
}

@MainActor let pollSteps: [String: Step] = [
    "poll": { world, told in
        try await world.poll(world.client(), told.number("partition"), told, world.start(told.object("start")))
    },
    "poll_continuation": { world, told in
        try await world.poll(
            world.client(), world.polledPartition, told, .continuation(world.polled().continuation))
    },
    "user_polls": { world, told in
        let client = try await world.client(of: told.text("user"))
        try await world.poll(client, told.number("partition"), Arguments(values: [:]), .first)
    },
    "note_time": { world, _ in
        // The server's clock, not ours: the time of the newest message, and a microsecond more.
        try await world.poll(world.client(), 0, Arguments(values: ["count": 1]), .last)
        world.notedTime = try world.polled()[0].timestamp + 1
    },
    "start_waiting": { world, told in
        let (client, stream, topic) = (try world.client(), world.stream, world.topic)
        let (partition, options) = (try told.number("partition"), try options(told))
        let consumer = Consumer.single(.named(try told.ifPresent("consumer", told.text) ?? "reader"))
        world.waiting = (partition, Task {
            try await client.pollMessages(
                streamID: stream, topicID: topic, partitionID: partition, consumer: consumer, strategy: .first,
                options: options)
        })
    },
    "give_up_waiting": { world, _ in
        guard let (_, waiting) = world.waiting else { throw StepFailed("no poll is waiting") }
        world.waiting = nil
        waiting.cancel()
        do {
            _ = try await waiting.value
        } catch let error as IggyError where error.errorClass == .cancelled {
            return
        }
        throw StepFailed("the poll ended otherwise")
    },
    "waiting_returns": { world, told in
        try world.expectNoError()
        guard let (partition, waiting) = world.waiting else { throw StepFailed("no poll is waiting") }
        world.waiting = nil
        let found = try await waiting.value
        (world.lastPolled, world.polledPartition) = (found, partition)
        try returned(found, told)
    },
    "poll_returns": { try returned($0.polled(), $1) },
    "poll_returns_nothing": { world, _ in try same(0, world.polled().count) },
    "poll_returns_some": { world, told in
        let (found, first) = (try world.polled(), try told.wide("first"))
        try check(!found.isEmpty, "something")
        try same(Array(first..<first + UInt64(found.count)), found.map(\.offset))
        try check(found.count < world.sent[world.polledPartition, default: []].count, "not all of them")
    },
    "poll_returns_later": { world, told in
        guard let first = try world.polled().first else { throw StepFailed("something") }
        try check(first.offset > told.wide("offset"), "later")
    },
    "polled_as_sent": { world, _ in
        try check(!world.polled().isEmpty, "something")
        for message in try world.polled() {
            try world.sent[world.polledPartition, default: []][Int(message.offset)].check(message)
        }
    },
    "polled_is_unreadable": { world, _ in
        for message in try world.polled() {
            let sent = world.sent[world.polledPartition, default: []][Int(message.offset)]
            try check(!message.payloadString.contains(sent.payload.prefix(8)), "unreadable")
        }
    },
    "store_offset": { world, told in
        try await world.client().storeConsumerOffset(
            consumer: .single(.named(told.text("consumer"))), streamID: world.stream, topicID: world.topic,
            partitionID: told.number("partition"), offset: told.wide("offset"))
    },
    "delete_offset": { world, told in
        try await world.client().deleteConsumerOffset(
            consumer: .single(.named(told.text("consumer"))), streamID: world.stream, topicID: world.topic,
            partitionID: told.number("partition"))
    },
    "store_checkpoint": { world, told in
        let polled = try world.polled()
        let found = try told.has("message") ? polled.checkpoint(at: told.int("message")) : polled.checkpoint
        guard let found else { throw StepFailed("a checkpoint") }
        try await world.client().storeConsumerPosition(
            consumer: .single(.named(told.text("consumer"))), streamID: world.stream, topicID: world.topic,
            checkpoint: found)
    },
    "stored_offset_is": { world, told in
        try world.expectNoError()
        try await same(told.wide("offset"), world.storedOffset(told))
    },
    "stored_offset_becomes": { world, told in
        try world.expectNoError()
        let end = ContinuousClock.now + deadline
        while try await world.storedOffset(told) != told.wide("offset") {
            try check(ContinuousClock.now < end, "the offset was not stored")
        }
    },
    "no_stored_offset": { world, told in
        try world.expectNoError()
        try await same(nil, world.storedOffset(told))
    },
]
