/**
 * Client for a persistent, replicated message-streaming server.
 *
 * Times are milliseconds where the application gives them, and microseconds since the Unix epoch where the server does.
 * Numbers that may be above 2^53 are `bigint`: offsets, timestamps, ids of messages, sizes and counters. Every call that
 * waits takes a `signal`; a call that was given up rejects with {@link CancelledCallError}, whose `cause` is the reason
 * of the signal.
 *
 * @module
 */

/** A stream, topic, group or user: its number, or its name of 1 to 255 bytes. */
export type Id = number | string;

/** What every call that waits takes. */
export interface Call {
  /** Gives the call up; one that is aborted already does so before anything is sent. */
  signal?: AbortSignal | undefined;
}

/** A setting of a resource by its name in the catalogue of the server, which also takes text: `"1 day"`, `"10 MiB"`. Numbers are microseconds and bytes. */
export type Setting = string | number | bigint | boolean;
export type Settings = Record<string, Setting>;

// Errors.

/** Whether a write took effect. */
export type Outcome = 'applied' | 'not_applied' | 'unknown';

/** A call that did not bring what was asked for. */
export class IggyError extends Error {
  /** The name of the code in snake_case, as `stream_name_not_found`; of the class where there is no code. */
  readonly name: string;
  /** The code on the wire; 0 for failures that have none. */
  readonly code: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly outcome: Outcome;
  /** The operation to resolve or abandon when the outcome is unknown. */
  readonly operation: bigint | undefined;
  /** The partition it concerns, when it is about reading one. */
  readonly partitionId: number | undefined;
  /** The name of the class in snake_case. */
  readonly className: string;
}
/** The server cannot be reached, or the link broke: check the address, or wait. */
export class ConnectionFailedError extends IggyError {}
/** Sign in, or sign in as somebody else. */
export class AuthenticationError extends IggyError {}
/** The user may not do this. */
export class PermissionDeniedError extends IggyError {}
/** What was named does not exist. */
export class NotFoundError extends IggyError {}
/** What was to be created exists. */
export class AlreadyExistsError extends IggyError {}
/** The call itself is wrong: fix its arguments. */
export class InvalidInputError extends IggyError {}
/** A limit was reached: wait, or ask for less. */
export class LimitReachedError extends IggyError {}
/** The server did not take the call this time: the same call may succeed later. */
export class UnavailableError extends IggyError {}
/** Nobody can say whether the write was applied: resolve or abandon its operation. */
export class UncertainError extends IggyError {}
/** The position, owner or epoch belongs to the past: look it up again. */
export class StaleError extends IggyError {}
/** The server failed. */
export class ServerError extends IggyError {}
/** The client, producer, consumer or reader was closed. */
export class ClosedError extends IggyError {}
/** The call was given up by its signal; a write may have been applied all the same. */
export class CancelledCallError extends IggyError {}
/** The object was made before the process forked: make a new client. */
export class InheritedClientError extends IggyError {}
/** The client failed inside; please report it. */
export class InternalError extends IggyError {}

// Messages.

export type HeaderKind =
  | 'raw' | 'string' | 'bool'
  | 'int8' | 'int16' | 'int32' | 'int64' | 'int128'
  | 'uint8' | 'uint16' | 'uint32' | 'uint64' | 'uint128'
  | 'float32' | 'float64';

/** A value of a header with its kind: at most 255 bytes. */
export class HeaderValue {
  /** @throws {InvalidInputError} The value does not fit the kind. Kinds of 64 bits and more also take `bigint`. */
  constructor(kind: HeaderKind, value: string | boolean | number | bigint | Uint8Array);
  /** `null` when this version does not know the kind. */
  readonly kind: HeaderKind | null;
  /** `bigint` for kinds of 64 bits and more; the bytes for kinds this version does not know. */
  readonly value: string | boolean | number | bigint | Buffer;
}

/** A value by itself: text, bytes, truth value, `number` as float64, `bigint` as int64. */
export type HeaderInput = HeaderValue | string | Uint8Array | boolean | number | bigint;
export type HeadersInput = Map<string | HeaderValue, HeaderInput> | Record<string, HeaderInput>;

export interface MessageOptions {
  /** 0 to 2^128 - 1; the server makes one when it is 0 or left out. */
  id?: bigint | number | undefined;
  headers?: HeadersInput | undefined;
  /** Microseconds since the Unix epoch. Default now. */
  originTimestamp?: bigint | number | undefined;
}

/** A message: one to send, or one that was read. */
export class Message {
  /** The payload has 1 to 64000000 bytes; it is copied when the message is sent. */
  constructor(payload: string | Uint8Array, options?: MessageOptions);
  readonly payload: Buffer;
  readonly id: bigint;
  /** Its place in its partition; 0 before it was sent, as the members that follow. */
  readonly offset: bigint;
  /** When the server took it: microseconds since the Unix epoch. */
  readonly timestamp: bigint;
  /** When the sender made it: microseconds since the Unix epoch. */
  readonly originTimestamp: bigint;
  readonly checksum: bigint;
  /**
   * By key; keys that are no text are {@link HeaderValue}s.
   * @throws {InvalidInputError} What came is malformed.
   */
  readonly headers: Map<string | HeaderValue, HeaderValue>;
  /** The payload as text. @throws {TypeError} It is no UTF-8. */
  text(): string;
}

export type MessageInput = Message | string | Uint8Array | ({ payload: string | Uint8Array } & MessageOptions);

/** Where the next read of a partition starts, in the history that was read. */
export class Continuation {
  private constructor();
  readonly partitionId: number;
  /** `null` when it does not start at an offset. */
  readonly offset: bigint | null;
  equals(other: Continuation): boolean;
}

/** A position to commit: every message up to its offset was processed. */
export class Checkpoint {
  /** From its parts, as an application kept them. */
  constructor(partitionId: number, offset: bigint, incarnation: bigint, ownerGeneration?: bigint);
  readonly partitionId: number;
  readonly offset: bigint;
  /** The history it belongs to: a partition that was deleted and made again has another. */
  readonly incarnation: bigint;
  /** The ownership within its group; 0 for none. */
  readonly ownerGeneration: bigint;
  /** The same position at another message of the same read. */
  at(offset: bigint): Checkpoint;
  /** Where a read goes on after it. */
  continuation(): Continuation;
  equals(other: Checkpoint): boolean;
}

/** What one read returned: messages of one partition, in order. */
export class PolledMessages implements Iterable<Message> {
  private constructor();
  readonly messages: readonly Message[];
  readonly length: number;
  readonly partitionId: number;
  /** The newest offset of the partition. */
  readonly currentOffset: bigint;
  at(index: number): Message | undefined;
  /** Where the next read of the partition starts. */
  continuation(): Continuation;
  /** The position after the last message; nothing when nothing came. */
  checkpoint(): Checkpoint | undefined;
  checkpointAt(index: number): Checkpoint | undefined;
  [Symbol.iterator](): Iterator<Message>;
}

/** A message as a consumer hands it out. */
export class ReceivedMessage {
  private constructor();
  readonly message: Message;
  readonly partitionId: number;
  readonly currentOffset: bigint;
  checkpoint(): Checkpoint;
}

// How things are configured.

/** Where a read starts: `next` is after the stored offset, `timestamp` microseconds since the Unix epoch or a date. */
export type PollingStrategy = 'first' | 'last' | 'next' | { offset: bigint | number } | { timestamp: bigint | number | Date };
export const PollingStrategy: {
  readonly first: 'first';
  readonly last: 'last';
  readonly next: 'next';
  offset(offset: bigint | number): { offset: bigint | number };
  timestamp(timestamp: bigint | number | Date): { timestamp: bigint | number | Date };
};

/** How a send finds its partition: by a key of 1 to 255 bytes, where a number is its 64 bits, lowest byte first. */
export type Partitioning = 'balanced' | { partition: number } | { key: string | Uint8Array | bigint | number };
export const Partitioning: {
  readonly balanced: 'balanced';
  partition(partition: number): { partition: number };
  key(key: string | Uint8Array | bigint | number): { key: string | Uint8Array | bigint | number };
};

/** How often positions are stored that the client counted. */
export interface AutoCommit {
  /** Milliseconds; 0 for not by time. Default 5000. */
  interval?: number | undefined;
  /** So many messages, each message, each batch, or 0 for by time alone. Default 10000. */
  every?: number | 'message' | 'batch' | undefined;
  /** What counts as done: the next message was asked for (`processing`, the default), it was handed out, or marked. */
  after?: 'processing' | 'delivery' | 'marked' | undefined;
}
/** When the position of a consumer is stored: by the application (the default), by the server as part of the read, or by the client. */
export type CommitPolicy = 'manual' | 'onRead' | 'auto' | { auto: AutoCommit };
export const CommitPolicy: {
  readonly manual: 'manual';
  readonly onRead: 'onRead';
  auto(auto?: AutoCommit): { auto: AutoCommit };
};

/** The limits of one read and its commit policy. */
export interface PollOptions {
  /** Most messages. Default 1000. */
  count?: number | undefined;
  /** Milliseconds to wait for `minCount` messages, at most 600000. Default 0; consumers and readers 5000. */
  maxWait?: number | undefined;
  /** Messages that end the wait, 1 up to `count`. Default 1. */
  minCount?: number | undefined;
  /** Most bytes of the reply, at least 344; a larger first message comes alone. Default 1 MiB. */
  maxBytes?: number | undefined;
  /** Default `manual`. A single poll cannot be `auto`. */
  commit?: CommitPolicy | undefined;
}
export const PollOptions: { wait(maxWait: number, more?: PollOptions): PollOptions };

/** Who reads; a bare name or number is a consumer of its own. */
export type ConsumerId = Id | { kind?: 'consumer' | 'group' | 'external' | undefined; id: Id };

/** End-to-end encryption of payloads and headers. */
export interface Encryption {
  /** 32 bytes. */
  key: Uint8Array;
  /** Default `aes-256-gcm`. */
  cipher?: 'aes-256-gcm' | 'aes-256-gcm-siv' | undefined;
}

export interface Tls {
  /** The name the certificate must be for. Default that of the address. */
  domain?: string | undefined;
  /** Certificates to trust besides those of the system, in PEM. */
  caFile?: string | undefined;
  /** Default true. */
  validateCertificate?: boolean | undefined;
}

/**
 * Chooses the partition of a send. It is called on the thread that made it, while that is idle, and must answer within
 * 10 seconds; it cannot be asynchronous.
 */
export type Partitioner = (stream: string, topic: string, messages: Message[]) => number;

/** How a client reaches and treats its server; each overrides what a connection string says. Times are milliseconds. */
export interface ClientOptions {
  /** `iggy://user:password@host:port?key=value`, or with a token instead of user and password. */
  connectionString?: string | undefined;
  /** `host:port`, IPv6 in brackets. Default 127.0.0.1:8090. */
  serverAddress?: string | undefined;
  username?: string | undefined;
  password?: string | undefined;
  /** A personal access token, instead of username and password. */
  token?: string | undefined;
  /** Default plain TCP. */
  tls?: Tls | true | undefined;
  /** Whether small frames are sent at once. Default true. */
  nodelay?: boolean | undefined;
  /** Passes over all nodes before a connect gives up. Default unlimited. */
  reconnectionMaxRetries?: number | undefined;
  /** Ceiling of the first random pause between passes; it doubles up to 10 s. Default 1000. */
  reconnectionInterval?: number | undefined;
  /** A link that held so long starts again with the first pause. Default 5000. */
  reestablishAfter?: number | undefined;
  /** Time between two pings. Default 5000. */
  heartbeatInterval?: number | undefined;
  /** Deadline of a call that names none; polls have their wait and 10 s. Default 30000. */
  requestTimeout?: number | undefined;
  /** Writes under way or unresolved at once. Default 256. */
  maxPendingOperations?: number | undefined;
  /** Bytes of their frames. Default 64 MiB. */
  maxPendingOperationBytes?: number | undefined;
  /** Largest request. Default 64 MiB. */
  maxFrameBytes?: number | undefined;
  /** Encrypts what is sent and decrypts what is read. */
  encryption?: Encryption | undefined;
  /** Chooses the partition of every send. */
  partitioner?: Partitioner | undefined;
}

export interface Direct {
  /** Most messages of one request; a longer send is split; 0 for as many as fit. Default 1000. */
  batchLength?: number | undefined;
  /** Least milliseconds between two sends. Default none. */
  lingerTime?: number | undefined;
}

export interface Background {
  /** Workers. Default 1. */
  numShards?: number | undefined;
  /** Which worker takes a send: the same for each topic, or each in turn. Default `ordered`. */
  sharding?: 'ordered' | 'balanced' | undefined;
  /** Bytes that are sent without waiting for more; 0 for no such threshold. Default 1 MiB. */
  batchSize?: number | undefined;
  /** Sends that are sent without waiting for more; 0 for no such threshold. Default 1000. */
  batchLength?: number | undefined;
  /** Milliseconds a worker waits for more. Default 1. */
  lingerTime?: number | undefined;
  /** Bytes all buffered sends may take; 0 for no limit but the queues. Default 32 MiB. */
  maxBufferSize?: number | undefined;
  /** What a send does when the buffer is full: wait, fail, or fail after milliseconds. Default `block`. */
  failureMode?: 'block' | 'failImmediately' | number | undefined;
  /** Requests a worker has under way at once; above 1 their order is not kept. Default 1. */
  maxInFlight?: number | undefined;
}

export interface NewTopic {
  partitionsCount?: number | undefined;
  /** Milliseconds; 0 for never. */
  messageExpiry?: number | undefined;
  /** Bytes; 0 for unlimited. */
  maxTopicSize?: number | bigint | undefined;
  durability?: 'replicated' | 'persisted' | undefined;
}

export interface ProducerOptions {
  streamId: Id;
  topicId: Id;
  /** Default balanced. */
  partitioning?: Partitioning | undefined;
  /** Chooses the partition of each send instead. */
  partitioner?: Partitioner | undefined;
  /** Whether a missing stream is created. Default true. */
  createStream?: boolean | undefined;
  /** Whether, or how, a missing topic is created. Default with one partition. */
  createTopic?: boolean | NewTopic | undefined;
  /** Whether the partition writes each batch once, however often it is sent. Default false. */
  idempotent?: boolean | undefined;
  /** Sends as part of the call; the default. */
  direct?: Direct | true | undefined;
  /** Sends in the background instead. */
  background?: Background | true | undefined;
  /** Hears of each background send that failed. */
  onError?: ((error: IggyError) => void) | undefined;
  /** Another encryption than the client's. */
  encryption?: Encryption | undefined;
  /** No encryption, though the client has one. */
  withoutEncryption?: boolean | undefined;
}

interface ReadingOptions {
  /** Where each partition starts. Default `next`. */
  pollingStrategy?: PollingStrategy | undefined;
  /** Bytes read ahead at most. Default 16 MiB. */
  prefetchBytes?: number | undefined;
  /** Messages read ahead at most. Default 16000, or the count of a read. */
  prefetchMessages?: number | undefined;
}

interface ConsumingOptions extends ReadingOptions {
  name: Id;
  streamId: Id;
  topicId: Id;
  /** Limits and commit policy of its reads. Default a wait of 5 s and manual commits. */
  pollOptions?: PollOptions | undefined;
  /** Longest pause before a refused partition is read again, in milliseconds. Default 1000. */
  pollingRetryInterval?: number | undefined;
  /** Further tries of `init` when something is missing, and milliseconds before each (default 1000). Default none. */
  initRetries?: { count: number; interval?: number | undefined } | undefined;
  /** Hands messages out again that were handed out before a rebalance. Default false. */
  allowReplay?: boolean | undefined;
  /** Milliseconds positions may take to be stored at the end. Default 5000. */
  offsetDrainTimeout?: number | undefined;
  /** Another encryption than the client's. */
  encryption?: Encryption | undefined;
  /** No encryption, though the client has one. */
  withoutEncryption?: boolean | undefined;
}

export interface ConsumerOptions extends ConsumingOptions {
  /** What it reads. */
  partitions: Iterable<number>;
}

export interface ConsumerGroupOptions extends ConsumingOptions {
  /** Whether a missing group is created. Default true. */
  createConsumerGroup?: boolean | undefined;
}

export interface ReaderOptions extends ReadingOptions, Call {
  streamId: Id;
  topicId: Id;
  consumer: ConsumerId;
  /** What it reads. */
  partitions: Iterable<number>;
  /** Limits and commit policy of its reads. Default a wait of 5 s and manual commits. */
  options?: PollOptions | undefined;
}

// Producer, reader, consumer, events.

export interface SendConfirmation {
  streamId: number;
  topicId: number;
  partitionId: number;
  /** The offset of the first message. */
  baseOffset: bigint;
}

export interface SendOptions extends Call {
  /** Another partitioning than the producer's. */
  partitioning?: Partitioning | undefined;
  /** Another stream, with `topicId`. */
  streamId?: Id | undefined;
  /** Another topic, with `streamId`. */
  topicId?: Id | undefined;
}

/** Sends messages to one topic. */
export class Producer {
  private constructor();
  /** Creates what is missing, unless told otherwise. Must succeed before the first send. */
  init(call?: Call): Promise<void>;
  /**
   * Sends messages, in order per partition, and says where they are; nothing when sent in the background. The `outcome`
   * of its error says whether anything was stored.
   */
  send(messages: Iterable<MessageInput>, options?: SendOptions): Promise<SendConfirmation[]>;
  /** Sends what is buffered and waits for it, within a deadline. May be called again. */
  shutdown(call?: Call): Promise<void>;
  close(call?: Call): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Iteration extends Call {
  /** Whether leaving the loop, or giving it up, closes what it reads from. Default true. */
  close?: boolean | undefined;
}

export interface ReaderEvent {
  event: 'assigned' | 'revoked' | 'membership_lost' | 'stopped' | 'sought' | 'read_uncertain' | 'commit_failed' | 'closed';
  partitionId?: number;
  partitions?: number[];
  generation?: bigint;
  code?: number;
  name?: string;
}

export interface ClientEvent {
  event: 'connected' | 'disconnected' | 'signed_in' | 'signed_out' | 'shutdown';
}

/** A subscription to what happens. One that falls 64 events behind loses the oldest. */
export class Events<E> implements AsyncIterable<E> {
  private constructor();
  /** The next event; `null` when nothing can happen any more, or it was closed. */
  next(call?: Call): Promise<E | null>;
  close(): void;
  [Symbol.asyncIterator](): AsyncGenerator<E, void, void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Reads many partitions of one topic in batches. An error of a read concerns one partition and does not end the reader:
 * read on. A `for await` loop ends with it, and leaves the reader open.
 */
export class Reader implements AsyncIterable<PolledMessages> {
  private constructor();
  /** The next batch, all of one partition; waits until there is one. Giving it up loses and repeats nothing. */
  next(call?: Call): Promise<PolledMessages>;
  /** Stores a position. One at or below the last stored, or of an older history, stores nothing. */
  commit(checkpoint: Checkpoint, call?: Call): Promise<void>;
  /** Notes that the application is done up to a position, for automatic commits after marks. */
  mark(checkpoint: Checkpoint): void;
  /** Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition. */
  seek(partitionId: number, to: PollingStrategy | Continuation): void;
  /** The partitions it reads, ascending. */
  readonly partitions: number[];
  /** The partitions that wait for a seek, ascending. */
  readonly stopped: number[];
  /** Subscribes to what happens from now on. */
  events(): Events<ReaderEvent>;
  /** Ends the reads and stores what automatic commits still owe, within a deadline. May be called again. */
  close(call?: Call): Promise<void>;
  batches(iteration?: Iteration): AsyncGenerator<PolledMessages, void, void>;
  /** As {@link batches}: leaving the loop closes the reader. */
  [Symbol.asyncIterator](): AsyncGenerator<PolledMessages, void, void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Reads message by message: named partitions, or those a group assigns to this member. */
export class Consumer implements AsyncIterable<ReceivedMessage> {
  private constructor();
  /** Joins the group, or looks the partitions up. A loop over the consumer does it when it was not done. */
  init(call?: Call): Promise<void>;
  /** The next message; `null` once the consumer was shut down, or every named partition stopped. Giving it up loses and repeats nothing. */
  next(call?: Call): Promise<ReceivedMessage | null>;
  /** The next messages of one partition at once. */
  nextBatch(call?: Call): Promise<PolledMessages | null>;
  /** Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing. */
  commit(checkpoint: Checkpoint, call?: Call): Promise<void>;
  /** Notes that the application is done up to a position, for automatic commits after marks. */
  mark(checkpoint: Checkpoint): void;
  /** Stores an offset, whatever was read. */
  storeOffset(partitionId: number, offset: bigint | number, call?: Call): Promise<void>;
  /** Forgets the stored offset of a partition. */
  deleteOffset(partitionId: number, call?: Call): Promise<void>;
  /** Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition. */
  seek(partitionId: number, to: PollingStrategy | Continuation): void;
  /** The partitions it reads now, ascending. */
  readonly partitions: number[];
  /** The partitions that wait for a seek, ascending. */
  readonly stopped: number[];
  /** The offset of the last message of a partition that was handed out. */
  lastConsumedOffset(partitionId: number): bigint | undefined;
  /** The last offset of a partition that this consumer stored. */
  lastStoredOffset(partitionId: number): bigint | undefined;
  /** Subscribes to what happens from now on: assigned, revoked, stopped and so on. */
  events(): Events<ReaderEvent>;
  /** Ends the reads, stores what automatic commits still owe, leaves the group. May be called again. */
  shutdown(call?: Call): Promise<void>;
  close(call?: Call): Promise<void>;
  messages(iteration?: Iteration): AsyncGenerator<ReceivedMessage, void, void>;
  /** As {@link messages}: leaving the loop shuts the consumer down, so that a member leaves its group at once. */
  [Symbol.asyncIterator](): AsyncGenerator<ReceivedMessage, void, void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// What the server answers. Times are microseconds since the Unix epoch, sizes bytes.

export interface Stream {
  id: number;
  name: string;
  createdAt: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  topicsCount: number;
  options: Record<string, string>;
  derivedOptions: Record<string, string>;
}
export interface Topic {
  id: number;
  name: string;
  createdAt: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  partitionsCount: number;
  options: Record<string, string>;
  derivedOptions: Record<string, string>;
}
export interface StreamDetails extends Stream {
  topics: Topic[];
}
export interface Partition {
  id: number;
  createdAt: bigint;
  segmentsCount: number;
  currentOffset: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  incarnation: bigint;
  members: number[];
  inSync: number[];
}
export interface TopicDetails extends Topic {
  partitions: Partition[];
}
export interface ConsumerGroup {
  id: number;
  name: string;
  partitionsCount: number;
  membersCount: number;
}
export interface ConsumerGroupDetails extends ConsumerGroup {
  members: { id: number; partitions: number[] }[];
}
export interface Assignment {
  generation: bigint;
  partitions: number[];
}
export interface ConsumerOffset {
  partitionId: number;
  currentOffset: bigint;
  storedOffset: bigint;
}
export type GlobalPermission =
  | 'manage_servers' | 'read_servers' | 'manage_users' | 'read_users' | 'manage_streams' | 'read_streams'
  | 'manage_topics' | 'read_topics' | 'poll_messages' | 'send_messages';
export type StreamPermission =
  | 'manage_stream' | 'read_stream' | 'manage_topics' | 'read_topics' | 'poll_messages' | 'send_messages';
export type TopicPermission = 'manage_topic' | 'read_topic' | 'poll_messages' | 'send_messages';
/** What a user may do everywhere, with streams by their number, and with their topics by theirs. */
export interface Permissions {
  global?: GlobalPermission[];
  streams?: Record<number, { granted?: StreamPermission[]; topics?: Record<number, TopicPermission[]> }>;
}
export type UserStatus = 'active' | 'inactive';
export interface User {
  id: number;
  username: string;
  status: UserStatus;
  createdAt: bigint;
}
export interface UserDetails extends User {
  permissions: Permissions | null;
}
/** A token, without its text. */
export interface PersonalAccessToken {
  name: string;
  expiryAt: bigint | null;
}
export interface Identity {
  userId: number;
  session: bigint;
}
export interface ConnectedClient {
  clientId: number;
  /** `null` before it signed in. */
  userId: number | null;
  transport: string;
  address: string;
  consumerGroupsCount: number;
}
export interface ConnectedClientDetails extends ConnectedClient {
  consumerGroups: { streamId: number; topicId: number; groupId: number }[];
}
export interface Node {
  replicaId: number;
  name: string;
  address: string;
  /** Ports; `null` where it does not serve that transport. */
  tcp: number | null;
  quic: number | null;
  http: number | null;
  websocket: number | null;
  role: string;
  status: string;
}
export interface OptionDescription {
  key: string;
  kind: string | null;
  default: string | null;
  updatable: boolean;
  resettable: boolean;
  secret: boolean;
  readOnly: boolean;
  critical: boolean;
  description: string;
}
/** What a node counts about itself. Times are microseconds, processor use is percent of one core. */
export interface Stats {
  processId: number;
  cpuUsage: number;
  totalCpuUsage: number;
  memoryUsage: bigint;
  totalMemory: bigint;
  availableMemory: bigint;
  runTime: bigint;
  startTime: bigint;
  readBytes: bigint;
  writtenBytes: bigint;
  messagesSizeBytes: bigint;
  streamsCount: number;
  topicsCount: number;
  partitionsCount: number;
  segmentsCount: number;
  messagesCount: bigint;
  clientsCount: number;
  consumerGroupsCount: number;
  hostname: string;
  osName: string;
  osVersion: string;
  kernelVersion: string;
  iggyServerVersion: string;
  threadsCount: number;
  freeDiskSpace: bigint;
  totalDiskSpace: bigint;
  openFilesCount: number;
  openFilesLimit: number;
  cache: { streamId: number; topicId: number; partitionId: number; hits: bigint; misses: bigint; hitRatio: number }[];
}
/** A page of metadata changes. */
export interface MetadataChanges {
  /** Where the next page starts. */
  next: string | null;
  hasMore: boolean;
  /** Continues a scan of what exists now. */
  token: string | null;
  records: Record<string, any>[];
  items: Record<string, any>[];
  [member: string]: any;
}

// The client.

interface OfStream extends Call {
  streamId: Id;
}
interface OfTopic extends OfStream {
  topicId: Id;
}
interface OfGroup extends OfTopic {
  groupId: Id;
}
interface OfPartition extends OfTopic {
  partitionId: number;
}
interface OfOffset extends OfPartition {
  consumer: ConsumerId;
}
interface OfPosition extends OfTopic {
  consumer: ConsumerId;
  checkpoint: Checkpoint;
}
interface OfUser extends Call {
  userId: Id;
}
interface Change {
  options?: Settings | undefined;
  /** Settings that go back to their defaults. */
  reset?: Iterable<string> | undefined;
}

/**
 * A client of the server. One serves any number of calls at once. It keeps no process alive by itself: calls that wait
 * do, until they end.
 */
export class Client {
  /** @throws {InvalidInputError} The connection string or a setting is wrong; says which and what is allowed. */
  constructor(connectionString: string, options?: ClientOptions);
  constructor(options?: ClientOptions);

  /** Connects, and signs in whoever is configured. Returns at once when that is done already. */
  connect(call?: Call): Promise<void>;
  /** Closes every connection; the server keeps the session until it expires. */
  disconnect(call?: Call): Promise<void>;
  /** Closes the client for good. May be called again. */
  shutdown(call?: Call): Promise<void>;
  close(call?: Call): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Subscribes to what happens to the client. */
  events(): Events<ClientEvent>;

  /** A producer of a topic; it starts with `init`. */
  producer(options: ProducerOptions): Producer;
  /** A consumer of named partitions; it starts with `init`, or with a loop over it. */
  consumer(options: ConsumerOptions): Consumer;
  /** A member of a group, which shares the partitions of a topic out among its members. */
  consumerGroup(options: ConsumerGroupOptions): Consumer;

  readonly message: {
    /** Sends one batch and says where it is. `UncertainError`: it may or may not be stored. */
    send(args: OfTopic & { partitioning?: Partitioning | undefined; messages: Iterable<MessageInput> }): Promise<SendConfirmation[]>;
    /** Sends a batch of an idempotent producer: the partition writes it once, however often it is sent. */
    sendIdempotent(
      args: OfPartition & { messages: Iterable<MessageInput>; producerId: bigint; epoch: number; baseSequence: number },
    ): Promise<SendConfirmation[]>;
    /** An id for {@link sendIdempotent}. */
    nextProducerId(call?: Call): Promise<bigint>;
    /** Reads messages of one partition, waiting for them if `options` say so. With a commit on read, a poll that was given up may have stored its offset all the same. */
    poll(
      args: OfOffset & { pollingStrategy?: PollingStrategy | Continuation | undefined; options?: PollOptions | undefined },
    ): Promise<PolledMessages>;
    /** A reader of many partitions in batches; close it at the end. */
    reader(args: ReaderOptions): Promise<Reader>;
  };
  readonly stream: {
    get(args: OfStream): Promise<StreamDetails | undefined>;
    list(call?: Call): Promise<Stream[]>;
    /** With a key of 32 bytes of its own, messages at rest are encrypted with it. */
    create(args: Call & { name: string; encryptionKey?: Uint8Array | undefined; options?: Settings | undefined }): Promise<StreamDetails>;
    update(args: OfStream & Change & { name?: string | undefined }): Promise<void>;
    /** Deletes a stream with all it holds. */
    delete(args: OfStream): Promise<void>;
  };
  readonly topic: {
    get(args: OfTopic): Promise<TopicDetails | undefined>;
    list(args: OfStream): Promise<Topic[]>;
    /** By default of one partition, with the settings of the server. */
    create(args: OfStream & { name: string; partitionsCount?: number | undefined; options?: Settings | undefined }): Promise<TopicDetails>;
    update(args: OfTopic & Change & { name?: string | undefined }): Promise<void>;
    /** Deletes a topic with all it holds. */
    delete(args: OfTopic): Promise<void>;
  };
  readonly partition: {
    create(args: OfTopic & { count: number }): Promise<void>;
    /** Removes the last partitions with all they hold. */
    delete(args: OfTopic & { count: number }): Promise<void>;
  };
  readonly segment: {
    /** Deletes the oldest segments of a partition, never the one in use. */
    delete(args: OfPartition & { count: number }): Promise<void>;
  };
  readonly group: {
    get(args: OfGroup): Promise<ConsumerGroupDetails | undefined>;
    list(args: OfTopic): Promise<ConsumerGroup[]>;
    create(args: OfTopic & { name: string }): Promise<ConsumerGroupDetails>;
    /** Deletes a group with its stored offsets. */
    delete(args: OfGroup): Promise<void>;
    /** Makes this client a member. A {@link Consumer} does that by itself. */
    join(args: OfGroup): Promise<void>;
    leave(args: OfGroup): Promise<void>;
    /** What this client owns now; nothing when it is no member. */
    sync(args: OfGroup): Promise<Assignment | undefined>;
  };
  readonly offset: {
    get(args: OfOffset): Promise<ConsumerOffset | undefined>;
    /** Stores the offset of the last message that was processed. */
    store(args: OfOffset & { offset: bigint | number }): Promise<void>;
    delete(args: OfOffset): Promise<void>;
    /** Stores the position of messages that were read. One of an older history is refused. */
    storePosition(args: OfPosition): Promise<void>;
    /** Forgets the stored offset of the partition and history of a position. */
    deletePosition(args: OfPosition): Promise<void>;
  };
  readonly user: {
    get(args: OfUser): Promise<UserDetails | undefined>;
    list(call?: Call): Promise<User[]>;
    /** With a name of 3 to 50 and a password of 3 to 100 bytes. */
    create(
      args: Call & {
        username: string;
        password: string;
        status?: UserStatus | undefined;
        permissions?: Permissions | undefined;
        options?: Settings | undefined;
      },
    ): Promise<UserDetails>;
    update(args: OfUser & Change & { username?: string | undefined; status?: UserStatus | undefined }): Promise<void>;
    /** Replaces what a user may do. */
    updatePermissions(args: OfUser & { permissions: Permissions | null }): Promise<void>;
    /** Sessions of the user go on. */
    changePassword(args: OfUser & { current: string; new: string }): Promise<void>;
    /** Its sessions end. */
    delete(args: OfUser): Promise<void>;
  };
  readonly token: {
    list(call?: Call): Promise<PersonalAccessToken[]>;
    /** Returns its text, which is never shown again. It never expires unless told otherwise, in milliseconds. */
    create(args: Call & { name: string; expiry?: number | undefined }): Promise<string>;
    delete(args: Call & { name: string }): Promise<void>;
  };
  readonly session: {
    /** Signs in, connecting if need be. A client that is signed in logs out first. */
    login(args: Call & { username: string; password: string }): Promise<Identity>;
    loginWithToken(args: Call & { token: string }): Promise<Identity>;
    /** The session ends in the whole cluster, and its group memberships with it. */
    logout(call?: Call): Promise<void>;
    userId(call?: Call): Promise<number | undefined>;
    /** The writes whose outcome is unknown, ascending. */
    uncertainOperations(call?: Call): Promise<bigint[]>;
    /** Whether a write of unknown outcome was applied, within milliseconds. Its lane is free afterwards. */
    resolveOperation(args: Call & { operation: bigint; deadline: number }): Promise<boolean>;
    /** Gives up on a write of unknown outcome and frees its lane. */
    abandonOperation(args: Call & { operation: bigint }): Promise<void>;
  };
  readonly system: {
    ping(call?: Call): Promise<void>;
    /** Of the node that answers. */
    stats(call?: Call): Promise<Stats>;
    /** This connection as the server sees it. */
    me(call?: Call): Promise<ConnectedClientDetails>;
    client(args: Call & { clientId: number }): Promise<ConnectedClientDetails | undefined>;
    clients(call?: Call): Promise<ConnectedClient[]>;
    cluster(call?: Call): Promise<{ name: string; nodes: Node[] }>;
    connectionInfo(call?: Call): Promise<{ protocol: string; serverAddress: string }>;
    /** Milliseconds between two pings of a link. */
    heartbeatInterval(call?: Call): Promise<number>;
    /** The options of a kind of resource. */
    describeOptions(args: Call & { scope: 'stream' | 'topic' | 'user' }): Promise<OptionDescription[]>;
    /** A diagnostic snapshot as a zip archive: everything unless `types` says what. */
    snapshot(args?: Call & { types?: Iterable<string> | undefined; compression?: string | undefined }): Promise<Buffer>;
    /** A page of metadata changes: from `earliest` (the default), `latest`, the `next` of a page, or what exists now (`current`, with the `token` of a page to go on). */
    changes(
      args?: Call & {
        start?: string | undefined;
        token?: string | undefined;
        /** Microseconds since the Unix epoch. */
        since?: bigint | undefined;
        until?: bigint | undefined;
        /** Default 1000. */
        limit?: number | undefined;
        groups?: Iterable<number> | undefined;
      },
    ): Promise<MetadataChanges>;
  };
  readonly raw: {
    /** A raw request by its command code: routed and retried like a typed one, or to one node, whose refusal is the answer. The deadline is milliseconds. */
    send(
      args: Call & { code: number; payload?: Uint8Array | undefined; replicaId?: number | undefined; deadline?: number | undefined },
    ): Promise<Buffer>;
  };
}
