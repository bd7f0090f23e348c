<?php

// Creates a stream and a topic, sends a few messages and reads them back.

use Iggy\{Client, Partitioning, PollingStrategy, PollOptions};

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();
$client->createStream('getting-started');
$client->createTopic('getting-started', 'greetings', partitions_count: 1);
$greetings = array_map(fn (int $number) => "hello $number", range(0, 2));
$client->sendMessages('getting-started', 'greetings', Partitioning::partition(0), $greetings);

$options = new PollOptions(count: 10, max_wait: 1_000_000);
$polled = $client->pollMessages('getting-started', 'greetings', 0, 'reader', PollingStrategy::first(), $options);
foreach ($polled as $message) {
    echo $message->offset, ' ', $message->payload, "\n";
}
$client->shutdown();
exit(count($polled) === 3 ? 0 : 1);
