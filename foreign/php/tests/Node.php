<?php

declare(strict_types=1);

namespace Iggy\Tests;

use Iggy\Client;

/** A real node for the tests of the extension. */
final class Node
{
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];
    public readonly string $address;
    public readonly string $directory;

    /** With settings as `tcp.tls.enabled=true`. */
    public function __construct(string ...$settings)
    {
        $programs = getenv('IGGY_PROGRAMS') ?: dirname(__DIR__, 3) . '/target/debug';
        $command = ["$programs/iggy-test-node", ...$settings];
        $this->process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $this->pipes);
        [, $this->address, $this->directory] = explode(' ', $this->tell('start'));
    }

    /** Tells the node what to do and returns what it answers. */
    public function tell(string $word): string
    {
        fwrite($this->pipes[0], "$word\n");
        $answer = rtrim((string) fgets($this->pipes[1]));
        if ($answer === '' || str_starts_with($answer, 'failed')) {
            throw new \RuntimeException("$word: $answer");
        }
        return $answer;
    }

    public function connectionString(): string
    {
        return "iggy://iggy:iggy@{$this->address}";
    }

    public function client(array $options = [], ?callable $partitioner = null): Client
    {
        $client = new Client($this->connectionString(), $options, $partitioner);
        $client->connect();
        return $client;
    }

    /** Leaves the stream "orders" with the topic "created" of two partitions, and nothing else. */
    public function clean(): void
    {
        $client = $this->client();
        foreach ($client->getStreams() as $stream) {
            $client->deleteStream($stream['id']);
        }
        $client->createStream('orders');
        $client->createTopic('orders', 'created', 2);
        $client->shutdown();
    }

    public function end(): void
    {
        fclose($this->pipes[0]);
        proc_close($this->process);
    }
}
