<?php

declare(strict_types=1);

namespace Iggy\Tests;

use Iggy\PollingStrategy;

/** Forks, ends and interrupts of processes, and what lives longer than a request. */
final class ProcessesTest extends NodeTestCase
{
    private function runs(): int
    {
        return (int) (getenv('IGGY_TEST_EXITS') ?: 5);
    }

    private function stored(int $partition = 0): int
    {
        return $this->client->getTopic('orders', 'created')['partitions'][$partition]['messages_count'];
    }

    /** valkey-glide#6672, valkey-glide#6673 */
    public function test_given_a_forked_child_when_it_uses_what_it_inherited_should_be_told_and_can_make_its_own(): void
    {
        self::assertSame([0, "20 children\n", ''], $this->program('fork', self::$node->connectionString()));
        self::assertSame(20, $this->stored());
    }

    public function ends(): array
    {
        return [['exit'], ['end'], ['throw'], ['closed']];
    }

    /**
     * PyO3/pyo3-async-runtimes#40, php/php-src#12974
     *
     * @dataProvider ends
     */
    public function test_given_calls_in_flight_when_a_program_ends_should_end_by_itself(string $how): void
    {
        for ($run = 0; $run < $this->runs(); $run++) {
            [$status, , $errors] = $this->program('in-flight', self::$node->connectionString(), $how);
            self::assertSame($how === 'throw' ? 255 : 0, $status, $errors);
            self::assertSame($how === 'throw', str_contains($errors, 'thrown on purpose'), $errors);
        }
    }

    /** php-enqueue/enqueue-dev#959 */
    public function test_given_a_background_producer_that_nobody_shut_down_when_the_request_ends_should_send_first(): void
    {
        self::assertSame([0, '', ''], $this->program('left-behind', self::$node->connectionString()));
        self::assertSame(1000, $this->stored());
    }

    public function test_given_what_cannot_be_sent_when_the_request_ends_should_be_said(): void
    {
        [$status, $output, $errors] = $this->program('left-behind', self::$node->connectionString(), 'deleted');
        self::assertSame(0, $status);
        self::assertStringContainsString('a background producer could not send', $output . $errors);
    }

    /** confluent-kafka-python#807 */
    public function test_given_a_call_that_waits_when_a_signal_comes_should_run_its_handler(): void
    {
        self::assertSame([0, "handled\ninterrupted\n", ''], $this->program('signals', self::$node->connectionString()));
    }

    public function test_given_workers_of_fpm_when_requests_come_should_keep_their_clients_and_stop_well(): void
    {
        $fpm = new Fpm();
        try {
            $clients = [];
            for ($request = 0; $request < 20; $request++) {
                [$pid, $client, $sent] = explode(' ', $fpm->request('persistent', self::$node->connectionString()));
                self::assertSame($clients[$pid] ??= $client, $client, 'one connection for each worker');
                self::assertSame('1', $sent);
            }
            self::assertLessThanOrEqual(2, count($clients));
            self::assertSame(20, $this->stored());
            $fpm->request('left-behind', self::$node->connectionString());
            self::assertSame(1020, $this->stored());
        } finally {
            self::assertSame(0, $fpm->stop());
        }
        self::assertStringNotContainsString('SIG', preg_replace('/SIGQUIT|SIGTERM/', '', $fpm->log()));
        self::assertCount(1020, $this->client->pollMessages('orders', 'created', 0, 'c', PollingStrategy::first(), new \Iggy\PollOptions(2000)));
    }
}
