// Messages and positions.

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
