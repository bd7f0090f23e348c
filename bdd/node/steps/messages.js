// Sending.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';
import { HeaderValue } from 'iggy';

import { Sent } from '../world.js';
import { range } from '../values.js';

function sentTo(world, partition) {
  if (!world.sent.has(partition)) world.sent.set(partition, []);
  return world.sent.get(partition);
}

/** The next messages of a partition, numbered on from those that were sent. */
export function nextMessages(world, partition, count, size = 0) {
  const first = sentTo(world, partition).length;
  return range(first, first + count - 1).map((index) => Sent.numbered(partition, index, size));
}

export async function sendBy(world, client, partition, messages) {
  const batch = messages.map((sent) => sent.message());
  const confirmations = await client.message.send(world.place({ partitioning: { partition }, messages: batch }));
  sentTo(world, partition).push(...messages);
  return confirmations;
}

function send(world, partition, count, size = 0) {
  return sendBy(world, world.client, partition, nextMessages(world, partition, count, size));
}

Given(/^(\d+) messages in partition (\d+)$/, async function (count, partition) {
  await send(this, Number(partition), Number(count));
});

Given(/^(\d+) messages of (\d+) bytes in partition (\d+)$/, async function (count, size, partition) {
  for (let index = 0; index < Number(count); index += 1) await send(this, Number(partition), 1, Number(size));
});

Given(/^(\d+) bytes of messages in partition (\d+)$/, async function (size, partition) {
  for (let sent = 0; sent < Number(size); sent += 100_000) await send(this, Number(partition), 10, 10_000);
});

async function sendToEach(count) {
  const topic = await this.client.topic.get(this.place());
  for (const partition of range(0, topic.partitionsCount - 1)) await send(this, partition, Number(count));
}

Given(/^(\d+) messages in each partition$/, sendToEach);
When(/^(\d+) messages are sent to each partition$/, sendToEach);

When(/^(\d+) messages are sent to partition (\d+)(?: in one batch)?$/, async function (count, partition) {
  const found = await this.try(() => send(this, Number(partition), Number(count)));
  this.confirmation = found?.[0];
});

When(/^a message of (\d+) bytes is sent to partition (\d+)$/, async function (size, partition) {
  await this.try(() => send(this, Number(partition), 1, Number(size)));
});

async function sendWith(world, partitioning, count) {
  const messages = range(0, count - 1).map((index) => Sent.numbered(0, index).message());
  await world.try(() => world.client.message.send(world.place({ partitioning, messages })));
}

When(/^(\d+) messages are sent balanced, one at a time$/, async function (count) {
  for (let index = 0; index < Number(count); index += 1) await sendWith(this, 'balanced', 1);
});

When(/^(\d+) messages are sent with the key "(.*)"$/, async function (count, key) {
  await sendWith(this, { key }, Number(count));
});

When(/^(\d+) messages are sent with the key number (\d+)$/, async function (count, key) {
  await sendWith(this, { key: BigInt(key) }, Number(count));
});

/** A header of a kind from its text. */
function header(kind, value) {
  if (kind === 'raw') return new HeaderValue(kind, Buffer.from(value));
  if (kind === 'string') return new HeaderValue(kind, value);
  if (kind === 'bool') return new HeaderValue(kind, value === 'true');
  if (/^(float|u?int(8|16|32)$)/.test(kind)) return new HeaderValue(kind, Number(value));
  return new HeaderValue(kind, BigInt(value));
}

async function sendWithHeaders(world, headers) {
  const [plain] = nextMessages(world, 0, 1);
  await world.try(() => sendBy(world, world.client, 0, [new Sent(plain.id, plain.payload, new Map(headers()))]));
}

When(
  /^a message with the header "(.*)" of the kind "(.*)" and the value "(.*)" is sent$/,
  async function (key, kind, value) {
    await sendWithHeaders(this, () => [[key, header(kind, value)]]);
  },
);

When(/^a message with the header "(.*)" of (\d+) bytes is sent$/, async function (key, size) {
  await sendWithHeaders(this, () => [[key, new HeaderValue('string', 'x'.repeat(Number(size)))]]);
});

When(/^a message with (\d+) headers is sent$/, async function (count) {
  const numbers = range(0, Number(count) - 1);
  await sendWithHeaders(this, () => numbers.map((index) => [`header-${index}`, new HeaderValue('uint32', index)]));
});

Then(
  /^the header "(.*)" of message (\d+) has the kind "(.*)" and the value "(.*)"$/,
  function (key, index, kind, value) {
    this.expectNoError();
    assert.deepEqual(this.polled.at(Number(index)).headers.get(key), header(kind, value));
  },
);

Then(/^the confirmation names partition (\d+) and the base offset (\d+)$/, function (partition, offset) {
  this.expectNoError();
  const { partitionId, baseOffset } = this.confirmation;
  assert.deepEqual([partitionId, baseOffset], [Number(partition), BigInt(offset)]);
});

When(/^(\d+) messages are being sent to partition (\d+)$/, function (count, partition) {
  this.sending = send(this, Number(partition), Number(count));
});

Then('the messages being sent arrive once', async function () {
  const [{ partitionId }] = await this.sending;
  const topic = await this.client.topic.get(this.place());
  assert.equal(topic.partitions[partitionId].messagesCount, BigInt(this.sent.get(partitionId).length));
});
