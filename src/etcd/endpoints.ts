/** Host names as users write them, made into addresses. */
import { InvalidOptionError } from '../core/errors.ts';

export interface Endpoint {
  /** `http://host:port`, `https://host:port` or `unix:///path`: for messages, and for etcd3. */
  readonly url: string;
  readonly secure: boolean;
}

const DEFAULT_PORT = '2379';

/**
 * One host. The text is not repeated in messages where it may hold a password.
 * @param secureByDefault what a host without a scheme means
 */
export function parseEndpoint(host: string, secureByDefault: boolean): Endpoint {
  if (typeof host !== 'string') throw new InvalidOptionError('hosts: each must be text such as http://127.0.0.1:2379');
  if (/^\s*unix:/i.test(host)) return parseSocket(host.trim());
  if (host.includes('@')) {
    throw new InvalidOptionError('hosts: no user or password in a URL; pass them as the option auth');
  }
  const text = host.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    throw new InvalidOptionError(`hosts: "${host}" must start with http://, https:// or unix:///`);
  }
  const secure = scheme === undefined ? secureByDefault : scheme === 'https';
  const address = scheme === undefined ? text : text.slice(scheme.length + 3);
  // URL drops a port that is the scheme's default (80, 443); under a scheme that it knows no port for, it keeps all.
  const url = URL.canParse(`etcd://${address}`) ? new URL(`etcd://${address}`) : undefined;
  const bare =
    url !== undefined && (url.pathname === '' || url.pathname === '/') && url.search === '' && url.hash === '';
  if (url === undefined || !bare || url.hostname === '' || /[\s,]/.test(address)) {
    throw new InvalidOptionError(`hosts: "${host}" is not a host: write http://name:port, several as an array`);
  }
  return { url: `${secure ? 'https' : 'http'}://${url.hostname}:${url.port || DEFAULT_PORT}`, secure };
}

/** Where the socket lies is for the client to say: a name without a folder would depend on where it runs. */
function parseSocket(host: string): Endpoint {
  const path = /^unix:\/\/(\/[^\s,?#]+)$/i.exec(host)?.[1];
  if (path === undefined)
    throw new InvalidOptionError(`hosts: "${host}" is no socket: write unix:///path/of/the/socket`);
  return { url: `unix://${path}`, secure: false };
}

/** Whether both name the same host and port; text that names none is the same as nothing. */
export function sameEndpoint(a: string, b: string): boolean {
  try {
    return parseEndpoint(a, false).url === parseEndpoint(b, false).url;
  } catch {
    return false;
  }
}

/** All hosts, each once, in their order. Refuses http beside https, and http where there are TLS credentials. */
export function parseEndpoints(hosts: string | readonly string[], hasCredentials: boolean): Endpoint[] {
  const list = typeof hosts === 'string' ? [hosts] : hosts;
  if (!Array.isArray(list)) throw new InvalidOptionError('hosts: must be text or an array of texts');
  const byUrl = new Map<string, Endpoint>();
  for (const host of list) {
    const endpoint = parseEndpoint(host, hasCredentials);
    byUrl.set(endpoint.url, endpoint);
  }
  const endpoints = [...byUrl.values()];
  const plain = endpoints.find((endpoint) => !endpoint.secure);
  if (plain !== undefined && hasCredentials) {
    throw new InvalidOptionError(`hosts: ${plain.url} is not encrypted but credentials are given; write https://`);
  }
  if (plain !== undefined && endpoints.some((endpoint) => endpoint.secure)) {
    throw new InvalidOptionError('hosts: http and https cannot be mixed');
  }
  return endpoints;
}

/** The endpoint after the one used last; where that is gone from the list, or none was used, the one at `start`. */
export function nextEndpoint(endpoints: readonly Endpoint[], lastUrl: string | undefined, start: number): Endpoint {
  const last = endpoints.findIndex((endpoint) => endpoint.url === lastUrl);
  const index = last === -1 ? start : last + 1;
  return endpoints[index % endpoints.length] as Endpoint;
}
