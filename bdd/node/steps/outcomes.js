// How the last request ended.

import assert from 'node:assert/strict';

import { Then } from '@cucumber/cucumber';

Then('the request succeeds', function () {
  this.expectNoError();
});

Then(/^the request fails with "(\w+)"$/, function (code) {
  const error = this.takeError();
  assert.equal(error.name, code, error.message);
});
