<?php

/**
 * What the extension `iggy` brings, for editors and for checkers of types. It is never loaded beside the extension.
 *
 * Times are microseconds, sizes bytes. Numbers that may be above `PHP_INT_MAX` are strings of digits then, and both forms
 * are taken. Streams, topics, groups and users are named by their name or their number. Every call that waits has a
 * deadline of the client (`request_timeout`, polls their wait and 10 s more) unless it says otherwise, lets handlers of
 * signals run, and throws an {@see \Iggy\IggyException}. Results of operations are arrays with the names of the server.
 */

namespace Iggy;

/** A call that did not bring what was asked for. `getCode()` is the code on the wire, 0 for failures that have none. */
class IggyException extends \Exception
{
    /** @var string The name of the code, as `stream_name_not_found`; of the class where there is no code. */
    public $name;
    /** @var bool Whether the same call may succeed later. */
    public $retryable;
    /** @var 'applied'|'not_applied'|'unknown' Whether a write took effect. */
    public $outcome;
    /** @var int|null The operation to resolve or abandon when the outcome is unknown. */
    public $operation;
    /** @var int|null The partition it concerns, when it is about reading one. */
    public $partitionId;
}
/** The server cannot be reached, or the link broke: check the address, or wait. */
class ConnectionException extends IggyException {}
/** Sign in, or sign in as somebody else. */
class AuthenticationException extends IggyException {}
/** The user may not do this. */
class PermissionException extends IggyException {}
/** What was named does not exist. */
class NotFoundException extends IggyException {}
/** What was to be created exists. */
class AlreadyExistsException extends IggyException {}
/** The call itself is wrong: fix its arguments. */
class InvalidInputException extends IggyException {}
/** A limit was reached: wait, or ask for less. */
class LimitReachedException extends IggyException {}
/** The server did not take the call this time: the same call may succeed later. */
class UnavailableException extends IggyException {}
/** Nobody can say whether the write was applied: resolve or abandon its operation. */
class UncertainException extends IggyException {}
/** The position, owner or epoch belongs to the past: look it up again. */
class StaleException extends IggyException {}
/** The server failed. */
class ServerException extends IggyException {}
/** The client, producer, consumer or reader was closed. */
class ClosedException extends IggyException {}
/** The call was given up; a write may have been applied all the same. */
class CancelledException extends IggyException {}
/** The object was made before the process forked: make a new client. */
class InheritedException extends IggyException {}
/** The client failed inside; please report it. */
class InternalException extends IggyException {}

/** When the position of a consumer is stored. */
class CommitPolicy
{
    /** By the application. */
    public static function manual(): CommitPolicy {}
    /** By the server, as part of the read: at most once. */
    public static function onRead(): CommitPolicy {}
    /**
     * By the client.
     *
     * @param int|null $interval Microseconds; 0 for not by time. Default 5 s.
     * @param int|'message'|'batch'|null $every So many messages, each, each batch, or 0 for by time alone. Default 10000.
     * @param 'processing'|'delivery'|'marked'|null $after What counts as done: the next message was asked for (the
     *     default), it was handed out, or marked.
     */
    public static function auto(?int $interval = null, mixed $every = null, ?string $after = null): CommitPolicy {}
}

/** The limits of one read and its commit policy. */
class PollOptions
{
    /**
     * @param int|null $count Most messages. Default 1000.
     * @param int|null $max_wait Microseconds to wait for `$min_count` messages, at most 10 minutes. Default 0; consumers
     *     and readers 5 s.
     * @param int|null $min_count Messages that end the wait, 1 up to the count. Default 1.
     * @param int|null $max_bytes Most bytes of the reply, at least 344; a larger first message comes alone. Default 1 MiB.
     * @param CommitPolicy|null $commit Default manual. A single poll cannot be automatic.
     */
    public function __construct(
        ?int $count = null,
        ?int $max_wait = null,
        ?int $min_count = null,
        ?int $max_bytes = null,
        ?CommitPolicy $commit = null
    ) {}
}

/** How a send finds its partition. */
class Partitioning
{
    public static function balanced(): Partitioning {}
    public static function partition(int $partition): Partitioning {}
    /** @param string|int $key 1 to 255 bytes; a number is its 64 bits, lowest byte first. */
    public static function key(mixed $key): Partitioning {}
}

/** Where a read starts. */
class PollingStrategy
{
    public static function first(): PollingStrategy {}
    public static function last(): PollingStrategy {}
    /** After the stored offset. */
    public static function next(): PollingStrategy {}
    /** @param int|string $offset */
    public static function offset(mixed $offset): PollingStrategy {}
    /** @param int|string $timestamp Microseconds since the Unix epoch. */
    public static function timestamp(mixed $timestamp): PollingStrategy {}
}

/** End-to-end encryption of payloads and headers. */
class Encryption
{
    /**
     * @param string $key 32 bytes.
     * @param 'aes-256-gcm'|'aes-256-gcm-siv'|null $cipher Default `aes-256-gcm`.
     */
    public function __construct(mixed $key, ?string $cipher = null) {}
}

/** Who reads. Where one is taken, a bare name or number is a consumer of its own. */
class ConsumerId
{
    /** @param string|int $id */
    public static function consumer(mixed $id): ConsumerId {}
    /** @param string|int $id */
    public static function group(mixed $id): ConsumerId {}
    /** @param string|int $id */
    public static function external(mixed $id): ConsumerId {}
}

/**
 * A value of a header with its kind: at most 255 bytes.
 *
 * @property-read string|null $kind `null` when this version does not know the kind.
 * @property-read string|bool|int|float $value Digits for what no `int` holds; bytes for `raw` and unknown kinds.
 */
class HeaderValue
{
    /**
     * @param 'raw'|'string'|'bool'|'int8'|'int16'|'int32'|'int64'|'int128'|'uint8'|'uint16'|'uint32'|'uint64'|'uint128'|'float32'|'float64' $kind
     * @param string|bool|int|float $value
     */
    public function __construct(string $kind, mixed $value) {}
    public function equals(HeaderValue $other): bool {}
}

/**
 * Where the next read of a partition starts, in the history that was read.
 *
 * @property-read int $partitionId
 * @property-read int|string|null $offset `null` when it does not start at an offset.
 */
class Continuation
{
    public function equals(Continuation $other): bool {}
}

/**
 * A position to commit: every message up to its offset was processed.
 *
 * @property-read int $partitionId
 * @property-read int|string $offset
 * @property-read int|string $incarnation The history it belongs to.
 * @property-read int|string $ownerGeneration The ownership within its group; 0 for none.
 */
class Checkpoint
{
    /**
     * From its parts, as an application kept them.
     *
     * @param int|string $offset
     * @param int|string $incarnation
     * @param int|string|null $owner_generation
     */
    public function __construct(int $partition_id, mixed $offset, mixed $incarnation, mixed $owner_generation = null) {}
    /** Where a read goes on after it. */
    public function continuation(): Continuation {}
    public function equals(Checkpoint $other): bool {}
}

/**
 * A message: one to send, or one that was read.
 *
 * @property-read string $payload
 * @property-read int|string $id
 * @property-read int|string $offset Its place in its partition; 0 before it was sent, as the timestamp.
 * @property-read int|string $timestamp When the server took it: microseconds since the Unix epoch.
 * @property-read int|string $originTimestamp When the sender made it.
 * @property-read int|string $checksum
 * @property-read array<string, HeaderValue> $headers Those whose keys are text.
 */
class Message implements \Stringable
{
    /**
     * @param string $payload 1 to 64000000 bytes.
     * @param array<string, HeaderValue|string|bool|int|float>|list<array{mixed, mixed}>|null $headers By key, or as pairs
     *     of key and value. Text is `string`, other bytes `raw`, an `int` int64, a `float` float64.
     * @param int|string|null $id 0 to 2^128 - 1; the server makes one when it is 0 or left out.
     * @param int|string|null $origin_timestamp Microseconds since the Unix epoch. Default now.
     */
    public function __construct(mixed $payload, ?array $headers = null, mixed $id = null, mixed $origin_timestamp = null) {}
    /** @return list<array{HeaderValue, HeaderValue}> All headers, also those whose keys are no text. */
    public function headerPairs(): mixed {}
    /** The payload. */
    public function __toString(): string {}
}

/** Goes through the messages of a batch. @implements \Iterator<int, Message> */
class MessageIterator implements \Iterator
{
    public function current(): mixed {}
    public function key(): int {}
    public function next(): void {}
    public function rewind(): void {}
    public function valid(): bool {}
}

/**
 * What one read returned: messages of one partition, in order.
 *
 * @property-read int $partitionId
 * @property-read int|string $currentOffset The newest offset of the partition.
 * @implements \IteratorAggregate<int, Message>
 * @implements \ArrayAccess<int, Message>
 */
class PolledMessages implements \IteratorAggregate, \Countable, \ArrayAccess
{
    /** @return list<Message> */
    public function messages(): mixed {}
    /** Where the next read of the partition starts. */
    public function continuation(): Continuation {}
    /** The position after the last message; `null` when nothing came. */
    public function checkpoint(): ?Checkpoint {}
    public function checkpointAt(int $index): ?Checkpoint {}
    public function count(): int {}
    public function getIterator(): MessageIterator {}
    public function offsetExists(mixed $offset): bool {}
    public function offsetGet(mixed $offset): mixed {}
    public function offsetSet(mixed $_offset, mixed $_value): void {}
    public function offsetUnset(mixed $_offset): void {}
}

/**
 * A message as a consumer hands it out.
 *
 * @property-read Message $message
 * @property-read int $partitionId
 * @property-read int|string $currentOffset
 */
class ReceivedMessage
{
    public function checkpoint(): Checkpoint {}
}

/** A call that goes on beside PHP. Dropping it gives the call up. */
class Pending
{
    public function isReady(): bool {}
    /**
     * Its result, once. With a limit in microseconds it throws when there is none in time; wait again then.
     */
    public function wait(?int $timeout = null): mixed {}
    /** Gives the call up; `wait` throws a {@see CancelledException}. What a read had brought comes with the next one. */
    public function cancel(): void {}
}

/**
 * Begins calls of another object instead of waiting for them: `$client->parallel()->ping()` is a {@see Pending}.
 *
 * @method Pending ping()
 */
class Parallel
{
    public function __call(string $name, array $arguments): Pending {}
}

/** A subscription to what happens. One that falls 64 events behind loses the oldest. */
class Events
{
    /**
     * The next event; `null` when nothing can happen any more, it was closed, or nothing happened in time.
     *
     * @return array{event: string, ...}|null
     */
    public function next(?int $timeout = null): mixed {}
    public function close(): void {}
}

/**
 * Reads many partitions of one topic in batches. An exception of a read concerns one partition and does not end the
 * reader: read on. A loop over it never ends by itself; close it at the end.
 *
 * @implements \Iterator<int, PolledMessages>
 */
class Reader implements \Iterator
{
    /**
     * The next batch, all of one partition; `null` when none came in time. A read that ended in time loses nothing.
     *
     * @return PolledMessages|null
     */
    public function nextBatch(?int $timeout = null): mixed {}
    /** Stores a position. One at or below the last stored, or of an older history, stores nothing. */
    public function commit(Checkpoint $checkpoint): mixed {}
    /** Notes that the application is done up to a position, for automatic commits after marks. */
    public function mark(Checkpoint $checkpoint): void {}
    /**
     * Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
     *
     * @param PollingStrategy|Continuation $to
     */
    public function seek(int $partition_id, mixed $to): void {}
    /** @return list<int> The partitions it reads, ascending. */
    public function partitions(): mixed {}
    /** @return list<int> The partitions that wait for a seek, ascending. */
    public function stopped(): mixed {}
    /** Subscribes to what happens from now on. */
    public function events(): Events {}
    /** Ends the reads and stores what automatic commits still owe, within a deadline. May be called again. */
    public function close(): mixed {}
    /** @return Reader|Parallel */
    public function parallel(): Parallel {}
    public function current(): mixed {}
    public function key(): int {}
    public function next(): void {}
    public function rewind(): void {}
    public function valid(): bool {}
}

/**
 * Reads message by message: named partitions, or those a group assigns to this member. Leaving a loop over it does not
 * shut it down.
 *
 * @implements \Iterator<int, ReceivedMessage>
 */
class Consumer implements \Iterator
{
    /** Joins the group, or looks the partitions up. A loop over the consumer does it when it was not done. */
    public function init(): mixed {}
    /**
     * The next message; `null` when none came in time, or once it ended: see {@see Consumer::hasEnded()}. An exception
     * concerns one partition; the next call goes on.
     *
     * @return ReceivedMessage|null
     */
    public function nextMessage(?int $timeout = null): mixed {}
    /**
     * The next messages of one partition at once.
     *
     * @return PolledMessages|null
     */
    public function nextBatch(?int $timeout = null): mixed {}
    /** Whether it was shut down, or every named partition has stopped. */
    public function hasEnded(): bool {}
    /** Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing. */
    public function commit(Checkpoint $checkpoint): mixed {}
    /** Notes that the application is done up to a position, for automatic commits after marks. */
    public function mark(Checkpoint $checkpoint): void {}
    /**
     * Stores an offset, whatever was read.
     *
     * @param int|string $offset
     */
    public function storeOffset(int $partition_id, mixed $offset): mixed {}
    /** Forgets the stored offset of a partition. */
    public function deleteOffset(int $partition_id): mixed {}
    /**
     * Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
     *
     * @param PollingStrategy|Continuation $to
     */
    public function seek(int $partition_id, mixed $to): void {}
    /** @return list<int> The partitions it reads now, ascending. */
    public function partitions(): mixed {}
    /** @return list<int> The partitions that wait for a seek, ascending. */
    public function stopped(): mixed {}
    /** @return int|string|null The offset of the last message of a partition that was handed out. */
    public function lastConsumedOffset(int $partition_id): mixed {}
    /** @return int|string|null The last offset of a partition that this consumer stored. */
    public function lastStoredOffset(int $partition_id): mixed {}
    /** Subscribes to what happens from now on: assigned, revoked, stopped and so on. */
    public function events(): Events {}
    /** Ends the reads, stores what automatic commits still owe, leaves the group. May be called again. */
    public function shutdown(): mixed {}
    /** @return Consumer|Parallel */
    public function parallel(): Parallel {}
    public function current(): mixed {}
    public function key(): int {}
    public function next(): void {}
    public function rewind(): void {}
    public function valid(): bool {}
}

/** Sends messages to one topic. */
class Producer
{
    /** Creates what is missing, unless told otherwise. Must succeed before the first send. */
    public function init(): mixed {}
    /**
     * Sends messages, in order per partition, and says where they are; nothing when sent in the background.
     *
     * @param list<Message|string> $messages
     * @param string|int|null $stream Another stream, with `$topic`.
     * @param string|int|null $topic
     * @return list<array{stream_id: int, topic_id: int, partition_id: int, base_offset: int}>
     */
    public function send(array $messages, ?Partitioning $partitioning = null, mixed $stream = null, mixed $topic = null): mixed {}
    /** @return list<IggyException> Background sends that failed since the last call; the newest 1000 are kept. */
    public function failures(): mixed {}
    /** Sends what is buffered and waits for it, within a deadline. May be called again. */
    public function shutdown(): mixed {}
    /** @return Producer|Parallel */
    public function parallel(): Parallel {}
}

/**
 * A client of the server. One serves any number of calls. Its operations have the names of the other languages.
 */
class Client
{
    /**
     * A client; it connects with `connect`.
     *
     * @param string|null $connection_string `iggy://user:password@host:port?key=value`, or with a token.
     * @param array{server_address?: string, username?: string, password?: string, token?: string, tls?: array{domain?: string, ca_file?: string, validate_certificate?: bool}, nodelay?: bool, reconnection_max_retries?: int, reconnection_interval?: int, reestablish_after?: int, heartbeat_interval?: int, request_timeout?: int, max_pending_operations?: int, max_pending_operation_bytes?: int, max_frame_bytes?: int, encryption?: Encryption}|null $options Each overrides what the connection string says.
     * @param callable(string, string, list<Message>): int|null $partitioner Chooses the partition of every send.
     */
    public function __construct(?string $connection_string = null, ?array $options = null, mixed $partitioner = null) {}
    /**
     * The client of this process with exactly these settings: made at first use, and kept when the request ends. Call
     * `connect` all the same; it returns at once when that is done. There are at most 64 in a process.
     *
     * @param array<string, mixed>|null $options As of the constructor.
     */
    public static function persistent(?string $connection_string = null, ?array $options = null): Client {}
    /** Whether the client outlives the request. */
    public function isPersistent(): bool {}
    /**
     * Begins calls instead of waiting for them.
     *
     * @return Client|Parallel
     */
    public function parallel(): Parallel {}
    /** Closes the client for good. May be called again. A persistent one is made anew by the next request. */
    public function shutdown(): mixed {}
    /** Subscribes to what happens to the client. */
    public function events(): Events {}
    /**
     * Sends one batch and says where it is. {@see UncertainException}: it may or may not be stored.
     *
     * @param list<Message|string> $messages
     * @return list<array{stream_id: int, topic_id: int, partition_id: int, base_offset: int}>
     */
    public function sendMessages(mixed $stream, mixed $topic, Partitioning $partitioning, array $messages): mixed {}
    /**
     * Sends a batch of an idempotent producer: the partition writes it once, however often it is sent.
     *
     * @param list<Message|string> $messages
     * @return list<array{stream_id: int, topic_id: int, partition_id: int, base_offset: int}>
     */
    public function sendProducerMessages(
        mixed $stream,
        mixed $topic,
        int $partition_id,
        mixed $producer_id,
        int $epoch,
        int $base_sequence,
        array $messages
    ): mixed {}
    /**
     * Reads messages of one partition, waiting for them if the options say so. With a commit on read, a poll that was
     * given up may have stored its offset all the same.
     *
     * @param string|int|ConsumerId $consumer
     * @param PollingStrategy|Continuation|null $strategy Default after the stored offset.
     * @return PolledMessages
     */
    public function pollMessages(
        mixed $stream,
        mixed $topic,
        int $partition_id,
        mixed $consumer,
        mixed $strategy = null,
        ?PollOptions $options = null
    ): mixed {}
    /**
     * Stores the position of messages that were read. One of an older history is refused.
     *
     * @param string|int|ConsumerId $consumer
     */
    public function storeConsumerPosition(
        mixed $consumer,
        mixed $stream,
        mixed $topic,
        Checkpoint $checkpoint
    ): mixed {}
    /**
     * Forgets the stored offset of the partition and history of a position.
     *
     * @param string|int|ConsumerId $consumer
     */
    public function deleteConsumerPosition(
        mixed $consumer,
        mixed $stream,
        mixed $topic,
        Checkpoint $checkpoint
    ): mixed {}
    /**
     * A raw request by its command code: routed and retried like a typed one, or to one node, whose refusal is the answer.
     *
     * @return string
     */
    public function sendBinaryRequest(
        int $code,
        mixed $payload = null,
        ?int $replica_id = null,
        ?int $deadline = null
    ): mixed {}
    /**
     * A producer of a topic; it starts with `init`.
     *
     * @param array{partitioning?: Partitioning, create_stream?: bool, create_topic?: bool|array{partitions_count?: int, message_expiry?: int, max_topic_size?: int, durability?: 'replicated'|'persisted'}, idempotent?: bool, direct?: array{batch_length?: int, linger_time?: int}, background?: array{num_shards?: int, sharding?: 'ordered'|'balanced', batch_size?: int, batch_length?: int, linger_time?: int, max_buffer_size?: int, failure_mode?: 'block'|'fail_immediately'|array{block_with_timeout: int}, max_in_flight?: int}, encryption?: Encryption, without_encryption?: bool}|null $options
     * @param callable(string, string, list<Message>): int|null $partitioner Chooses the partition of each send. Not in the background.
     */
    public function producer(
        mixed $stream,
        mixed $topic,
        ?array $options = null,
        mixed $partitioner = null
    ): Producer {}
    /**
     * A consumer of named partitions; it starts with `init`, or with a loop over it.
     *
     * @param array{partitions: list<int>, start?: PollingStrategy, poll_options?: PollOptions, prefetch_bytes?: int, prefetch_messages?: int, polling_retry_interval?: int, init_retries?: array{count: int, interval?: int}, allow_replay?: bool, offset_drain_timeout?: int, encryption?: Encryption, without_encryption?: bool}|null $options
     */
    public function consumer(mixed $name, mixed $stream, mixed $topic, ?array $options = null): Consumer {}
    /**
     * A member of a group, which shares the partitions of a topic out among its members.
     *
     * @param array{create_consumer_group?: bool, start?: PollingStrategy, poll_options?: PollOptions, prefetch_bytes?: int, prefetch_messages?: int, polling_retry_interval?: int, init_retries?: array{count: int, interval?: int}, allow_replay?: bool, offset_drain_timeout?: int, encryption?: Encryption, without_encryption?: bool}|null $options
     */
    public function consumerGroup(mixed $name, mixed $stream, mixed $topic, ?array $options = null): Consumer {}
    /**
     * A reader of many partitions in batches; close it at the end.
     *
     * @param string|int|ConsumerId $consumer
     * @param array{partitions: list<int>, start?: PollingStrategy, options?: PollOptions, prefetch_bytes?: int, prefetch_messages?: int}|null $options
     * @return Reader
     */
    public function reader(mixed $stream, mixed $topic, mixed $consumer, ?array $options = null): mixed {}
    /** Connects, and signs in whoever is configured. Returns at once when that is done already. */
    public function connect(): mixed {}
    /** Closes every connection; the server keeps the session until it expires. */
    public function disconnect(): mixed {}
    /** Asks a node whether it is there. */
    public function ping(): mixed {}
    /**
     * @return list<array{id: int, name: string, created_at: int, size_bytes: int, messages_count: int, topics_count: int, options: array<string, string>, derived_options: array<string, string>}>
     */
    public function getStreams(): mixed {}
    /**
     * A stream with its topics.
     *
     * @return array{id: int, name: string, created_at: int, size_bytes: int, messages_count: int, topics_count: int, topics: list<array<string, mixed>>, options: array<string, string>, derived_options: array<string, string>}|null
     */
    public function getStream(mixed $stream): mixed {}
    /**
     * @param array<string, string|int|bool>|null $options Also the `name`.
     * @param list<string>|null $reset Options that go back to their defaults.
     */
    public function updateStream(mixed $stream, ?array $options = null, ?array $reset = null): mixed {}
    /** Deletes a stream with all it holds. */
    public function deleteStream(mixed $stream): mixed {}
    /**
     * @return list<array{id: int, name: string, created_at: int, size_bytes: int, messages_count: int, partitions_count: int, options: array<string, string>, derived_options: array<string, string>}>
     */
    public function getTopics(mixed $stream): mixed {}
    /**
     * A topic with its partitions.
     *
     * @return array{id: int, name: string, created_at: int, size_bytes: int, messages_count: int, partitions_count: int, partitions: list<array{id: int, created_at: int, segments_count: int, current_offset: int, size_bytes: int, messages_count: int, incarnation: int, members: list<int>, in_sync: list<int>}>, options: array<string, string>, derived_options: array<string, string>}|null
     */
    public function getTopic(mixed $stream, mixed $topic): mixed {}
    /**
     * By default of one partition, with the settings of the server.
     *
     * @param array<string, string|int|bool>|null $options
     * @return array<string, mixed> As of {@see Client::getTopic()}.
     */
    public function createTopic(
        mixed $stream,
        string $name,
        ?int $partitions_count = null,
        ?array $options = null
    ): mixed {}
    /**
     * @param array<string, string|int|bool>|null $options Also the `name`.
     * @param list<string>|null $reset Options that go back to their defaults.
     */
    public function updateTopic(mixed $stream, mixed $topic, ?array $options = null, ?array $reset = null): mixed {}
    /** Deletes a topic with all it holds. */
    public function deleteTopic(mixed $stream, mixed $topic): mixed {}
    /** Adds partitions. */
    public function createPartitions(mixed $stream, mixed $topic, int $count): mixed {}
    /** Removes the last partitions with all they hold. */
    public function deletePartitions(mixed $stream, mixed $topic, int $count): mixed {}
    /** Deletes the oldest segments of a partition, never the one in use. */
    public function deleteSegments(mixed $stream, mixed $topic, int $partition_id, int $count): mixed {}
    /** @return list<array{id: int, name: string, partitions_count: int, members_count: int}> */
    public function getConsumerGroups(mixed $stream, mixed $topic): mixed {}
    /**
     * @return array{id: int, name: string, partitions_count: int, members_count: int, members: list<array{id: int, partitions: list<int>}>}|null
     */
    public function getConsumerGroup(mixed $stream, mixed $topic, mixed $group): mixed {}
    /** @return array<string, mixed> As of {@see Client::getConsumerGroup()}. */
    public function createConsumerGroup(mixed $stream, mixed $topic, string $name): mixed {}
    /** Deletes a group with its stored offsets. */
    public function deleteConsumerGroup(mixed $stream, mixed $topic, mixed $group): mixed {}
    /** Makes this client a member. A {@see Consumer} does that by itself. */
    public function joinConsumerGroup(mixed $stream, mixed $topic, mixed $group): mixed {}
    /** Ends the membership of this client. */
    public function leaveConsumerGroup(mixed $stream, mixed $topic, mixed $group): mixed {}
    /**
     * What this client owns now; `null` when it is no member.
     *
     * @return array{generation: int, partitions: list<int>}|null
     */
    public function syncConsumerGroup(mixed $stream, mixed $topic, mixed $group): mixed {}
    /**
     * @param string|int|ConsumerId $consumer
     * @return array{partition_id: int, current_offset: int, stored_offset: int}|null
     */
    public function getConsumerOffset(mixed $consumer, mixed $stream, mixed $topic, int $partition_id): mixed {}
    /**
     * Stores the offset of the last message that was processed.
     *
     * @param string|int|ConsumerId $consumer
     */
    public function storeConsumerOffset(
        mixed $consumer,
        mixed $stream,
        mixed $topic,
        int $partition_id,
        mixed $offset
    ): mixed {}
    /** @param string|int|ConsumerId $consumer */
    public function deleteConsumerOffset(mixed $consumer, mixed $stream, mixed $topic, int $partition_id): mixed {}
    /** @return list<array{id: int, username: string, status: 'active'|'inactive', created_at: int}> */
    public function getUsers(): mixed {}
    /**
     * @return array{id: int, username: string, status: 'active'|'inactive', created_at: int, permissions: array<string, mixed>|null}|null
     */
    public function getUser(mixed $user): mixed {}
    /**
     * @param 'active'|'inactive'|null $status
     * @param array<string, string|int|bool>|null $options
     * @param list<string>|null $reset Options that go back to their defaults.
     */
    public function updateUser(
        mixed $user,
        ?string $username = null,
        ?string $status = null,
        ?array $options = null,
        ?array $reset = null
    ): mixed {}
    /**
     * Replaces what a user may do.
     *
     * @param array<string, mixed>|null $permissions As of {@see Client::createUser()}.
     */
    public function updatePermissions(mixed $user, ?array $permissions = null): mixed {}
    /** Sessions of the user go on. */
    public function changePassword(mixed $user, string $current, string $new): mixed {}
    /** Its sessions end. */
    public function deleteUser(mixed $user): mixed {}
    /**
     * Signs in, connecting if need be. A client that is signed in logs out first.
     *
     * @return array{user_id: int, session: int}
     */
    public function loginUser(string $username, string $password): mixed {}
    /**
     * As {@see Client::loginUser()}.
     *
     * @return array{user_id: int, session: int}
     */
    public function loginWithPersonalAccessToken(string $token): mixed {}
    /** The session ends in the whole cluster, and its group memberships with it. */
    public function logoutUser(): mixed {}
    /** @return int|null Who is signed in. */
    public function userId(): mixed {}
    /** @return list<array{name: string, expiry_at: int|null}> */
    public function getPersonalAccessTokens(): mixed {}
    /**
     * Returns its text, which is never shown again. It never expires unless told otherwise.
     *
     * @return string
     */
    public function createPersonalAccessToken(string $name, ?int $expiry = null): mixed {}
    /** It signs nobody in any more. */
    public function deletePersonalAccessToken(string $name): mixed {}
    /**
     * What the node that answers counts about itself.
     *
     * @return array<string, mixed>
     */
    public function getStats(): mixed {}
    /**
     * This connection as the server sees it.
     *
     * @return array{client_id: int, user_id: int|null, transport: string, address: string, consumer_groups_count: int, consumer_groups: list<array{stream_id: int, topic_id: int, group_id: int}>}
     */
    public function getMe(): mixed {}
    /** @return array<string, mixed>|null As of {@see Client::getMe()}. */
    public function getClient(int $client_id): mixed {}
    /**
     * @return list<array{client_id: int, user_id: int|null, transport: string, address: string, consumer_groups_count: int}>
     */
    public function getClients(): mixed {}
    /** @return array{name: string, nodes: list<array<string, mixed>>} */
    public function getClusterMetadata(): mixed {}
    /** @return array{protocol: string, server_address: string} */
    public function getConnectionInfo(): mixed {}
    /** @return int Microseconds between two pings of a link. */
    public function heartbeatInterval(): mixed {}
    /**
     * The options of a kind of resource.
     *
     * @param 'stream'|'topic'|'user' $scope
     * @return list<array<string, mixed>>
     */
    public function describeOptions(string $scope): mixed {}
    /**
     * A page of metadata changes.
     *
     * @param array{start?: string, token?: string, since?: int, until?: int, limit?: int, groups?: list<int>}|null $options From `earliest` (the default), `latest`, the `next` of a page, or what exists now (`current`, with the `token` of a page to go on).
     * @return array{next: string|null, has_more: bool, records: list<array<string, mixed>>, ...}
     */
    public function getMetadataChanges(?array $options = null): mixed {}
    /**
     * An id for {@see Client::sendProducerMessages()}.
     *
     * @return int|string
     */
    public function nextProducerId(): mixed {}
    /**
     * The writes whose outcome is unknown, ascending.
     *
     * @return list<int>
     */
    public function uncertainOperations(): mixed {}
    /**
     * Whether a write of unknown outcome was applied, within a deadline. Its lane is free afterwards.
     *
     * @return array{outcome: string, ...}
     */
    public function resolveOperation(mixed $operation, int $deadline): mixed {}
    /** Gives up on a write of unknown outcome and frees its lane. */
    public function abandonOperation(mixed $operation): mixed {}
    /**
     * With a key of 32 bytes of its own, messages at rest are encrypted with it.
     *
     * @param array<string, string|int|bool>|null $options
     * @return array<string, mixed> As of {@see Client::getStream()}.
     */
    public function createStream(string $name, ?array $options = null, mixed $encryption_key = null): mixed {}
    /**
     * With a name of 3 to 50 and a password of 3 to 100 bytes.
     *
     * @param array{global?: list<string>, streams?: array<int, array{granted?: list<string>, topics?: array<int, list<string>>}>}|null $permissions
     * @param 'active'|'inactive'|null $status
     * @param array<string, string|int|bool>|null $options
     * @return array<string, mixed> As of {@see Client::getUser()}.
     */
    public function createUser(
        string $username,
        string $password,
        ?array $permissions = null,
        ?string $status = null,
        ?array $options = null
    ): mixed {}
    /**
     * A diagnostic snapshot as a zip archive: everything unless `$types` says what.
     *
     * @param list<string>|null $types
     * @return string
     */
    public function snapshot(?array $types = null, ?string $compression = null): mixed {}
}
