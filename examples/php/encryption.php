<?php

// Payloads and headers are encrypted by the client; the server never sees them.

use Iggy\{Client, Encryption, PollingStrategy};

$address = $argv[1] ?? 'iggy://iggy:iggy@127.0.0.1:8090';
$client = new Client($address, ['encryption' => new Encryption(random_bytes(32))]);
$client->connect();
$producer = $client->producer('secrets', 'letters');
$producer->init();
$producer->send(['for your eyes only']);
$producer->shutdown();
$first = PollingStrategy::first();
echo 'with the key: ', $client->pollMessages('secrets', 'letters', 0, 'reader', $first)[0]->payload, "\n";
$client->shutdown();

$stranger = new Client($address);
$stranger->connect();
$ciphertext = $stranger->pollMessages('secrets', 'letters', 0, 'reader', $first)[0]->payload;
echo 'without it: ', bin2hex($ciphertext), "\n";
$stranger->shutdown();
exit(str_contains($ciphertext, 'eyes') ? 1 : 0);
