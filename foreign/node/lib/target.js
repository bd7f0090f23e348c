'use strict';

// Linux has two C libraries, and a module built for one does not load with the other: so the platform, the processor and
// the C library together choose the file.

/**
 * @typedef {object} Host
 * @property {string} platform
 * @property {string} arch
 * @property {() => any} report
 */

/** This process. The network part of a report can take seconds and is not needed. */
function here() {
  const report = () => {
    process.report.excludeNetwork = true;
    return process.report.getReport();
  };
  return { platform: process.platform, arch: process.arch, report };
}

/**
 * Which C library a process runs with; nothing where there is one only.
 *
 * @param {Host} host
 */
function libc(host) {
  if (host.platform !== 'linux') return undefined;
  const report = host.report();
  if (report?.header?.glibcVersionRuntime) return 'gnu';
  const objects = report?.sharedObjects ?? [];
  return objects.some((path) => path.includes('ld-musl') || path.includes('libc.musl')) ? 'musl' : 'gnu';
}

/**
 * The name of what a process needs, as `linux-x64-gnu`.
 *
 * @param {Host} [host]
 */
function target(host = here()) {
  const library = libc(host);
  return `${host.platform}-${host.arch}${library ? `-${library}` : ''}`;
}

module.exports = { target };
