// What calls fail with: one class per thing a caller would do about it.

/** Whether a write took effect. */
export type Outcome = 'applied' | 'not_applied' | 'unknown';

/** A call that did not bring what was asked for. */
export class IggyError extends Error {
  /** The name of the code in snake_case, as `stream_name_not_found`; of the class where there is no code. */
  readonly name: string;
  /** The code on the wire; 0 for failures that have none. */
  readonly code: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly outcome: Outcome;
  /** The operation to resolve or abandon when the outcome is unknown. */
  readonly operation: bigint | undefined;
  /** The partition it concerns, when it is about reading one. */
  readonly partitionId: number | undefined;
  /** The name of the class in snake_case. */
  readonly className: string;
}
/** The server cannot be reached, or the link broke: check the address, or wait. */
export class ConnectionFailedError extends IggyError {}
/** Sign in, or sign in as somebody else. */
export class AuthenticationError extends IggyError {}
/** The user may not do this. */
export class PermissionDeniedError extends IggyError {}
/** What was named does not exist. */
export class NotFoundError extends IggyError {}
/** What was to be created exists. */
export class AlreadyExistsError extends IggyError {}
/** The call itself is wrong: fix its arguments. */
export class InvalidInputError extends IggyError {}
/** A limit was reached: wait, or ask for less. */
export class LimitReachedError extends IggyError {}
/** The server did not take the call this time: the same call may succeed later. */
export class UnavailableError extends IggyError {}
/** Nobody can say whether the write was applied: resolve or abandon its operation. */
export class UncertainError extends IggyError {}
/** The position, owner or epoch belongs to the past: look it up again. */
export class StaleError extends IggyError {}
/** The server failed. */
export class ServerError extends IggyError {}
/** The client, producer, consumer or reader was closed. */
export class ClosedError extends IggyError {}
/** The call was given up by its signal; a write may have been applied all the same. */
export class CancelledCallError extends IggyError {}
/** The object was made before the process forked: make a new client. */
export class InheritedClientError extends IggyError {}
/** The client failed inside; please report it. */
export class InternalError extends IggyError {}
