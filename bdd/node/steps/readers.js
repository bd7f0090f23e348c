// The partition reader.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';
import { IggyError } from 'iggy';

import { range, start } from '../values.js';
import { limit } from '../world.js';
import { topicDetails } from './resources.js';

const WHICH = 'a reader of the partitions (\\d+ (?:to|and) \\d+)';

/** `0 to 3`, `0 and 9`. */
function partitionsOf(text) {
  const [first, last] = text.match(/\d+/g).map(Number);
  return text.includes(' to ') ? range(first, last) : [first, last];
}

async function openReader(world, which, consumer = 'reader', count = 1000) {
  const options = { count, maxWait: 1000 };
  const settings = world.place({ consumer, partitions: partitionsOf(which), options });
  world.reader = await world.client.message.reader(settings);
}

Given(new RegExp(`^${WHICH}$`), async function (which) {
  await openReader(this, which);
});

Given(new RegExp(`^${WHICH} named "(.*)"$`), async function (which, name) {
  await openReader(this, which, name);
});

Given(new RegExp(`^${WHICH} with a count of (\\d+)$`), async function (which, count) {
  await openReader(this, which, 'reader', Number(count));
});

/** One more batch, or one more report. */
async function readOnce(world) {
  let batch;
  try {
    batch = await world.reader.next({ signal: limit() });
  } catch (error) {
    if (!(error instanceof IggyError) || error.partitionId === undefined) throw error;
    world.reported.push(error);
    return;
  }
  world.checkpoints.push(batch.checkpoint());
  for (const { offset, payload } of batch) {
    world.read.push({ partition: batch.partitionId, offset: Number(offset), payload });
  }
}

async function hasRead(count) {
  while (this.read.length < Number(count)) await readOnce(this);
}

// Given and When steps have one text here.
When(/^the reader has read (\d+) messages$/, hasRead);

When(/^the reader has read (\d+) more messages$/, async function (count) {
  await hasRead.call(this, this.read.length + Number(count));
});

function checkPartition(world, partition, count) {
  const found = world.read.filter((read) => read.partition === partition);
  assert.deepEqual(
    found.map((read) => read.offset),
    range(0, count - 1),
  );
  const sent = world.sent.get(partition).slice(0, count);
  assert.deepEqual(
    found.map((read) => read.payload),
    sent.map(({ payload }) => payload),
  );
}

Then(/^it read (\d+) messages of partition (\d+)$/, function (count, partition) {
  checkPartition(this, Number(partition), Number(count));
});

Then(/^it read (\d+) messages of each partition in order$/, async function (count) {
  const { partitionsCount } = await topicDetails(this);
  for (const partition of range(0, partitionsCount - 1)) checkPartition(this, partition, Number(count));
});

Then(/^the last (\d+) messages are (\d+) to (\d+) of partition (\d+)$/, function (count, first, last, partition) {
  const found = this.read.slice(-Number(count)).map((read) => [read.partition, read.offset]);
  assert.deepEqual(
    found,
    range(Number(first), Number(last)).map((offset) => [Number(partition), offset]),
  );
});

When('the reader commits what it read', async function () {
  for (const checkpoint of this.checkpoints) await this.try(() => this.reader.commit(checkpoint));
});

When(/^the reader seeks partition (\d+) to (offset \d+|the [a-z ]+)$/, function (partition, to) {
  this.reader.seek(Number(partition), start(to, this.notedTime));
});

Then(/^the reader reported "(\w+)" for partition (\d+)$/, async function (code, partition) {
  while (this.reported.length === 0) await readOnce(this);
  const [{ partitionId, name }] = this.reported;
  assert.deepEqual([partitionId, name], [Number(partition), code]);
});

Then(/^the reader stops partition (\d+) with "(\w+)"$/, async function (partition, code) {
  const ofPartition = () => this.reported.filter((error) => error.partitionId === Number(partition));
  while (ofPartition().length === 0) await readOnce(this);
  assert.equal(ofPartition().at(-1).name, code);
  assert(this.reader.stopped.includes(Number(partition)));
});

When('the reader is closed', async function () {
  await this.try(() => this.reader.close());
});

Then(/^reading fails with the class "(\w+)"$/, async function (name) {
  await assert.rejects(this.reader.next(), (error) => error instanceof IggyError && error.className === name);
});
