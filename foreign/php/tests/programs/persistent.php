<?php

// Sends with the client of this worker and says which that is.

use Iggy\{Client, Partitioning};

$client = Client::persistent($_GET['address']);
$client->connect();
$sent = $client->sendMessages('orders', 'created', Partitioning::partition(0), ['from a worker']);
echo getmypid(), ' ', $client->getMe()['client_id'], ' ', count($sent);
