// End-to-end encryption: who has no key reads no payload.

import { randomBytes } from 'node:crypto';

import { Client } from 'iggy';

const address = process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090';
const encrypting = new Client(address, { encryption: { key: randomBytes(32), cipher: 'aes-256-gcm' } });
const plain = new Client(address);
await Promise.all([encrypting.connect(), plain.connect()]);
try {
  const topic = { streamId: 'secrets', topicId: 'told' };
  const producer = encrypting.producer(topic);
  await producer.init();
  await producer.send(['a secret']);
  await producer.shutdown();

  const read = { ...topic, partitionId: 0, consumer: 'reader', pollingStrategy: /** @type {const} */ ('first') };
  const [message] = (await encrypting.message.poll(read)).messages;
  console.log(`with the key: ${message?.text()}`);
  const [ciphertext] = (await plain.message.poll(read)).messages;
  console.log(`without it: ${ciphertext?.payload.length} bytes that say nothing`);
} finally {
  await Promise.all([encrypting.shutdown(), plain.shutdown()]);
}
