<?php

declare(strict_types=1);

namespace Iggy\Tests;

use Iggy\Client;
use Iggy\Partitioning;
use PHPUnit\Framework\TestCase;

/** A test against a node that holds the stream "orders" with the topic "created" of two partitions. */
abstract class NodeTestCase extends TestCase
{
    protected static Node $node;
    protected Client $client;

    public static function setUpBeforeClass(): void
    {
        self::$node = new Node();
    }

    public static function tearDownAfterClass(): void
    {
        self::$node->end();
    }

    protected function setUp(): void
    {
        self::$node->clean();
        $this->client = self::$node->client();
    }

    protected function tearDown(): void
    {
        $this->client->shutdown();
    }

    protected function send(array $messages, int $partition = 0): array
    {
        return $this->client->sendMessages('orders', 'created', Partitioning::partition($partition), $messages);
    }

    /**
     * Runs a program of tests/programs; it must end by itself.
     *
     * @return array{int, string, string} Its status, output and errors.
     */
    protected function program(string $name, string ...$arguments): array
    {
        $php = [PHP_BINARY, '-d', 'extension=' . getenv('IGGY_EXTENSION'), '-d', 'display_errors=stderr'];
        $command = ['timeout', '60', ...$php, __DIR__ . "/programs/$name.php", ...$arguments];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        fclose($pipes[0]);
        [$output, $errors] = [stream_get_contents($pipes[1]), stream_get_contents($pipes[2])];
        return [proc_close($process), $output, $errors];
    }
}
