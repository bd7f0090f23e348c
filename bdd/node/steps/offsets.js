// Stored offsets and positions.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';

import { DEADLINE } from '../world.js';
import { polled } from './polls.js';

async function storedOffset(world, name, partition) {
  const found = await world.client.offset.get(world.place({ consumer: name, partitionId: Number(partition) }));
  return found?.storedOffset;
}

async function store(name, offset, partition) {
  const place = this.place({ consumer: name, partitionId: Number(partition) });
  await this.try(() => this.client.offset.store({ ...place, offset: BigInt(offset) }));
}

Given(/^the consumer "(.*)" stored the offset (\d+) in partition (\d+)$/, store);
When(/^the consumer "(.*)" stores the offset (\d+) in partition (\d+)$/, store);

When(/^the offset of "(.*)" in partition (\d+) is deleted$/, async function (name, partition) {
  const place = this.place({ consumer: name, partitionId: Number(partition) });
  await this.try(() => this.client.offset.delete(place));
});

async function storePosition(world, name, checkpoint) {
  assert(checkpoint);
  await world.try(() => world.client.offset.storePosition(world.place({ consumer: name, checkpoint })));
}

When(/^the checkpoint of the poll is stored for "(.*)"$/, async function (name) {
  await storePosition(this, name, polled(this).checkpoint());
});

When(/^the checkpoint of message (\d+) of the poll is stored for "(.*)"$/, async function (index, name) {
  await storePosition(this, name, polled(this).checkpointAt(Number(index)));
});

Then(/^the stored offset of "(.*)" in partition (\d+) is (\d+)$/, async function (name, partition, offset) {
  this.expectNoError();
  assert.equal(await storedOffset(this, name, partition), BigInt(offset));
});

Then(/^the stored offset of "(.*)" in partition (\d+) comes to be (\d+)$/, async function (name, partition, offset) {
  this.expectNoError();
  const end = Date.now() + DEADLINE;
  while ((await storedOffset(this, name, partition)) !== BigInt(offset)) assert(Date.now() < end);
});

Then(/^the consumer "(.*)" has no stored offset in partition (\d+)$/, async function (name, partition) {
  this.expectNoError();
  assert.equal(await storedOffset(this, name, partition), undefined);
});
