// Streams, topics, partitions, segments and consumer groups.

import Iggy

extension World {
    fileprivate func createStream(_ name: String) async throws {
        stream = .named(name)
        try await client().createStream(name: name)
    }

    fileprivate func createTopic(_ name: String, _ options: TopicCreateOptions) async throws {
        topic = .named(name)
        sent = [:]
        try await client().createTopic(streamID: stream, name: name, options: options)
    }
}

private func options(_ settings: Arguments?) throws -> TopicCreateOptions {
    var options = TopicCreateOptions(partitionsCount: 1)
    for key in settings?.values.keys.sorted() ?? [] {
        guard let settings else { break }
        if key == "partitions" { options.partitionsCount = try settings.number(key) }
        else if let text = try? settings.text(key) { options.options[key] = .text(text) }
        else { options.options[key] = .number(try settings.wide(key)) }
    }
    return options
}

@MainActor let resourceSteps: [String: Step] = [
    "create_stream": { try await $0.createStream($1.text("stream")) },
    "create_stream_with_topic": { world, told in
        try await world.createStream(told.text("stream"))
        try await world.createTopic(told.text("topic"), TopicCreateOptions(partitionsCount: told.number("partitions")))
    },
    "create_segmented_topic": { world, told in
        try await world.createTopic(
            told.text("topic"), TopicCreateOptions(partitionsCount: 1, segmentSize: told.wide("segment_size")))
    },
    "create_stream_of_bytes": { world, told in
        _ = try await world.client().createStream(name: String(repeating: "x", count: told.int("bytes")))
    },
    "rename_stream": { world, told in
        try await world.client().updateStream(streamID: .named(told.text("stream")), name: told.text("name"))
    },
    "delete_stream": { try await $0.client().deleteStream(streamID: .named($1.text("stream"))) },
    "stream_exists": { world, told in
        try world.expectNoError()
        let found = try await world.client().getStream(streamID: .named(told.text("stream")))
        try same(told.text("stream"), found?.name ?? "")
        try same(told.int("topics"), found?.topics.count ?? -1)
    },
    "stream_is_missing": { world, told in
        try world.expectNoError()
        try await same(nil, world.client().getStream(streamID: .named(told.text("stream"))))
    },
    "streams_are": { world, told in
        try await same(told.texts("names"), world.client().getStreams().map(\.name))
    },
    "stream_number_finds_it": { world, told in
        let found = try await world.client().getStream(streamID: .named(told.text("stream")))
        guard let found else { throw StepFailed("the stream") }
        try await same(found, world.client().getStream(streamID: .numeric(found.id)))
    },
    "create_topic": { world, told in
        try await world.createTopic(told.text("topic"), options(told.ifPresent("settings", told.object)))
    },
    "topic_has_settings": { world, told in
        try world.expectNoError()
        world.topic = .named(try told.text("topic"))
        let topic = try await world.topicDetails()
        var found = topic.derivedOptions.merging(topic.options) { _, set in set }
        found["partitions"] = String(topic.partitionsCount)
        for (key, value) in try told.object("settings").values { try same("\(value)", found[key] ?? "", key) }
    },
    "set_message_expiry": { world, told in
        try await world.client().updateTopic(
            streamID: world.stream, topicID: .named(told.text("topic")),
            options: ["message_expiry": .number(told.wide("message_expiry"))])
    },
    "rename_topic": { world, told in
        try await world.client().updateTopic(
            streamID: world.stream, topicID: .named(told.text("topic")), name: told.text("name"))
    },
    "delete_topic": { world, told in
        try await world.client().deleteTopic(streamID: world.stream, topicID: .named(told.text("topic")))
    },
    "recreate_topic": { world, told in
        try await world.client().deleteTopic(streamID: world.stream, topicID: .named(told.text("topic")))
        try await world.createTopic(told.text("topic"), TopicCreateOptions(partitionsCount: told.number("partitions")))
    },
    "topic_exists": { world, told in
        try world.expectNoError()
        world.topic = .named(try told.text("topic"))
        try await same(told.int("partitions"), world.topicDetails().partitions.count)
    },
    "topic_is_missing": { world, told in
        try world.expectNoError()
        try await same(nil, world.client().getTopic(streamID: world.stream, topicID: .named(told.text("topic"))))
    },
    "topics_are": { world, told in
        try await same(told.texts("names"), world.client().getTopics(streamID: world.stream).map(\.name))
    },
    "topic_number_finds_it": { world, told in
        world.topic = .named(try told.text("topic"))
        let found = try await world.topicDetails()
        try await same(found, world.client().getTopic(streamID: world.stream, topicID: .numeric(found.id)))
    },
    "add_partitions": { world, told in
        try await world.client().createPartitions(
            streamID: world.stream, topicID: world.topic, count: told.number("count"))
    },
    "remove_partitions": { world, told in
        try await world.client().deletePartitions(
            streamID: world.stream, topicID: world.topic, count: told.number("count"))
    },
    "delete_segments": { world, told in
        try await world.client().deleteSegments(
            streamID: world.stream, topicID: world.topic, partitionID: told.number("partition"),
            count: told.number("count"))
    },
    "partition_holds": { world, told in
        try world.expectNoError()
        let topic = try await world.topicDetails()
        try same(told.wide("count"), topic.partitions[told.int("partition")].messagesCount)
        try same(told.wide("count"), topic.messagesCount, "and no other partition holds any:")
    },
    "each_partition_holds": { world, told in
        try world.expectNoError()
        for partition in try await world.topicDetails().partitions {
            try same(told.wide("count"), partition.messagesCount)
        }
    },
    "partitions_hold": { world, told in
        try world.expectNoError()
        try await same(told.wide("count"), world.topicDetails().messagesCount)
    },
    "create_group": { world, told in
        _ = try await world.client().createConsumerGroup(
            streamID: world.stream, topicID: world.topic, name: told.text("group"))
    },
    "delete_group": { world, told in
        try await world.client().deleteConsumerGroup(
            streamID: world.stream, topicID: world.topic, groupID: .named(told.text("group")))
    },
    "group_exists": { world, told in
        try world.expectNoError()
        let found = try await world.client().getConsumerGroup(
            streamID: world.stream, topicID: world.topic, groupID: .named(told.text("group")))
        try same(told.int("members"), found?.members.count ?? -1)
    },
    "group_is_missing": { world, told in
        try world.expectNoError()
        let found = try await world.client().getConsumerGroup(
            streamID: world.stream, topicID: world.topic, groupID: .named(told.text("group")))
        try same(nil, found)
    },
    "options_include": { world, told in
        guard let scope = OptionScope(rawValue: try told.text("scope")) else { throw StepFailed("a scope") }
        let found = try await world.client().describeOptions(scope).map(\.key)
        try check(found.contains(told.text("option")), "\(found)")
    },
]
