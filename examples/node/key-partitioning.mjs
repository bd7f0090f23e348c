// Messages with one key go to one partition, in order. The last lines let the application choose by itself.

import { Client } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
try {
  const topic = { streamId: 'accounts', topicId: 'bookings' };
  const producer = client.producer({ ...topic, createTopic: { partitionsCount: 3 } });
  await producer.init();
  for (const key of ['alice', 'bob', 'alice']) {
    const [sent] = await producer.send([`a booking of ${key}`], { partitioning: { key } });
    console.log(`${key}: partition ${sent?.partitionId}, offset ${sent?.baseOffset}`);
  }
  await producer.shutdown();

  const own = client.producer({ ...topic, partitioner: (_stream, _name, messages) => messages.length % 3 });
  await own.init();
  const [sent] = await own.send(['one', 'two']);
  console.log(`two messages: partition ${sent?.partitionId}`);
  await own.shutdown();
} finally {
  await client.shutdown();
}
