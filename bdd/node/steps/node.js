// The node itself: its state, its changes, its restarts.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';

When('the node is pinged', async function () {
  await this.try(() => this.client.system.ping());
});

Then(/^the client finds itself among the clients, signed in as "(.*)"$/, async function (name) {
  const me = await this.client.system.me();
  const clients = await this.client.system.clients();
  assert(clients.some((client) => client.clientId === me.clientId));
  const found = await this.client.system.client({ clientId: me.clientId });
  const user = await this.client.user.get({ userId: name });
  assert.equal(me.userId, user.id);
  assert.equal(found.userId, user.id);
});

Then(
  /^the statistics count (\d+) streams, (\d+) topics, (\d+) partitions and (\d+) messages$/,
  async function (streams, topics, partitions, messages) {
    const found = await this.client.system.stats();
    const counted = [found.streamsCount, found.topicsCount, found.partitionsCount, found.messagesCount];
    assert.deepEqual(counted.map(Number), [streams, topics, partitions, messages].map(Number));
  },
);

Then(/^the cluster has (\d+) nodes and its leader is the node the client talks to$/, async function (count) {
  const { nodes } = await this.client.system.cluster();
  assert.equal(nodes.length, Number(count));
  const port = Number(this.node.address.split(':').at(-1));
  assert.deepEqual(
    nodes.filter((node) => node.role === 'leader').map((node) => node.tcp),
    [port],
  );
});

Given('the changes are noted', async function () {
  this.notedChanges = (await this.client.system.changes({ start: 'latest' })).next;
});

Then(
  'the changes since then include the creation of a stream and of a topic, in that order',
  async function () {
    const { records } = await this.client.system.changes({ start: this.notedChanges });
    const kinds = records.map((record) => record.kind);
    assert(kinds.includes('stream_created'));
    assert(kinds.indexOf('stream_created') < kinds.indexOf('topic_created'));
  },
);

When('a snapshot of the test entry is taken', async function () {
  this.answer = await this.try(() => this.client.system.snapshot({ types: ['test'] }));
});

Then('the snapshot is a zip archive', function () {
  this.expectNoError();
  assert.equal(this.answer.toString('latin1', 0, 2), 'PK');
});

When(/^the raw command (\d+) is sent$/, async function (code) {
  await this.try(() => this.client.raw.send({ code: Number(code) }));
});

When('the server is restarted', async function () {
  await this.node.tell('restart');
});

When('the server is killed and started again', async function () {
  await this.node.tell('kill');
  await this.node.tell('start');
});

When('the server is stopped', async function () {
  await this.node.tell('stop');
});

When('the server is started', async function () {
  await this.node.tell('start');
});
