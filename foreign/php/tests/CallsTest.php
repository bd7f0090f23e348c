<?php

declare(strict_types=1);

namespace Iggy\Tests;

use Iggy\{CancelledException, Checkpoint, Client, ClosedException, CommitPolicy, HeaderValue, IggyException, InternalException};
use Iggy\{Message, Partitioning, PollingStrategy, PollOptions};

/**
 * Calls that end early, run side by side, or meet a closed client. Numbers are those of the threads in which users of
 * other libraries reported the fault.
 */
final class CallsTest extends NodeTestCase
{
    private function waiting(Client $client): \Iggy\Pending
    {
        $end = PollingStrategy::offset(1_000_000);
        return $client->parallel()->pollMessages('orders', 'created', 0, 'c', $end, new PollOptions(max_wait: 60_000_000));
    }

    /** valkey-glide#5442 */
    public function test_given_calls_given_up_at_random_points_when_called_again_should_work_and_lose_nothing(): void
    {
        $rounds = intdiv((int) (getenv('IGGY_TEST_CANCELS') ?: 1000), 50);
        mt_srand(7);
        for ($sent = 0; $sent < $rounds; $sent++) {
            $calls = [$this->waiting($this->client)];
            for ($index = 0; $index < 49; $index++) {
                $calls[] = $this->client->parallel()->ping();
            }
            usleep(mt_rand(0, 5000));
            foreach ($calls as $call) {
                $call->cancel();
            }
            foreach ($calls as $call) {
                try {
                    $call->wait();
                } catch (CancelledException) {
                }
            }
            self::assertSame($sent, $this->send(['kept'])[0]['base_offset']);
        }
        self::assertCount($rounds, $this->client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::first()));
    }

    /** rust-rdkafka#490 */
    public function test_given_reads_given_up_at_random_points_when_read_on_should_lose_and_repeat_nothing(): void
    {
        $reader = $this->client->reader('orders', 'created', 'r', ['partitions' => [0, 1]]);
        $consumer = $this->client->consumer('c', 'orders', 'created', ['partitions' => [0], 'start' => PollingStrategy::first()]);
        $consumer->init();
        [$read, $received] = [[], []];
        $offsets = fn (iterable $batch): array => array_map(fn (Message $each) => $each->offset, [...$batch]);
        for ($index = 0; $index < 100; $index++) {
            $this->send(['one']);
            array_push($read, ...$offsets($reader->nextBatch(mt_rand(0, 5000)) ?? []));
            if ($index % 2 === 0) {
                $one = $consumer->nextMessage(mt_rand(0, 5000));
                array_push($received, ...($one === null ? [] : [$one->message->offset]));
            } else {
                array_push($received, ...$offsets($consumer->nextBatch(mt_rand(0, 5000)) ?? []));
            }
        }
        while (count($read) < 100) {
            array_push($read, ...$offsets($reader->nextBatch()));
        }
        while (count($received) < 100) {
            $received[] = $consumer->nextMessage()->message->offset;
        }
        self::assertSame(range(0, 99), $read);
        self::assertSame(range(0, 99), $received);
        $reader->close();
        $consumer->shutdown();
    }

    public function test_given_a_read_that_nobody_took_when_sought_should_not_come_again_and_otherwise_should(): void
    {
        $this->send(['0', '1', '2', '3']);
        $consumer = $this->client->consumer('c', 'orders', 'created', ['partitions' => [0], 'start' => PollingStrategy::first()]);
        $consumer->init();
        foreach (['nextMessage', 'nextBatch'] as $read) {
            foreach ([false, true] as $sought) {
                $pending = $consumer->parallel()->$read();
                while (!$pending->isReady());
                unset($pending);
                if ($sought) {
                    $consumer->seek(0, PollingStrategy::offset(3));
                }
                self::assertSame($sought ? 3 : 0, $consumer->nextBatch()[0]->offset);
                $consumer->seek(0, PollingStrategy::first());
            }
        }
        $consumer->shutdown();
    }

    /** napi-rs#2047 */
    public function test_given_a_call_that_panics_inside_when_called_should_throw_and_leave_the_client_alive(): void
    {
        try {
            \Iggy\Internal\panics();
            self::fail('it did not throw');
        } catch (InternalException $error) {
            self::assertStringContainsString('on purpose', $error->getMessage());
        }
        $this->client->ping();
    }

    /** kafkajs#767, confluent-kafka-python#255 */
    public function test_given_a_client_closed_in_any_state_when_used_should_say_so_however_often(): void
    {
        $never = new Client(self::$node->connectionString());
        $never->shutdown();
        $connecting = new Client('iggy://iggy:iggy@127.0.0.1:1');
        $attempt = $connecting->parallel()->connect();
        $connecting->shutdown();
        $waiting = [$attempt];
        for ($index = 0; $index < 20; $index++) {
            $waiting[] = $this->waiting($this->client);
        }
        $this->client->shutdown();
        $this->client->shutdown();
        foreach ($waiting as $call) {
            try {
                $call->wait(60_000_000);
            } catch (IggyException $error) {
                self::assertNotSame('task_timeout', $error->name);
            }
        }
        foreach ([$never, $connecting, $this->client] as $closed) {
            foreach (['ping', 'getStreams', 'connect'] as $call) {
                try {
                    $closed->$call();
                    self::fail("$call did not throw");
                } catch (ClosedException $error) {
                    self::assertSame('not_applied', $error->outcome);
                }
            }
        }
    }

    /** swift-kafka-client#234 */
    public function test_given_a_member_when_shut_down_or_forgotten_should_leave_its_group(): void
    {
        $this->send(['one']);
        $member = $this->client->consumerGroup('billing', 'orders', 'created');
        foreach ($member as $received) {
            self::assertSame('one', $received->message->payload);
            break;
        }
        $member->shutdown();
        self::assertSame(0, $this->client->getConsumerGroup('orders', 'created', 'billing')['members_count']);
        self::assertTrue($member->hasEnded());
        self::assertNull($member->nextMessage());
    }

    /** apache/iggy#2928 */
    public function test_given_a_handler_that_throws_when_a_consumer_starts_again_should_get_the_message_again(): void
    {
        $this->send(['one']);
        $automatic = new PollOptions(commit: CommitPolicy::auto(every: 'message'));
        for ($run = 0; $run < 2; $run++) {
            $options = ['partitions' => [0], 'poll_options' => $automatic];
            $consumer = $this->client->consumer('audit', 'orders', 'created', $options);
            $consumer->init();
            self::assertSame('one', $consumer->nextMessage()->message->payload);
            // What would be thrown here leaves the message undone.
            $consumer->shutdown();
        }
    }

    public function test_given_a_partitioner_when_it_answers_throws_or_errs_should_choose_or_fail_the_send_alone(): void
    {
        $by = function (callable $partitioner, array $options = []): \Iggy\Producer {
            $producer = $this->client->producer('orders', 'created', $options, $partitioner);
            $producer->init();
            return $producer;
        };
        $chosen = $by(function (string $stream, string $topic, array $messages): int {
            self::assertSame(['orders', 'created', 'one'], [$stream, $topic, $messages[0]->payload]);
            return 1;
        });
        self::assertSame(1, $chosen->send(['one'])[0]['partition_id']);
        $throwing = $by(fn () => throw new \DomainException('no partition'));
        try {
            $throwing->send(['one']);
            self::fail('it did not throw');
        } catch (\DomainException $error) {
            self::assertSame('no partition', $error->getMessage());
        }
        $calling = $by(function (): int {
            $this->client->ping();
            return 0;
        });
        self::assertSame(0, $calling->send(['one'])[0]['partition_id']);
        foreach ([[fn () => 'x', '/did not return an int/'], [fn () => -1, '/did not return an int/']] as [$wrong, $says]) {
            try {
                $by($wrong)->send(['one']);
                self::fail('it was taken');
            } catch (IggyException $error) {
                self::assertMatchesRegularExpression($says, $error->getMessage());
            }
        }
        $parallel = $chosen->parallel()->send(['one']);
        while (!$parallel->isReady());
        try {
            $parallel->wait();
            self::fail('it was called beside PHP');
        } catch (IggyException $error) {
            self::assertStringContainsString('PHP does not wait', $error->getMessage());
        }
        $client = self::$node->client([], fn () => 1);
        self::assertSame(1, $client->sendMessages('orders', 'created', Partitioning::balanced(), ['one'])[0]['partition_id']);
        $client->shutdown();
    }

    /** valkey-glide#5458 */
    public function test_given_calls_in_parallel_when_one_waits_should_not_hold_up_the_others(): void
    {
        $waits = new PollOptions(max_wait: 60_000_000);
        $pending = $this->client->parallel()->pollMessages('orders', 'created', 1, 'c', PollingStrategy::first(), $waits);
        for ($index = 0; $index < 20; $index++) {
            $this->send(['meanwhile']);
        }
        self::assertFalse($pending->isReady());
        $this->send(['at last'], 1);
        self::assertSame('at last', $pending->wait()[0]->payload);
        $this->expectExceptionMessageMatches('/taken already/');
        $pending->wait();
    }

    public function test_given_a_limit_when_nothing_comes_in_time_should_return_nothing_or_throw(): void
    {
        $reader = $this->client->reader('orders', 'created', 'r', ['partitions' => [0]]);
        self::assertNull($reader->nextBatch(1000));
        $events = $reader->events();
        self::assertNull($events->next(1000));
        $this->send(['one']);
        self::assertCount(1, $reader->nextBatch());
        $reader->close();
        self::assertSame('closed', $events->next()['event']);
        $pending = $this->waiting($this->client);
        try {
            $pending->wait(1000);
            self::fail('it did not throw');
        } catch (IggyException $error) {
            self::assertSame('task_timeout', $error->name);
        }
        $pending->cancel();
        $this->expectException(CancelledException::class);
        $pending->wait();
    }

    /** kafkajs#702 */
    public function test_given_a_server_that_is_away_when_calls_wait_should_go_on_once_it_is_back(): void
    {
        $reader = $this->client->reader('orders', 'created', 'r', ['partitions' => [0, 1]]);
        $producer = $this->client->producer('orders', 'created', ['background' => []]);
        $producer->init();
        $events = $this->client->events();
        self::$node->tell('stop');
        $producer->send(['meanwhile']);
        $next = $reader->parallel()->nextBatch();
        sleep((int) (getenv('IGGY_TEST_AWAY') ?: 2));
        self::$node->tell('start');
        self::assertSame('meanwhile', $next->wait()[0]->payload);
        $seen = [];
        while (!in_array('connected', $seen, true)) {
            $seen[] = $events->next()['event'];
        }
        self::assertContains('disconnected', $seen);
        $producer->shutdown();
        self::assertSame([], $producer->failures());
        $reader->close();
    }

    public function test_given_a_background_send_that_fails_when_asked_should_be_told(): void
    {
        $producer = $this->client->producer('orders', 'created', ['background' => []]);
        $producer->init();
        $this->client->deleteTopic('orders', 'created');
        $producer->send(['lost']);
        try {
            $producer->shutdown();
        } catch (IggyException) {
        }
        $failures = $producer->failures();
        self::assertInstanceOf(IggyException::class, $failures[0]);
        self::assertSame([], $producer->failures());
    }

    public function test_given_numbers_above_what_an_int_holds_when_they_cross_should_keep_every_digit(): void
    {
        $id = '340282366920938463463374607431768211455';
        $headers = ['large' => new HeaderValue('uint128', $id), 'low' => new HeaderValue('int128', '-' . substr($id, 1)), '7' => 1];
        $this->send([new Message("\xff\0", $headers, $id, '9223372036854775809')]);
        $message = $this->client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::first())[0];
        self::assertSame([$id, '9223372036854775809', "\xff\0"], [$message->id, $message->originTimestamp, $message->payload]);
        self::assertSame([$id, 'uint128'], [$message->headers['large']->value, $message->headers['large']->kind]);
        self::assertSame('-' . substr($id, 1), $message->headers['low']->value);
        self::assertSame(1, $message->headers['7']->value);
        self::assertCount(3, $message->headerPairs());
        self::assertSame('18446744073709551615', (new Checkpoint(0, '18446744073709551615', 1))->offset);
        $pairs = [[new HeaderValue('uint8', 1), 'one'], ['raw', "\xff"]];
        $this->send([new Message('x', $pairs)]);
        $found = $this->client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::last())[1]->headerPairs();
        $kinds = array_map(fn (array $pair) => [$pair[0]->kind, $pair[1]->kind], $found);
        sort($kinds);
        self::assertSame([['string', 'raw'], ['uint8', 'string']], $kinds);
    }

    /** valkey-glide#6740 */
    public function test_given_a_large_payload_when_polled_again_and_again_should_keep_its_memory(): void
    {
        $resident = fn (): int => (int) explode(' ', (string) file_get_contents('/proc/self/statm'))[1] * 4096;
        $this->send([str_repeat('x', 1 << 20)]);
        $polls = (int) (getenv('IGGY_TEST_POLLS') ?: 500);
        $options = new PollOptions(max_bytes: 2 << 20);
        for ($index = 0; $index < $polls; $index++) {
            $polled = $this->client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::first(), $options);
            self::assertSame(1 << 20, strlen($polled[0]->payload));
            if ($index === intdiv($polls, 10)) {
                $warm = $resident();
            }
        }
        self::assertLessThan($warm + (64 << 20), $resident());
    }
}
