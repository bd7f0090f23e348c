// Consumers and members of consumer groups.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';

import { range } from '../values.js';
import { DEADLINE, Receiver } from '../world.js';

const THE_CONSUMER = 'the consumer';

function receiver(world, name) {
  world.expectNoError();
  const found = world.consumers.get(name);
  assert(found, name);
  return found;
}

async function consume(world, name, consumer) {
  const ready = await world.try(async () => {
    await consumer.init();
    return true;
  });
  if (ready) world.consumers.set(name, new Receiver(consumer));
}

async function commitAll(world, name) {
  const found = receiver(world, name);
  for (const message of found.lastOfEach().values()) {
    await world.try(() => found.consumer.commit(message.checkpoint()));
  }
}

async function closeConsumer(world, name) {
  const { consumer } = receiver(world, name);
  world.consumers.delete(name);
  await world.try(() => consumer.shutdown());
}

function waiting(commit) {
  return { maxWait: 1000, commit };
}

Given(
  /^a consumer "(.*)" of partition (\d+) with (manual commits|commits on read|commits after every \d+ messages)$/,
  async function (name, partition, commits) {
    let policy = commits === 'manual commits' ? 'manual' : 'onRead';
    const every = /\d+/.exec(commits);
    if (every) policy = { auto: { interval: 0, every: Number(every[0]) } };
    const settings = { name, partitions: [Number(partition)], pollOptions: waiting(policy) };
    await consume(this, THE_CONSUMER, this.client.consumer(this.place(settings)));
  },
);

When(/^the consumer receives (\d+) messages$/, async function (count) {
  await receiver(this, THE_CONSUMER).receive(Number(count));
});

Given(/^the consumer received (\d+) messages and committed the last of them$/, async function (count) {
  await receiver(this, THE_CONSUMER).receive(Number(count));
  await commitAll(this, THE_CONSUMER);
});

When('the consumer commits the last message it received', async function () {
  await commitAll(this, THE_CONSUMER);
});

async function theConsumerCloses() {
  await closeConsumer(this, THE_CONSUMER);
}

Given('the consumer was closed', theConsumerCloses);
When('the consumer is closed', theConsumerCloses);

Then(/^the consumer received the messages (\d+) to (\d+)$/, function (first, last) {
  const found = receiver(this, THE_CONSUMER).received.map((each) => Number(each.message.offset));
  assert.deepEqual(found, range(Number(first), Number(last)));
});

Given(/^the member "(.*)" of the group "(.*)"$/, async function (name, group) {
  this.group = group;
  // A member is a client of its own, as it would be in a program of its own.
  const client = await this.connect('iggy:iggy');
  this.clients.set(name, client);
  await consume(this, name, client.consumerGroup(this.place({ name: group, pollOptions: waiting() })));
});

When(/^a member of the group "(.*)" joins without creating it$/, async function (group) {
  const made = this.client.consumerGroup(this.place({ name: group, createConsumerGroup: false }));
  await consume(this, 'nobody', made);
});

const inOrder = (numbers) => numbers.toSorted((left, right) => left - right);
const byText = (lists) => lists.map(inOrder).map(String).toSorted();

/** Partitions by owner as the members see it. */
function owned(world) {
  return [...world.consumers.values()].map((found) => found.consumer.partitions);
}

/** Whether the members and the node agree, and every partition has its owner. */
async function hasSettled(world) {
  const found = await world.client.group.get(world.place({ groupId: world.group }));
  const byNode = found.members.map((member) => member.partitions);
  const agreed = byText(byNode).join() === byText(owned(world)).join() && byNode.length === owned(world).length;
  return agreed && byNode.flat().length === found.partitionsCount;
}

When('the members have settled', async function () {
  this.expectNoError();
  const end = Date.now() + DEADLINE;
  while (!(await hasSettled(this))) {
    assert(Date.now() < end, 'the members did not settle');
    for (const found of this.consumers.values()) await found.glance();
  }
});

Given(
  /^a process that is a member of the group "([^"]*)" of the topic "([^"]*)" in the stream "([^"]*)"$/,
  async function (group, topic, stream) {
    await this.node.tell(`member ${stream} ${topic} ${group}`);
  },
);

When('that process is killed', async function () {
  await this.node.tell('kill-member');
});

Then(/^"([^"]*)" owns (\d+) partitions$/, function (name, count) {
  assert.equal(receiver(this, name).consumer.partitions.length, Number(count));
});

Then(/^"([^"]*)" and "([^"]*)" own (\d+) partitions each$/, function (first, second, count) {
  for (const name of [first, second]) assert.equal(receiver(this, name).consumer.partitions.length, Number(count));
});

Then('no partition has two owners', function () {
  const every = owned(this).flat();
  assert.equal(every.length, new Set(every).size);
});

// Given and When steps have one set of texts here.
async function memberReceives(name, count) {
  await receiver(this, name).receive(Number(count));
}

Given(/^"([^"]*)" received (\d+) messages$/, memberReceives);
When(/^"([^"]*)" receives (\d+) messages$/, memberReceives);

Given(/^"([^"]*)" received (\d+) messages and committed them$/, async function (name, count) {
  await receiver(this, name).receive(Number(count));
  await commitAll(this, name);
});

async function memberLeaves(name) {
  await closeConsumer(this, name);
}

Given(/^"([^"]*)" left$/, memberLeaves);
When(/^"([^"]*)" leaves$/, memberLeaves);

When(/^the client of "(.*)" signs out$/, async function (name) {
  this.consumers.delete(name);
  await this.try(() => this.clients.get(name).session.logout());
});

/** Every partition was read from its start, in order, without a hole and nothing twice, whoever read it. */
function checkReceived(world) {
  const offsets = new Map();
  for (const { received } of world.consumers.values()) {
    const last = new Map();
    for (const { partitionId, message } of received) {
      const offset = Number(message.offset);
      assert((last.get(partitionId) ?? -1) < offset);
      last.set(partitionId, offset);
      assert(message.payload.equals(world.sent.get(partitionId)[offset].payload));
      offsets.set(partitionId, [...(offsets.get(partitionId) ?? []), offset]);
    }
  }
  for (const [partition, seen] of offsets) {
    assert.deepEqual(inOrder(seen), range(0, world.sent.get(partition).length - 1));
  }
}

Then(
  /^"([^"]*)" and "([^"]*)" together receive (\d+) messages and none twice$/,
  async function (first, second, count) {
    const end = Date.now() + DEADLINE;
    const inAll = () => [...this.consumers.values()].reduce((sum, found) => sum + found.received.length, 0);
    while (inAll() < Number(count)) {
      assert(Date.now() < end, 'the messages did not come');
      for (const name of [first, second]) await receiver(this, name).glance();
    }
    checkReceived(this);
  },
);

Then('every partition was read in order and nothing twice', function () {
  this.expectNoError();
  checkReceived(this);
});

Then(/^"([^"]*)" received message (\d+) of every partition$/, function (name, offset) {
  const found = receiver(this, name).received;
  assert.deepEqual(new Set(found.map((each) => each.partitionId)), new Set(this.sent.keys()));
  assert.deepEqual(new Set(found.map((each) => each.message.offset)), new Set([BigInt(offset)]));
});

When(/^"([^"]*)" commits a message of a partition that "([^"]*)" owns$/, async function (name, other) {
  const lost = receiver(this, other).consumer.partitions;
  const { consumer, received } = receiver(this, name);
  const message = received.find((each) => lost.includes(each.partitionId));
  await this.try(() => consumer.commit(message.checkpoint()));
});
