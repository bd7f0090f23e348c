<?php

// Leaves calls in flight and a client nobody closed, and ends as it is told.

use Iggy\{Client, PollingStrategy, PollOptions};

[, $address, $how] = $argv;
$client = new Client($address);
$client->connect();
$wait = new PollOptions(max_wait: 60_000_000);
$calls = [];
for ($index = 0; $index < 60; $index++) {
    $calls[] = $client->parallel()->pollMessages('orders', 'created', 0, 'c', PollingStrategy::offset(1_000_000), $wait);
}
for ($index = 0; $index < 940; $index++) {
    $calls[] = $client->parallel()->ping();
}
$consumer = $client->consumerGroup('idle', 'orders', 'created');
$consumer->init();
if ($how === 'exit') {
    exit(0);
}
if ($how === 'throw') {
    throw new Exception('thrown on purpose');
}
if ($how === 'closed') {
    $client->shutdown();
}
