'use strict';

const native = require('./native.js');
const { fromFailure, invalid } = require('./errors.js');
const { later, now } = require('./call.js');
const { messages: messagesOf, outgoing, polled } = require('./message.js');
const { ELSEWHERE, GROUPS } = require('./operations.js');
const options = require('./options.js');
const { Producer } = require('./producer.js');
const { Consumer, Events, Reader, asyncDispose } = require('./reading.js');

const { big, json, members, micros, start } = options;

/** Who reads, as the native module takes it. */
function reader(given) {
  const { kind, id } = options.consumer(given);
  return [kind, id];
}

/** A partitioner as the native module calls it: it never throws, but says why there is no partition. */
function chooser(partitioner) {
  if (partitioner === undefined) return undefined;
  if (typeof partitioner !== 'function') throw invalid('a partitioner is a function');
  return (stream, topic, columns) => {
    try {
      const chosen = partitioner(stream, topic, messagesOf(columns));
      if (typeof chosen === 'number') return chosen;
      return `it returned ${typeof chosen === 'object' ? 'an object' : String(chosen)} instead of a number; it cannot be asynchronous`;
    } catch (thrown) {
      return String(thrown?.message ?? thrown);
    }
  };
}

/** Who hears of background sends that failed. What it throws is the application's to see. */
function hearer(onError) {
  if (onError === undefined) return undefined;
  if (typeof onError !== 'function') throw invalid('onError is a function');
  return (text) => {
    try {
      onError(fromFailure(text));
    } catch (thrown) {
      process.emitWarning(`the handler of failed sends threw: ${thrown?.stack ?? thrown}`, 'IggyWarning');
    }
  };
}

/** A client of the server. */
class Client {
  #native;

  constructor(target = {}, more = {}) {
    const given = typeof target === 'string' ? { ...more, connectionString: target } : target;
    const { partitioner, ...settings } = given ?? {};
    const text = json(members('settings of a client', settings, options.CLIENT));
    this.#native = now(() => new native.Client(text, chooser(partitioner)));
    for (const [group, operations] of Object.entries(GROUPS)) {
      const made = {};
      for (const [name, operation] of Object.entries(operations)) {
        made[name] = (args = {}) => this.#invoke(operation, args);
      }
      Object.defineProperty(this, group, { value: made, enumerable: true });
    }
    Object.defineProperty(this, 'raw', { value: {}, enumerable: true });
    Object.assign(this.message, {
      send: (args) => this.#send(args),
      sendIdempotent: (args) => this.#sendIdempotent(args),
      poll: (args) => this.#poll(args),
      reader: (args) => this.#reader(args),
    });
    Object.assign(this.offset, {
      storePosition: (args) => this.#position('storeConsumerPosition', args),
      deletePosition: (args) => this.#position('deleteConsumerPosition', args),
    });
    this.raw.send = (args) => this.#raw(args);
    for (const group of [...Object.keys(GROUPS), 'raw']) Object.freeze(this[group]);
  }

  async #invoke({ operation, takes = {}, before, after }, { signal, ...args }) {
    const found = await later(signal, (token) => {
      const given = members(`arguments of ${operation}`, before ? before(args) : args, takes);
      return this.#native.invoke(token, operation, json(given));
    });
    return after ? after(found) : found;
  }

  async connect({ signal } = {}) {
    await this.#invoke({ operation: 'connect' }, { signal });
  }

  async disconnect({ signal } = {}) {
    await this.#invoke({ operation: 'disconnect' }, { signal });
  }

  async shutdown({ signal } = {}) {
    await this.#invoke({ operation: 'shutdown' }, { signal });
  }

  close(args) {
    return this.shutdown(args);
  }

  [asyncDispose]() {
    return this.shutdown();
  }

  events() {
    return new Events(now(() => this.#native.subscribeEvents()));
  }

  #send({ streamId, topicId, partitioning = 'balanced', messages, signal }) {
    return later(signal, (token) => {
      const how = json(options.partitioning(partitioning));
      return this.#native.sendMessages(token, streamId, topicId, how, outgoing(messages));
    });
  }

  #sendIdempotent({ streamId, topicId, partitionId, messages, producerId, epoch, baseSequence, signal }) {
    return later(signal, (token) =>
      this.#native.sendProducerMessages(
        token,
        streamId,
        topicId,
        partitionId,
        big(producerId, 'the producer id'),
        epoch,
        baseSequence,
        outgoing(messages),
      ),
    );
  }

  async #poll({ streamId, topicId, partitionId, consumer, pollingStrategy = 'next', options: limits = {}, signal }) {
    const found = await later(signal, (token) =>
      this.#native.pollMessages(
        token,
        streamId,
        topicId,
        partitionId,
        ...reader(consumer),
        ...start(pollingStrategy),
        json(options.pollOptions(limits)),
      ),
    );
    return polled(found);
  }

  async #position(call, { consumer, streamId, topicId, checkpoint, signal }) {
    await later(signal, (token) => this.#native[call](token, ...reader(consumer), streamId, topicId, checkpoint));
  }

  #raw({ code, payload = Buffer.alloc(0), replicaId, deadline, signal }) {
    return later(signal, (token) => {
      const limit = deadline === undefined ? undefined : micros(deadline, 'deadline');
      return this.#native.sendBinaryRequest(token, code, payload, replicaId, limit);
    });
  }

  producer({ streamId, topicId, partitioner, onError, ...settings }) {
    const text = json(members('settings of a producer', settings, options.PRODUCER));
    const [choose, hear] = [chooser(partitioner), hearer(onError)];
    const native = now(() => this.#native.producer(streamId, topicId, text, choose, hear));
    return new Producer(native, { streamId, topicId });
  }

  consumer({ name, streamId, topicId, ...settings }) {
    const text = json(members('settings of a consumer', settings, options.OWN_CONSUMER));
    const native = now(() => this.#native.consumer(name, streamId, topicId, false, text));
    return new Consumer(native, { name, streamId, topicId, isGroupMember: false });
  }

  consumerGroup({ name, streamId, topicId, ...settings }) {
    const text = json(members('settings of a consumer group', settings, options.GROUP_CONSUMER));
    const native = now(() => this.#native.consumer(name, streamId, topicId, true, text));
    return new Consumer(native, { name, streamId, topicId, isGroupMember: true });
  }

  async #reader({ streamId, topicId, consumer, signal, ...settings }) {
    const made = await later(signal, (token) => {
      const text = json(members('settings of a reader', settings, options.READER));
      return this.#native.reader(token, streamId, topicId, ...reader(consumer), text);
    });
    return new Reader(made);
  }

  /** Where each operation of the core is. */
  static operations() {
    const found = { ...ELSEWHERE };
    for (const [group, operations] of Object.entries(GROUPS)) {
      for (const [name, { operation }] of Object.entries(operations)) found[operation] = `${group}.${name}`;
    }
    return found;
  }
}

module.exports = { Client };
