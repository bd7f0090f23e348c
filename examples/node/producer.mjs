// Sends in the background: a send returns when its messages are buffered, and failures are heard of apart.

import { Client } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
const producer = client.producer({
  streamId: 'metrics',
  topicId: 'measured',
  createTopic: { partitionsCount: 3 },
  background: { lingerTime: 5 },
  onError: (error) => console.error(`not sent: ${error.message} (${error.outcome})`),
});
try {
  await producer.init();
  for (let index = 0; index < 1000; index += 1) await producer.send([`measurement ${index}`]);
} finally {
  // Sends what is buffered and waits for it.
  await producer.shutdown();
}
const topic = await client.topic.get({ streamId: 'metrics', topicId: 'measured' });
console.log(`the topic holds ${topic?.messagesCount} messages`);
await client.shutdown();
