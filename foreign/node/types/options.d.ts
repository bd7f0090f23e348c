// How things are named and configured.

import type { IggyError } from './errors.js';
import type { Message } from './messages.js';

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
