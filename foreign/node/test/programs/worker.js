'use strict';

// A worker: sends and polls with a client of its own, or is left waiting.

const { parentPort, workerData } = require('node:worker_threads');

const { Client } = require('../..');
const { place } = require('./node.js');

async function main() {
  const { address, partition, waits } = workerData;
  const client = new Client(address);
  await client.connect();
  if (waits) {
    const polls = Array.from({ length: 20 }, () =>
      client.message.poll(
        place({ partitionId: 0, consumer: 'w', pollingStrategy: { offset: 1_000_000 }, options: { maxWait: 60_000 } }),
      ),
    );
    parentPort.postMessage('waiting');
    await Promise.allSettled(polls);
  }
  const partitioner = () => partition;
  const producer = client.producer(place({ partitioner }));
  await producer.init();
  for (let index = 0; index < 20; index += 1) await producer.send([`message ${index}`]);
  const polled = await client.message.poll(place({ partitionId: partition, consumer: 'w', pollingStrategy: 'first' }));
  await client.shutdown();
  parentPort.postMessage(polled.length);
}

main();
