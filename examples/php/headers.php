<?php

// Messages carry typed headers beside their payload.

use Iggy\{Client, HeaderValue, Message, PollingStrategy};

$client = new Client($argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090');
$client->connect();
$producer = $client->producer('headers', 'traced');
$producer->init();
$producer->send([new Message('payload', [
    'trace' => '4bf92f3577b34da6',
    'attempt' => 3,
    'sampled' => true,
    'ratio' => 0.25,
    'flags' => new HeaderValue('uint8', 255),
])]);
$producer->shutdown();

$message = $client->pollMessages('headers', 'traced', 0, 'reader', PollingStrategy::first())[0];
foreach ($message->headers as $key => $header) {
    echo "$key: ", var_export($header->value, true), " ({$header->kind})\n";
}
$client->shutdown();
exit($message->headers['attempt']->value === 3 ? 0 : 1);
