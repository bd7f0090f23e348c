'use strict';

// Consumers, readers and events.

const { later, now } = require('./call.js');
const { CancelledCallError, ClosedError } = require('./errors.js');
const { big, start } = require('./options.js');
const { polled, received } = require('./message.js');

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * Iterates until there is nothing more. Leaving the loop early, or giving it up, closes what it reads from; an error of
 * the read does not, because the next read may succeed.
 */
async function* iterate(next, close, signal) {
  let reading = false;
  try {
    for (;;) {
      reading = true;
      const found = await next({ signal });
      reading = false;
      if (found === null) return;
      yield found;
    }
  } catch (error) {
    if (reading && error instanceof CancelledCallError) reading = false;
    throw error;
  } finally {
    if (!reading) await close();
  }
}

/** A subscription to what happens. */
class Events {
  #native;

  constructor(native) {
    this.#native = native;
  }

  next({ signal } = {}) {
    return later(signal, (token) => this.#native.next(token));
  }

  close() {
    now(() => this.#native.close());
  }

  [Symbol.asyncIterator]() {
    return iterate(
      (options) => this.next(options),
      () => this.close(),
    );
  }

  async [asyncDispose]() {
    this.close();
  }
}

/** Reads many partitions of one topic in batches. */
class Reader {
  #native;
  #closed = false;

  constructor(native) {
    this.#native = native;
  }

  async next({ signal } = {}) {
    return polled(await later(signal, (token) => this.#native.next(token)));
  }

  async commit(checkpoint, { signal } = {}) {
    await later(signal, (token) => this.#native.commit(token, checkpoint));
  }

  mark(checkpoint) {
    now(() => this.#native.mark(checkpoint));
  }

  seek(partitionId, to) {
    now(() => this.#native.seek(partitionId, ...start(to)));
  }

  get partitions() {
    return now(() => this.#native.partitions());
  }

  get stopped() {
    return now(() => this.#native.stopped());
  }

  events() {
    return new Events(now(() => this.#native.subscribeEvents()));
  }

  async close({ signal } = {}) {
    this.#closed = true;
    await later(signal, (token) => this.#native.close(token));
  }

  /** The next batch; `null` once the application itself closed the reader. */
  async #nextUnlessClosed(options) {
    try {
      return await this.next(options);
    } catch (error) {
      if (this.#closed && error instanceof ClosedError) return null;
      throw error;
    }
  }

  batches({ signal, close = true } = {}) {
    return iterate(
      (options) => this.#nextUnlessClosed(options),
      async () => close && this.close(),
      signal,
    );
  }

  [Symbol.asyncIterator]() {
    return this.batches();
  }

  [asyncDispose]() {
    return this.close();
  }
}

/** Reads message by message: named partitions, or those a group assigns to this member. */
class Consumer {
  #native;
  #ready = false;
  #source;

  constructor(native, source) {
    this.#native = native;
    this.#source = source;
  }

  get name() {
    return this.#source.name;
  }

  get streamId() {
    return this.#source.streamId;
  }

  get topicId() {
    return this.#source.topicId;
  }

  get isGroupMember() {
    return this.#source.isGroupMember;
  }

  async init({ signal } = {}) {
    await later(signal, (token) => this.#native.init(token));
    this.#ready = true;
  }

  async next({ signal } = {}) {
    const found = await later(signal, (token) => this.#native.next(token));
    return found === null ? null : received(found);
  }

  async nextBatch({ signal } = {}) {
    const found = await later(signal, (token) => this.#native.nextBatch(token));
    return found === null ? null : polled(found);
  }

  async commit(checkpoint, { signal } = {}) {
    await later(signal, (token) => this.#native.commit(token, checkpoint));
  }

  mark(checkpoint) {
    now(() => this.#native.mark(checkpoint));
  }

  async storeOffset(partitionId, offset, { signal } = {}) {
    await later(signal, (token) => this.#native.storeOffset(token, partitionId, big(offset, 'an offset')));
  }

  async deleteOffset(partitionId, { signal } = {}) {
    await later(signal, (token) => this.#native.deleteOffset(token, partitionId));
  }

  seek(partitionId, to) {
    now(() => this.#native.seek(partitionId, ...start(to)));
  }

  get partitions() {
    return now(() => this.#native.partitions());
  }

  get stopped() {
    return now(() => this.#native.stopped());
  }

  lastConsumedOffset(partitionId) {
    return now(() => this.#native.lastConsumedOffset(partitionId)) ?? undefined;
  }

  lastStoredOffset(partitionId) {
    return now(() => this.#native.lastStoredOffset(partitionId)) ?? undefined;
  }

  events() {
    return new Events(now(() => this.#native.subscribeEvents()));
  }

  async shutdown({ signal } = {}) {
    await later(signal, (token) => this.#native.shutdown(token));
  }

  close(options) {
    return this.shutdown(options);
  }

  async *messages({ signal, close = true } = {}) {
    if (!this.#ready) await this.init({ signal });
    yield* iterate(
      (options) => this.next(options),
      async () => close && this.shutdown(),
      signal,
    );
  }

  [Symbol.asyncIterator]() {
    return this.messages();
  }

  [asyncDispose]() {
    return this.shutdown();
  }
}

module.exports = { Consumer, Events, Reader, asyncDispose };
