// Not run: compiled, to see that the types say what users write, and refuse what they should not.

import { Checkpoint, Client, CommitPolicy, HeaderValue, IggyError, Message, PollOptions, UncertainError } from 'iggy';

export async function uses(client: Client, signal: AbortSignal): Promise<void> {
  await client.connect({ signal });
  const polled = await client.message.poll({
    streamId: 'orders',
    topicId: 1,
    partitionId: 0,
    consumer: { kind: 'group', id: 'billing' },
    pollingStrategy: { offset: 7n },
    options: PollOptions.wait(1000, { commit: CommitPolicy.auto({ every: 'batch' }) }),
    signal,
  });
  const checkpoint: Checkpoint | undefined = polled.checkpoint();
  if (checkpoint) {
    const again = new Checkpoint(checkpoint.partitionId, checkpoint.offset, checkpoint.incarnation);
    await client.offset.storePosition({ streamId: 'orders', topicId: 'created', consumer: 'audit', checkpoint: again });
  }
  for (const { offset, payload, headers } of polled) {
    const place: bigint = offset;
    const bytes: Buffer = payload;
    const kind: string | null | undefined = headers.get('kind')?.kind;
    console.log(place, bytes, kind);
  }
  const consumer = client.consumerGroup({ name: 'billing', streamId: 'orders', topicId: 'created' });
  for await (const { message } of consumer) console.log(message.text());
  const messages = [new Message('one', { id: 1n, headers: { kind: new HeaderValue('uint8', 1) } }), 'two', Buffer.from('three')];
  try {
    await client.message.send({ streamId: 'orders', topicId: 'created', partitioning: { key: 7n }, messages });
  } catch (error) {
    if (error instanceof UncertainError && error.operation !== undefined) {
      await client.session.resolveOperation({ operation: error.operation, deadline: 1000 });
    } else if (error instanceof IggyError) {
      console.log(error.code, error.retryable, error.outcome);
    }
  }
}

export function refused(client: Client): void {
  // @ts-expect-error A poll names its partition.
  void client.message.poll({ streamId: 'orders', topicId: 'created', consumer: 'audit' });
  // @ts-expect-error An offset is no text.
  void client.offset.store({ streamId: 1, topicId: 1, partitionId: 0, consumer: 'audit', offset: '7' });
  // @ts-expect-error There is no such policy.
  void client.consumerGroup({ name: 'a', streamId: 1, topicId: 1, pollOptions: { commit: 'sometimes' } });
}
