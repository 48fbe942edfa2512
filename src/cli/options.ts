import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { InvalidArgumentError } from 'commander';
import { messageOf } from '../core/log.ts';
import { MAX_TTL_S } from '../ephemeral/options.ts';
import type { ConnectOptions, Context } from './context.ts';
import { UsageError } from './exit.ts';

/** The flags that every command takes. */
export interface GlobalFlags {
  endpoints?: string[];
  namespace?: string;
  ttl?: number;
  /** Seconds. */
  timeout: number;
  cacert?: string;
  cert?: string;
  key?: string;
  user?: string;
  passwordFile?: string;
  json?: boolean;
}

type Environment = Context['env'];

const DEFAULT_ENDPOINT = '127.0.0.1:2379';
/** setTimeout counts milliseconds in 31 bits; what is longer it would take for 1 ms. */
const MAX_DURATION_S = 2_147_483;

/** An empty variable counts as unset, as with etcdctl. */
const variable = (env: Environment, name: string): string | undefined => env[name] || undefined;

export function parseWholeSeconds(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > MAX_TTL_S)
    throw new InvalidArgumentError(`It is a whole number of seconds, from 1 to ${MAX_TTL_S}.`);
  return Number(text);
}

export function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > MAX_DURATION_S) {
    throw new InvalidArgumentError(`It is a number of seconds, at most ${MAX_DURATION_S}.`);
  }
  return seconds;
}

export function parsePositiveSeconds(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds === 0) throw new InvalidArgumentError('It is a number of seconds above 0.');
  return seconds;
}

export function parseList(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.includes('')) throw new InvalidArgumentError('It is a list with commas between, none of its parts empty.');
  return parts;
}

/** The endpoints that were asked for, by flag or environment; undefined when none were. */
export function givenEndpoints(flags: Pick<GlobalFlags, 'endpoints'>, env: Environment): string[] | undefined {
  if (flags.endpoints !== undefined) return flags.endpoints;
  for (const name of ['ETCDCTL_ENDPOINTS', 'ETCD_ENDPOINTS']) {
    const text = variable(env, name);
    if (text === undefined) continue;
    try {
      return parseList(text);
    } catch (error) {
      throw new UsageError(`${name} is ${text.includes('@') ? 'wrong' : `"${text}"`}. ${messageOf(error)}`);
    }
  }
  return undefined;
}

function toUrl(endpoint: string, tls: boolean): string {
  if (/^unix:\/\/\//i.test(endpoint)) return endpoint;
  if (endpoint.includes('@')) {
    throw new UsageError('an endpoint holds no user and no password: use --user and --password-file');
  }
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(endpoint) ? endpoint : `${tls ? 'https' : 'http'}://${endpoint}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isBare = url?.pathname === '/' && url.search === '' && url.hash === '' && !/\s/.test(endpoint);
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.hostname === '' || !isBare) {
    throw new UsageError(
      `endpoint "${endpoint}" is none: give host:port, http://host:port, https://host:port or unix:///path`,
    );
  }
  if (tls && url.protocol === 'http:') {
    throw new UsageError(
      `endpoint "${endpoint}" is http, but certificates or https endpoints are given: make it https, or leave them out`,
    );
  }
  return text;
}

function readFile(path: string, meaning: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`cannot read ${meaning}: ${messageOf(error)}`);
  }
}

function credentials(flags: GlobalFlags, env: Environment): ConnectOptions['credentials'] {
  const cacert = flags.cacert ?? variable(env, 'ETCDCTL_CACERT');
  const cert = flags.cert ?? variable(env, 'ETCDCTL_CERT');
  const key = flags.key ?? variable(env, 'ETCDCTL_KEY');
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('--cert and --key go together');
  if (cacert === undefined && cert === undefined) return undefined;
  return {
    // Without an authority of its own, a client certificate is shown to servers that the public ones vouch for.
    rootCertificate:
      cacert === undefined ? Buffer.from(rootCertificates.join('\n')) : readFile(cacert, 'the authority’s certificate'),
    ...(cert !== undefined && { certChain: readFile(cert, 'the certificate') }),
    ...(key !== undefined && { privateKey: readFile(key, 'the key') }),
  };
}

function splitUser(text: string): { username: string; password?: string } {
  const colon = text.indexOf(':');
  return colon === -1 ? { username: text } : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function auth(flags: GlobalFlags, env: Environment): ConnectOptions['auth'] {
  const fromFile =
    flags.passwordFile === undefined
      ? undefined
      : readFile(flags.passwordFile, 'the password file')
          .toString('utf8')
          .replace(/\r?\n$/, '');
  const fromEnv = variable(env, 'ETCDCTL_PASSWORD');
  if (flags.user !== undefined) {
    const { username, password } = splitUser(flags.user);
    // Everyone on the machine can read a command line.
    if (password !== undefined)
      throw new UsageError(
        '--user takes the name alone, as all on this machine can read a command line: put the password into --password-file or ETCDCTL_PASSWORD',
      );
    return withPassword(username, fromFile ?? fromEnv);
  }
  const user = variable(env, 'ETCDCTL_USER');
  if (user === undefined) {
    if (fromFile !== undefined) throw new UsageError('--password-file needs --user');
    return undefined;
  }
  const { username, password } = splitUser(user);
  return withPassword(username, fromFile ?? password ?? fromEnv);
}

function withPassword(username: string, password: string | undefined): { username: string; password: string } {
  if (username === '') throw new UsageError('the name of the user is empty');
  if (password === '') throw new UsageError(`the password of user "${username}" is empty`);
  if (password === undefined) {
    throw new UsageError(`user "${username}" needs a password: give --password-file, or set ETCDCTL_PASSWORD`);
  }
  return { username, password };
}

/**
 * What to connect with: flags first, then the environment, then defaults.
 * @throws UsageError
 */
export function connectOptions(flags: GlobalFlags, env: Environment): Omit<ConnectOptions, 'signal'> {
  const tls = credentials(flags, env);
  const user = auth(flags, env);
  const endpoints = givenEndpoints(flags, env) ?? [DEFAULT_ENDPOINT];
  const isSecure = tls !== undefined || endpoints.some((endpoint) => /^https:/i.test(endpoint));
  return {
    hosts: endpoints.map((endpoint) => toUrl(endpoint, isSecure)),
    connectTimeout: flags.timeout,
    ...(tls !== undefined && { credentials: tls }),
    ...(user !== undefined && { auth: user }),
    ...(flags.namespace !== undefined && { namespace: flags.namespace }),
    ...(flags.ttl !== undefined && { ttl: flags.ttl }),
  };
}
