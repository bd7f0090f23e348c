<?php

declare(strict_types=1);

namespace Iggy\Tests;

use PHPUnit\Framework\TestCase;

/** Every example runs against a real node, and ends well by itself. */
final class ExamplesTest extends TestCase
{
    private const FOLDER = __DIR__ . '/../../../examples/php';

    public function examples(): iterable
    {
        foreach (glob(self::FOLDER . '/*.php') as $path) {
            yield basename($path) => [$path];
        }
    }

    /** @dataProvider examples */
    public function test_given_an_example_when_run_should_do_what_it_says(string $path): void
    {
        $tls = basename($path) === 'tls.php';
        $node = $tls ? new Node('tcp.tls.enabled=true', 'tcp.tls.self_signed=true') : new Node();
        try {
            $arguments = $tls ? [$node->address, "{$node->directory}/runtime/self_signed.pem"] : [$node->connectionString()];
            $php = [PHP_BINARY, '-d', 'extension=' . getenv('IGGY_EXTENSION'), '-d', 'error_reporting=-1'];
            $process = proc_open(['timeout', '60', ...$php, $path, ...$arguments], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
            [$output, $errors] = [stream_get_contents($pipes[1]), stream_get_contents($pipes[2])];
            self::assertSame([0, ''], [proc_close($process), $errors], $output);
            self::assertNotSame('', $output);
        } finally {
            $node->end();
        }
    }
}
