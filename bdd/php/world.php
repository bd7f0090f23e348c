<?php

declare(strict_types=1);

use Iggy\{Checkpoint, Client, Consumer, HeaderValue, IggyException, Message, Partitioning, Pending, PolledMessages};
use Iggy\{PollingStrategy, PollOptions, Producer, Reader, ReceivedMessage, StaleException};

/** Microseconds, against hanging only. */
const DEADLINE = 90_000_000;
const PASSWORD = 'secret123';
const NOBODY = 'nobody';
const THE_CONSUMER = 'the consumer';

/** A message as it was sent; its place in its partition is its offset. */
final class Sent
{
    /** @param array<string, HeaderValue> $headers */
    public function __construct(public string $id, public string $payload, public array $headers)
    {
    }

    /** The message of this place in its partition, with a payload of at least `$size` bytes. */
    public static function numbered(int $partition, int $index, int $size = 0): self
    {
        $headers = ['index' => new HeaderValue('uint64', $index), 'origin' => new HeaderValue('string', 'scenario')];
        $payload = str_pad("message $index of partition $partition", $size, '.');
        return new self(self::id($partition, $index + 1), $payload, $headers);
    }

    /** `$high` in the upper 64 bits and `$low` in the lower, as digits. */
    private static function id(int $high, int $low): string
    {
        $digits = [$low];
        foreach (array_reverse(str_split('18446744073709551616')) as $place => $digit) {
            $digits[$place] = ($digits[$place] ?? 0) + $high * (int) $digit;
        }
        for ($place = 0; $place < count($digits) || $digits[$place - 1] > 9; $place++) {
            $carry = intdiv($digits[$place], 10);
            $digits[$place] %= 10;
            if ($carry > 0) {
                $digits[$place + 1] = ($digits[$place + 1] ?? 0) + $carry;
            }
        }
        return ltrim(strrev(implode('', $digits)), '0');
    }

    public function message(): Message
    {
        return new Message($this->payload, $this->headers, $this->id);
    }

    /** Whether this is what arrived. */
    public function check(Message $arrived): void
    {
        same($this->id, (string) $arrived->id);
        check($arrived->payload === $this->payload, 'the payload');
        same(count($this->headers), count($arrived->headers));
        foreach ($arrived->headers as $key => $value) {
            check(isset($this->headers[$key]) && $value->equals($this->headers[$key]), "the header $key");
        }
    }
}

/** A consumer and what the application received from it. */
final class Receiver
{
    /** @var list<ReceivedMessage> */
    public array $received = [];

    public function __construct(public readonly Consumer $consumer)
    {
    }

    /** Receives so many more. */
    public function receive(int $count): void
    {
        $wanted = count($this->received) + $count;
        $end = microtime(true) + DEADLINE / 1e6;
        while (count($this->received) < $wanted) {
            check(microtime(true) < $end, 'no message came');
            $this->take(1_000_000);
        }
    }

    /** Receives what comes within a moment: a member has to be listened to for the group to settle. */
    public function glance(): void
    {
        $this->take(20_000);
    }

    private function take(int $timeout): void
    {
        try {
            $message = $this->consumer->nextMessage($timeout);
        } catch (IggyException $error) {
            // A partition that moved while it was read is read by its new owner.
            check($error->retryable || $error instanceof StaleException, "$error");
            return;
        }
        check(!$this->consumer->hasEnded(), 'the consumer is closed');
        if ($message !== null) {
            $this->received[] = $message;
        }
    }

    /** @return array<int, ReceivedMessage> The last message of each partition. */
    public function lastOfEach(): array
    {
        $last = [];
        foreach ($this->received as $message) {
            $last[$message->partitionId] = $message;
        }
        return $last;
    }
}

/** What the steps of one scenario share. */
final class World
{
    private ?Client $client = null;
    private ?IggyException $error = null;
    /** @var array<string, Client> */
    public array $clients = [];
    public string $stream = '';
    public string $topic = '';
    public string $group = '';
    /** @var array<int, list<Sent>> */
    public array $sent = [];
    public ?PolledMessages $polled = null;
    public int $polledPartition = 0;
    /** @var array<string, int>|null */
    public ?array $confirmation = null;
    /** @var array{int, Pending}|null */
    public ?array $waiting = null;
    public ?Pending $sending = null;
    public int $notedTime = 0;
    public string $notedChanges = '';
    public ?Producer $producer = null;
    public ?Reader $reader = null;
    /** @var list<array{int, int, string}> Partition, offset and payload of what the reader read. */
    public array $read = [];
    /** @var list<Checkpoint> */
    public array $checkpoints = [];
    /** @var list<IggyException> */
    public array $reported = [];
    /** @var array<string, Receiver> */
    public array $consumers = [];
    /** @var array<string, string> */
    public array $tokens = [];
    public string $answer = '';

    public function __construct(public readonly string $address)
    {
    }

    /** A client of somebody. @param array<string, mixed> $options */
    public function connect(string $credentials, array $options = []): Client
    {
        $client = new Client("iggy://$credentials@{$this->address}", $options);
        try {
            $client->connect();
        } catch (IggyException $error) {
            $client->shutdown();
            throw $error;
        }
        return $client;
    }

    /** Removes what the scenario before left at the node. */
    public function clean(): void
    {
        $client = $this->connect('iggy:iggy');
        foreach ($client->getStreams() as $stream) {
            $client->deleteStream($stream['id']);
        }
        foreach ($client->getUsers() as $user) {
            if ($user['username'] !== 'iggy') {
                $client->deleteUser($user['id']);
            }
        }
        foreach ($client->getPersonalAccessTokens() as $token) {
            $client->deletePersonalAccessToken($token['name']);
        }
        $client->shutdown();
    }

    public function signIn(): void
    {
        $this->client = $this->connect('iggy:iggy');
    }

    public function client(): Client
    {
        check($this->client !== null, 'a signed-in client');
        return $this->client;
    }

    /** The client of a user, signed in at first use. */
    public function clientOf(string $user): Client
    {
        return $this->clients[$user] ??= $this->connect($user . ':' . PASSWORD);
    }

    /** Keeps how a request ended. The next step that cares says whether that was right. */
    public function attempt(\Closure $request): mixed
    {
        $this->expectNoError();
        try {
            return $request();
        } catch (IggyException $error) {
            $this->error = $error;
            return null;
        }
    }

    /** Nothing may have failed. */
    public function expectNoError(): void
    {
        check($this->error === null, "an earlier request failed: {$this->error}");
    }

    /** The error of the last request; it counts as looked at. */
    public function takeError(): IggyException
    {
        check($this->error !== null, 'nothing failed');
        [$error, $this->error] = [$this->error, null];
        return $error;
    }

    /** @return array<string, mixed> */
    public function topicDetails(): array
    {
        $found = $this->client()->getTopic($this->stream, $this->topic);
        check($found !== null, "the topic {$this->topic}");
        return $found;
    }

    public function receiver(string $name): Receiver
    {
        $this->expectNoError();
        check(isset($this->consumers[$name]), "there is no consumer $name");
        return $this->consumers[$name];
    }

    /** @return list<Sent> The next messages of a partition, numbered on from those that were sent. */
    public function nextMessages(int $partition, int $count, int $size = 0): array
    {
        $first = count($this->sent[$partition] ??= []);
        return array_map(fn (int $place) => Sent::numbered($partition, $first + $place, $size), array_keys(array_fill(0, $count, 0)));
    }

    /** @param list<Sent> $messages */
    public function sendBy(Client $client, int $partition, array $messages): mixed
    {
        $batch = array_map(fn (Sent $sent) => $sent->message(), $messages);
        $found = $client->sendMessages($this->stream, $this->topic, Partitioning::partition($partition), $batch);
        array_push($this->sent[$partition], ...$messages);
        return $found;
    }

    public function send(int $partition, int $count, int $size = 0): mixed
    {
        return $this->sendBy($this->client(), $partition, $this->nextMessages($partition, $count, $size));
    }

    /** @param array<string, mixed> $start */
    public function start(array $start): PollingStrategy
    {
        return match ($start['kind']) {
            'first' => PollingStrategy::first(),
            'last' => PollingStrategy::last(),
            'next' => PollingStrategy::next(),
            'noted_time' => PollingStrategy::timestamp($this->notedTime),
            'offset' => PollingStrategy::offset($start['value']),
        };
    }

    public function polled(): PolledMessages
    {
        $this->expectNoError();
        check($this->polled !== null, 'nothing was polled');
        return $this->polled;
    }

    /** Ends the scenario: nothing may be left that failed and was not looked at. */
    public function finish(): void
    {
        if ($this->waiting !== null) {
            $this->waiting[1]->cancel();
        }
        $this->sending?->cancel();
        foreach ($this->consumers as $receiver) {
            $receiver->consumer->shutdown();
        }
        $this->reader?->close();
        $this->producer?->shutdown();
        foreach ($this->clients as $client) {
            $client->shutdown();
        }
        $this->client?->shutdown();
        $this->expectNoError();
    }
}
