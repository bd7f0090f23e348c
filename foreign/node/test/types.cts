// Not run: compiled, to see that `require` has the same types.

import iggy = require('iggy');

export function made(): iggy.Client {
  return new iggy.Client({ serverAddress: '127.0.0.1:8090', requestTimeout: 1000 });
}
