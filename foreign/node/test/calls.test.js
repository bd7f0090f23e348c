'use strict';

// Calls that end early, run side by side, or meet a closed client.
//
// Numbers are those of the threads in which users of other libraries reported the fault: see the comments.

const assert = require('node:assert/strict');
const { setImmediate: turn, setTimeout: pause } = require('node:timers/promises');
const test = require('node:test');

const iggy = require('..');
const native = require('../lib/native.js');
const { later } = require('../lib/call.js');
const { clean, place, startNode } = require('./programs/node.js');

const CANCELS = Number(process.env.IGGY_TEST_CANCELS ?? 1000);
const POLLS = Number(process.env.IGGY_TEST_POLLS ?? 500);
/** Seconds without a server. */
const AWAY = Number(process.env.IGGY_TEST_AWAY ?? 2);
const FIRST = { partitionId: 0, consumer: 'c', pollingStrategy: 'first' };
const LONG = { ...FIRST, options: { maxWait: 60_000 } };

let node;
let client;
const uncaught = [];
process.on('unhandledRejection', (error) => uncaught.push(error));

test.before(async () => {
  node = await startNode();
});
test.after(async () => {
  await node.end();
  assert.deepEqual(uncaught, []);
});
test.beforeEach(async () => {
  await clean(node);
  client = new iggy.Client(node.address);
  await client.connect();
});
test.afterEach(async () => {
  await client.shutdown();
});

const send = (messages, partition = 0) => client.message.send(place({ partitioning: { partition }, messages }));

test('given calls given up at random points when called again should work and lose nothing', async () => {
  // valkey-glide#5442
  let sent = 0n;
  for (let round = 0; round < CANCELS / 50; round += 1) {
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [client.message.poll(place({ ...LONG, pollingStrategy: { offset: 1_000_000 }, signal }))];
    for (let index = 0; index < 49; index += 1) calls.push(client.system.ping({ signal }));
    const settled = Promise.allSettled(calls);
    await pause(Math.random() * 5);
    controller.abort();
    for (const { status, reason } of await settled) {
      if (status === 'rejected') assert(reason instanceof iggy.CancelledCallError, String(reason));
    }
    const [{ baseOffset }] = await send(['kept']);
    assert.equal(baseOffset, sent);
    sent += 1n;
  }
  const polled = await client.message.poll(place(FIRST));
  assert.equal(BigInt(polled.length), sent);
});

test('given reads given up at random points when read on should lose and repeat nothing', async () => {
  // rust-rdkafka#490
  const reader = await client.message.reader(place({ consumer: 'r', partitions: [0, 1] }));
  const consumer = client.consumer(place({ name: 'c', partitions: [0], pollingStrategy: 'first' }));
  await consumer.init();
  const read = [];
  const received = [];
  const attempt = async (call, into) => {
    try {
      into.push(...(await call({ signal: AbortSignal.timeout(Math.floor(Math.random() * 5)) })));
    } catch (error) {
      if (!(error instanceof iggy.CancelledCallError)) throw error;
    }
  };
  const batch = async (options) => [...(await reader.next(options))].map((message) => message.offset);
  const one = async (options) => [(await consumer.next(options)).message.offset];
  const many = async (options) => [...(await consumer.nextBatch(options))].map((message) => message.offset);
  for (let index = 0; index < 100; index += 1) {
    await send(['one']);
    await attempt(batch, read);
    await attempt(index % 2 ? one : many, received);
  }
  while (read.length < 100) read.push(...(await batch()));
  while (received.length < 100) received.push(...(await one()));
  const all = Array.from({ length: 100 }, (_, index) => BigInt(index));
  assert.deepEqual(read, all);
  assert.deepEqual(received, all);
  await reader.close();
  await consumer.shutdown();
});

/** Gives a read of a consumer up when the client has handed its result out and this thread has not seen it yet. */
async function givenUpOnArrival(consumer, read) {
  const controller = new AbortController();
  const reading = read({ signal: controller.signal });
  // Keeps the thread, so that nothing can be settled meanwhile.
  while (consumer.lastConsumedOffset(0) === undefined);
  controller.abort();
  await assert.rejects(reading, iggy.CancelledCallError);
}

test('given a read given up on arrival when sought should not come again, and otherwise should', async () => {
  await send(['0', '1', '2', '3']);
  const consumer = client.consumer(place({ name: 'c', partitions: [0], pollingStrategy: 'first' }));
  await consumer.init();
  for (const read of [(options) => consumer.next(options), (options) => consumer.nextBatch(options)]) {
    await givenUpOnArrival(consumer, read);
    assert.equal((await consumer.nextBatch()).at(0).offset, 0n);
    consumer.seek(0, 'first');
    await givenUpOnArrival(consumer, read);
    consumer.seek(0, { offset: 3 });
    assert.equal((await consumer.next()).message.offset, 3n);
    consumer.seek(0, 'first');
  }
  await consumer.shutdown();
});

test('given a signal that is aborted already when called should send nothing', async () => {
  const reason = new Error('not any more');
  const signal = AbortSignal.abort(reason);
  await assert.rejects(client.message.send(place({ messages: ['never'], signal })), (error) => {
    assert(error instanceof iggy.CancelledCallError);
    assert.equal(error.cause, reason);
    assert.equal(error.outcome, 'not_applied');
    return true;
  });
  assert.equal((await client.topic.get(place())).messagesCount, 0n);
});

test('given a signal with a handler of its own when a call uses it should call that too', async () => {
  const controller = new AbortController();
  let called = 0;
  controller.signal.onabort = () => (called += 1);
  const calls = Array.from({ length: 20 }, () => client.message.poll(place({ ...LONG, signal: controller.signal })));
  const settled = Promise.allSettled(calls);
  await turn();
  controller.abort();
  for (const { reason } of await settled) assert(reason instanceof iggy.CancelledCallError);
  assert.equal(called, 1);
});

test('given a call that panics inside when awaited should reject and leave the client alive', async () => {
  // napi-rs#2047
  await assert.rejects(later(undefined, (token) => native.panics(token)), (error) => {
    assert(error instanceof iggy.InternalError);
    assert.match(error.message, /on purpose/);
    return true;
  });
  await client.system.ping();
});

test('given a partitioner when it answers, throws or is asynchronous should choose or fail the send alone', async () => {
  const by = (partitioner) => client.producer(place({ partitioner }));
  const chosen = by((stream, topic, messages) => {
    assert.deepEqual([stream, topic, messages[0].text()], ['orders', 'created', 'one']);
    return 1;
  });
  await chosen.init();
  assert.equal((await chosen.send(['one']))[0].partitionId, 1);
  const wrong = [
    [() => { throw new Error('no partition'); }, /no partition/],
    [async () => 1, /asynchronous/],
    [() => 1.5, /chose 1.5/],
  ];
  for (const [partitioner, pattern] of wrong) {
    const producer = by(partitioner);
    await producer.init();
    await assert.rejects(producer.send(['one']), pattern);
  }
  await client.system.ping();
});

test('given a client closed in any state when used should say so however often', async () => {
  // kafkajs#767, confluent-kafka-python#255
  const never = new iggy.Client(node.address);
  await never.shutdown();
  const connecting = new iggy.Client('iggy://iggy:iggy@127.0.0.1:1');
  const attempt = connecting.connect();
  const refused = assert.rejects(attempt, iggy.IggyError);
  await connecting.shutdown();
  await refused;
  const waiting = Array.from({ length: 20 }, () => client.message.poll(place(LONG)));
  const settled = Promise.allSettled(waiting);
  await turn();
  await Promise.all([client.shutdown(), client.shutdown()]);
  await client.shutdown();
  for (const { status, reason } of await settled) {
    if (status === 'rejected') assert(reason instanceof iggy.ClosedError, String(reason));
  }
  for (const closed of [never, connecting, client]) {
    for (const call of [() => closed.system.ping(), () => closed.stream.list(), () => closed.connect()]) {
      await assert.rejects(call, iggy.ClosedError);
    }
  }
});

test('given a loop that breaks off when it ends should leave its group at once', async () => {
  // swift-kafka-client#234
  await send(['one']);
  for await (const { message } of client.consumerGroup(place({ name: 'billing' }))) {
    assert.equal(message.text(), 'one');
    break;
  }
  const group = await client.group.get(place({ groupId: 'billing' }));
  assert.equal(group.membersCount, 0);
});

test('given a reader that waits when closed from elsewhere should end', async () => {
  const reader = await client.message.reader(place({ consumer: 'r', partitions: [0] }));
  const waiting = assert.rejects(reader.next(), iggy.ClosedError);
  await turn();
  await reader.close();
  await reader.close();
  await waiting;
});

test('given a server that is away when calls wait should reject nothing that nobody awaits', async () => {
  // kafkajs#702
  const reader = await client.message.reader(place({ consumer: 'r', partitions: [0] }));
  const producer = client.producer(place({ background: true }));
  await producer.init();
  const events = client.events();
  const seen = [];
  const watching = (async () => {
    for await (const { event } of events) seen.push(event);
  })();
  await node.tell('stop');
  const sending = producer.send(['meanwhile']);
  const next = reader.next();
  await pause(AWAY * 1000);
  await node.tell('start');
  await sending;
  assert.equal((await next).at(0).text(), 'meanwhile');
  events.close();
  await watching;
  assert(seen.includes('disconnected') && seen.includes('connected'), String(seen));
  await producer.shutdown();
  await reader.close();
});

test('given numbers above 2^53 when they cross should keep every digit', async () => {
  const id = (1n << 128n) - 1n;
  const originTimestamp = (1n << 63n) + 1n;
  const large = new iggy.HeaderValue('uint128', id);
  await send([new iggy.Message('one', { id, originTimestamp, headers: { large, small: 1n } })]);
  const [message] = (await client.message.poll(place(FIRST))).messages;
  assert.equal(message.id, id);
  assert.equal(message.originTimestamp, originTimestamp);
  assert.deepEqual(message.headers.get('large'), large);
  assert.deepEqual(message.headers.get('small'), new iggy.HeaderValue('int64', 1n));
  const checkpoint = new iggy.Checkpoint(0, (1n << 64n) - 1n, 1n);
  assert.equal(checkpoint.offset, (1n << 64n) - 1n);
  assert.throws(() => new iggy.Checkpoint(0, 1n << 64n, 1n), /outside/);
});

test('given a large payload when polled again and again should keep its memory', async () => {
  // valkey-glide#6740
  await send([Buffer.alloc(1 << 20, 'x')]);
  let warm;
  for (let index = 0; index < POLLS; index += 1) {
    const polled = await client.message.poll(place({ ...FIRST, options: { maxBytes: 2 << 20 } }));
    assert.equal(polled.at(0).payload.length, 1 << 20);
    if (index === Math.floor(POLLS / 5)) warm = process.memoryUsage.rss();
  }
  const grown = process.memoryUsage.rss() - warm;
  assert(grown < 128 << 20, `${grown} bytes more`);
});
