// One node for all scenarios, one world for each.

import { After, AfterAll, Before, BeforeAll, setDefaultTimeout, setWorldConstructor } from '@cucumber/cucumber';

import { Node } from './node.js';
import { DEADLINE, World } from './world.js';

let node;

setDefaultTimeout(2 * DEADLINE);
setWorldConstructor(World);

BeforeAll(async () => {
  node = await Node.start();
});

Before(async function () {
  this.node = node;
  await this.clean();
});

After(async function () {
  await this.finish();
});

AfterAll(async () => {
  await node?.end();
});
