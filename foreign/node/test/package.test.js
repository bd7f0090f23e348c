'use strict';

// What the package is made of: nothing is missing, nothing has drifted apart.

const assert = require('node:assert/strict');
const { mkdtempSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const test = require('node:test');

const iggy = require('..');
const errors = require('../lib/errors.js');
const { load } = require('../lib/loader.js');
const native = require('../lib/native.js');
const { target } = require('../lib/target.js');

test('given the operations of the core when looked up should all be here', () => {
  const client = new iggy.Client();
  const places = iggy.Client.operations();
  for (const name of native.operationNames()) {
    assert(places[name], name);
    const found = places[name].split('.').reduce((at, member) => at[member], client);
    assert.equal(typeof found, 'function', name);
  }
  assert.equal(Object.keys(places).length, native.operationNames().length, 'and none that the core has not');
});

test('given what reads and sends when asked should say where', async () => {
  const client = new iggy.Client();
  const where = { streamId: 'shop', topicId: 7 };
  const own = client.consumer({ name: 'audit', ...where, partitions: [0] });
  const member = client.consumerGroup({ name: 'billing', ...where });
  const producer = client.producer(where);
  const shown = ({ name, streamId, topicId, isGroupMember }) => ({ name, streamId, topicId, isGroupMember });
  assert.deepEqual(shown(own), { name: 'audit', ...where, isGroupMember: false });
  assert.deepEqual(shown(member), { name: 'billing', ...where, isGroupMember: true });
  assert.deepEqual([producer.streamId, producer.topicId], ['shop', 7]);
  await client.shutdown();
});

test('given the classes of failures when looked up should each have its error', () => {
  const made = errors.ALL.map((error) => error.className);
  assert.deepEqual(made, native.classNames());
});

test('given both kinds of modules when loaded should be the same objects', async () => {
  const module = await import('../index.mjs');
  for (const [name, value] of Object.entries(iggy)) assert.equal(module[name], value, name);
});

test('given any platform when a module is looked for should choose by its C library and name what is missing', () => {
  // opendal#6114, valkey-glide#4558
  const report = (more) => () => ({ header: {}, sharedObjects: [], ...more });
  const glibc = { platform: 'linux', arch: 'x64', report: report({ header: { glibcVersionRuntime: '2.36' } }) };
  const musl = { platform: 'linux', arch: 'arm64', report: report({ sharedObjects: ['/lib/ld-musl-aarch64.so.1'] }) };
  assert.equal(target(glibc), 'linux-x64-gnu');
  assert.equal(target(musl), 'linux-arm64-musl');
  assert.equal(target({ platform: 'darwin', arch: 'arm64', report: report() }), 'darwin-arm64');
  const folder = mkdtempSync(join(tmpdir(), 'iggy-'));
  assert.throws(() => load('linux-arm64-musl', folder), /for linux-arm64-musl is missing/);
  assert.throws(() => load('sunos-x64', folder), /no native module for sunos-x64/);
  writeFileSync(join(folder, 'iggy.linux-x64-gnu.node'), 'no module');
  assert.throws(() => load('linux-x64-gnu', folder), /cannot be loaded from/);
});

test('given arguments that are wrong when passed should be refused by name', async () => {
  const client = new iggy.Client();
  const refused = async (call, pattern) => {
    await assert.rejects(call, (error) => {
      assert(error instanceof iggy.InvalidInputError, String(error));
      assert.match(error.message, pattern);
      return true;
    });
  };
  const poll = { streamId: 1, topicId: 1, partitionId: 0, consumer: 'c' };
  await refused(client.stream.get({ stream: 1 }), /no 'stream'; there are streamId/);
  await refused(client.message.poll({ ...poll, partitionId: -1 }), /partition is -1/);
  await refused(client.message.poll({ ...poll, options: { maxWait: Infinity } }), /milliseconds/);
  await refused(client.message.poll({ ...poll, options: { max_wait: 1 } }), /no 'max_wait'/);
  await refused(client.message.poll({ ...poll, pollingStrategy: 'newest' }), /polling strategy/);
  await refused(client.message.send({ streamId: 1, topicId: 1, messages: 'text' }), /messages are an array/);
  await refused(client.message.send({ streamId: 1, topicId: 1, messages: [7] }), /payload/);
  await refused(client.message.send({ streamId: {}, topicId: 1, messages: ['x'] }), /./);
  assert.throws(() => new iggy.Client('http://nowhere'), iggy.InvalidInputError);
  assert.throws(() => new iggy.Client({ requestTimout: 1 }), /no 'requestTimout'/);
  assert.throws(() => new iggy.HeaderValue('int8', 128), /int8/);
  assert.throws(() => new iggy.HeaderValue('uint64', -1n), /uint64/);
  assert.throws(() => new iggy.HeaderValue('int128', 1n << 127n), /int128/);
});
