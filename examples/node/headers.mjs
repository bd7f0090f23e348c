// Typed headers beside the payload.

import { Client, HeaderValue, Message } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
try {
  const topic = { streamId: 'parcels', topicId: 'scanned' };
  const producer = client.producer(topic);
  await producer.init();
  const headers = {
    'content-type': 'text/plain',
    attempt: new HeaderValue('uint8', 1),
    weight: 1.5,
    scanned: BigInt(Date.now()),
    express: true,
  };
  await producer.send([new Message('parcel 7', { headers })]);
  await producer.shutdown();

  const polled = await client.message.poll({ ...topic, partitionId: 0, consumer: 'reader', pollingStrategy: 'first' });
  for (const message of polled) {
    console.log(message.text());
    for (const [key, { kind, value }] of message.headers) console.log(`  ${key}: ${value} (${kind})`);
  }
} finally {
  await client.shutdown();
}
