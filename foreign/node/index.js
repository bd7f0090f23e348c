'use strict';

// The one implementation; index.mjs gives the same objects to `import`.

const { Client } = require('./lib/client.js');
const { Checkpoint, Continuation } = require('./lib/native.js');
const { Consumer, Events, Reader } = require('./lib/reading.js');
const { HeaderValue, Message, PolledMessages, ReceivedMessage } = require('./lib/message.js');
const { Producer } = require('./lib/producer.js');
const { CommitPolicy, Partitioning, PollOptions, PollingStrategy } = require('./lib/options.js');
const errors = require('./lib/errors.js');

module.exports.AlreadyExistsError = errors.AlreadyExistsError;
module.exports.AuthenticationError = errors.AuthenticationError;
module.exports.CancelledCallError = errors.CancelledCallError;
module.exports.Checkpoint = Checkpoint;
module.exports.Client = Client;
module.exports.ClosedError = errors.ClosedError;
module.exports.CommitPolicy = CommitPolicy;
module.exports.ConnectionFailedError = errors.ConnectionFailedError;
module.exports.Consumer = Consumer;
module.exports.Continuation = Continuation;
module.exports.Events = Events;
module.exports.HeaderValue = HeaderValue;
module.exports.IggyError = errors.IggyError;
module.exports.InheritedClientError = errors.InheritedClientError;
module.exports.InternalError = errors.InternalError;
module.exports.InvalidInputError = errors.InvalidInputError;
module.exports.LimitReachedError = errors.LimitReachedError;
module.exports.Message = Message;
module.exports.NotFoundError = errors.NotFoundError;
module.exports.Partitioning = Partitioning;
module.exports.PermissionDeniedError = errors.PermissionDeniedError;
module.exports.PollOptions = PollOptions;
module.exports.PolledMessages = PolledMessages;
module.exports.PollingStrategy = PollingStrategy;
module.exports.Producer = Producer;
module.exports.Reader = Reader;
module.exports.ReceivedMessage = ReceivedMessage;
module.exports.ServerError = errors.ServerError;
module.exports.StaleError = errors.StaleError;
module.exports.UnavailableError = errors.UnavailableError;
module.exports.UncertainError = errors.UncertainError;
