<?php

// Forks 20 children: each is told that it inherited the client, and makes one of its own.

use Iggy\{Client, InheritedException, Partitioning};

$client = new Client($argv[1]);
$client->connect();
$persistent = Client::persistent($argv[1]);
$persistent->connect();
$pending = $client->parallel()->ping();
$producer = $client->producer('orders', 'created', ['background' => []]);
$producer->init();

function inChild(string $address, Client $client, Iggy\Pending $pending): void
{
    foreach ([fn () => $client->ping(), fn () => $pending->wait()] as $call) {
        try {
            $call();
            throw new Exception('an inherited client was used');
        } catch (InheritedException) {
        }
    }
    $own = Client::persistent($address);
    $own->connect();
    $own->sendMessages('orders', 'created', Partitioning::partition(0), ['from a child']);
}

for ($children = 0; $children < 20; $children++) {
    $child = pcntl_fork();
    if ($child === 0) {
        inChild($argv[1], $client, $pending);
        exit(0);
    }
    pcntl_waitpid($child, $status);
    if ($status !== 0) {
        exit(1);
    }
    $client->ping();
    $persistent->ping();
}
$pending->wait();
echo "$children children\n";
