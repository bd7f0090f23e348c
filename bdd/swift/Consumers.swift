// Consumers and members of groups.

import Iggy

private func commits(_ told: Arguments) throws -> CommitPolicy {
    switch try told.text("policy") {
    case "manual": .manual
    case "on_read": .onRead
    default: .auto(AutoCommit(interval: .zero, every: .messages(try told.number("every"))))
    }
}

extension World {
    fileprivate func consume(_ name: String, _ consumer: IggyConsumer) async throws {
        try await consumer.initialize()
        consumers[name] = Receiver(consumer)
    }

    fileprivate func close(_ name: String) async throws {
        let receiver = try receiver(name)
        consumers[name] = nil
        try await receiver.consumer.shutdown()
    }

    /// What each consumer owns, in one order.
    fileprivate var owned: [[UInt32]] { inOrder(consumers.values.map(\.consumer.partitions)) }

    private func inOrder(_ lists: [[UInt32]]) -> [[UInt32]] {
        lists.map { $0.sorted() }.sorted { $0.lexicographicallyPrecedes($1) }
    }

    fileprivate func hasSettled() async throws -> Bool {
        let found = try await client().getConsumerGroup(streamID: stream, topicID: topic, groupID: group)
        guard let found else { throw StepFailed("there is no group") }
        return inOrder(found.members.map(\.partitions)) == owned
            && owned.joined().count == Int(found.partitionsCount)
    }

    /// Every partition was read from its start, in order, without a hole and nothing twice, whoever read it.
    fileprivate func readInOrder() throws {
        try expectNoError()
        var offsets: [UInt32: [UInt64]] = [:]
        for found in consumers.values {
            var last: [UInt32: UInt64] = [:]
            for received in found.received {
                let (partition, offset) = (received.partitionID, received.message.offset)
                if let before = last[partition] { try check(before < offset, "in order") }
                last[partition] = offset
                try same(sent[partition, default: []][Int(offset)].payload, received.message.payloadString)
                offsets[partition, default: []].append(offset)
            }
        }
        for (partition, seen) in offsets {
            try same(sent[partition, default: []].indices.map(UInt64.init), seen.sorted())
        }
    }
}

@MainActor let consumerSteps: [String: Step] = [
    "use_consumer": { world, told in
        let options = PollOptions(maxWait: .seconds(1), commit: try commits(told.object("commits")))
        let configuration = ConsumerConfiguration(partitions: [try told.number("partition")], pollOptions: options)
        try await world.consume(theConsumer, world.client().consumer(
            name: .named(told.text("consumer")), streamID: world.stream, topicID: world.topic,
            configuration: configuration))
    },
    "consumer_receives": { try await $0.receiver(theConsumer).receive($1.int("count")) },
    "consumer_receives_and_commits": { world, told in
        try await world.receiver(theConsumer).receive(told.int("count"))
        try await world.receiver(theConsumer).commitAll()
    },
    "consumer_commits": { world, _ in try await world.receiver(theConsumer).commitAll() },
    "close_consumer": { world, _ in try await world.close(theConsumer) },
    "consumer_received": { world, told in
        let found = try world.receiver(theConsumer).received.map(\.message.offset)
        try same(Array(told.wide("first")...told.wide("last")), found)
    },
    "join": { world, told in
        world.group = .named(try told.text("group"))
        // A member is a client of its own, as it would be in a program of its own.
        let client = try await world.connect("iggy:iggy")
        world.clients[try told.text("member")] = client
        try await world.consume(told.text("member"), client.consumerGroup(
            name: world.group, streamID: world.stream, topicID: world.topic,
            configuration: ConsumerConfiguration(pollOptions: PollOptions(maxWait: .seconds(1)))))
    },
    "join_without_creating": { world, told in
        try await world.consume("nobody", world.client().consumerGroup(
            name: .named(told.text("group")), streamID: world.stream, topicID: world.topic,
            configuration: ConsumerConfiguration(createConsumerGroup: false)))
    },
    "settle": { world, _ in
        try world.expectNoError()
        let end = ContinuousClock.now + deadline
        while try await !world.hasSettled() {
            try check(ContinuousClock.now < end, "the members do not settle")
            for found in world.consumers.values { try await found.glance() }
        }
    },
    "owns": { world, told in
        try same(told.int("partitions"), world.receiver(told.text("member")).consumer.partitions.count)
    },
    "own_each": { world, told in
        for who in ["first", "second"] {
            try same(told.int("partitions"), world.receiver(told.text(who)).consumer.partitions.count)
        }
    },
    "no_two_owners": { world, _ in
        let every = Array(world.owned.joined())
        try same(every.count, Set(every).count)
    },
    "member_receives": { try await $0.receiver($1.text("member")).receive($1.int("count")) },
    "member_receives_and_commits": { world, told in
        try await world.receiver(told.text("member")).receive(told.int("count"))
        try await world.receiver(told.text("member")).commitAll()
    },
    "leave": { try await $0.close($1.text("member")) },
    "member_signs_out": { world, told in
        world.consumers[try told.text("member")] = nil
        try await world.clients[told.text("member")]?.logoutUser()
    },
    "receive_together": { world, told in
        let end = ContinuousClock.now + deadline
        while try world.consumers.values.map(\.received.count).reduce(0, +) < told.int("count") {
            try check(ContinuousClock.now < end, "the messages do not come")
            for who in ["first", "second"] { try await world.receiver(told.text(who)).glance() }
        }
        try world.readInOrder()
    },
    "all_read_in_order": { world, _ in try world.readInOrder() },
    "received_of_every_partition": { world, told in
        let found = try world.receiver(told.text("member")).received
        try same(Set(world.sent.keys), Set(found.map(\.partitionID)))
        try same([told.wide("offset")], Set(found.map(\.message.offset)))
    },
    "commit_lost_partition": { world, told in
        let lost = try world.receiver(told.text("owner")).consumer.partitions
        let found = try world.receiver(told.text("member"))
        guard let message = found.received.first(where: { lost.contains($0.partitionID) }) else {
            throw StepFailed("no message of such a partition")
        }
        try await found.consumer.commit(message.checkpoint)
    },
]
