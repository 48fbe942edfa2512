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
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname);
}
