// What the steps of one scenario share.

import assert from 'node:assert/strict';

import { CancelledCallError, Client, HeaderValue, IggyError, Message, StaleError } from 'iggy';

/** Milliseconds, against hanging only. */
export const DEADLINE = 90_000;

/** A signal that ends what hangs. */
export function limit(milliseconds = DEADLINE) {
  return AbortSignal.timeout(milliseconds);
}

/** A message as it was sent; its place in its partition is its offset. */
export class Sent {
  constructor(id, payload, headers) {
    this.id = id;
    this.payload = payload;
    this.headers = headers;
  }

  /** The message of this place in its partition, with a payload of at least `size` bytes. */
  static numbered(partition, index, size = 0) {
    const payload = Buffer.from(`message ${index} of partition ${partition}`.padEnd(size, '.'));
    const headers = new Map([
      ['index', new HeaderValue('uint64', BigInt(index))],
      ['origin', new HeaderValue('string', 'scenario')],
    ]);
    return new Sent((BigInt(partition) << 64n) | BigInt(index + 1), payload, headers);
  }

  message() {
    return new Message(this.payload, { id: this.id, headers: this.headers });
  }

  /** Whether this is what arrived. */
  check(arrived) {
    assert.equal(arrived.id, this.id);
    assert(arrived.payload.equals(this.payload));
    assert.deepEqual(arrived.headers, this.headers);
  }
}

/** A consumer and what the application received from it. */
export class Receiver {
  received = [];

  constructor(consumer) {
    this.consumer = consumer;
  }

  /** Receives so many more. */
  async receive(count) {
    const wanted = this.received.length + count;
    const signal = limit();
    while (this.received.length < wanted) await this.#take(signal);
  }

  /** Receives what comes within a moment: a member has to be listened to for the group to settle. */
  async glance() {
    try {
      await this.#take(limit(20));
    } catch (error) {
      if (!(error instanceof CancelledCallError)) throw error;
    }
  }

  async #take(signal) {
    let message;
    try {
      message = await this.consumer.next({ signal });
    } catch (error) {
      // A partition that moved while it was read is read by its new owner.
      if (error.retryable || error instanceof StaleError) return;
      throw error;
    }
    assert(message, 'the consumer is closed');
    this.received.push(message);
  }

  /** The last message of each partition. */
  lastOfEach() {
    return new Map(this.received.map((message) => [message.partitionId, message]));
  }
}

export class World {
  #client;
  #error;

  constructor() {
    this.clients = new Map();
    this.stream = '';
    this.topic = '';
    this.group = '';
    this.sent = new Map();
    this.polledPartition = 0;
    this.notedTime = 0n;
    this.read = [];
    this.checkpoints = [];
    this.reported = [];
    this.consumers = new Map();
    this.tokens = new Map();
    this.answer = Buffer.alloc(0);
  }

  /** A client of somebody. */
  async connect(credentials, options = {}) {
    const client = new Client(this.node.connectionString(credentials), options);
    try {
      await client.connect();
    } catch (error) {
      await client.shutdown();
      throw error;
    }
    return client;
  }

  /** Removes what the scenario before left at the node. */
  async clean() {
    const client = await this.connect('iggy:iggy');
    for (const { id } of await client.stream.list()) await client.stream.delete({ streamId: id });
    for (const { id, username } of await client.user.list()) {
      if (username !== 'iggy') await client.user.delete({ userId: id });
    }
    for (const { name } of await client.token.list()) await client.token.delete({ name });
    await client.shutdown();
  }

  /** Signs the client of the scenario in. */
  async signIn() {
    this.#client = await this.connect('iggy:iggy');
  }

  get client() {
    assert(this.#client, 'a signed-in client');
    return this.#client;
  }

  /** Names the topic of the scenario in arguments. */
  place(more = {}) {
    return { streamId: this.stream, topicId: this.topic, ...more };
  }

  /** Keeps how a request ended. The next step that cares says whether that was right. */
  async try(call) {
    this.expectNoError();
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof IggyError)) throw error;
      this.#error = error;
      return undefined;
    }
  }

  /** The error of the last request; it counts as looked at. */
  takeError() {
    const error = this.#error;
    this.#error = undefined;
    assert(error, 'nothing failed');
    return error;
  }

  /** Nothing may have failed. */
  expectNoError() {
    assert(!this.#error, `an earlier request failed: ${this.#error}`);
  }

  /** Ends the scenario: nothing may be left that failed and was not looked at. */
  async finish() {
    this.waiting?.controller.abort();
    await this.waiting?.poll.catch(() => {});
    for (const { consumer } of this.consumers.values()) await consumer.shutdown();
    await this.reader?.close();
    await this.producer?.shutdown();
    for (const client of this.clients.values()) await client.shutdown();
    await this.#client?.shutdown();
    this.expectNoError();
  }
}
