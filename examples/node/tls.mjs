// TLS: the certificate of the server must be for its name and signed by somebody who is trusted.
//
// Takes the address of the server and the file with the certificate to trust from the environment.

import { Client, ConnectionFailedError } from 'iggy';

const serverAddress = process.env.IGGY_TLS_ADDRESS ?? 'localhost:8090';
const account = { serverAddress, username: 'iggy', password: 'iggy' };

const client = new Client({ ...account, tls: { domain: 'localhost', caFile: process.env.IGGY_TLS_CA_FILE } });
await client.connect();
try {
  const topic = { streamId: 'private', topicId: 'letters' };
  const producer = client.producer(topic);
  await producer.init();
  await producer.send(['over TLS']);
  await producer.shutdown();
  const polled = await client.message.poll({ ...topic, partitionId: 0, consumer: 'reader', pollingStrategy: 'first' });
  console.log(polled.at(0)?.text());
} finally {
  await client.shutdown();
}

const stranger = new Client({ ...account, tls: { domain: 'localhost' } });
try {
  await stranger.connect();
  throw new Error('an unknown authority was trusted');
} catch (error) {
  if (!(error instanceof ConnectionFailedError)) throw error;
  console.log(`without the authority: ${error.message}`);
} finally {
  await stranger.shutdown();
}
