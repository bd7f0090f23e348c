'use strict';

const { join } = require('node:path');

const { load } = require('./loader.js');
const { target } = require('./target.js');

module.exports = load(target(), join(__dirname, '..', 'native'));
