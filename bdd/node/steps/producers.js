// Producers and encryption.

import { Given, When } from '@cucumber/cucumber';

import { nextMessages, sendBy } from './messages.js';
import { PLENTY, pollBy } from './polls.js';

async function useProducer(world, settings = {}) {
  const producer = world.client.producer(world.place(settings));
  await world.try(() => producer.init());
  world.producer = producer;
}

Given(/^a producer with the key "(.*)"$/, async function (key) {
  await useProducer(this, { partitioning: { key } });
});

Given(/^a producer whose partitioner always says (\d+)$/, async function (partition) {
  await useProducer(this, { partitioner: () => Number(partition) });
});

Given(/^a producer for the stream "(.*)" and the topic "(.*)"$/, async function (stream, topic) {
  [this.stream, this.topic] = [stream, topic];
  await useProducer(this);
});

When(
  /^a producer for the stream "(.*)" and the topic "(.*)" starts without creating them$/,
  async function (stream, topic) {
    [this.stream, this.topic] = [stream, topic];
    await useProducer(this, { createStream: false, createTopic: false });
  },
);

Given(/^a producer with batches of (\d+) messages$/, async function (length) {
  await useProducer(this, { direct: { batchLength: Number(length) } });
});

Given('a producer in the background', async function () {
  await useProducer(this, { background: true });
});

Given('an idempotent producer', async function () {
  await useProducer(this, { idempotent: true });
});

/** Numbered as if they all went to partition 0, where those scenarios look that care. */
function forProducer(world, count) {
  const messages = nextMessages(world, 0, count);
  world.sent.get(0).push(...messages);
  return messages.map((sent) => sent.message());
}

When(/^the producer sends (\d+) messages$/, async function (count) {
  await this.try(() => this.producer.send(forProducer(this, Number(count))));
});

When(/^the producer sends (\d+) messages one by one$/, async function (count) {
  for (const message of forProducer(this, Number(count))) await this.try(() => this.producer.send([message]));
});

When('the producer is closed', async function () {
  await this.try(() => this.producer.shutdown());
});

Given(
  /^a client that encrypts with (AES-256-GCM|AES-256-GCM-SIV) and the key "(.*)"$/,
  async function (cipher, key) {
    const encryption = { cipher: cipher.toLowerCase(), key: Buffer.from(key) };
    this.clients.set('encrypting', await this.connect('iggy:iggy', { encryption }));
  },
);

When(/^the encrypting client sends (\d+) messages to partition (\d+)$/, async function (count, partition) {
  const messages = nextMessages(this, Number(partition), Number(count));
  await this.try(() => sendBy(this, this.clients.get('encrypting'), Number(partition), messages));
});

When(/^the encrypting client polls partition (\d+)$/, async function (partition) {
  await pollBy(this, this.clients.get('encrypting'), Number(partition), 'reader', 'first', PLENTY);
});
