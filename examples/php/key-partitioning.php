<?php

// Messages with the same key go to the same partition, in order.

use Iggy\{Client, Partitioning};

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();
$client->createStream('keys');
$client->createTopic('keys', 'orders', partitions_count: 10);
foreach (['alice', 'bob', 'alice', 'alice'] as $customer) {
    [$sent] = $client->sendMessages('keys', 'orders', Partitioning::key($customer), ["order of $customer"]);
    echo "$customer is in partition {$sent['partition_id']}\n";
}

// Or the application decides.
$producer = $client->producer('keys', 'orders', partitioner: fn (string $stream, string $topic, array $messages) => 7);
$producer->init();
[$sent] = $producer->send(['to the seventh']);
$producer->shutdown();
$client->shutdown();
exit($sent['partition_id'] === 7 ? 0 : 1);
