'use strict';

// Runs every example against real nodes that it starts itself: each must end by itself, without an error.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { mkdtempSync, readdirSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join, resolve } = require('node:path');
const { createInterface } = require('node:readline');

const { startNode } = require('../test/programs/node.js');

const REPOSITORY = resolve(__dirname, '..', '..', '..');
const EXAMPLES = join(REPOSITORY, 'examples', 'node');
const PROGRAMS = process.env.IGGY_PROGRAMS ?? join(REPOSITORY, 'target', 'debug');
/** Against hanging only. */
const DEADLINE = 60_000;

function run(name, env) {
  const ended = spawnSync(process.execPath, [join(EXAMPLES, name)], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: DEADLINE,
  });
  process.stdout.write(`--- ${name}\n${ended.stdout}${ended.stderr}`);
  if (ended.status !== 0) throw new Error(`${name} ended with ${ended.status ?? ended.signal}`);
}

/** A server with a certificate for localhost, in a folder of its own. */
async function startTls(folder) {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const leaf = ['-addext', 'basicConstraints=critical,CA:FALSE'];
  execFileSync('openssl', [...request, ...subject, ...leaf, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('IGGY_')));
  const server = spawn(join(PROGRAMS, 'iggy-server'), ['--with-default-root-credentials'], {
    env: {
      ...env,
      IGGY_PATH: join(folder, 'data'),
      IGGY_TCP_ADDRESS: '127.0.0.1:0',
      IGGY_HTTP_ADDRESS: '127.0.0.1:0',
      IGGY_TCP_TLS_ENABLED: 'true',
      IGGY_TCP_TLS_CERT_FILE: certificate,
      IGGY_TCP_TLS_KEY_FILE: key,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    const port = /^ready .*tcp=\S*:(\d+)/.exec(line)?.[1];
    if (port) return { server, address: `localhost:${port}`, certificate };
  }
  throw new Error('the server with TLS did not start');
}

async function main() {
  if (process.argv[2] !== '--installed') {
    execFileSync('npm', ['ci', '--prefix', EXAMPLES, '--no-audit', '--no-fund'], { stdio: 'inherit' });
  }
  const names = readdirSync(EXAMPLES).filter((name) => name.endsWith('.mjs'));
  const node = await startNode();
  try {
    for (const name of names.filter((each) => each !== 'tls.mjs')) run(name, { IGGY_CONNECTION_STRING: node.address });
  } finally {
    await node.end();
  }
  const folder = mkdtempSync(join(tmpdir(), 'iggy-tls-'));
  const { server, address, certificate } = await startTls(folder);
  try {
    run('tls.mjs', { IGGY_TLS_ADDRESS: address, IGGY_TLS_CA_FILE: certificate });
  } finally {
    const ended = once(server, 'exit');
    server.kill();
    await ended;
    rmSync(folder, { recursive: true });
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
