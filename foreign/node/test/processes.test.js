'use strict';

// Ends of processes and of worker threads.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { join } = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');

const { clean, startNode } = require('./programs/node.js');

const RUNS = Number(process.env.IGGY_TEST_EXITS ?? 5);
/** Against hanging only: a poll of these programs would wait for twice as long. */
const DEADLINE = 30_000;

let node;

test.before(async () => {
  node = await startNode();
});
test.after(() => node.end());
test.beforeEach(() => clean(node));

for (const how of ['exit', 'close', 'idle']) {
  test(`given a process that leaves things behind (${how}) when it has no more to do should end by itself`, () => {
    // napi-rs#1732, PyO3/pyo3-async-runtimes#40
    for (let run = 0; run < RUNS; run += 1) {
      const program = join(__dirname, 'programs', 'in-flight.js');
      const ended = spawnSync(process.execPath, [program, node.address, how], { encoding: 'utf8', timeout: DEADLINE });
      assert.deepEqual([ended.status, ended.signal, ended.stderr], [0, null, '']);
    }
  });
}

const worker = (workerData) => new Worker(join(__dirname, 'programs', 'worker.js'), { workerData });

test('given worker threads when each has a client should all be served', async () => {
  const workers = [0, 1].map((partition) => worker({ address: node.address, partition }));
  const counts = await Promise.all(workers.map(async (each) => (await once(each, 'message'))[0]));
  assert.deepEqual(counts, [20, 20]);
});

test('given a worker thread with calls in flight when terminated should end and leave the others alone', async () => {
  for (let run = 0; run < RUNS; run += 1) {
    const waiting = worker({ address: node.address, partition: 0, waits: true });
    await once(waiting, 'message');
    await waiting.terminate();
  }
  const [count] = await once(worker({ address: node.address, partition: 0 }), 'message');
  assert.equal(count, 20);
});
