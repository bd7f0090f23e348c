'use strict';

// Leaves calls in flight and a client nobody closed, and ends when told.

const { Client } = require('../..');
const { place } = require('./node.js');

async function main() {
  const [, , address, how] = process.argv;
  const client = new Client(address);
  await client.connect();
  const wait = { partitionId: 0, consumer: 'c', pollingStrategy: { offset: 1_000_000 }, options: { maxWait: 60_000 } };
  if (how === 'exit') {
    for (let index = 0; index < 60; index += 1) client.message.poll(place(wait)).catch(() => {});
    for (let index = 0; index < 940; index += 1) client.system.ping().catch(() => {});
    setImmediate(() => process.exit(0));
  } else if (how === 'close') {
    const poll = client.message.poll(place(wait)).catch(() => {});
    await client.shutdown();
    await poll;
  } else if (how === 'idle') {
    // Neither a client nor a consumer that nobody waits for keeps the process.
    const consumer = client.consumer(place({ name: 'idle', partitions: [0] }));
    await consumer.init();
    client.producer(place({ background: true, partitioner: () => 0, onError: () => {} }));
    client.events();
  }
}

main();
