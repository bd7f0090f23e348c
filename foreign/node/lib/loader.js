'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** What is published. */
const BUILT = ['linux-x64-gnu', 'linux-x64-musl', 'linux-arm64-gnu', 'linux-arm64-musl', 'darwin-x64', 'darwin-arm64'];

/**
 * Loads the native module, or says which one is missing.
 *
 * @param {string} wanted
 * @param {string} folder
 */
function load(wanted, folder) {
  if (!BUILT.includes(wanted)) {
    throw new Error(`iggy has no native module for ${wanted}; there are ${BUILT.join(', ')}`);
  }
  const file = join(folder, `iggy.${wanted}.node`);
  if (!existsSync(file)) {
    throw new Error(`the native module of iggy for ${wanted} is missing: there is no ${file}; in a checkout, npm run build makes it`);
  }
  try {
    return require(file);
  } catch (cause) {
    throw new Error(`the native module of iggy for ${wanted} cannot be loaded from ${file}: ${cause.message}`, { cause });
  }
}

module.exports = { load };
