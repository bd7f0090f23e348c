'use strict';

// Messages to send, and messages that came.

const native = require('./native.js');
const { invalid } = require('./errors.js');
const { now } = require('./call.js');
const { big } = require('./options.js');

/** A value of a header with its kind. */
class HeaderValue {
  constructor(kind, value) {
    now(() => native.checkHeader(kind, value));
    this.kind = kind;
    this.value = value;
    Object.freeze(this);
  }
}

/** One that was read: also of a kind this version does not know. */
function read(kind, value) {
  return Object.freeze(Object.assign(Object.create(HeaderValue.prototype), { kind, value }));
}

/** A value as the kind it has by itself. */
function typed(value) {
  if (value instanceof HeaderValue) return value;
  if (typeof value === 'string') return new HeaderValue('string', value);
  if (typeof value === 'boolean') return new HeaderValue('bool', value);
  if (typeof value === 'bigint') return new HeaderValue('int64', value);
  if (typeof value === 'number') return new HeaderValue('float64', value);
  if (value instanceof Uint8Array) return new HeaderValue('raw', value);
  throw invalid(`a header is a string, Buffer, boolean, number, BigInt or HeaderValue, not ${typeof value}`);
}

function headersOf(given) {
  if (given === undefined) return new Map();
  const entries = given instanceof Map ? given.entries() : Object.entries(given);
  const headers = new Map();
  for (const [key, value] of entries) headers.set(key, typed(value));
  return headers;
}

function decoded(block) {
  const headers = new Map();
  for (const [keyKind, key, kind, value] of now(() => native.decodeHeaders(block))) {
    headers.set(keyKind === 'string' ? key : read(keyKind, key), read(kind, value));
  }
  return headers;
}

// Set by the class below, because they reach into its private members.
let messages;
let outgoing;

/** A message: one to send, or one that was read. */
class Message {
  #headers;
  #block;

  constructor(payload, { id, headers, originTimestamp } = {}) {
    if (typeof payload !== 'string' && !(payload instanceof Uint8Array)) {
      throw invalid(`a payload is a string, Buffer or Uint8Array, not ${typeof payload}`);
    }
    this.payload = typeof payload === 'string' ? Buffer.from(payload) : payload;
    this.id = id === undefined ? 0n : big(id, 'the id of a message');
    this.offset = 0n;
    this.timestamp = 0n;
    this.originTimestamp = originTimestamp === undefined ? 0n : big(originTimestamp, 'the origin timestamp');
    this.checksum = 0n;
    this.#headers = headersOf(headers);
  }

  get headers() {
    this.#headers ??= decoded(this.#block);
    return this.#headers;
  }

  text() {
    return new TextDecoder('utf-8', { fatal: true }).decode(this.payload);
  }

  /** Messages of the columns of the native module. */
  static #columns({ numbers, payloads, blocks }) {
    return payloads.map((payload, index) => {
      const at = index * 6;
      const message = new Message(payload);
      message.id = numbers[at] | (numbers[at + 1] << 64n);
      message.offset = numbers[at + 2];
      message.timestamp = numbers[at + 3];
      message.originTimestamp = numbers[at + 4];
      message.checksum = numbers[at + 5];
      const block = blocks?.[index];
      if (block) {
        message.#headers = undefined;
        message.#block = block;
      }
      return message;
    });
  }

  /** As the native module takes it. */
  static #outgoing(given) {
    if (typeof given === 'string' || given instanceof Uint8Array) return { payload: given };
    const message = given instanceof Message ? given : new Message(given?.payload, given ?? {});
    const out = { payload: message.payload };
    if (message.id !== 0n) out.id = message.id;
    if (message.originTimestamp !== 0n) out.originTimestamp = message.originTimestamp;
    if (message.#headers === undefined) {
      out.block = message.#block;
    } else if (message.#headers.size > 0) {
      out.entries = Array.from(message.#headers, ([key, value]) => {
        const typedKey = typed(key);
        return [typedKey.kind, typedKey.value, value.kind, value.value];
      });
    }
    return out;
  }

  static {
    messages = Message.#columns;
    outgoing = Message.#outgoing;
  }
}

/** What one read returned: messages of one partition, in order. */
class PolledMessages {
  #checkpoint;
  #continuation;

  constructor({ messages, partitionId, currentOffset, checkpoint, continuation }) {
    this.messages = messages;
    this.partitionId = partitionId;
    this.currentOffset = currentOffset;
    this.#checkpoint = checkpoint;
    this.#continuation = continuation;
  }

  get length() {
    return this.messages.length;
  }

  at(index) {
    return this.messages.at(index);
  }

  continuation() {
    return this.#continuation;
  }

  checkpoint() {
    return this.#checkpoint ?? undefined;
  }

  checkpointAt(index) {
    const message = this.messages.at(index);
    return message && this.#checkpoint.at(message.offset);
  }

  [Symbol.iterator]() {
    return this.messages[Symbol.iterator]();
  }
}

function polled(found) {
  return new PolledMessages({ ...found, messages: messages(found) });
}

/** A message as a consumer hands it out. */
class ReceivedMessage {
  #checkpoint;

  constructor(message, partitionId, currentOffset, checkpoint) {
    this.message = message;
    this.partitionId = partitionId;
    this.currentOffset = currentOffset;
    this.#checkpoint = checkpoint;
  }

  checkpoint() {
    return this.#checkpoint;
  }
}

function received(found) {
  const { partitionId, currentOffset, checkpoint } = found;
  return new ReceivedMessage(messages(found)[0], partitionId, currentOffset, checkpoint);
}

function outgoingAll(given) {
  if (typeof given === 'string' || given instanceof Uint8Array || given === null || !given?.[Symbol.iterator]) {
    throw invalid('messages are an array, or something else that can be iterated over');
  }
  return Array.from(given, outgoing);
}

module.exports = {
  HeaderValue,
  Message,
  PolledMessages,
  ReceivedMessage,
  messages,
  outgoing: outgoingAll,
  polled,
  received,
};
