// Reads several partitions in batches and keeps the positions itself, beside what it computes from the messages.

import { Checkpoint, Client } from 'iggy';

const client = new Client(process.env.IGGY_CONNECTION_STRING ?? 'iggy://iggy:iggy@127.0.0.1:8090');
await client.connect();
try {
  const topic = { streamId: 'ledger', topicId: 'entries' };
  const producer = client.producer({ ...topic, createTopic: { partitionsCount: 2 } });
  await producer.init();
  for (let index = 0; index < 10; index += 1) await producer.send([`entry ${index}`]);
  await producer.shutdown();

  const reader = await client.message.reader({ ...topic, consumer: 'audit', partitions: [0, 1] });
  /** @type {Map<number, { offset: string, incarnation: string }>} */
  const kept = new Map();
  let read = 0;
  for await (const batch of reader) {
    read += batch.length;
    const checkpoint = batch.checkpoint();
    if (checkpoint) {
      // As an application would write it into its own database: a BigInt is no JSON, its text is.
      kept.set(batch.partitionId, { offset: String(checkpoint.offset), incarnation: String(checkpoint.incarnation) });
    }
    if (read === 10) break;
  }
  for (const [partitionId, { offset, incarnation }] of kept) {
    console.log(`partition ${partitionId} was read up to offset ${offset}`);
    const checkpoint = new Checkpoint(partitionId, BigInt(offset), BigInt(incarnation));
    await client.offset.storePosition({ ...topic, consumer: 'audit', checkpoint });
  }
} finally {
  await client.shutdown();
}
