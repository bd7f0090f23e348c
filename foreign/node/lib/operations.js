'use strict';

// Where each operation of the core is in JavaScript: its group, its name, its arguments and what becomes of its result.

const { base64, big, consumer, members, micros } = require('./options.js');

const STREAM = { streamId: ['stream'] };
const TOPIC = { ...STREAM, topicId: ['topic'] };
const GROUP = { ...TOPIC, groupId: ['group'] };
const COUNT = { ...TOPIC, count: ['count'] };
const OFFSET = { consumer: ['consumer', consumer], ...TOPIC, partitionId: ['partition_id'] };
const LOOSE = { options: ['options'] };
const CHANGED = { ...LOOSE, reset: ['reset', (names) => [...names]] };

/** A new name is an option like others. */
function renamed(given) {
  const { name, ...others } = given;
  return name === undefined ? others : { ...others, options: { ...others.options, name } };
}

const STREAM_PERMISSIONS = { granted: ['granted', (names) => [...names]], topics: ['topics', topics] };
const PERMISSIONS = { global: ['global', (names) => [...names]], streams: ['streams', streams] };

/** By number, as an object or a map. */
function byNumber(given, each) {
  const entries = given instanceof Map ? [...given] : Object.entries(given);
  return Object.fromEntries(entries.map(([id, value]) => [String(id), each(value)]));
}

function topics(given) {
  return byNumber(given, (names) => [...names]);
}

function streams(given) {
  return byNumber(given, (stream) => members('permissions of a stream', stream, STREAM_PERMISSIONS));
}

function permissions(given) {
  return given === null ? null : members('permissions', given, PERMISSIONS);
}

const USER = { userId: ['user'] };

/**
 * @typedef {object} Operation
 * @property {string} operation Its name in the core.
 * @property {Record<string, any>} [takes] Its arguments.
 * @property {(given: any) => any} [before] What becomes of the arguments first.
 * @property {(result: any) => any} [after] What becomes of the result.
 */

const nothing = () => undefined;
const optional = (found) => found ?? undefined;

/** @type {Record<string, Record<string, Operation>>} */
const GROUPS = {
  session: {
    login: { operation: 'login_user', takes: { username: ['username'], password: ['password'] } },
    loginWithToken: { operation: 'login_with_personal_access_token', takes: { token: ['token'] } },
    logout: { operation: 'logout_user', after: nothing },
    userId: { operation: 'user_id', after: optional },
    uncertainOperations: { operation: 'uncertain_operations' },
    resolveOperation: {
      operation: 'resolve_operation',
      takes: { operation: ['operation', big], deadline: ['deadline', micros] },
      after: ({ outcome }) => outcome === 'applied',
    },
    abandonOperation: {
      operation: 'abandon_operation',
      takes: { operation: ['operation', big] },
      after: nothing,
    },
  },
  system: {
    ping: { operation: 'ping', after: nothing },
    stats: { operation: 'get_stats' },
    me: { operation: 'get_me' },
    client: { operation: 'get_client', takes: { clientId: ['client_id'] }, after: optional },
    clients: { operation: 'get_clients' },
    cluster: { operation: 'get_cluster_metadata' },
    connectionInfo: { operation: 'get_connection_info' },
    heartbeatInterval: { operation: 'heartbeat_interval', after: (found) => found / 1000 },
    describeOptions: { operation: 'describe_options', takes: { scope: ['scope'] } },
    snapshot: {
      operation: 'snapshot',
      takes: { types: ['types', (names) => [...names]], compression: ['compression'] },
      after: (text) => Buffer.from(text, 'base64'),
    },
    changes: {
      operation: 'get_metadata_changes',
      takes: {
        start: ['start'],
        token: ['token'],
        since: ['since', big],
        until: ['until', big],
        limit: ['limit'],
        groups: ['groups', (numbers) => [...numbers]],
      },
      before: (given) => ({ start: 'earliest', ...given }),
    },
  },
  stream: {
    get: { operation: 'get_stream', takes: STREAM, after: optional },
    list: { operation: 'get_streams' },
    create: {
      operation: 'create_stream',
      takes: { name: ['name'], encryptionKey: ['encryption_key', base64], ...LOOSE },
    },
    update: { operation: 'update_stream', takes: { ...STREAM, ...CHANGED }, before: renamed, after: nothing },
    delete: { operation: 'delete_stream', takes: STREAM, after: nothing },
  },
  topic: {
    get: { operation: 'get_topic', takes: TOPIC, after: optional },
    list: { operation: 'get_topics', takes: STREAM },
    create: {
      operation: 'create_topic',
      takes: { ...STREAM, name: ['name'], partitionsCount: ['partitions_count'], ...LOOSE },
    },
    update: { operation: 'update_topic', takes: { ...TOPIC, ...CHANGED }, before: renamed, after: nothing },
    delete: { operation: 'delete_topic', takes: TOPIC, after: nothing },
  },
  partition: {
    create: { operation: 'create_partitions', takes: COUNT, after: nothing },
    delete: { operation: 'delete_partitions', takes: COUNT, after: nothing },
  },
  segment: {
    delete: {
      operation: 'delete_segments',
      takes: { ...COUNT, partitionId: ['partition_id'] },
      after: nothing,
    },
  },
  group: {
    get: { operation: 'get_consumer_group', takes: GROUP, after: optional },
    list: { operation: 'get_consumer_groups', takes: TOPIC },
    create: { operation: 'create_consumer_group', takes: { ...TOPIC, name: ['name'] } },
    delete: { operation: 'delete_consumer_group', takes: GROUP, after: nothing },
    join: { operation: 'join_consumer_group', takes: GROUP, after: nothing },
    leave: { operation: 'leave_consumer_group', takes: GROUP, after: nothing },
    sync: { operation: 'sync_consumer_group', takes: GROUP, after: optional },
  },
  offset: {
    get: { operation: 'get_consumer_offset', takes: OFFSET, after: optional },
    store: {
      operation: 'store_consumer_offset',
      takes: { ...OFFSET, offset: ['offset', big] },
      after: nothing,
    },
    delete: { operation: 'delete_consumer_offset', takes: OFFSET, after: nothing },
  },
  user: {
    get: { operation: 'get_user', takes: USER, after: optional },
    list: { operation: 'get_users' },
    create: {
      operation: 'create_user',
      takes: {
        username: ['username'],
        password: ['password'],
        status: ['status'],
        permissions: ['permissions', permissions],
        ...LOOSE,
      },
    },
    update: {
      operation: 'update_user',
      takes: { ...USER, username: ['username'], status: ['status'], ...CHANGED },
      after: nothing,
    },
    updatePermissions: {
      operation: 'update_permissions',
      takes: { ...USER, permissions: ['permissions', permissions] },
      after: nothing,
    },
    changePassword: {
      operation: 'change_password',
      takes: { ...USER, current: ['current'], new: ['new'] },
      after: nothing,
    },
    delete: { operation: 'delete_user', takes: USER, after: nothing },
  },
  token: {
    list: { operation: 'get_personal_access_tokens' },
    create: { operation: 'create_personal_access_token', takes: { name: ['name'], expiry: ['expiry', micros] } },
    delete: { operation: 'delete_personal_access_token', takes: { name: ['name'] }, after: nothing },
  },
  message: {
    nextProducerId: { operation: 'next_producer_id' },
  },
};

/** Operations that are not made from the table above, and where they are. */
const ELSEWHERE = {
  from_connection_string: 'constructor',
  builder_from_connection_string: 'constructor',
  builder: 'constructor',
  connect: 'connect',
  disconnect: 'disconnect',
  shutdown: 'shutdown',
  subscribe_events: 'events',
  store_consumer_position: 'offset.storePosition',
  delete_consumer_position: 'offset.deletePosition',
  poll_messages: 'message.poll',
  send_messages: 'message.send',
  send_producer_messages: 'message.sendIdempotent',
  producer: 'producer',
  consumer: 'consumer',
  consumer_group: 'consumerGroup',
  reader: 'message.reader',
  send_binary_request: 'raw.send',
  send_binary_request_with_deadline: 'raw.send',
  send_binary_request_to_replica: 'raw.send',
  send_binary_request_to_replica_with_deadline: 'raw.send',
};

module.exports = { ELSEWHERE, GROUPS };
