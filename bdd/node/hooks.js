// One node for all scenarios, one world for each.

import { appendFileSync, writeFileSync } from 'node:fs';

import { After, AfterAll, Before, BeforeAll, setDefaultTimeout, setWorldConstructor } from '@cucumber/cucumber';

import { Node } from './node.js';
import { DEADLINE, World } from './world.js';

let node;

/** Where it is noted how each scenario ended, for the table of scenarios and languages. */
const RESULTS = process.env.IGGY_BDD_RESULTS;

/** The scenario as the feature names it: an outline without the values of its examples. */
function nameOf({ feature }, pickle) {
  const [id] = pickle.astNodeIds;
  const scenarios = feature.children.flatMap((child) => [child, ...(child.rule?.children ?? [])]);
  return scenarios.map((child) => child.scenario).find((scenario) => scenario?.id === id).name;
}

setDefaultTimeout(2 * DEADLINE);
setWorldConstructor(World);

BeforeAll(async () => {
  if (RESULTS) writeFileSync(RESULTS, '');
  node = await Node.start();
});

Before(async function () {
  this.node = node;
  await this.clean();
});

// Runs last, and so knows whether the end of the scenario failed too.
After(({ gherkinDocument, pickle, result }) => {
  if (!RESULTS) return;
  const outcome = result.status === 'PASSED' ? 'passed' : 'failed';
  appendFileSync(RESULTS, `${gherkinDocument.feature.name}\t${nameOf(gherkinDocument, pickle)}\t${outcome}\n`);
});

After(async function () {
  await this.finish();
});

AfterAll(async () => {
  await node?.end();
});
