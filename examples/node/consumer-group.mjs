// A member of a group: processes each message, then commits it. Start more of them and they share the partitions.

import { Client } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
try {
  const topic = { streamId: 'shop', topicId: 'orders' };
  const producer = client.producer({ ...topic, createTopic: { partitionsCount: 4 } });
  await producer.init();
  for (let index = 0; index < 20; index += 1) await producer.send([`order ${index}`]);
  await producer.shutdown();

  const member = client.consumerGroup({ ...topic, name: 'billing', pollOptions: { maxWait: 1000 } });
  let processed = 0;
  for await (const received of member) {
    console.log(`partition ${received.partitionId}: ${received.message.text()}`);
    await member.commit(received.checkpoint());
    processed += 1;
    // Leaving the loop leaves the group.
    if (processed === 20) break;
  }
} finally {
  await client.shutdown();
}
