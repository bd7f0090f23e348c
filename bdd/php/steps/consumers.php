<?php

declare(strict_types=1);

// Consumers, members of groups, and the partition reader.

use Iggy\{CommitPolicy, Consumer, IggyException, PollOptions};

$waiting = fn (?CommitPolicy $commit = null): PollOptions => new PollOptions(max_wait: 1_000_000, commit: $commit);
$consume = function (World $world, string $name, Consumer $consumer): void {
    $consumer->init();
    $world->consumers[$name] = new Receiver($consumer);
};
$commitAll = function (World $world, string $name): void {
    $found = $world->receiver($name);
    foreach ($found->lastOfEach() as $message) {
        $found->consumer->commit($message->checkpoint());
    }
};
$close = function (World $world, string $name): void {
    $receiver = $world->receiver($name);
    unset($world->consumers[$name]);
    $receiver->consumer->shutdown();
};
$owned = function (World $world): array {
    $lists = array_map(fn (Receiver $found) => $found->consumer->partitions(), array_values($world->consumers));
    sort($lists);
    return $lists;
};
$hasSettled = function (World $world) use ($owned): bool {
    $found = $world->client()->getConsumerGroup($world->stream, $world->topic, $world->group);
    $byNode = array_map(function (array $member): array {
        sort($member['partitions']);
        return $member['partitions'];
    }, $found['members']);
    sort($byNode);
    return $byNode === $owned($world) && count(array_merge(...$byNode)) === $found['partitions_count'];
};
/** Every partition was read from its start, in order, without a hole and nothing twice, whoever read it. */
$readInOrder = function (World $world): void {
    $world->expectNoError();
    $offsets = [];
    foreach ($world->consumers as $found) {
        $last = [];
        foreach ($found->received as $received) {
            [$partition, $offset] = [$received->partitionId, $received->message->offset];
            check(($last[$partition] ?? -1) < $offset, 'in order');
            $last[$partition] = $offset;
            check($received->message->payload === $world->sent[$partition][$offset]->payload, 'the payload');
            $offsets[$partition][] = $offset;
        }
    }
    foreach ($offsets as $partition => $seen) {
        sort($seen);
        same(array_keys($world->sent[$partition]), $seen);
    }
};
/** One more batch, or one more report. */
$readOnce = function (World $world): void {
    try {
        $batch = $world->reader->nextBatch(DEADLINE);
    } catch (IggyException $error) {
        $world->reported[] = $error;
        return;
    }
    check($batch !== null, 'a batch');
    $world->checkpoints[] = $batch->checkpoint();
    foreach ($batch as $message) {
        $world->read[] = [$batch->partitionId, $message->offset, $message->payload];
    }
};
$readUntil = function (World $world, int $count) use ($readOnce): void {
    while (count($world->read) < $count) {
        $readOnce($world);
    }
};
$checkPartition = function (World $world, int $partition, int $count): void {
    $found = array_values(array_filter($world->read, fn (array $read) => $read[0] === $partition));
    $sent = array_slice($world->sent[$partition], 0, $count);
    $wanted = array_map(fn (Sent $each, int $offset) => [$partition, $offset, $each->payload], $sent, array_keys($sent));
    same($wanted, $found);
};

return [
    'use_consumer' => function (World $world, array $a) use ($consume, $waiting): void {
        $policy = match ($a['commits']['policy']) {
            'manual' => CommitPolicy::manual(),
            'on_read' => CommitPolicy::onRead(),
            'auto' => CommitPolicy::auto(0, $a['commits']['every']),
        };
        $options = ['partitions' => [$a['partition']], 'poll_options' => $waiting($policy)];
        $consume($world, THE_CONSUMER, $world->client()->consumer($a['consumer'], $world->stream, $world->topic, $options));
    },
    'consumer_receives' => fn (World $world, array $a) => $world->receiver(THE_CONSUMER)->receive($a['count']),
    'consumer_receives_and_commits' => function (World $world, array $a) use ($commitAll): void {
        $world->receiver(THE_CONSUMER)->receive($a['count']);
        $commitAll($world, THE_CONSUMER);
    },
    'consumer_commits' => fn (World $world) => $commitAll($world, THE_CONSUMER),
    'close_consumer' => fn (World $world) => $close($world, THE_CONSUMER),
    'consumer_received' => fn (World $world, array $a) => same(
        range($a['first'], $a['last']),
        array_map(fn ($each) => $each->message->offset, $world->receiver(THE_CONSUMER)->received),
    ),
    'join' => function (World $world, array $a) use ($consume, $waiting): void {
        $world->group = $a['group'];
        // A member is a client of its own, as it would be in a program of its own.
        $client = $world->clients[$a['member']] = $world->connect('iggy:iggy');
        $options = ['poll_options' => $waiting()];
        $consume($world, $a['member'], $client->consumerGroup($a['group'], $world->stream, $world->topic, $options));
    },
    'join_without_creating' => fn (World $world, array $a) => $consume($world, NOBODY, $world->client()
        ->consumerGroup($a['group'], $world->stream, $world->topic, ['create_consumer_group' => false])),
    'settle' => function (World $world) use ($hasSettled): void {
        $world->expectNoError();
        $end = microtime(true) + DEADLINE / 1e6;
        while (!$hasSettled($world)) {
            check(microtime(true) < $end, 'the members do not settle');
            foreach ($world->consumers as $found) {
                $found->glance();
            }
        }
    },
    'owns' => fn (World $world, array $a) =>
        same($a['partitions'], count($world->receiver($a['member'])->consumer->partitions())),
    'own_each' => function (World $world, array $a): void {
        foreach (['first', 'second'] as $who) {
            same($a['partitions'], count($world->receiver($a[$who])->consumer->partitions()));
        }
    },
    'no_two_owners' => function (World $world) use ($owned): void {
        $every = array_merge(...$owned($world));
        same(count($every), count(array_unique($every)));
    },
    'member_receives' => fn (World $world, array $a) => $world->receiver($a['member'])->receive($a['count']),
    'member_receives_and_commits' => function (World $world, array $a) use ($commitAll): void {
        $world->receiver($a['member'])->receive($a['count']);
        $commitAll($world, $a['member']);
    },
    'leave' => fn (World $world, array $a) => $close($world, $a['member']),
    'member_signs_out' => function (World $world, array $a): void {
        unset($world->consumers[$a['member']]);
        $world->clients[$a['member']]->logoutUser();
    },
    'receive_together' => function (World $world, array $a) use ($readInOrder): void {
        $end = microtime(true) + DEADLINE / 1e6;
        $count = fn (): int => array_sum(array_map(fn (Receiver $found) => count($found->received), $world->consumers));
        while ($count() < $a['count']) {
            check(microtime(true) < $end, 'the messages do not come');
            $world->receiver($a['first'])->glance();
            $world->receiver($a['second'])->glance();
        }
        $readInOrder($world);
    },
    'all_read_in_order' => $readInOrder,
    'received_of_every_partition' => function (World $world, array $a): void {
        $found = $world->receiver($a['member'])->received;
        $partitions = array_unique(array_map(fn ($each) => $each->partitionId, $found));
        sort($partitions);
        same(array_keys($world->sent), $partitions);
        same([$a['offset']], array_values(array_unique(array_map(fn ($each) => $each->message->offset, $found))));
    },
    'commit_lost_partition' => function (World $world, array $a): void {
        $lost = $world->receiver($a['owner'])->consumer->partitions();
        $found = $world->receiver($a['member']);
        foreach ($found->received as $message) {
            if (in_array($message->partitionId, $lost, true)) {
                $found->consumer->commit($message->checkpoint());
                return;
            }
        }
        check(false, 'no message of such a partition');
    },
    'open_reader' => function (World $world, array $a): void {
        $limits = new PollOptions(count: $a['count'] ?? 1_000, max_wait: 1_000_000);
        $options = ['partitions' => $a['partitions'], 'options' => $limits];
        $world->reader = $world->client()->reader($world->stream, $world->topic, $a['consumer'] ?? 'reader', $options);
    },
    'read' => fn (World $world, array $a) => $readUntil($world, $a['count']),
    'read_more' => fn (World $world, array $a) => $readUntil($world, count($world->read) + $a['count']),
    'read_of_partition' => fn (World $world, array $a) => $checkPartition($world, $a['partition'], $a['count']),
    'read_of_each_partition' => function (World $world, array $a) use ($checkPartition): void {
        foreach (array_keys($world->topicDetails()['partitions']) as $partition) {
            $checkPartition($world, $partition, $a['count']);
        }
    },
    'last_read' => fn (World $world, array $a) => same(
        array_map(fn (int $offset) => [$a['partition'], $offset], range($a['first'], $a['last'])),
        array_map(fn (array $read) => [$read[0], $read[1]], array_slice($world->read, -$a['count'])),
    ),
    'reader_commits' => function (World $world): void {
        foreach ($world->checkpoints as $checkpoint) {
            $world->reader->commit($checkpoint);
        }
    },
    'seek' => fn (World $world, array $a) => $world->reader->seek($a['partition'], $world->start($a['start'])),
    'reader_reported' => function (World $world, array $a) use ($readOnce): void {
        while ($world->reported === []) {
            $readOnce($world);
        }
        same([$a['partition'], $a['error']], [$world->reported[0]->partitionId, $world->reported[0]->name]);
    },
    'reader_stops' => function (World $world, array $a) use ($readOnce): void {
        $of = fn (): array => array_filter($world->reported, fn ($error) => $error->partitionId === $a['partition']);
        while ($of() === []) {
            $readOnce($world);
        }
        same($a['error'], array_values(array_slice($of(), -1))[0]->name);
        check(in_array($a['partition'], $world->reader->stopped(), true), 'stopped');
    },
    'close_reader' => fn (World $world) => $world->reader->close(),
    'reading_fails' => function (World $world, array $a): void {
        try {
            $world->reader->nextBatch(DEADLINE);
        } catch (IggyException $error) {
            $class = 'Iggy\\' . str_replace('_', '', ucwords($a['class'], '_')) . 'Exception';
            check($error instanceof $class, "$error");
            return;
        }
        check(false, 'reading did not fail');
    },
];
