/** Errors: one base class with a stable `code`; each message says what happened, where, and what to do. */

export interface ErrorOptionsWithCause {
  readonly cause?: unknown;
}

/** The base of every error this library throws or reports. */
export abstract class EphemeralError extends Error {
  /** Stable and meant for programs; messages may change between versions. */
  abstract readonly code: string;
  /** Whether the same call may succeed later without anything changed by the caller. */
  readonly retryable: boolean = false;

  constructor(message: string, options?: ErrorOptionsWithCause) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
  }
}

/** A path that is not absolute, or has an empty, `.`, `..`, reserved or unprintable segment. */
export class InvalidPathError extends EphemeralError {
  readonly code = 'INVALID_PATH';
}

/** An option that is unknown, of the wrong type, out of range, or at odds with another. */
export class InvalidOptionError extends EphemeralError {
  readonly code = 'INVALID_OPTION';
}

/** The path exists already: a key that another owner holds, or a directory that was added before. */
export class PathExistsError extends EphemeralError {
  readonly code = 'PATH_EXISTS';
}

/** Nothing is there: neither a key, nor an added directory, nor anything below. */
export class PathNotFoundError extends EphemeralError {
  readonly code = 'PATH_NOT_FOUND';
}

/** A directory where a key was asked for. */
export class IsDirectoryError extends EphemeralError {
  readonly code = 'IS_DIRECTORY';
}

/** A key where a directory was asked for. */
export class NotADirectoryError extends EphemeralError {
  readonly code = 'NOT_A_DIRECTORY';
}

/** A directory with something in it cannot be removed. */
export class DirectoryNotEmptyError extends EphemeralError {
  readonly code = 'DIRECTORY_NOT_EMPTY';
}

/** A key of ours is held by another owner now. */
export class ConflictError extends EphemeralError {
  readonly code = 'CONFLICT';
  override readonly retryable = true;
}

/** A key was deleted or its lease revoked by someone else, or expired unnoticed. */
export class RevokedError extends EphemeralError {
  readonly code = 'REVOKED';
  override readonly retryable = true;
}

/** The value is larger than the store takes. */
export class ValueTooLargeError extends EphemeralError {
  readonly code = 'VALUE_TOO_LARGE';
}

/** The client was closed. */
export class ClosedError extends EphemeralError {
  readonly code = 'CLOSED';
}

/** The store cannot be reached, or did not answer in time. */
export class ConnectionError extends EphemeralError {
  readonly code = 'CONNECTION';
  override readonly retryable: boolean;

  constructor(message: string, options?: ErrorOptionsWithCause & { readonly retryable?: boolean }) {
    super(message, options);
    this.retryable = options?.retryable ?? true;
  }
}

/** The store knows the user and does not let it do this. */
export class PermissionDeniedError extends EphemeralError {
  readonly code = 'PERMISSION_DENIED';
}

/** The store does not accept who we say we are. */
export class UnauthenticatedError extends EphemeralError {
  readonly code = 'UNAUTHENTICATED';
}

/** A live list ended because its signal was aborted; `cause` is the signal's reason. */
export class WatchStoppedError extends EphemeralError {
  readonly code = 'WATCH_STOPPED';
}

/** The store is full (etcd's NOSPACE alarm): nothing can be written until an operator makes room. */
export class NoSpaceError extends EphemeralError {
  readonly code = 'NO_SPACE';
  override readonly retryable = true;
}

/** The store refused a request for a reason that none of the other errors names. */
export class StoreError extends EphemeralError {
  readonly code = 'STORE';
}

/** The revision asked for is gone. Handled inside: a watch lists again. */
export class CompactedError extends EphemeralError {
  readonly code = 'COMPACTED';

  constructor(readonly compactRevision: number) {
    super(`the revision asked for was compacted; the oldest one left is ${compactRevision}`);
  }
}

/** The lease is not there (any more). Handled inside: a new one is made. */
export class LeaseNotFoundError extends EphemeralError {
  readonly code = 'LEASE_NOT_FOUND';
}

/** What was thrown, as one of ours. */
export function toEphemeralError(error: unknown): EphemeralError {
  if (error instanceof EphemeralError) return error;
  return new StoreError(error instanceof Error ? error.message : String(error), { cause: error });
}

/** What the store's adapter says, which knows the endpoint and what to do, but not the path that a call was about. */
const FROM_THE_STORE = [
  ConnectionError,
  PermissionDeniedError,
  UnauthenticatedError,
  ValueTooLargeError,
  NoSpaceError,
  StoreError,
] as const;

/** The same error, with its subject in front of the message where the message does not name it. */
export function concerning(subject: string, error: EphemeralError): EphemeralError {
  const Kind = FROM_THE_STORE.find((kind) => error instanceof kind);
  if (!Kind || error.message.includes(subject)) return error;
  return new Kind(`${subject}: ${error.message}`, { cause: error.cause ?? error, retryable: error.retryable });
}
