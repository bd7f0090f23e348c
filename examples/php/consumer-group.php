<?php

// A member of a group: processes each message, then commits it. Start more of them and they share the partitions.

use Iggy\{Client, Partitioning};

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();
$client->createStream('groups');
$client->createTopic('groups', 'invoices', partitions_count: 4);
for ($number = 0; $number < 20; $number++) {
    $client->sendMessages('groups', 'invoices', Partitioning::balanced(), ["invoice $number"]);
}

$member = $client->consumerGroup('billing', 'groups', 'invoices');
try {
    $processed = 0;
    foreach ($member as $received) {
        echo "partition {$received->partitionId}: {$received->message->payload}\n";
        $member->commit($received->checkpoint());
        if (++$processed === 20) {
            break;
        }
    }
} finally {
    // Leaves the group at once.
    $member->shutdown();
    $client->shutdown();
}
