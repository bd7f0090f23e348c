'use strict';

// A real node for the tests of the package.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { join, resolve } = require('node:path');
const { createInterface } = require('node:readline');

const { Client } = require('../..');

const PROGRAMS = process.env.IGGY_PROGRAMS ?? resolve(__dirname, '..', '..', '..', '..', 'target', 'debug');

/** Starts a node with settings as `tcp.tls.enabled=true`; `tell` says what to do and answers what it said. */
async function startNode(...settings) {
  const child = spawn(join(PROGRAMS, 'iggy-test-node'), settings, { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const tell = async (word) => {
    child.stdin.write(`${word}\n`);
    const { value: answer } = await answers.next();
    if (!answer || answer.startsWith('failed')) throw new Error(`${word}: ${answer}`);
    return answer;
  };
  const [, address, directory] = (await tell('start')).split(' ');
  const end = async () => {
    const ended = once(child, 'exit');
    child.stdin.end();
    await ended;
  };
  return { address: `iggy://iggy:iggy@${address}`, directory, tell, end };
}

/** A node that holds the stream "orders" with the topic "created" of two partitions, and nothing else. */
async function clean(node) {
  const client = new Client(node.address);
  await client.connect();
  for (const { id } of await client.stream.list()) await client.stream.delete({ streamId: id });
  await client.stream.create({ name: 'orders' });
  await client.topic.create({ streamId: 'orders', name: 'created', partitionsCount: 2 });
  await client.shutdown();
}

/** The topic of the tests, in arguments. */
const place = (more = {}) => ({ streamId: 'orders', topicId: 'created', ...more });

module.exports = { clean, place, startNode };
