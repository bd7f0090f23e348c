<?php

declare(strict_types=1);

namespace Iggy\Tests;

use Iggy\{Checkpoint, Client, Encryption, HeaderValue, InvalidInputException, Message, Partitioning, PollOptions};
use PHPUnit\Framework\TestCase;

/** What the extension is made of: nothing is missing, nothing has drifted apart. */
final class PackageTest extends TestCase
{
    /** What the core has under another name here. */
    private const INSTEAD = [
        'builder' => '__construct',
        'builder_from_connection_string' => '__construct',
        'from_connection_string' => '__construct',
        'subscribe_events' => 'events',
        'send_binary_request_with_deadline' => 'sendBinaryRequest',
        'send_binary_request_to_replica' => 'sendBinaryRequest',
        'send_binary_request_to_replica_with_deadline' => 'sendBinaryRequest',
    ];

    public function test_given_the_operations_of_the_core_when_looked_up_should_all_be_here(): void
    {
        foreach (\Iggy\Internal\operation_names() as $name) {
            $method = self::INSTEAD[$name] ?? lcfirst(str_replace('_', '', ucwords($name, '_')));
            self::assertTrue(method_exists(Client::class, $method), $name);
        }
    }

    public function test_given_the_classes_of_failures_when_looked_up_should_each_have_its_exception(): void
    {
        foreach (\Iggy\Internal\exception_names() as $name) {
            self::assertTrue(is_subclass_of($name, \Iggy\IggyException::class), $name);
        }
    }

    public function test_given_the_stub_when_compared_with_the_extension_should_not_have_drifted(): void
    {
        $dump = __DIR__ . '/programs/surface.php';
        $php = escapeshellarg(PHP_BINARY);
        $loaded = shell_exec("$php -d extension=" . escapeshellarg(getenv('IGGY_EXTENSION')) . " $dump");
        $stub = shell_exec("$php $dump " . escapeshellarg(dirname(__DIR__) . '/stubs/iggy.php'));
        self::assertNotEmpty(json_decode($loaded, true));
        self::assertSame(json_decode($loaded, true), json_decode($stub, true));
    }

    public function test_given_the_settings_of_the_core_when_looked_up_should_all_be_in_the_stub(): void
    {
        $client = new Client('iggy://iggy:iggy@127.0.0.1:1');
        $unknown = ['no_such_setting' => 1];
        $stub = (string) file_get_contents(dirname(__DIR__) . '/stubs/iggy.php');
        $calls = [
            fn () => new Client(null, $unknown),
            fn () => new Client(null, ['tls' => $unknown]),
            fn () => $client->producer('s', 't', $unknown),
            fn () => $client->producer('s', 't', ['direct' => $unknown]),
            fn () => $client->producer('s', 't', ['background' => $unknown]),
            fn () => $client->consumer('c', 's', 't', $unknown),
            fn () => $client->reader('s', 't', 'c', $unknown),
        ];
        foreach ($calls as $call) {
            try {
                $call();
                self::fail('an unknown setting was taken');
            } catch (InvalidInputException $error) {
                [, $known] = explode('expected', $error->getMessage());
                self::assertGreaterThan(1, preg_match_all('/`(\w+)`/', $known, $names));
                foreach ($names[1] as $name) {
                    self::assertMatchesRegularExpression("/\\b$name\\??[:$]|\\$$name\\b/", $stub, $name);
                }
            }
        }
    }

    public function wrong(): iterable
    {
        $client = new Client('iggy://iggy:iggy@127.0.0.1:1');
        yield 'a setting' => ["/unknown field `requestTimeout`/", fn () => new Client(null, ['requestTimeout' => 1])];
        yield 'a string' => ['/expected/', fn () => new Client('http://nowhere')];
        yield 'a number' => ['/expected 0..=4294967295/', fn () => $client->pollMessages('s', 't', -1, 'c')];
        yield 'an offset' => ['/digits/', fn () => new Checkpoint(0, '12x', 1)];
        yield 'a count' => ['/poll options/', fn () => new PollOptions(count: -1)];
        yield 'a payload' => ['/payload/', fn () => new Message(7)];
        yield 'messages' => ['/Message/', fn () => $client->sendMessages('s', 't', Partitioning::balanced(), [7])];
        yield 'an int8' => ['/int8/', fn () => new HeaderValue('int8', 128)];
        yield 'a uint64' => ['/uint64/', fn () => new HeaderValue('uint64', -1)];
        yield 'a kind' => ['/known are/', fn () => new HeaderValue('text', 'x')];
        yield 'a key' => ['/32 bytes/', fn () => new Encryption('short')];
        yield 'a long key' => ['/./', fn () => Partitioning::key(str_repeat('x', 256))];
        yield 'no text' => ['/UTF-8/', fn () => $client->createStream('s', ['note' => "\xff"])];
        yield 'deep' => ['/deeper/', fn () => new Client(null, ['tls' => [[[[[[[[[1]]]]]]]]]])];
        yield 'no callable' => ['/callable/', fn () => $client->producer('s', 't', [], 7)];
        yield 'a callable' => ['/background/', fn () => $client->producer('s', 't', ['background' => []], fn () => 1)];
        yield 'a negative time' => ['/negative/', fn () => $client->events()->next(-1)];
    }

    /** @dataProvider wrong */
    public function test_given_arguments_that_are_wrong_when_passed_should_be_refused_by_name(string $says, \Closure $call): void
    {
        $this->expectException(InvalidInputException::class);
        $this->expectExceptionMessageMatches($says);
        $call();
    }

    public function test_given_messages_with_signs_of_formats_when_thrown_should_stay_as_they_are(): void
    {
        // extphprs/ext-php-rs#758
        foreach (['%s%n%x', "a\0b", str_repeat('%', 300)] as $text) {
            try {
                new HeaderValue($text, 1);
                self::fail('it was taken');
            } catch (InvalidInputException $error) {
                self::assertStringContainsString($text, $error->getMessage());
            }
        }
    }
}
