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

import type {
  Checkpoint,
  Continuation,
  MessageInput,
  PolledMessages,
  ReceivedMessage,
} from './types/messages.js';
import type {
  Call,
  ClientOptions,
  ConsumerGroupOptions,
  ConsumerId,
  ConsumerOptions,
  Id,
  Partitioning,
  PollOptions,
  PollingStrategy,
  ProducerOptions,
  ReaderOptions,
  Settings,
} from './types/options.js';
import type {
  Assignment,
  ConnectedClient,
  ConnectedClientDetails,
  ConsumerGroup,
  ConsumerGroupDetails,
  ConsumerOffset,
  Identity,
  MetadataChanges,
  Node,
  OptionDescription,
  Permissions,
  PersonalAccessToken,
  Stats,
  Stream,
  StreamDetails,
  Topic,
  TopicDetails,
  User,
  UserDetails,
  UserStatus,
} from './types/records.js';

export * from './types/errors.js';
export * from './types/messages.js';
export * from './types/options.js';
export * from './types/records.js';

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
  /** Where it sends to. */
  readonly streamId: Id;
  /** Where it sends to. */
  readonly topicId: Id;
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
  /** Its name, or that of its group. */
  readonly name: Id;
  /** What it reads. */
  readonly streamId: Id;
  /** What it reads. */
  readonly topicId: Id;
  /** Whether it is a member of a group. */
  readonly isGroupMember: boolean;
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

/** What names a stream. */
export interface OfStream extends Call {
  streamId: Id;
}
/** What names a topic. */
export interface OfTopic extends OfStream {
  topicId: Id;
}
/** What names a consumer group. */
export interface OfGroup extends OfTopic {
  groupId: Id;
}
/** What names a partition. */
export interface OfPartition extends OfTopic {
  partitionId: number;
}
/** What names a stored offset. */
export interface OfOffset extends OfPartition {
  consumer: ConsumerId;
}
/** A position, and whose it is. */
export interface OfPosition extends OfTopic {
  consumer: ConsumerId;
  checkpoint: Checkpoint;
}
/** What names a user. */
export interface OfUser extends Call {
  userId: Id;
}
/** What changes of a resource. */
export interface Change {
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
    /** An id for `sendIdempotent`. */
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
