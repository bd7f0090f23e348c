'use strict';

// Builds the native module with the workspace's own cargo build, so that it shares what the other crates built, and puts
// it where the loader looks. `--release` for what is published, `--built` to take what is built already.

const { execFileSync } = require('node:child_process');
const { copyFileSync, mkdirSync, renameSync } = require('node:fs');
const { join, resolve } = require('node:path');

const { target } = require('../lib/target.js');

const PACKAGE = resolve(__dirname, '..');
const REPOSITORY = resolve(PACKAGE, '..', '..');
const LIBRARIES = { linux: 'libiggy_node.so', darwin: 'libiggy_node.dylib' };

const release = process.argv.includes('--release');
const cargo = ['build', '--locked', '--package', 'iggy-node', ...(release ? ['--release'] : [])];
if (!process.argv.includes('--built')) {
  execFileSync('cargo', cargo, { cwd: REPOSITORY, stdio: 'inherit' });
}

const built = process.env.CARGO_TARGET_DIR ?? join(REPOSITORY, 'target');
const library = join(built, release ? 'release' : 'debug', LIBRARIES[process.platform]);
const native = join(PACKAGE, 'native');
mkdirSync(native, { recursive: true });
const file = join(native, `iggy.${target()}.node`);
// Not over the old file: a process may have that one mapped.
copyFileSync(library, `${file}.new`);
renameSync(`${file}.new`, file);
console.log(file);
