// Streams, topics, partitions, segments and consumer groups.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';

import { duration, names, size } from '../values.js';

async function createStream(world, name) {
  world.stream = name;
  await world.client.stream.create({ name });
}

async function createTopic(world, name, partitionsCount, options = {}) {
  world.topic = name;
  world.sent.clear();
  await world.client.topic.create({ streamId: world.stream, name, partitionsCount, options });
}

export async function topicDetails(world) {
  const found = await world.client.topic.get(world.place());
  assert(found);
  return found;
}

Given(/^the stream "([^"]*)"$/, async function (name) {
  await createStream(this, name);
});

Given(/^the stream "([^"]*)" with the topic "([^"]*)" of (\d+) partitions$/, async function (stream, topic, count) {
  await createStream(this, stream);
  await createTopic(this, topic, Number(count));
});

Given(/^the topic "([^"]*)" with segments of "(.*)"$/, async function (topic, length) {
  await createTopic(this, topic, 1, { segment_size: size(length) });
});

When(/^the stream "([^"]*)" is created$/, async function (name) {
  await this.try(() => createStream(this, name));
});

When(/^a stream with a name of (\d+) bytes is created$/, async function (length) {
  await this.try(() => this.client.stream.create({ name: 'x'.repeat(Number(length)) }));
});

When(/^the stream "([^"]*)" is renamed to "([^"]*)"$/, async function (old, name) {
  await this.try(() => this.client.stream.update({ streamId: old, name }));
});

When(/^the stream "([^"]*)" is deleted$/, async function (name) {
  await this.try(() => this.client.stream.delete({ streamId: name }));
});

Then(/^the stream "([^"]*)" exists with (\d+) topics$/, async function (name, topics) {
  this.expectNoError();
  const found = await this.client.stream.get({ streamId: name });
  assert.deepEqual([found?.name, found?.topics.length], [name, Number(topics)]);
});

Then(/^the stream "([^"]*)" does not exist$/, async function (name) {
  this.expectNoError();
  assert.equal(await this.client.stream.get({ streamId: name }), undefined);
});

Then(/^the streams are (.*)$/, async function (expected) {
  const found = await this.client.stream.list();
  assert.deepEqual(
    found.map((stream) => stream.name),
    names(expected),
  );
});

Then(/^the number of the stream "([^"]*)" finds the same stream$/, async function (name) {
  const byName = await this.client.stream.get({ streamId: name });
  assert.deepEqual(await this.client.stream.get({ streamId: byName.id }), byName);
});

When(/^the topic "([^"]*)" is created$/, async function (name) {
  await this.try(() => createTopic(this, name, 1));
});

const NAMES = { offset_durability: 'consumer_offset_durability' };

/** A setting as the table of a scenario writes it: times in microseconds. */
function setting(key, value) {
  if (key === 'message_expiry') return duration(value) * 1000;
  return key.endsWith('size') ? size(value) : value;
}

When(/^the topic "([^"]*)" is created with$/, async function (name, table) {
  const given = Object.fromEntries(table.raw().map(([key, value]) => [NAMES[key] ?? key, setting(key, value)]));
  const { partitions, ...options } = given;
  await this.try(() => createTopic(this, name, Number(partitions), options));
});

Then(/^the topic "([^"]*)" has the settings$/, async function (name, table) {
  this.expectNoError();
  this.topic = name;
  const topic = await topicDetails(this);
  const found = { ...topic.derivedOptions, ...topic.options, partitions: String(topic.partitionsCount) };
  for (const [key, value] of table.raw()) assert.equal(found[NAMES[key] ?? key], String(setting(key, value)), key);
});

When(/^the message expiry of the topic "([^"]*)" is set to "(.*)"$/, async function (topicId, expiry) {
  const options = { message_expiry: setting('message_expiry', expiry) };
  await this.try(() => this.client.topic.update({ streamId: this.stream, topicId, options }));
});

When(/^the topic "([^"]*)" is renamed to "([^"]*)"$/, async function (topicId, name) {
  await this.try(() => this.client.topic.update({ streamId: this.stream, topicId, name }));
});

When(/^the topic "([^"]*)" is deleted$/, async function (topicId) {
  await this.try(() => this.client.topic.delete({ streamId: this.stream, topicId }));
});

When(/^the topic "([^"]*)" is deleted and created again with (\d+) partitions$/, async function (topicId, count) {
  await this.client.topic.delete({ streamId: this.stream, topicId });
  await createTopic(this, topicId, Number(count));
});

Then(/^the topic "([^"]*)" exists with (\d+) partitions$/, async function (name, partitions) {
  this.expectNoError();
  this.topic = name;
  assert.equal((await topicDetails(this)).partitions.length, Number(partitions));
});

Then(/^the topic "([^"]*)" does not exist$/, async function (topicId) {
  this.expectNoError();
  assert.equal(await this.client.topic.get({ streamId: this.stream, topicId }), undefined);
});

Then(/^the topics are (.*)$/, async function (expected) {
  const found = await this.client.topic.list({ streamId: this.stream });
  assert.deepEqual(
    found.map((topic) => topic.name),
    names(expected),
  );
});

Then(/^the number of the topic "([^"]*)" finds the same topic$/, async function (name) {
  this.topic = name;
  const byName = await topicDetails(this);
  assert.deepEqual(await this.client.topic.get({ streamId: this.stream, topicId: byName.id }), byName);
});

When(/^(\d+) partitions are added$/, async function (count) {
  await this.try(() => this.client.partition.create(this.place({ count: Number(count) })));
});

When(/^(\d+) partitions are removed$/, async function (count) {
  await this.try(() => this.client.partition.delete(this.place({ count: Number(count) })));
});

When(/^(\d+) segments of partition (\d+) are deleted$/, async function (count, partition) {
  const place = this.place({ partitionId: Number(partition), count: Number(count) });
  await this.try(() => this.client.segment.delete(place));
});

Then(/^partition (\d+) holds (\d+) messages$/, async function (partition, count) {
  this.expectNoError();
  const topic = await topicDetails(this);
  assert.equal(topic.partitions[Number(partition)].messagesCount, BigInt(count));
  assert.equal(topic.messagesCount, BigInt(count), 'and no other partition holds any');
});

Then(/^every partition holds (\d+) messages$/, async function (count) {
  this.expectNoError();
  for (const { messagesCount } of (await topicDetails(this)).partitions) assert.equal(messagesCount, BigInt(count));
});

Then(/^the partitions hold (\d+) messages in all$/, async function (count) {
  this.expectNoError();
  assert.equal((await topicDetails(this)).messagesCount, BigInt(count));
});

Given(/^the consumer group "([^"]*)"$/, async function (name) {
  await this.client.group.create(this.place({ name }));
});

When(/^the consumer group "([^"]*)" is created$/, async function (name) {
  await this.try(() => this.client.group.create(this.place({ name })));
});

When(/^the consumer group "([^"]*)" is deleted$/, async function (groupId) {
  await this.try(() => this.client.group.delete(this.place({ groupId })));
});

Then(/^the consumer group "([^"]*)" exists with (\d+) members$/, async function (groupId, members) {
  this.expectNoError();
  const found = await this.client.group.get(this.place({ groupId }));
  assert.equal(found?.members.length, Number(members));
});

Then(/^the consumer group "([^"]*)" does not exist$/, async function (groupId) {
  this.expectNoError();
  assert.equal(await this.client.group.get(this.place({ groupId })), undefined);
});

Then(/^the options of "(stream|topic|user)" include "(.*)"$/, async function (scope, name) {
  const found = await this.client.system.describeOptions({ scope });
  assert(found.some((option) => option.key === name));
});
