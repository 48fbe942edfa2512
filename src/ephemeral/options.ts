import { InvalidOptionError } from '../core/errors.ts';
import type { ClientOptions, Heartbeat } from './api.ts';

/** etcd's own limit for a lease, in seconds. */
export const MAX_TTL_S = 9_000_000_000;
export const DEFAULT_TTL_S = 10;

/** What the client goes by, checked and complete. */
export interface ResolvedOptions {
  readonly namespace: string;
  readonly ttl: number;
  readonly heartbeat: Heartbeat;
  readonly candidate: boolean;
  readonly staleAfter: number;
  readonly stats: ClientOptions['stats'];
  readonly logger: ClientOptions['logger'];
}

export const CLIENT_OPTION_NAMES = [
  'namespace',
  'ttl',
  'heartbeat',
  'candidate',
  'staleAfter',
  'stats',
  'logger',
] as const;

export function resolveOptions(options: ClientOptions): ResolvedOptions {
  const {
    namespace = '',
    ttl = DEFAULT_TTL_S,
    heartbeat = 'lease',
    candidate = true,
    staleAfter = ttl,
    stats,
    logger,
  } = options;
  checkNamespace(namespace);
  if (!Number.isInteger(ttl) || ttl < 1 || ttl > MAX_TTL_S) {
    throw new InvalidOptionError(`ttl must be a whole number of seconds from 1 to ${MAX_TTL_S}, got ${String(ttl)}`);
  }
  checkHeartbeat(heartbeat);
  checkBoolean('candidate', candidate);
  if (typeof staleAfter !== 'number' || !(staleAfter > 0)) {
    throw new InvalidOptionError(`staleAfter must be a positive number of seconds, got ${String(staleAfter)}`);
  }
  checkMethods('stats', stats, ['bumpSum', 'bumpTime']);
  checkMethods('logger', logger, ['info', 'warn', 'error']);
  return { namespace, ttl, heartbeat, candidate, staleAfter, stats, logger };
}

export function checkNamespace(namespace: unknown): asserts namespace is string {
  if (typeof namespace === 'string' && Buffer.from(namespace).toString() === namespace) return;
  throw new InvalidOptionError(`namespace must be text, got ${describe(namespace)}`);
}

/** @throws InvalidOptionError for anything but an object with none but these names */
export function checkNames(what: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    // Not a text's content: it may be a URL with a password in it.
    const got = typeof options === 'string' ? 'text' : describe(options);
    throw new InvalidOptionError(`the options of ${what} must be an object, got ${got}`);
  }
  const unknown = Object.keys(options).filter((name) => !names.includes(name));
  if (unknown.length === 0) return;
  throw new InvalidOptionError(
    `${what} has no option ${unknown.map((name) => `"${name}"`).join(', ')}; it takes ${names.join(', ')}`,
  );
}

export function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean') {
    throw new InvalidOptionError(`${name} must be true or false, got ${describe(value)}`);
  }
}

export function checkOneOf(name: string, value: unknown, allowed: readonly string[]): void {
  if (value === undefined || (typeof value === 'string' && allowed.includes(value))) return;
  throw new InvalidOptionError(
    `${name} must be ${allowed.map((one) => `'${one}'`).join(' or ')}, got ${describe(value)}`,
  );
}

/** @throws InvalidOptionError for what is no text, or would not be the same when it is read again */
export function checkValue(path: string, value: unknown): asserts value is string {
  if (typeof value !== 'string')
    throw new InvalidOptionError(`the value of ${path} must be text, got ${describe(value)}`);
  if (!value.isWellFormed()) {
    throw new InvalidOptionError(`the value of ${path} is not well-formed Unicode: pass bytes as base64, say`);
  }
}

export function checkHeartbeat(heartbeat: unknown): void {
  checkOneOf('heartbeat', heartbeat, ['lease', 'put']);
}

export function checkSignal(name: string, signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidOptionError(`${name} must be an AbortSignal, got ${describe(signal)}`);
  }
}

function checkMethods(name: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined) return;
  const given = value as Record<string, unknown> | null;
  const missing = methods.filter((method) => typeof given?.[method] !== 'function');
  if (missing.length > 0)
    throw new InvalidOptionError(`${name} must have the method${missing.length > 1 ? 's' : ''} ${missing.join(', ')}`);
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value.length > 50 ? `${value.slice(0, 50)}…` : value);
  return Array.isArray(value) ? 'an array' : typeof value;
}
