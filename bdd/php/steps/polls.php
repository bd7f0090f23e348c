<?php

declare(strict_types=1);

// Polling and stored offsets.

use Iggy\{Client, CommitPolicy, Continuation, PolledMessages, PollingStrategy, PollOptions};

$options = function (array $a): PollOptions {
    $commit = match ($a['commit'] ?? null) {
        null => null,
        'on_read' => CommitPolicy::onRead(),
        'auto' => CommitPolicy::auto(),
    };
    $wait = isset($a['max_wait_ms']) ? $a['max_wait_ms'] * 1000 : null;
    return new PollOptions($a['count'] ?? 10_000, $wait, $a['min_count'] ?? null, $a['max_bytes'] ?? 16 << 20, $commit);
};
$pollBy = function (
    World $world,
    Client $client,
    int $partition,
    array $a,
    PollingStrategy|Continuation $start,
) use ($options): void {
    $name = $a['consumer'] ?? 'reader';
    $found = $client->pollMessages($world->stream, $world->topic, $partition, $name, $start, $options($a));
    [$world->polled, $world->polledPartition] = [$found, $partition];
};
$returned = function (PolledMessages $found, int $first, int $last): void {
    $offsets = array_map(fn ($message) => $message->offset, $found->messages());
    same($first <= $last ? range($first, $last) : [], $offsets);
};
$stored = fn (World $world, array $a): ?int => $world->client()
    ->getConsumerOffset($a['consumer'], $world->stream, $world->topic, $a['partition'])['stored_offset'] ?? null;

return [
    'poll' => fn (World $world, array $a) =>
        $pollBy($world, $world->client(), $a['partition'], $a, $world->start($a['start'])),
    'poll_continuation' => fn (World $world, array $a) =>
        $pollBy($world, $world->client(), $world->polledPartition, $a, $world->polled()->continuation()),
    'encrypting_client_polls' => fn (World $world, array $a) =>
        $pollBy($world, $world->clients['encrypting'], $a['partition'], [], PollingStrategy::first()),
    'user_polls' => fn (World $world, array $a) =>
        $pollBy($world, $world->clientOf($a['user']), $a['partition'], [], PollingStrategy::first()),
    'note_time' => function (World $world) use ($pollBy): void {
        // The server's clock, not ours: the time of the newest message, and a microsecond more.
        $pollBy($world, $world->client(), 0, ['count' => 1], PollingStrategy::last());
        $world->notedTime = $world->polled()[0]->timestamp + 1;
    },
    'start_waiting' => function (World $world, array $a) use ($options): void {
        $name = $a['consumer'] ?? 'reader';
        $waiting = $world->client()->parallel()->pollMessages(
            $world->stream,
            $world->topic,
            $a['partition'],
            $name,
            PollingStrategy::first(),
            $options($a),
        );
        $world->waiting = [$a['partition'], $waiting];
    },
    'give_up_waiting' => function (World $world): void {
        [[, $waiting], $world->waiting] = [$world->waiting, null];
        $waiting->cancel();
        try {
            $waiting->wait(DEADLINE);
        } catch (\Iggy\CancelledException) {
            return;
        }
        check(false, 'the poll ended otherwise');
    },
    'waiting_returns' => function (World $world, array $a) use ($returned): void {
        $world->expectNoError();
        [[$world->polledPartition, $waiting], $world->waiting] = [$world->waiting, null];
        $world->polled = $waiting->wait(DEADLINE);
        $returned($world->polled, $a['first'], $a['last']);
    },
    'poll_returns' => fn (World $world, array $a) => $returned($world->polled(), $a['first'], $a['last']),
    'poll_returns_nothing' => fn (World $world) => same(0, count($world->polled())),
    'poll_returns_some' => function (World $world, array $a) use ($returned): void {
        $found = $world->polled();
        check(count($found) > 0 && count($found) < count($world->sent[$world->polledPartition]), 'some, not all');
        $returned($found, $a['first'], $a['first'] + count($found) - 1);
    },
    'poll_returns_later' => fn (World $world, array $a) => check($world->polled()[0]->offset > $a['offset'], 'later'),
    'polled_as_sent' => function (World $world): void {
        check(count($world->polled()) > 0, 'something');
        foreach ($world->polled() as $message) {
            $world->sent[$world->polledPartition][$message->offset]->check($message);
        }
    },
    'polled_is_unreadable' => function (World $world): void {
        foreach ($world->polled() as $message) {
            $sent = $world->sent[$world->polledPartition][$message->offset];
            check(!str_contains($message->payload, substr($sent->payload, 0, 8)), 'unreadable');
        }
    },
    'store_offset' => fn (World $world, array $a) => $world->client()
        ->storeConsumerOffset($a['consumer'], $world->stream, $world->topic, $a['partition'], $a['offset']),
    'delete_offset' => fn (World $world, array $a) => $world->client()
        ->deleteConsumerOffset($a['consumer'], $world->stream, $world->topic, $a['partition']),
    'store_checkpoint' => function (World $world, array $a): void {
        $polled = $world->polled();
        $checkpoint = isset($a['message']) ? $polled->checkpointAt($a['message']) : $polled->checkpoint();
        check($checkpoint !== null, 'a checkpoint');
        $world->client()->storeConsumerPosition($a['consumer'], $world->stream, $world->topic, $checkpoint);
    },
    'stored_offset_is' => function (World $world, array $a) use ($stored): void {
        $world->expectNoError();
        same($a['offset'], $stored($world, $a));
    },
    'stored_offset_becomes' => function (World $world, array $a) use ($stored): void {
        $world->expectNoError();
        $end = microtime(true) + DEADLINE / 1e6;
        while ($stored($world, $a) !== $a['offset']) {
            check(microtime(true) < $end, 'the offset was not stored');
        }
    },
    'no_stored_offset' => function (World $world, array $a) use ($stored): void {
        $world->expectNoError();
        same(null, $stored($world, $a));
    },
];
