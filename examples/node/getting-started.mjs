// Creates a stream and a topic, sends a message and reads it back.

import { Client } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
try {
  await client.stream.create({ name: 'getting-started' });
  await client.topic.create({ streamId: 'getting-started', name: 'greetings', partitionsCount: 1 });
  const topic = { streamId: 'getting-started', topicId: 'greetings' };

  const [confirmation] = await client.message.send({ ...topic, messages: ['hello'] });
  console.log(`sent to offset ${confirmation?.baseOffset}`);

  const polled = await client.message.poll({
    ...topic,
    partitionId: 0,
    consumer: 'reader',
    pollingStrategy: 'first',
    options: { count: 10, maxWait: 1000 },
  });
  for (const message of polled) console.log(`read ${message.text()} at offset ${message.offset}`);
} finally {
  await client.shutdown();
}
