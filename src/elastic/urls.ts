import { basename, dirname, join } from 'node:path';
import { InvalidOptionError } from '../core/errors.ts';

/** URLs as etcd takes them: a scheme, a host, a port, nothing else. */
export function checkUrls(name: string, urls: readonly string[]): readonly string[] {
  if (!Array.isArray(urls) || urls.length === 0)
    throw new InvalidOptionError(`${name} is a list of URLs, at least one`);
  return urls.map((url) => checkUrl(name, url));
}

function checkUrl(name: string, text: string): string {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    url !== undefined && (url.pathname === '/' || url.pathname === '') && url.search === '' && url.hash === '';
  const hasPort = /:\d+\/?$/.test(String(text));
  if (!url || !/^https?:$/.test(url.protocol) || !isPlain || !hasPort || url.username !== '' || url.password !== '') {
    throw new InvalidOptionError(
      `${name}: "${String(text)}" is none of etcd's URLs: http://host:port or https://host:port`,
    );
  }
  return text.replace(/\/$/, '');
}

export function isLoopback(url: string): boolean {
  if (isSocket(url)) return true;
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname);
}

const SOCKET_SCHEME = 'unix://';
/** A socket's path is no longer than this on Linux, in bytes; elsewhere it may be a little less. */
const SOCKET_PATH_BYTES = 107;

/** etcd wants a socket's name to look like host:port, and makes it in the folder that it runs in. */
export const SERVER_SOCKET = `${SOCKET_SCHEME}server.sock:0`;
const CLIENT_SOCKET_NAME = 'client.sock:0';

/** @throws InvalidOptionError when the folder's path is too long for that */
export function clientSocketIn(folder: string): string {
  const path = join(folder, CLIENT_SOCKET_NAME);
  const tooMany = Buffer.byteLength(path) - SOCKET_PATH_BYTES;
  if (tooMany <= 0) return SOCKET_SCHEME + path;
  throw new InvalidOptionError(
    `noNetwork: the path of dataDir is ${tooMany} bytes too long for a socket in it: choose a shorter one`,
  );
}

export function isSocket(url: string): boolean {
  return url.startsWith(SOCKET_SCHEME);
}

/** As etcd's flags take it: without the folder. */
export function asEtcdTakesIt(url: string): string {
  return isSocket(url) ? SOCKET_SCHEME + basename(url) : url;
}

/** A member's own word for its socket leaves out the folder, which is that of the socket it was asked through. */
export function reachable(url: string, askedThrough: string): string {
  if (!isSocket(url) || !isSocket(askedThrough)) return url;
  return SOCKET_SCHEME + join(dirname(askedThrough.slice(SOCKET_SCHEME.length)), basename(url));
}
