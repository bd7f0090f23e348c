// The partition reader.

import Iggy

extension World {
    fileprivate func opened() throws -> PartitionReader {
        guard let reader else { throw StepFailed("there is no reader") }
        return reader
    }

    /// One more batch, or one more report.
    fileprivate func readOnce() async throws {
        let reader = try opened()
        do {
            guard let batch = try await within(deadline, { try await reader.next() }) else {
                throw StepFailed("nothing was read")
            }
            if let checkpoint = batch.checkpoint { checkpoints.append(checkpoint) }
            read += batch.map { (batch.partitionID, $0.offset, $0.payloadString) }
        } catch let error as IggyError {
            reported.append(error)
        }
    }

    fileprivate func read(until count: Int) async throws {
        while read.count < count { try await readOnce() }
    }

    fileprivate func checkPartition(_ partition: UInt32, _ count: Int) throws {
        let found = read.filter { $0.0 == partition }
        let wanted = sent[partition, default: []].prefix(count)
        try same(wanted.indices.map(UInt64.init), found.map(\.1))
        try same(wanted.map(\.payload), found.map(\.2))
    }
}

@MainActor let readerSteps: [String: Step] = [
    "open_reader": { world, told in
        let options = PollOptions(count: try told.ifPresent("count", told.number) ?? 1_000, maxWait: .seconds(1))
        world.reader = try await world.client().reader(
            streamID: world.stream, topicID: world.topic,
            consumer: .single(.named(told.ifPresent("consumer", told.text) ?? "reader")),
            configuration: ReaderConfiguration(partitions: told.numbers("partitions"), pollOptions: options))
    },
    "read": { try await $0.read(until: $1.int("count")) },
    "read_more": { try await $0.read(until: $0.read.count + $1.int("count")) },
    "read_of_partition": { try $0.checkPartition($1.number("partition"), $1.int("count")) },
    "read_of_each_partition": { world, told in
        for partition in try await world.topicDetails().partitions {
            try world.checkPartition(partition.id, told.int("count"))
        }
    },
    "last_read": { world, told in
        let found = try world.read.suffix(told.int("count"))
        try same(Array(told.wide("first")...told.wide("last")), found.map(\.1))
        try same([told.number("partition")], Set(found.map(\.0)))
    },
    "reader_commits": { world, _ in
        for checkpoint in world.checkpoints { try await world.opened().commit(checkpoint) }
    },
    "seek": { try $0.opened().seek(partitionID: $1.number("partition"), to: $0.start($1.object("start"))) },
    "reader_reported": { world, told in
        while world.reported.isEmpty { try await world.readOnce() }
        try same(told.number("partition"), world.reported[0].partitionID)
        try same(told.text("error"), world.reported[0].name)
    },
    "reader_stops": { world, told in
        let partition = try told.number("partition")
        while !world.reported.contains(where: { $0.partitionID == partition }) { try await world.readOnce() }
        try same(told.text("error"), world.reported.last { $0.partitionID == partition }?.name)
        try check(world.opened().stopped.contains(partition), "stopped")
    },
    "close_reader": { world, _ in try await world.opened().close() },
    "reading_fails": { world, told in
        do {
            _ = try await world.opened().next()
        } catch let error as IggyError {
            return try same(told.text("class"), error.errorClass.rawValue)
        }
        throw StepFailed("reading did not fail")
    },
]
