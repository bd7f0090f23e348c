<?php

declare(strict_types=1);

// Sending, headers, producers and encryption.

use Iggy\{Encryption, HeaderValue, Partitioning};

$header = fn (string $kind, string $value): HeaderValue => new HeaderValue($kind, match (true) {
    in_array($kind, ['raw', 'string'], true) => $value,
    $kind === 'bool' => $value === 'true',
    str_starts_with($kind, 'float') => (float) $value,
    default => $value,
});
$sendWith = function (World $world, Partitioning $partitioning, int $count): void {
    $messages = array_map(fn (int $index) => Sent::numbered(0, $index)->message(), range(0, $count - 1));
    $world->client()->sendMessages($world->stream, $world->topic, $partitioning, $messages);
};
$sendHeaders = function (World $world, array $headers): void {
    [$plain] = $world->nextMessages(0, 1);
    $world->sendBy($world->client(), 0, [new Sent($plain->id, $plain->payload, $headers)]);
};
/** Numbered as if they all went to partition 0, where those scenarios look that care. */
$forProducer = function (World $world, int $count): array {
    $messages = $world->nextMessages(0, $count);
    array_push($world->sent[0], ...$messages);
    return array_map(fn (Sent $sent) => $sent->message(), $messages);
};

return [
    'send' => function (World $world, array $a): void {
        $world->confirmation = $world->send($a['partition'], $a['count'])[0] ?? null;
    },
    'send_one_of_bytes' => fn (World $world, array $a) => $world->send($a['partition'], 1, $a['bytes']),
    'send_singly_of_bytes' => function (World $world, array $a): void {
        for ($index = 0; $index < $a['count']; $index++) {
            $world->send($a['partition'], 1, $a['bytes']);
        }
    },
    'send_bytes' => function (World $world, array $a): void {
        for ($sent = 0; $sent < $a['bytes']; $sent += 100_000) {
            $world->send($a['partition'], 10, 10_000);
        }
    },
    'send_to_each' => function (World $world, array $a): void {
        foreach (array_keys($world->topicDetails()['partitions']) as $partition) {
            $world->send($partition, $a['count']);
        }
    },
    'send_balanced' => function (World $world, array $a): void {
        for ($index = 0; $index < $a['count']; $index++) {
            $message = Sent::numbered(0, $index)->message();
            $world->client()->sendMessages($world->stream, $world->topic, Partitioning::balanced(), [$message]);
        }
    },
    'send_with_key' => fn (World $world, array $a) => $sendWith($world, Partitioning::key($a['key']), $a['count']),
    'send_with_key_number' => fn (World $world, array $a) => $sendWith($world, Partitioning::key($a['key']), $a['count']),
    'send_header' => fn (World $world, array $a) =>
        $sendHeaders($world, [$a['header'] => $header($a['kind'], $a['value'])]),
    'send_header_of_bytes' => fn (World $world, array $a) =>
        $sendHeaders($world, [$a['header'] => new HeaderValue('string', str_repeat('x', $a['bytes']))]),
    'send_headers' => function (World $world, array $a) use ($sendHeaders): void {
        $headers = [];
        for ($index = 0; $index < $a['count']; $index++) {
            $headers["header-$index"] = new HeaderValue('uint32', $index);
        }
        $sendHeaders($world, $headers);
    },
    'header_is' => function (World $world, array $a) use ($header): void {
        $found = $world->polled()[$a['message']]->headers[$a['header']];
        check($found->equals($header($a['kind'], $a['value'])), "{$found->kind} {$found->value}");
    },
    'confirmation_is' => function (World $world, array $a): void {
        $world->expectNoError();
        same([$a['partition'], $a['offset']], [$world->confirmation['partition_id'], $world->confirmation['base_offset']]);
    },
    'start_sending' => function (World $world, array $a): void {
        $messages = $world->nextMessages($a['partition'], $a['count']);
        $batch = array_map(fn (Sent $sent) => $sent->message(), $messages);
        $to = Partitioning::partition($a['partition']);
        $world->sending = $world->client()->parallel()->sendMessages($world->stream, $world->topic, $to, $batch);
        array_push($world->sent[$a['partition']], ...$messages);
    },
    'sending_arrives_once' => function (World $world): void {
        [['partition_id' => $partition]] = $world->sending->wait(DEADLINE);
        same(count($world->sent[$partition]), $world->topicDetails()['partitions'][$partition]['messages_count']);
    },
    'use_producer' => function (World $world, array $a): void {
        [$world->stream, $world->topic] = [$a['stream'] ?? $world->stream, $a['topic'] ?? $world->topic];
        $options = array_filter([
            'partitioning' => isset($a['key']) ? Partitioning::key($a['key']) : null,
            'create_stream' => $a['create'] ?? null,
            'create_topic' => $a['create'] ?? null,
            'direct' => isset($a['batch_length']) ? ['batch_length' => $a['batch_length']] : null,
            'background' => ($a['background'] ?? false) ? [] : null,
            'idempotent' => $a['idempotent'] ?? null,
        ], fn ($value) => $value !== null);
        $chosen = $a['partitioner'] ?? null;
        $partitioner = $chosen === null ? null : fn () => $chosen;
        $world->producer = $world->client()->producer($world->stream, $world->topic, $options, $partitioner);
        $world->producer->init();
    },
    'producer_sends' => fn (World $world, array $a) => $world->producer->send($forProducer($world, $a['count'])),
    'producer_sends_singly' => function (World $world, array $a) use ($forProducer): void {
        foreach ($forProducer($world, $a['count']) as $message) {
            $world->producer->send([$message]);
        }
    },
    'close_producer' => fn (World $world) => $world->producer->shutdown(),
    'use_encrypting_client' => function (World $world, array $a): void {
        $encryption = new Encryption($a['key'], strtolower($a['cipher']));
        $world->clients['encrypting'] = $world->connect('iggy:iggy', ['encryption' => $encryption]);
    },
    'encrypting_client_sends' => fn (World $world, array $a) => $world->sendBy(
        $world->clients['encrypting'],
        $a['partition'],
        $world->nextMessages($a['partition'], $a['count']),
    ),
];
