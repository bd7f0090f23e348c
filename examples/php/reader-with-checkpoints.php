<?php

// Reads many partitions in batches and goes on where it stopped.

use Iggy\{Client, Partitioning};

function read(Client $client, int $count): array
{
    $reader = $client->reader('reading', 'events', 'audit', ['partitions' => range(0, 2)]);
    $texts = [];
    while (count($texts) < $count) {
        $batch = $reader->nextBatch();
        foreach ($batch as $message) {
            $texts[] = $message->payload;
        }
        $reader->commit($batch->checkpoint());
    }
    $reader->close();
    sort($texts);
    return $texts;
}

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();
$client->createStream('reading');
$client->createTopic('reading', 'events', partitions_count: 3);
foreach ([0, 1] as $run) {
    $sent = [];
    foreach (range(0, 2) as $partition) {
        $sent[] = "run $run, partition $partition";
        $client->sendMessages('reading', 'events', Partitioning::partition($partition), [end($sent)]);
    }
    // The second run starts after what the first one committed.
    $texts = read($client, 3);
    echo implode('; ', $texts), "\n";
    if ($texts !== $sent) {
        exit(1);
    }
}
$client->shutdown();
