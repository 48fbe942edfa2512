/** What tells an EtcdStore where to go and as whom. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../core/clock.ts';
import { ConnectionError, InvalidOptionError } from '../core/errors.ts';
import { type Endpoint, parseEndpoints } from './endpoints.ts';

/** PEM files' contents, as etcd3 takes them. */
export interface Credentials {
  readonly rootCertificate: Buffer;
  readonly privateKey?: Buffer | undefined;
  readonly certChain?: Buffer | undefined;
}

export interface Auth {
  readonly username: string;
  readonly password: string;
}

/** A value, or a function that is asked for it again at each connect. */
export type Source<T> = T | (() => T | Promise<T>);

export interface EtcdStoreOptions {
  /** `https://host:port`, one or several; the port defaults to 2379. */
  readonly hosts: Source<string | readonly string[]>;
  /** For https with a private CA, and for client certificates. */
  readonly credentials?: Source<Credentials | undefined> | undefined;
  readonly auth?: Source<Auth | undefined> | undefined;
  /** Channel options of grpc-js; they override the defaults. */
  readonly grpcOptions?: Readonly<Record<string, string | number>> | undefined;
  /** The key whose read proves a connection: one that the user may read, where there is such. Default: a zero byte. */
  readonly probeKey?: string | undefined;
  readonly clock?: Clock | undefined;
  /** Called with what each attempt to connect goes by. */
  readonly onResolved?: ((resolved: Resolved) => void) | undefined;
}

/** The options as they are for one connection. */
export interface Resolved {
  readonly endpoints: readonly Endpoint[];
  readonly credentials: Credentials | undefined;
  readonly auth: Auth | undefined;
}

function checkCredentials(credentials: Credentials): void {
  const { rootCertificate, privateKey, certChain } = credentials;
  if ((privateKey === undefined) !== (certChain === undefined)) {
    throw new InvalidOptionError('credentials: privateKey and certChain are given together or not at all');
  }
  try {
    // Node passes over a CA that is no certificate.
    new X509Certificate(rootCertificate);
    createSecureContext({
      ca: rootCertificate,
      ...(privateKey && { key: privateKey }),
      ...(certChain && { cert: certChain }),
    });
  } catch (cause) {
    throw new InvalidOptionError(`credentials: not usable as PEM: ${(cause as Error).message}`, { cause });
  }
}

function checkAuth(auth: Auth): void {
  if (typeof auth.username !== 'string' || auth.username === '' || typeof auth.password !== 'string') {
    throw new InvalidOptionError('auth: must be { username, password }, both text and the username not empty');
  }
}

function checkGrpcOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidOptionError('grpcOptions: must be an object of channel options');
  }
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new InvalidOptionError(`grpcOptions: ${name} must be text or a number`);
  }
}

function isFunction<T>(source: Source<T>): source is () => T | Promise<T> {
  return typeof source === 'function';
}

/** Checks what can be checked before anything is asked. Throws InvalidOptionError. */
export function checkOptions({ hosts, credentials, auth, grpcOptions }: EtcdStoreOptions): void {
  if (grpcOptions !== undefined) checkGrpcOptions(grpcOptions);
  const fixed = isFunction(credentials) ? undefined : credentials;
  if (fixed !== undefined) checkCredentials(fixed);
  if (auth !== undefined && !isFunction(auth)) checkAuth(auth);
  if (isFunction(hosts)) return;
  if (parseEndpoints(hosts, credentials !== undefined).length === 0) {
    throw new InvalidOptionError('hosts: at least one is needed');
  }
}

async function ask<T>(name: string, source: Source<T>): Promise<T> {
  if (!isFunction(source)) return source;
  try {
    return await source();
  } catch (cause) {
    throw new ConnectionError(`the function given as ${name} failed: ${String(cause)}`, { cause });
  }
}

/** Asks the functions among the options. What they give is checked as the options themselves are. */
export async function resolveOptions(options: EtcdStoreOptions): Promise<Resolved> {
  const [hosts, credentials, auth] = await Promise.all([
    ask('hosts', options.hosts),
    ask('credentials', options.credentials),
    ask('auth', options.auth),
  ]);
  if (credentials !== undefined && isFunction(options.credentials)) checkRenewed(credentials);
  if (auth !== undefined) checkAuth(auth);
  const endpoints = parseEndpoints(hosts, credentials !== undefined);
  if (endpoints.length === 0) throw new ConnectionError('the function given as hosts names no host at present');
  return { endpoints, credentials, auth };
}

/** Files that are just being replaced may be read half: that passes. */
function checkRenewed(credentials: Credentials): void {
  try {
    checkCredentials(credentials);
  } catch (cause) {
    throw new ConnectionError((cause as Error).message, { cause });
  }
}
