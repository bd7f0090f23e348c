<?php

declare(strict_types=1);

// Streams, topics, partitions, segments and consumer groups.

$createTopic = function (World $world, string $name, int $partitions, array $options = []): void {
    $world->topic = $name;
    $world->sent = [];
    $world->client()->createTopic($world->stream, $name, $partitions, $options);
};
$createStream = function (World $world, string $name): void {
    $world->stream = $name;
    $world->client()->createStream($name);
};
$names = fn (array $found): array => array_column($found, 'name');

return [
    'create_stream' => fn (World $world, array $a) => $createStream($world, $a['stream']),
    'create_stream_with_topic' => function (World $world, array $a) use ($createStream, $createTopic): void {
        $createStream($world, $a['stream']);
        $createTopic($world, $a['topic'], $a['partitions']);
    },
    'create_segmented_topic' => fn (World $world, array $a) =>
        $createTopic($world, $a['topic'], 1, ['segment_size' => $a['segment_size']]),
    'create_stream_of_bytes' => fn (World $world, array $a) => $world->client()->createStream(str_repeat('x', $a['bytes'])),
    'rename_stream' => fn (World $world, array $a) => $world->client()->updateStream($a['stream'], ['name' => $a['name']]),
    'delete_stream' => fn (World $world, array $a) => $world->client()->deleteStream($a['stream']),
    'stream_exists' => function (World $world, array $a): void {
        $world->expectNoError();
        $found = $world->client()->getStream($a['stream']);
        same([$a['stream'], $a['topics']], [$found['name'] ?? null, count($found['topics'] ?? [])]);
    },
    'stream_is_missing' => function (World $world, array $a): void {
        $world->expectNoError();
        same(null, $world->client()->getStream($a['stream']));
    },
    'streams_are' => fn (World $world, array $a) => same($a['names'], $names($world->client()->getStreams())),
    'stream_number_finds_it' => function (World $world, array $a): void {
        $byName = $world->client()->getStream($a['stream']);
        same($byName, $world->client()->getStream($byName['id']));
    },
    'create_topic' => function (World $world, array $a) use ($createTopic): void {
        $settings = $a['settings'] ?? [];
        $partitions = $settings['partitions'] ?? 1;
        unset($settings['partitions']);
        $createTopic($world, $a['topic'], $partitions, $settings);
    },
    'topic_has_settings' => function (World $world, array $a): void {
        $world->expectNoError();
        $world->topic = $a['topic'];
        $topic = $world->topicDetails();
        $found = [...$topic['derived_options'], ...$topic['options'], 'partitions' => (string) $topic['partitions_count']];
        foreach ($a['settings'] as $key => $value) {
            same((string) $value, $found[$key] ?? null, $key);
        }
    },
    'set_message_expiry' => fn (World $world, array $a) =>
        $world->client()->updateTopic($world->stream, $a['topic'], ['message_expiry' => $a['message_expiry']]),
    'rename_topic' => fn (World $world, array $a) =>
        $world->client()->updateTopic($world->stream, $a['topic'], ['name' => $a['name']]),
    'delete_topic' => fn (World $world, array $a) => $world->client()->deleteTopic($world->stream, $a['topic']),
    'recreate_topic' => function (World $world, array $a) use ($createTopic): void {
        $world->client()->deleteTopic($world->stream, $a['topic']);
        $createTopic($world, $a['topic'], $a['partitions']);
    },
    'topic_exists' => function (World $world, array $a): void {
        $world->expectNoError();
        $world->topic = $a['topic'];
        same($a['partitions'], count($world->topicDetails()['partitions']));
    },
    'topic_is_missing' => function (World $world, array $a): void {
        $world->expectNoError();
        same(null, $world->client()->getTopic($world->stream, $a['topic']));
    },
    'topics_are' => fn (World $world, array $a) => same($a['names'], $names($world->client()->getTopics($world->stream))),
    'topic_number_finds_it' => function (World $world, array $a): void {
        $world->topic = $a['topic'];
        $byName = $world->topicDetails();
        same($byName, $world->client()->getTopic($world->stream, $byName['id']));
    },
    'add_partitions' => fn (World $world, array $a) =>
        $world->client()->createPartitions($world->stream, $world->topic, $a['count']),
    'remove_partitions' => fn (World $world, array $a) =>
        $world->client()->deletePartitions($world->stream, $world->topic, $a['count']),
    'delete_segments' => fn (World $world, array $a) =>
        $world->client()->deleteSegments($world->stream, $world->topic, $a['partition'], $a['count']),
    'partition_holds' => function (World $world, array $a): void {
        $world->expectNoError();
        $topic = $world->topicDetails();
        same($a['count'], $topic['partitions'][$a['partition']]['messages_count']);
        same($a['count'], $topic['messages_count'], 'and no other partition holds any:');
    },
    'each_partition_holds' => function (World $world, array $a): void {
        $world->expectNoError();
        foreach ($world->topicDetails()['partitions'] as $partition) {
            same($a['count'], $partition['messages_count']);
        }
    },
    'partitions_hold' => function (World $world, array $a): void {
        $world->expectNoError();
        same($a['count'], $world->topicDetails()['messages_count']);
    },
    'create_group' => fn (World $world, array $a) =>
        $world->client()->createConsumerGroup($world->stream, $world->topic, $a['group']),
    'delete_group' => fn (World $world, array $a) =>
        $world->client()->deleteConsumerGroup($world->stream, $world->topic, $a['group']),
    'group_exists' => function (World $world, array $a): void {
        $world->expectNoError();
        $found = $world->client()->getConsumerGroup($world->stream, $world->topic, $a['group']);
        same($a['members'], count($found['members'] ?? []));
        check($found !== null, 'the group');
    },
    'group_is_missing' => function (World $world, array $a): void {
        $world->expectNoError();
        same(null, $world->client()->getConsumerGroup($world->stream, $world->topic, $a['group']));
    },
    'options_include' => fn (World $world, array $a) =>
        check(in_array($a['option'], array_column($world->client()->describeOptions($a['scope']), 'key'), true), $a['option']),
];
