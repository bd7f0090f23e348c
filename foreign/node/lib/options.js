'use strict';

// Settings and arguments on their way into the native module, which takes JSON: checked by name, times as whole
// microseconds, numbers of 64 bits with all their digits.

const { Continuation } = require('./native.js');
const { invalid } = require('./errors.js');

/**
 * JSON in which a BigInt is a number.
 *
 * @param {any} value
 * @returns {string}
 */
function json(value) {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${json(member)}`).join(',')}}`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalid(`${value} is no number that can be used`);
  return JSON.stringify(value) ?? 'null';
}

/**
 * The members that were given, under the names of the core. A member that is not in the table is refused.
 *
 * @param {string} what
 * @param {any} given
 * @param {Record<string, [string, ((value: any, name: string) => any)?]>} table
 */
function members(what, given, table) {
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw invalid(`${what} is an object, not ${given === null ? 'null' : typeof given}`);
  }
  const found = {};
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(table, name)) {
      throw invalid(`${what} has no '${name}'; there are ${Object.keys(table).join(', ')}`);
    }
    if (value === undefined) continue;
    const [core, convert] = table[name];
    found[core] = convert ? convert(value, name) : value;
  }
  return found;
}

/**
 * Milliseconds as whole microseconds.
 *
 * @param {any} milliseconds
 * @param {string} name
 */
function micros(milliseconds, name) {
  if (typeof milliseconds !== 'number' || !Number.isFinite(milliseconds) || milliseconds < 0) {
    throw invalid(`${name} is a time in milliseconds, zero or more, not ${String(milliseconds)}`);
  }
  return BigInt(Math.round(milliseconds * 1000));
}

/**
 * A number of 64 bits.
 *
 * @param {any} number
 * @param {string} name
 */
function big(number, name) {
  if (typeof number === 'bigint') return number;
  if (Number.isSafeInteger(number)) return BigInt(number);
  throw invalid(`${name} is a BigInt, or a whole number below 2^53, not ${String(number)}`);
}

/**
 * @param {any} bytes
 * @param {string} name
 */
function base64(bytes, name) {
  if (!(bytes instanceof Uint8Array)) throw invalid(`${name} is a Buffer or Uint8Array`);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** @param {any} key */
function keyBytes(key) {
  if (typeof key === 'string') return Buffer.from(key);
  if (key instanceof Uint8Array) return key;
  const number = big(key, 'a key');
  if (number < 0n || number >= 1n << 64n) throw invalid('a key that is a number has 64 bits and no sign');
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(number);
  return bytes;
}

/** @param {any} given */
function strategy(given) {
  if (given === 'first' || given === 'last' || given === 'next') return given;
  if (given !== null && typeof given === 'object') {
    if ('offset' in given) return { offset: big(given.offset, 'an offset') };
    if ('timestamp' in given) {
      const { timestamp } = given;
      const at = timestamp instanceof Date ? BigInt(timestamp.getTime()) * 1000n : big(timestamp, 'a timestamp');
      return { timestamp: at };
    }
  }
  throw invalid(`a polling strategy is 'first', 'last', 'next', { offset } or { timestamp }, not ${String(given)}`);
}

/**
 * A start as the native module takes it: a continuation, or a strategy.
 *
 * @param {any} given
 * @returns {[any, string | undefined]}
 */
function start(given) {
  return given instanceof Continuation ? [given, undefined] : [undefined, json(strategy(given))];
}

/** @param {any} given */
function partitioning(given) {
  if (given === 'balanced') return given;
  if (given !== null && typeof given === 'object') {
    if ('partition' in given) return { partition: given.partition };
    if ('key' in given) return { key: base64(keyBytes(given.key), 'a key') };
  }
  throw invalid(`a partitioning is 'balanced', { partition } or { key }, not ${String(given)}`);
}

const AUTO = {
  interval: ['interval', micros],
  every: ['every'],
  after: ['after'],
};

/** @param {any} given */
function commit(given) {
  if (given === 'manual') return given;
  if (given === 'onRead') return 'on_read';
  if (given === 'auto') return { auto: {} };
  if (given !== null && typeof given === 'object' && 'auto' in given) {
    return { auto: members('an automatic commit', given.auto, AUTO) };
  }
  throw invalid(`a commit policy is 'manual', 'onRead', 'auto' or { auto }, not ${String(given)}`);
}

const POLL = {
  count: ['count'],
  maxWait: ['max_wait', micros],
  minCount: ['min_count'],
  maxBytes: ['max_bytes'],
  commit: ['commit', commit],
};

/** @param {any} given */
function pollOptions(given) {
  return members('poll options', given, POLL);
}

const ENCRYPTION = { cipher: ['cipher'], key: ['key', base64] };

/** @param {any} given */
function encryption(given) {
  return members('an encryption', { cipher: 'aes-256-gcm', ...given }, ENCRYPTION);
}

const TLS = { domain: ['domain'], caFile: ['ca_file'], validateCertificate: ['validate_certificate'] };

const CLIENT = {
  connectionString: ['connection_string'],
  serverAddress: ['server_address'],
  username: ['username'],
  password: ['password'],
  token: ['token'],
  tls: ['tls', (given) => members('tls', given === true ? {} : given, TLS)],
  nodelay: ['nodelay'],
  reconnectionMaxRetries: ['reconnection_max_retries'],
  reconnectionInterval: ['reconnection_interval', micros],
  reestablishAfter: ['reestablish_after', micros],
  heartbeatInterval: ['heartbeat_interval', micros],
  requestTimeout: ['request_timeout', micros],
  maxPendingOperations: ['max_pending_operations'],
  maxPendingOperationBytes: ['max_pending_operation_bytes'],
  maxFrameBytes: ['max_frame_bytes'],
  encryption: ['encryption', encryption],
};

const DIRECT = { batchLength: ['batch_length'], lingerTime: ['linger_time', micros] };



/** @param {any} given */
function failureMode(given) {
  if (given === 'block') return given;
  if (given === 'failImmediately') return 'fail_immediately';
  if (typeof given === 'number') return { block_with_timeout: micros(given, 'failureMode') };
  throw invalid(`a failure mode is 'block', 'failImmediately' or a time in milliseconds, not ${String(given)}`);
}

const BACKGROUND = {
  numShards: ['num_shards'],
  sharding: ['sharding'],
  batchSize: ['batch_size'],
  batchLength: ['batch_length'],
  lingerTime: ['linger_time', micros],
  maxBufferSize: ['max_buffer_size'],
  failureMode: ['failure_mode', failureMode],
  maxInFlight: ['max_in_flight'],
};

const NEW_TOPIC = {
  partitionsCount: ['partitions_count'],
  messageExpiry: ['message_expiry', micros],
  maxTopicSize: ['max_topic_size'],
  durability: ['durability'],
};

/** @param {any} given */
function newTopic(given) {
  return typeof given === 'boolean' ? given : members('a new topic', given, NEW_TOPIC);
}

const PRODUCER = {
  partitioning: ['partitioning', partitioning],
  createStream: ['create_stream'],
  createTopic: ['create_topic', newTopic],
  idempotent: ['idempotent'],
  direct: ['direct', (given) => members('direct', given === true ? {} : given, DIRECT)],
  background: ['background', (given) => members('background', given === true ? {} : given, BACKGROUND)],
  encryption: ['encryption', encryption],
  withoutEncryption: ['without_encryption'],
};

const RETRIES = { count: ['count'], interval: ['interval', micros] };

/** @param {any} given */
function partitions(given) {
  return [...given];
}

const CONSUMER = {
  pollingStrategy: ['start', strategy],
  pollOptions: ['poll_options', pollOptions],
  prefetchBytes: ['prefetch_bytes'],
  prefetchMessages: ['prefetch_messages'],
  pollingRetryInterval: ['polling_retry_interval', micros],
  initRetries: ['init_retries', (given) => members('initRetries', given, RETRIES)],
  allowReplay: ['allow_replay'],
  offsetDrainTimeout: ['offset_drain_timeout', micros],
  encryption: ['encryption', encryption],
  withoutEncryption: ['without_encryption'],
};

const OWN_CONSUMER = { partitions: ['partitions', partitions], ...CONSUMER };
const GROUP_CONSUMER = { createConsumerGroup: ['create_consumer_group'], ...CONSUMER };

const READER = {
  partitions: ['partitions', partitions],
  pollingStrategy: ['start', strategy],
  options: ['options', pollOptions],
  prefetchBytes: ['prefetch_bytes'],
  prefetchMessages: ['prefetch_messages'],
};

/**
 * Who reads; a bare name or number is a consumer of its own.
 *
 * @param {any} given
 * @returns {{ kind: string, id: string | number }}
 */
function consumer(given) {
  if (typeof given === 'string' || typeof given === 'number') return { kind: 'consumer', id: given };
  if (given !== null && typeof given === 'object') {
    const { kind = 'consumer', id } = members('a consumer', given, { kind: ['kind'], id: ['id'] });
    return { kind, id };
  }
  throw invalid(`a consumer is a name, a number or { kind, id }, not ${String(given)}`);
}

// For those who like names better than literals.

const PollingStrategy = Object.freeze({
  first: 'first',
  last: 'last',
  next: 'next',
  offset: (offset) => ({ offset }),
  timestamp: (timestamp) => ({ timestamp }),
});

const Partitioning = Object.freeze({
  balanced: 'balanced',
  partition: (partition) => ({ partition }),
  key: (key) => ({ key }),
});

const CommitPolicy = Object.freeze({
  manual: 'manual',
  onRead: 'onRead',
  auto: (auto = {}) => ({ auto }),
});

const PollOptions = Object.freeze({ wait: (maxWait, more = {}) => ({ ...more, maxWait }) });

module.exports = {
  CLIENT,
  CommitPolicy,
  GROUP_CONSUMER,
  OWN_CONSUMER,
  PRODUCER,
  Partitioning,
  PollOptions,
  PollingStrategy,
  READER,
  base64,
  big,
  consumer,
  json,
  members,
  micros,
  partitioning,
  pollOptions,
  start,
};
