'use strict';

// Runs every example against real nodes that it starts itself: each must end by itself, without an error.

const { execFileSync, spawnSync } = require('node:child_process');
const { readdirSync } = require('node:fs');
const { join, resolve } = require('node:path');

const { startNode } = require('../test/programs/node.js');

const EXAMPLES = resolve(__dirname, '..', '..', '..', 'examples', 'node');
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
  const secure = await startNode('tcp.tls.enabled=true', 'tcp.tls.self_signed=true');
  try {
    const [, address] = secure.address.split('@');
    run('tls.mjs', {
      IGGY_TLS_ADDRESS: address,
      IGGY_TLS_CA_FILE: join(secure.directory, 'runtime', 'self_signed.pem'),
    });
  } finally {
    await secure.end();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
