<?php

// Sends in batches, in the background, and exactly once.

use Iggy\Client;

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();

// A producer creates what is missing, and splits long sends into batches.
$direct = $client->producer('producing', 'direct', ['direct' => ['batch_length' => 100]]);
$direct->init();
echo 'stored in ', count($direct->send(array_map('strval', range(1, 250)))), " batches\n";
$direct->shutdown();

// In the background sends return at once; shutting down waits until everything is stored.
$background = $client->producer('producing', 'background', ['background' => ['linger_time' => 5_000]]);
$background->init();
for ($number = 0; $number < 1000; $number++) {
    $background->send(["$number"]);
}
$background->shutdown();
foreach ($background->failures() as $failure) {
    echo 'not sent: ', $failure->getMessage(), "\n";
}

// The partition writes each batch once, even when a reply was lost and it is sent again.
$idempotent = $client->producer('producing', 'idempotent', ['idempotent' => true]);
$idempotent->init();
$idempotent->send(['once']);
$idempotent->shutdown();

$right = true;
foreach (['direct' => 250, 'background' => 1000, 'idempotent' => 1] as $topic => $count) {
    $found = $client->getTopic('producing', $topic)['messages_count'];
    echo "$topic $found\n";
    $right = $right && $found === $count;
}
$client->shutdown();
exit($right ? 0 : 1);
