// The node that scenarios talk to: a process that starts, stops and kills a server when told.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
const PROGRAMS = process.env.IGGY_PROGRAMS ?? join(REPOSITORY, 'target', 'debug');

/** A node; its address survives restarts. */
export class Node {
  #process;
  #answers;
  address = '';

  static async start() {
    const node = new Node();
    const stdio = ['pipe', 'pipe', 'inherit'];
    node.#process = spawn(join(PROGRAMS, 'iggy-test-node'), { stdio });
    node.#answers = createInterface({ input: node.#process.stdout })[Symbol.asyncIterator]();
    [, node.address] = (await node.tell('start')).split(' ');
    return node;
  }

  /** Tells the node what to do and returns what it answers. */
  async tell(word) {
    this.#process.stdin.write(`${word}\n`);
    const { value: answer } = await this.#answers.next();
    if (!answer || answer.startsWith('failed')) throw new Error(`${word}: ${answer}`);
    return answer;
  }

  /** A connection string of somebody. */
  connectionString(credentials) {
    return `iggy://${credentials}@${this.address}`;
  }

  async end() {
    const ended = once(this.#process, 'exit');
    this.#process.stdin.end();
    await ended;
  }
}
