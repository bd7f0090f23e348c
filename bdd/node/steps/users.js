// Users, permissions, signing in, tokens.

import assert from 'node:assert/strict';

import { Given, Then, When } from '@cucumber/cucumber';
import { Client, IggyError } from 'iggy';

import { names } from '../values.js';
import { nextMessages, sendBy } from './messages.js';
import { PLENTY, pollBy } from './polls.js';

const PASSWORD = 'secret123';

Given('a signed-in client', async function () {
  await this.signIn();
});

/** Permissions in words. */
async function permissions(world, text) {
  if (text === 'do nothing') return {};
  const prefix = 'poll messages of ';
  if (!text.startsWith(prefix)) return { global: [text.replaceAll(' ', '_')] };
  const stream = text.slice(prefix.length);
  let number = 1000;
  if (stream !== 'another stream') {
    number = (await world.client.stream.get({ streamId: stream.replaceAll('"', '') })).id;
  }
  return { streams: { [number]: { granted: ['poll_messages'] } } };
}

Given(/^the user "(.*)" who may (.*)$/, async function (username, may) {
  const granted = await permissions(this, may);
  await this.client.user.create({ username, password: PASSWORD, permissions: granted });
});

When(/^the user "(.*)" with the password "(.*)" is created$/, async function (username, password) {
  await this.try(() => this.client.user.create({ username, password }));
});

Then(/^the user "(.*)" exists and is active$/, async function (name) {
  this.expectNoError();
  const found = await this.client.user.get({ userId: name });
  assert.deepEqual([found?.username, found?.status], [name, 'active']);
});

When(/^the user "(.*)" is made inactive$/, async function (userId) {
  await this.try(() => this.client.user.update({ userId, status: 'inactive' }));
});

When(/^the user "([^"]*)" is deleted$/, async function (userId) {
  await this.try(() => this.client.user.delete({ userId }));
});

Then(/^the user "(.*)" does not exist$/, async function (userId) {
  this.expectNoError();
  assert.equal(await this.client.user.get({ userId }), undefined);
});

When(/^the permissions of "(.*)" become (.*)$/, async function (userId, may) {
  const granted = await permissions(this, may);
  await this.try(() => this.client.user.updatePermissions({ userId, permissions: granted }));
});

When(/^the password of "(.*)" is changed to "(.*)"$/, async function (userId, changed) {
  await this.try(() => this.client.user.changePassword({ userId, current: PASSWORD, new: changed }));
});

async function signIn(world, credentials) {
  const client = await world.connect(credentials);
  try {
    await client.system.me();
  } finally {
    await client.shutdown();
  }
}

const named = (code) => (error) => error instanceof IggyError && error.name === code;

Then(/^signing in as "(.*)" with "(.*)" succeeds$/, async function (name, password) {
  await signIn(this, `${name}:${password}`);
});

Then(/^signing in as "(.*)" with "(.*)" fails with "(\w+)"$/, async function (name, password, code) {
  this.expectNoError();
  await assert.rejects(signIn(this, `${name}:${password}`), named(code));
});

/** The client of a user, signed in at first use. */
async function clientOf(world, name) {
  if (!world.clients.has(name)) world.clients.set(name, await world.connect(`${name}:${PASSWORD}`));
  return world.clients.get(name);
}

Given(/^"([^"]*)" is signed in$/, async function (name) {
  await clientOf(this, name);
});

When(/^"([^"]*)" polls partition (\d+)$/, async function (name, partition) {
  await pollBy(this, await clientOf(this, name), Number(partition), 'reader', 'first', PLENTY);
});

When(/^"([^"]*)" sends (\d+) messages to partition (\d+)$/, async function (name, count, partition) {
  const client = await clientOf(this, name);
  const messages = nextMessages(this, Number(partition), Number(count));
  await this.try(() => sendBy(this, client, Number(partition), messages));
});

When(/^"([^"]*)" creates the stream "(.*)"$/, async function (name, stream) {
  const client = await clientOf(this, name);
  await this.try(() => client.stream.create({ name: stream }));
});

When(/^"([^"]*)" lists the users$/, async function (name) {
  const client = await clientOf(this, name);
  await this.try(() => client.user.list());
});

Given(/^the token "([^"]*)"$/, async function (name) {
  this.tokens.set(name, await this.client.token.create({ name }));
});

When(/^the token "([^"]*)" is created$/, async function (name) {
  await this.try(() => this.client.token.create({ name }));
});

When(/^the token "([^"]*)" is deleted$/, async function (name) {
  await this.try(() => this.client.token.delete({ name }));
});

Then(/^the tokens are (.*)$/, async function (expected) {
  const found = await this.client.token.list();
  assert.deepEqual(
    found.map((token) => token.name),
    names(expected),
  );
});

/** Signs in with a token that is held apart from the address. */
async function tryToken(world, token) {
  const client = new Client({ serverAddress: world.node.address });
  try {
    await client.session.loginWithToken({ token });
    await client.system.me();
  } finally {
    await client.shutdown();
  }
}

Then(/^signing in with the token "(.*)" succeeds$/, async function (name) {
  await tryToken(this, this.tokens.get(name));
});

Then(/^signing in with the token "(.*)" fails with "(\w+)"$/, async function (name, code) {
  this.expectNoError();
  await assert.rejects(tryToken(this, this.tokens.get(name)), named(code));
});

Then(/^signing in with the token text "(.*)" fails with "(\w+)"$/, async function (text, code) {
  await assert.rejects(tryToken(this, text), named(code));
});

Then(/^a client whose connection string holds the token "(.*)" can ask who it is$/, async function (name) {
  await signIn(this, this.tokens.get(name));
});
