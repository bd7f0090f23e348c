'use strict';

/** A call that did not bring what was asked for. */
class IggyError extends Error {
  static className = 'error';

  /**
   * @param {string} message
   * @param {Record<string, any>} [about]
   */
  constructor(message, about = {}) {
    super(message, 'cause' in about ? { cause: about.cause } : undefined);
    const { code = 0, name = this.constructor.className, retryable = false } = about;
    const { outcome = 'not_applied', operation, partitionId } = about;
    // As every error of Node.js has it: not shown among the members.
    Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true });
    this.code = code;
    this.retryable = retryable;
    this.outcome = outcome;
    this.operation = operation;
    this.partitionId = partitionId;
  }

  get className() {
    return this.constructor.className;
  }
}

class ConnectionFailedError extends IggyError {
  static className = 'connection';
}
class AuthenticationError extends IggyError {
  static className = 'authentication';
}
class PermissionDeniedError extends IggyError {
  static className = 'permission';
}
class NotFoundError extends IggyError {
  static className = 'not_found';
}
class AlreadyExistsError extends IggyError {
  static className = 'already_exists';
}
class InvalidInputError extends IggyError {
  static className = 'invalid_input';
}
class LimitReachedError extends IggyError {
  static className = 'limit_reached';
}
class UnavailableError extends IggyError {
  static className = 'unavailable';
}
class UncertainError extends IggyError {
  static className = 'uncertain';
}
class StaleError extends IggyError {
  static className = 'stale';
}
class ServerError extends IggyError {
  static className = 'server';
}
class ClosedError extends IggyError {
  static className = 'closed';
}
class CancelledCallError extends IggyError {
  static className = 'cancelled';
}
class InheritedClientError extends IggyError {
  static className = 'inherited';
}
class InternalError extends IggyError {
  static className = 'internal';
}

const ALL = [
  ConnectionFailedError,
  AuthenticationError,
  PermissionDeniedError,
  NotFoundError,
  AlreadyExistsError,
  InvalidInputError,
  LimitReachedError,
  UnavailableError,
  UncertainError,
  StaleError,
  ServerError,
  ClosedError,
  CancelledCallError,
  InheritedClientError,
  InternalError,
];
const BY_CLASS = new Map(ALL.map((error) => [error.className, error]));

/**
 * The error of a failure as the native module writes it.
 *
 * @param {string} text
 * @param {{ cause?: unknown }} [more]
 */
function fromFailure(text, more = {}) {
  const failure = JSON.parse(text);
  const Class = BY_CLASS.get(failure.class) ?? IggyError;
  const operation = failure.operation === null ? undefined : BigInt(failure.operation);
  return new Class(failure.message, { ...failure, operation, partitionId: failure.partitionId ?? undefined, ...more });
}

/**
 * What a native call threw, as the caller should see it.
 *
 * @param {unknown} thrown
 * @param {{ cause?: unknown }} [more]
 */
function translated(thrown, more) {
  if (!(thrown instanceof Error) || thrown instanceof IggyError) return thrown;
  if (thrown.message.startsWith('{"class":')) return fromFailure(thrown.message, more);
  // The native module could not read an argument: a number where a text belongs, and so on.
  return new InvalidInputError(thrown.message, { code: 4, name: 'invalid_format', cause: thrown });
}

/** @param {string} message */
function invalid(message) {
  return new InvalidInputError(message, { code: 4, name: 'invalid_format' });
}

module.exports = { ALL, IggyError, fromFailure, invalid, translated };
for (const error of ALL) module.exports[error.name] = error;
