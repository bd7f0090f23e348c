<?php

// Sends in the background and ends without shutting the producer down.

use Iggy\{Client, Partitioning};

$address = $argv[1] ?? $_GET['address'];
$client = new Client($address);
$client->connect();
$producer = $client->producer('orders', 'created', [
    'background' => ['linger_time' => 1_000_000],
    'partitioning' => Partitioning::partition(0),
]);
$producer->init();
if (isset($argv[2])) {
    $client->deleteTopic('orders', 'created');
}
for ($index = 0; $index < 1000; $index++) {
    $producer->send(["message $index"]);
}
