'use strict';

const { asyncDispose } = require('./reading.js');
const { later } = require('./call.js');
const { json, partitioning: partitioningOf } = require('./options.js');
const { outgoing } = require('./message.js');

/** Sends messages to one topic. */
class Producer {
  #native;

  #target;

  constructor(native, target) {
    this.#native = native;
    this.#target = target;
  }

  get streamId() {
    return this.#target.streamId;
  }

  get topicId() {
    return this.#target.topicId;
  }

  async init({ signal } = {}) {
    await later(signal, (token) => this.#native.init(token));
  }

  send(messages, { partitioning, streamId, topicId, signal } = {}) {
    return later(signal, (token) => {
      const how = partitioning === undefined ? undefined : json(partitioningOf(partitioning));
      return this.#native.send(token, outgoing(messages), how, streamId, topicId);
    });
  }

  async shutdown({ signal } = {}) {
    await later(signal, (token) => this.#native.shutdown(token));
  }

  close(options) {
    return this.shutdown(options);
  }

  [asyncDispose]() {
    return this.shutdown();
  }
}

module.exports = { Producer };
