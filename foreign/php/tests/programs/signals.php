<?php

// A handler runs while a call waits; what it throws ends the call, and the client goes on.

use Iggy\{Client, PollingStrategy, PollOptions};

$client = new Client($argv[1]);
$client->connect();
pcntl_signal(SIGUSR1, function (): void {
    echo "handled\n";
    posix_kill(posix_getpid(), SIGUSR2);
});
pcntl_signal(SIGUSR2, fn () => throw new DomainException('interrupted'));
posix_kill(posix_getpid(), SIGUSR1);
try {
    $wait = new PollOptions(max_wait: 50_000_000);
    $client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::offset(1_000_000), $wait);
} catch (DomainException $error) {
    echo $error->getMessage(), "\n";
}
$client->ping();
$client->shutdown();
