// Polling.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';
import { CancelledCallError } from 'iggy';

import { duration, range, start } from '../values.js';

/** What a poll of a scenario asks for unless it says more. */
export const PLENTY = { count: 10_000, maxBytes: 16 << 20 };

const FROM = '(the [a-z ]+?|offset \\d+)';
const from = (text) => new RegExp(`^${text.replace('FROM', FROM)}$`);

export async function pollBy(world, client, partition, consumer, pollingStrategy, options) {
  const place = world.place({ partitionId: partition, consumer, pollingStrategy, options });
  const found = await world.try(() => client.message.poll(place));
  if (found) [world.polled, world.polledPartition] = [found, partition];
}

function poll(world, partition, at, options, consumer = 'reader') {
  return pollBy(world, world.client, Number(partition), consumer, start(at, world.notedTime), options);
}

export function polled(world) {
  world.expectNoError();
  assert(world.polled);
  return world.polled;
}

function check(found, first, last) {
  const offsets = found.messages.map((message) => Number(message.offset));
  assert.deepEqual(offsets, range(Number(first), Number(last)));
}

When(from('partition (\\d+) is polled from FROM'), async function (partition, at) {
  await poll(this, partition, at, PLENTY);
});

When(from('partition (\\d+) is polled from FROM with a count of (\\d+)'), async function (partition, at, count) {
  await poll(this, partition, at, { ...PLENTY, count: Number(count) });
});

async function pollByName(partition, name, at, count) {
  await poll(this, partition, at, { ...PLENTY, count: Number(count) }, name);
}

Given(from('partition (\\d+) was polled by "(.*)" from FROM with a count of (\\d+)'), pollByName);
When(from('partition (\\d+) is polled by "(.*)" from FROM with a count of (\\d+)'), pollByName);

When(
  from('partition (\\d+) is polled by "(.*)" from FROM with a count of (\\d+) and a commit on read'),
  async function (partition, name, at, count) {
    await poll(this, partition, at, { ...PLENTY, count: Number(count), commit: 'onRead' }, name);
  },
);

When(/^partition (\d+) is polled by "(.*)" with automatic commits$/, async function (partition, name) {
  await poll(this, partition, 'the next message', { ...PLENTY, commit: 'auto' }, name);
});

When(/^the same partition is polled from its continuation with a count of (\d+)$/, async function (count) {
  const continuation = polled(this).continuation();
  const options = { ...PLENTY, count: Number(count) };
  await pollBy(this, this.client, this.polledPartition, 'reader', continuation, options);
});

When(from('partition (\\d+) is polled from FROM with a wait of (.*)'), async function (partition, at, wait) {
  await poll(this, partition, at, { ...PLENTY, maxWait: duration(wait) });
});

When(
  from('partition (\\d+) is polled from FROM for at least (\\d+) messages with a wait of (.*)'),
  async function (partition, at, least, wait) {
    await poll(this, partition, at, { ...PLENTY, maxWait: duration(wait), minCount: Number(least) });
  },
);

When(from('partition (\\d+) is polled from FROM with room for (\\d+) bytes'), async function (partition, at, room) {
  await poll(this, partition, at, { ...PLENTY, maxBytes: Number(room) });
});

const LIMITS = '(a count of 0|at least \\d+ messages and a count of \\d+|a wait of \\d+ s|room for \\d+ bytes)';

When(new RegExp(`^partition (\\d+) is polled with ${LIMITS}$`), async function (partition, limits) {
  const [first, second] = limits.match(/\d+/g).map(Number);
  const chosen = { 'a c': { count: first }, 'at ': { minCount: first, count: second } };
  const others = { 'a w': { maxWait: first * 1000 }, roo: { maxBytes: first } };
  await poll(this, partition, 'the first message', { ...PLENTY, ...{ ...chosen, ...others }[limits.slice(0, 3)] });
});

Given('the time is noted', async function () {
  // The server's clock, not ours: the time of the newest message, and a microsecond more.
  await poll(this, 0, 'the last messages', { ...PLENTY, count: 1 });
  this.notedTime = polled(this).at(0).timestamp + 1n;
});

function startWaiting(world, partition, options, consumer = 'reader') {
  const controller = new AbortController();
  const { signal } = controller;
  const place = { partitionId: Number(partition), consumer, pollingStrategy: 'first', options, signal };
  const poll = world.client.message.poll(world.place(place));
  // Whoever waits for it sees its error; until then it is nobody's.
  poll.catch(() => {});
  world.waiting = { partition: Number(partition), poll, controller };
}

Given(/^a poll of partition (\d+) is waiting for up to (\d+ s)$/, function (partition, wait) {
  startWaiting(this, partition, { ...PLENTY, maxWait: duration(wait) });
});

Given(
  /^a poll of partition (\d+) is waiting for up to (\d+ s) for at least (\d+) messages$/,
  function (partition, wait, least) {
    startWaiting(this, partition, { ...PLENTY, maxWait: duration(wait), minCount: Number(least) });
  },
);

Given(
  /^a poll of partition (\d+) by "(.*)" that stores what it reads is waiting for up to (\d+ s)$/,
  function (partition, name, wait) {
    startWaiting(this, partition, { ...PLENTY, maxWait: duration(wait), commit: 'onRead' }, name);
  },
);

When('the waiting poll is given up', async function () {
  const { poll, controller } = this.waiting;
  this.waiting = undefined;
  controller.abort();
  await assert.rejects(poll, CancelledCallError);
});

Then(/^the waiting poll returns the messages (\d+) to (\d+)$/, async function (first, last) {
  this.expectNoError();
  const { partition, poll } = this.waiting;
  this.waiting = undefined;
  this.polledPartition = partition;
  this.polled = await poll;
  check(this.polled, first, last);
});

Then(/^the poll returns the messages (\d+) to (\d+)$/, function (first, last) {
  check(polled(this), first, last);
});

Then('the poll returns no messages', function () {
  assert.equal(polled(this).length, 0);
});

Then(/^the poll returns some of the messages from (\d+) on$/, function (first) {
  const found = polled(this);
  assert(found.length > 0 && found.length < this.sent.get(this.polledPartition).length);
  check(found, first, Number(first) + found.length - 1);
});

Then(/^the poll returns messages from later than offset (\d+)$/, function (offset) {
  assert(polled(this).at(0).offset > BigInt(offset));
});

Then('every message has the payload, the id and the headers it was sent with', function () {
  const found = polled(this);
  assert(found.length > 0);
  for (const message of found) this.sent.get(this.polledPartition)[Number(message.offset)].check(message);
});

Then('no payload is readable', function () {
  for (const message of polled(this)) {
    const { payload } = this.sent.get(this.polledPartition)[Number(message.offset)];
    assert(!message.payload.includes(payload.subarray(0, 8)));
  }
});
