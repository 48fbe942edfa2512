/** etcd's and gRPC's errors, made into ours. Pure. */
import {
  CompactedError,
  ConnectionError,
  type EphemeralError,
  LeaseNotFoundError,
  NoSpaceError,
  PermissionDeniedError,
  StoreError,
  UnauthenticatedError,
  ValueTooLargeError,
} from '../core/errors.ts';

/** What gRPC says of a call that failed: a status code and, as text, what etcd adds. */
export interface GrpcFailure {
  readonly code?: number | undefined;
  readonly details?: string | undefined;
  readonly message?: string | undefined;
}

export interface FailureContext {
  readonly endpoint: string;
  readonly timeoutMs?: number | undefined;
}

/** https://grpc.io/docs/guides/status-codes */
const GRPC = {
  CANCELLED: 1,
  UNKNOWN: 2,
  DEADLINE_EXCEEDED: 4,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** After these the outcome of a write is open, so that they must not become another kind of error. */
const OPEN_OUTCOME = new Set<number>([
  GRPC.CANCELLED,
  GRPC.UNKNOWN,
  GRPC.DEADLINE_EXCEEDED,
  GRPC.ABORTED,
  GRPC.INTERNAL,
  GRPC.UNAVAILABLE,
]);

/**
 * Node's words for a handshake that will fail again. A peer that hung up in the midst of one ("before secure TLS connection was
 * established") may only be restarting.
 */
const TLS_FAILURE =
  /certificate|self[- ]signed|unable to (?:verify|get)|ERR_TLS|CERT_|SSL routines|ssl3_|wrong version number|altnames|alert (?:number|bad|unknown|handshake)/i;

/**
 * Node's words for what a handshake failed of, and what mends it. "Alert" is the server's refusal of us: etcd 3.4 has one word for all
 * of them, later ones tell why.
 */
const TLS_ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /alert certificate required/,
    'it asks for a client certificate and was shown none: give credentials.certChain and privateKey',
  ],
  [/alert certificate expired/, 'our client certificate has expired: renew credentials.certChain'],
  [/alert unknown ca/, 'its CA did not sign our client certificate: check credentials.certChain'],
  [
    /alert bad certificate/,
    'it refuses our client certificate, or was shown none: give credentials.certChain and privateKey that its CA signed and that have not expired',
  ],
  [/certificate has expired/, 'its certificate has expired, or our clock is wrong: renew it'],
  [/certificate is not yet valid/, 'its certificate is not valid yet, or our clock is wrong'],
  [/altnames/, 'its certificate is for other names: connect by one of those, or have it issued for this one'],
  [
    /self[- ]signed|unable to (?:verify|get)/,
    'its certificate was not signed by the CA that is trusted: check the CA in credentials.rootCertificate',
  ],
];

/** Where in OpenSSL's sources it was found out, around the words that say what. */
const OPENSSL_NOISE = /[0-9A-F]+:error:[0-9A-F]+:[^:]+:[^:]*:([^:]+):.*$/;

/** What a handshake that will fail again most likely failed of. */
function tlsAdvice(text: string): string {
  const known = TLS_ADVICE.find(([pattern]) => pattern.test(text));
  return known?.[1] ?? 'check the CA, the client certificate and that the server speaks TLS';
}

const HUNG_UP_IN_HANDSHAKE = /before secure TLS connection was established/;

const STALE_TOKEN = /invalid auth token|user name is empty|revision of auth store is old/;

type Translation = (text: string, context: FailureContext, cause: unknown) => EphemeralError;

/** The first pattern found in the text decides, whatever the code: etcd's codes differ from version to version. */
const BY_TEXT: readonly (readonly [RegExp, Translation])[] = [
  [/required revision has been compacted/, () => new CompactedError(0)],
  [
    /requested lease not found/,
    (_, { endpoint }, cause) => new LeaseNotFoundError(`${endpoint} knows no such lease (any more)`, { cause }),
  ],
  [
    /database space exceeded/,
    (_, { endpoint }, cause) =>
      new NoSpaceError(`etcd at ${endpoint} is full: compact, defragment and disarm its alarm, or raise its quota`, {
        cause,
      }),
  ],
  [
    /request is too large|message larger than max|message with a size larger than/i,
    (text, { endpoint }, cause) =>
      new ValueTooLargeError(`too large for etcd at ${endpoint} (its --max-request-bytes): ${text}`, { cause }),
  ],
  [
    /authentication failed|user name not found/,
    (_, { endpoint }, cause) =>
      new UnauthenticatedError(`etcd at ${endpoint} refuses this user and password: check the option auth`, { cause }),
  ],
  [
    STALE_TOKEN,
    (_, { endpoint }, cause) =>
      new UnauthenticatedError(`etcd at ${endpoint} wants to know who we are: check the option auth`, { cause }),
  ],
  [
    /permission denied/,
    (_, { endpoint }, cause) =>
      new PermissionDeniedError(`etcd at ${endpoint} does not let this user do that: grant its role the key range`, {
        cause,
      }),
  ],
  [
    /Request message serialization failure/,
    (text, { endpoint }, cause) =>
      new StoreError(`not a request that could be sent to ${endpoint}: ${text}`, { cause }),
  ],
  [
    /too many requests|leader changed|no leader|request timed out|request ignored|server stopped|unhealthy cluster|learner/,
    (text, { endpoint }, cause) => new ConnectionError(`etcd at ${endpoint} cannot serve now: ${text}`, { cause }),
  ],
];

function connectionError(
  text: string,
  code: number | undefined,
  context: FailureContext,
  cause: unknown,
): ConnectionError {
  const { endpoint, timeoutMs } = context;
  if (code === GRPC.DEADLINE_EXCEEDED && timeoutMs !== undefined) {
    return new ConnectionError(
      `${endpoint} did not answer within ${timeoutMs} ms: is etcd running and reachable there?`,
      {
        cause,
      },
    );
  }
  if (HUNG_UP_IN_HANDSHAKE.test(text)) {
    const message = `${endpoint} hung up before TLS was established: is it starting or stopping, or does it not speak TLS?`;
    return new ConnectionError(message, { cause });
  }
  if (code === GRPC.UNAVAILABLE && TLS_FAILURE.test(text)) {
    return new ConnectionError(
      `no TLS connection to ${endpoint}: ${tlsAdvice(text)} (${text.replace(OPENSSL_NOISE, '$1')})`,
      {
        cause,
        retryable: false,
      },
    );
  }
  return new ConnectionError(`the connection to ${endpoint} failed: ${text}`, { cause });
}

/** What grpc-js puts around the cause that helps nobody: when it was, and an empty note. */
const NOISE =
  /\s*\(\d{4}-\d\d-\d\dT[\d:.]+Z\)|\.?\s*Resolution note:\s*$|^No connection established\. Last error: (?:Error: )?/g;

function textOf({ code, details, message }: GrpcFailure): string {
  return (details || message || `gRPC status ${code}`).replace(NOISE, '');
}

/** Never throws. */
export function translateError(failure: GrpcFailure, context: FailureContext): EphemeralError {
  const { code } = failure;
  const text = textOf(failure);
  for (const [pattern, translation] of BY_TEXT) {
    if (pattern.test(text)) return translation(text, context, failure);
  }
  if (code === undefined || OPEN_OUTCOME.has(code)) return connectionError(text, code, context, failure);
  if (code === GRPC.UNAUTHENTICATED) {
    return new UnauthenticatedError(`${context.endpoint} does not accept who we are: ${text}`, { cause: failure });
  }
  if (code === GRPC.PERMISSION_DENIED) {
    return new PermissionDeniedError(`${context.endpoint} does not allow that: ${text}`, { cause: failure });
  }
  if (code === GRPC.UNIMPLEMENTED) {
    return new StoreError(`${context.endpoint} does not speak etcd's v3 protocol: ${text}`, { cause: failure });
  }
  return new StoreError(`etcd at ${context.endpoint} refuses: ${text}`, { cause: failure });
}

/** Whether a new token may help. */
export function isStaleToken(failure: GrpcFailure): boolean {
  return STALE_TOKEN.test(failure.details || failure.message || '');
}

/** Whether the refusal is about who asks. Without a token etcd takes the name in a client's certificate, which may be no user's. */
export function isAboutUser(failure: GrpcFailure): boolean {
  const isCode = failure.code === GRPC.PERMISSION_DENIED || failure.code === GRPC.UNAUTHENTICATED;
  return isCode || /permission denied|^auth: |user/.test(failure.details || failure.message || '');
}

/** Whether the server has no users at all, so that none need be named. */
export function isAuthDisabled(failure: GrpcFailure): boolean {
  return /authentication is not enabled/.test(failure.details || failure.message || '');
}
