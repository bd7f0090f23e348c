// TLS: the certificate of the server must be for its name and signed by somebody who is trusted.

import { Client } from 'iggy';

const client = new Client({
  serverAddress: process.env.IGGY_TLS_ADDRESS ?? 'localhost:8090',
  username: 'iggy',
  password: 'iggy',
  tls: { domain: 'localhost', caFile: process.env.IGGY_TLS_CA_FILE },
});
await client.connect();
try {
  const me = await client.system.me();
  console.log(`connected over TLS from ${me.address}`);
} finally {
  await client.shutdown();
}
