<?php

// Talks TLS with a server whose certificate is signed by an authority of its own.
//
// Takes the address of the server and the file with the certificate to trust.

use Iggy\{Client, ConnectionException, PollingStrategy};

[, $server, $authority] = $argv;
$client = new Client(options: [
    'server_address' => $server,
    'username' => 'iggy',
    'password' => 'iggy',
    'tls' => ['domain' => 'localhost', 'ca_file' => $authority],
]);
$client->connect();
$producer = $client->producer('private', 'letters');
$producer->init();
$producer->send(['over TLS']);
$producer->shutdown();
echo $client->pollMessages('private', 'letters', 0, 'reader', PollingStrategy::first())[0]->payload, "\n";
$client->shutdown();

$stranger = new Client(options: ['server_address' => $server, 'tls' => ['domain' => 'localhost']]);
try {
    $stranger->connect();
    exit(1);
} catch (ConnectionException $error) {
    echo 'without the authority: ', $error->getMessage(), "\n";
} finally {
    $stranger->shutdown();
}
