'use strict';

// Calls into the native module: what they throw, and how a signal gives them up.

const { CancelToken } = require('./native.js');
const { CancelledCallError, translated } = require('./errors.js');

/**
 * Runs a synchronous call.
 *
 * @template T
 * @param {() => T} run
 */
function now(run) {
  try {
    return run();
  } catch (thrown) {
    throw translated(thrown);
  }
}

/**
 * Runs a call that waits. The signal ends it: through a listener of its own, so that `onabort` stays the caller's, and
 * at once when it is aborted already.
 *
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {(token: any) => Promise<T>} begin
 * @returns {Promise<T>}
 */
async function later(signal, begin) {
  const token = new CancelToken();
  if (signal === undefined || signal === null) {
    try {
      return await begin(token);
    } catch (thrown) {
      throw translated(thrown);
    }
  }
  if (signal.aborted) {
    throw new CancelledCallError('the call was given up by its caller before it began', { cause: signal.reason });
  }
  const abort = () => token.cancel();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await begin(token);
  } catch (thrown) {
    throw translated(thrown, signal.aborted ? { cause: signal.reason } : undefined);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

module.exports = { later, now };
